"""SAC with an auxiliary loss in formulas of its own, from the weights and the generator of an agent."""

import torch
import torch.nn.functional as F
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


def rectified(x):
    return torch.where(x > 0, x, 0.0)


class Reference:
    """Every network as a product of its weights; Adam un-fused, on weights in the usual order of memory."""

    def __init__(self, agent):
        self.p = {
            name: p.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
            for name, p in agent.named_parameters()
        }
        self.config = c = agent.config
        self.loss = agent.auxiliary and agent.auxiliary.loss
        self.actions = agent.target_critic.q1[0].in_features - agent.encoder.feature_dim
        self.generator = torch.Generator().set_state(agent.generator.get_state())
        encoder, auxiliary = self.named("encoder."), self.named("auxiliary.")
        self.critic_adam = self.adam([*encoder, *self.named("critic.")], c.lr)
        self.actor_adam = self.adam(self.named("actor."), c.lr)
        self.alpha_adam = self.adam([self.p["log_alpha"]], c.alpha_lr, betas=(0.5, 0.999))
        # As in the published code: one Adam steps encoder and predictor, another of the same rate the encoder again.
        self.auxiliary_adams = [self.adam(ps, c.predictor_lr) for ps in ([*encoder, *auxiliary], encoder)]

    @staticmethod
    def adam(parameters, rate, **options):
        # Without an encoder there is nothing to step for one of them.
        parameters = parameters or [torch.zeros(1, requires_grad=True)]
        return torch.optim.Adam(parameters, rate, foreach=False, fused=False, **options)

    def named(self, prefix):
        return [value for name, value in self.p.items() if name.startswith(prefix)]

    # Networks.

    def linear(self, name, x):
        return x @ self.p[f"{name}.weight"].T + self.p[f"{name}.bias"]

    def mlp(self, name, x):
        x = rectified(self.linear(f"{name}.0", x))
        return self.linear(f"{name}.4", rectified(self.linear(f"{name}.2", x)))

    def body(self, name, x):
        for i in range(self.config.encoder_layers):
            if self.config.encoder == "dense":
                x = torch.cat([x, rectified(self.linear(f"{name}.layers.{i}", x))], 1)
            elif self.config.encoder == "mlp":
                x = rectified(self.linear(f"{name}.0.{2 * i}", x))
            elif self.config.encoder == "conv":
                x = x.double() / 255 if i == 0 else x
                weight, bias = (self.p[f"{name}.layers.{i}.{which}"] for which in ("weight", "bias"))
                x = rectified(F.conv2d(x, weight, bias, stride=2 if i == 0 else 1))
        return x.permute(0, 2, 3, 1).reshape(len(x), -1) if self.config.encoder == "conv" else x

    def head(self, name, x):
        if self.config.encoder == "identity":
            return x
        x = self.linear(f"{name}.0", x)
        x = (x - x.mean(1, keepdim=True)) / (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        return x * self.p[f"{name}.1.weight"] + self.p[f"{name}.1.bias"]

    def encode(self, name, x):
        return self.head(f"{name}.head", self.body(f"{name}.body", x))

    def least_q(self, name, features, actions):
        return torch.minimum(*self.qs(name, features, actions))

    def qs(self, name, features, actions):
        return [self.mlp(f"{name}.{q}", torch.cat([features, actions], 1))[:, 0] for q in ("q1", "q2")]

    def gaussian(self, obs):
        """The policy before it is squashed; the body is a constant for the actor."""
        body = "encoder.body" if self.config.actor_encoder == "shared" else "actor_body"
        features = self.head("actor.head", self.body(body, obs).detach())
        mean, log_std = self.mlp("actor.net", features).chunk(2, dim=1)
        return mean, (-10 + 6 * (log_std.tanh() + 1)).exp()

    def policy(self, obs):
        """Actions and their log-probabilities."""
        mean, std = self.gaussian(obs)
        actions = (mean + std * torch.randn(mean.shape, generator=self.generator)).tanh()
        return actions, TransformedDistribution(Normal(mean, std), TanhTransform()).log_prob(actions).sum(1)

    def predict(self, x):
        if not self.loss.predictor or self.config.predictor == "none":
            return x
        x = self.linear("auxiliary.predictor.0", x)
        if self.config.predictor == "paper":
            return self.linear("auxiliary.predictor.2", rectified(x))
        x = (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()
        x = x * self.p["auxiliary.predictor.1.weight"] + self.p["auxiliary.predictor.1.bias"]
        return self.linear("auxiliary.predictor.3", rectified(x))

    # Views.

    def draw(self, places, count):
        """As many numbers from 0 to places - 1, first of the rows and then of the columns."""
        return list(zip(*(torch.randint(places, (count,), generator=self.generator) for _ in range(2)), strict=True))

    def view(self, blocks):
        kind, size, frame, count = self.config.augmentation, self.config.image_size, blocks[0].shape[-1], len(blocks[0])
        if kind == "scale":
            factors = torch.empty(count, 1).uniform_(0.5, 1.5, generator=self.generator)
            return [block * factors for block in blocks]
        if kind == "noise":
            return [block + torch.randn(block.shape, generator=self.generator) for block in blocks]
        if kind == "translate":
            views = [torch.zeros(*block.shape[:2], size, size) for block in blocks]
            most = size - frame
            for i, (top, left) in enumerate(self.draw(most + 1, count)):
                for view, block in zip(views, blocks, strict=True):
                    view[i, :, most - top : size - top, most - left : size - left] = block[i]
            return views
        if kind == "shift":
            blocks, size = [F.pad(block.double(), (4, 4, 4, 4), mode="replicate") for block in blocks], frame
        if kind in ("crop", "shift"):
            return [
                torch.stack([
                    image[:, top : top + size, left : left + size]
                    for image, (top, left) in zip(block, self.draw(block.shape[-1] - size + 1, count), strict=True)
                ])
                for block in blocks
            ]  # fmt: skip
        return list(blocks)

    # Learning.

    def side(self, mask, encoder, given):
        """The elements of a side in the order of the mask, states by their features."""
        chosen = [("sar"[i % 3], i // 3) for i, bit in enumerate(mask) if bit]
        states = [t for kind, t in chosen if kind == "s"]
        if self.config.auxiliary_views == "shared":  # Both sides have the views that were drawn before.
            views = [self.seen[t] for t in states]
        else:
            views = self.view([given.states[t] for t in states]) if states else []
        features = iter([self.encode(encoder, view) for view in views])
        columns = {
            "s": lambda _: next(features),
            "a": lambda t: given.actions[t],
            "r": lambda t: given.rewards[t][:, None],
        }
        return torch.cat([columns[kind](t) for kind, t in chosen], 1)

    def auxiliary(self, given):
        if self.config.auxiliary_views == "shared":
            steps = sorted(given.states)
            self.seen = dict(zip(steps, self.view([given.states[t] for t in steps]), strict=True))
        y = self.predict(self.side(self.loss.source, "encoder", given))
        return self.compare(y, self.side(self.loss.target, "target_encoder", given).detach())

    def curl(self, batch, views):
        """The critic's view of a state against another view of it: -log softmax_j (z_i W z'_j) at j = i."""
        (other,) = self.view([batch.obs])
        anchors, positives = self.encode("encoder", views[0][0]), self.encode("target_encoder", other).detach()
        logits = anchors @ (self.p["auxiliary.operator.function.weight"] @ positives.T)
        logits = logits - logits.max(1, keepdim=True).values
        return F.cross_entropy(logits, torch.arange(len(logits)))

    def compare(self, y, target):
        similarity, negatives = self.loss.operator.similarity, self.loss.operator.negatives
        if similarity in ("nmse", "cosine"):
            y, target = (x / x.norm(dim=1, keepdim=True) for x in (y, target))
        if similarity in ("mse", "nmse"):
            others = torch.cat([target[-1:], target[:-1]])
            return (y - target).square().mean() - negatives * (y - others).square().mean()
        if similarity == "bilinear":
            y = y @ self.p["auxiliary.operator.function.weight"]
        scores = (y[:, None] * target).sum(2) * (1 if negatives else torch.eye(len(y)))
        return (scores.logsumexp(1) - scores.diagonal()).mean()

    def step(self, loss, *optimizers):
        for value in self.p.values():
            value.grad = None
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item()

    def update(self, batch, given, *, actor, targets):
        """One update; returns its metrics."""
        c, alpha = self.config, self.p["log_alpha"].exp()
        views = [self.view([batch.obs, batch.next_obs]) for _ in range(c.augmented_views)]
        # Critics: r + gamma (min Q'(s', a') - alpha log pi(a'|s')), the mean over the views of s'.
        next_obs = torch.cat([view for _, view in views])
        next_actions, log_prob = self.policy(next_obs)
        next_q = self.least_q("target_critic", self.encode("target_encoder", next_obs), next_actions)
        next_value = (next_q - alpha * log_prob).view(c.augmented_views, -1).mean(0)
        y = (batch.rewards + c.gamma * batch.continues * next_value).detach()
        errors = [
            (q - y).square().mean() / len(views)
            for obs, _ in views
            for q in self.qs("critic", self.encode("encoder", obs), batch.actions)
        ]
        metrics = {"critic_loss": self.step(sum(errors), self.critic_adam), "target_value": y.mean().item()}
        if actor:
            obs = views[0][0]
            actions, log_prob = self.policy(obs)
            q = self.least_q("critic", self.encode("encoder", obs).detach(), actions)
            metrics["actor_loss"] = self.step((alpha.detach() * log_prob - q).mean(), self.actor_adam)
            metrics |= {"entropy": -log_prob.mean().item(), "alpha": alpha.item()}
            # Alpha falls where the entropy is above minus the number of actions.
            above = (-log_prob + self.actions).detach()
            self.step((self.p["log_alpha"].exp() * above).mean(), self.alpha_adam)
        if targets:
            for name, value in self.p.items():
                if name.startswith("target_"):
                    tau = c.critic_tau if name.startswith("target_critic") else c.encoder_tau
                    value.data = tau * self.p[name.removeprefix("target_")].data + (1 - tau) * value.data
        if given is not None:
            error = self.curl(batch, views) if c.auxiliary_batch == "critic" else self.auxiliary(given)
            metrics["auxiliary_loss"] = error.item()
            self.step(c.auxiliary_weight * error, *self.auxiliary_adams)
        return metrics
