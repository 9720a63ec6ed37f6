"""Rainbow with an auxiliary loss written out from its papers, from the weights and the generator of an agent."""

import math

import torch
import torch.nn.functional as F


def rectified(x):
    return torch.where(x > 0, x, 0.0)


def normalised(x):
    return (x - x.mean(1, keepdim=True)) / (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()


def projection(probabilities, returns, low, high):
    """Algorithm 1 of C51: the probability of each return goes to the atoms below and above it, by how near they are."""
    atoms = len(probabilities)
    spacing, projected = (high - low) / (atoms - 1), [0.0] * atoms
    for probability, value in zip(probabilities, returns, strict=True):
        b = min((min(max(value, low), high) - low) / spacing, atoms - 1)
        below, above = math.floor(b), math.ceil(b)
        if below == above:  # Where the algorithm, taken by the letter, would lose it.
            projected[below] += probability
        else:
            projected[below] += probability * (above - b)
            projected[above] += probability * (b - below)
    return projected


class Reference:
    """Every network as a product of its weights; Adam un-fused."""

    def __init__(self, agent):
        self.p = {
            name: p.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
            for name, p in agent.named_parameters()
        }
        self.config = c = agent.config
        self.loss = agent.auxiliary and agent.auxiliary.loss
        self.actions = agent.actions
        self.generator = torch.Generator().set_state(agent.generator.get_state())
        self.support = torch.tensor([
            c.value_min + i * (c.value_max - c.value_min) / (c.atoms - 1) for i in range(c.atoms)
        ])  # fmt: skip
        self.learned = [p for name, p in self.p.items() if not name.startswith(("target_", "momentum_"))]
        self.adam = torch.optim.Adam(self.learned, c.lr, eps=c.adam_eps, foreach=False, fused=False)
        self.disagreements = 0

    # Networks.

    def linear(self, name, x):
        return x @ self.p[f"{name}.weight"].T + self.p[f"{name}.bias"]

    def noise(self, size):
        drawn = torch.randn(size, generator=self.generator)
        return torch.tensor([math.copysign(math.sqrt(abs(e)), e) for e in drawn.tolist()])

    def noisy(self, name, x, noisy):
        """y = (mu_w + sigma_w * eps_w) x + mu_b + sigma_b * eps_b, with eps_w[i, j] = f(eps_i) f(eps_j)."""
        weight, bias = self.p[f"{name}.weight"], self.p[f"{name}.bias"]
        if noisy:
            of_inputs, of_outputs = self.noise(weight.shape[1]), self.noise(weight.shape[0])
            weight = weight + self.p[f"{name}.weight_sigma"] * torch.outer(of_outputs, of_inputs)
            bias = bias + self.p[f"{name}.bias_sigma"] * of_outputs
        return x @ weight.T + bias

    def body(self, name, x):
        kind = self.config.encoder
        if kind == "identity":
            return x
        if kind == "atari":
            x = x.double() / 255
            for i in range(2):
                weight, bias = (self.p[f"{name}.layers.{i}.{which}"] for which in ("weight", "bias"))
                x = rectified(F.conv2d(x, weight, bias, stride=5))
            return x.permute(0, 2, 3, 1).reshape(len(x), -1)
        for i in range(self.config.encoder_layers):
            if kind == "dense":
                x = torch.cat([x, rectified(self.linear(f"{name}.layers.{i}", x))], 1)
            else:
                x = rectified(self.linear(f"{name}.0.{2 * i}", x))
        return x

    def head(self, name, x):
        if self.config.encoder == "identity":
            return x
        for i in range(2 if self.config.encoder == "atari" else 1):
            x = rectified(x) if i else x
            x = normalised(self.linear(f"{name}.{3 * i}", x))
            x = x * self.p[f"{name}.{3 * i + 1}.weight"] + self.p[f"{name}.{3 * i + 1}.bias"]
        return x

    def encode(self, name, x):
        return self.head(f"{name}.head", self.body(f"{name}.body", x))

    def distributions(self, body, streams, obs, noisy=True):
        """Probabilities (B, actions, atoms): a softmax of v + a - the mean of a over the actions, for every atom."""
        x = self.body(body, obs)
        of_value, of_advantage = (rectified(self.noisy(f"{streams}.hidden.{i}", x, noisy)) for i in range(2))
        value = self.noisy(f"{streams}.value", of_value, noisy)
        advantages = self.noisy(f"{streams}.advantage", of_advantage, noisy).reshape(len(x), self.actions, -1)
        mean = sum(advantages[:, a] for a in range(self.actions)) / self.actions
        scores = torch.stack([value + advantages[:, a] - mean for a in range(self.actions)], 1).exp()
        return scores / scores.sum(2, keepdim=True)

    def best(self, distributions):
        return (distributions * self.support).sum(2).argmax(1)

    # Views.

    def view(self, images):
        """Each image moved by up to four pixels, first the rows of all and then the columns; its edge is repeated."""
        if self.config.augmentation == "none":
            return images
        padded, size = F.pad(images.double(), (4, 4, 4, 4), mode="replicate"), images.shape[-1]
        tops, lefts = (torch.randint(9, (len(images),), generator=self.generator).tolist() for _ in range(2))
        return torch.stack([
            image[:, top : top + size, left : left + size]
            for image, top, left in zip(padded, tops, lefts, strict=True)
        ])  # fmt: skip

    # Learning.

    def targets(self, batch, next_obs):
        """Double: the online network chooses the action, the target network says how its return is distributed."""
        c, rows = self.config, []
        chosen = self.best(self.distributions("encoder.body", "returns", next_obs))
        distributions = self.distributions("target_body", "target_returns", next_obs)
        self.disagreements += int((chosen != self.best(distributions)).sum())
        for i, action in enumerate(chosen.tolist()):
            discount = c.gamma ** (1 if batch.steps is None else int(batch.steps[i]))
            if not batch.continues[i]:
                discount = 0.0
            returns = [batch.rewards[i].item() + discount * z for z in self.support.tolist()]
            rows.append(projection(distributions[i, action].tolist(), returns, c.value_min, c.value_max))
        return torch.tensor(rows)

    def side(self, mask, encoder, given):
        """The elements of a side in the order of the mask, states by their features and actions one-hot."""
        chosen = [("sar"[i % 3], i // 3) for i, bit in enumerate(mask) if bit]
        states = [given.states[t] for kind, t in chosen if kind == "s"]
        features = iter(self.encode(encoder, self.view(torch.cat(states))).split(len(states[0])) if states else ())
        columns = {
            "s": lambda _: next(features),
            "a": lambda t: torch.eye(self.actions)[given.actions[t]],
            "r": lambda t: given.rewards[t][:, None],
        }
        return torch.cat([columns[kind](t) for kind, t in chosen], 1)

    def auxiliary(self, batch, given):
        if self.config.auxiliary_batch == "shared":
            return self.curl(batch.obs)
        if self.config.predictor == "transition":
            return self.spr(given)
        y = self.side(self.loss.source, "encoder", given)
        if self.loss.predictor:
            y = self.linear("auxiliary.predictor.2", rectified(self.linear("auxiliary.predictor.0", y)))
        return ((y - self.side(self.loss.target, "momentum_encoder", given).detach()) ** 2).mean()

    def spr(self, given):
        """From the first latent state on its own, by the actions: 1 - cos of each with what is observed, on vectors."""
        latent, loss, steps = self.body("encoder.body", given.states[0]), 0.0, len(given.actions)
        for t in range(steps):
            x = torch.cat([latent, torch.eye(self.actions)[given.actions[t]]], 1)
            x = rectified(self.linear("auxiliary.transition.layers.0", x))
            latent = self.linear("auxiliary.transition.layers.2", x)
            y = self.linear("auxiliary.predictor", self.head("encoder.head", latent))
            wanted = self.encode("momentum_encoder", given.states[t + 1]).detach()
            loss = loss + (1 - (y * wanted).sum(1) / (y.norm(dim=1) * wanted.norm(dim=1))).mean()
        return loss

    def curl(self, obs):
        """-log softmax_j (q_i W k_j) at j = i, of two views of every state."""
        anchors, positives = self.encode("encoder", self.view(obs)), self.encode("momentum_encoder", self.view(obs))
        scores = anchors @ self.p["auxiliary.operator.function.weight"] @ positives.detach().T
        return (scores.logsumexp(1) - scores.diagonal()).mean()

    def step(self, loss):
        """One step on a gradient that is at most so long."""
        for p in self.p.values():
            p.grad = None
        loss.backward()
        gradients = [p.grad for p in self.learned if p.grad is not None]
        norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
        for gradient in gradients:
            gradient.mul_(min(1.0, self.config.max_gradient_norm / (norm + 1e-6)))
        self.adam.step()

    def update(self, batch, given, *, targets):
        """One update; returns its metrics."""
        c = self.config
        if targets:
            for name, value in self.p.items():
                if name.startswith("target_"):
                    source = name.replace("target_body", "encoder.body").replace("target_returns", "returns")
                    value.data = self.p[source].data.clone()
        obs, next_obs = batch.obs, batch.next_obs
        if c.augmented == "all":
            obs, next_obs = self.view(obs), self.view(next_obs)
        wanted = self.targets(batch, next_obs)
        distributions = self.distributions("encoder.body", "returns", obs)
        # The cross entropy, by which transitions are weighted in the memory as well.
        errors = torch.stack([-(wanted[i] * distributions[i, a].log()).sum() for i, a in enumerate(batch.actions)])
        weights = [1.0] * len(errors) if batch.weights is None else batch.weights.tolist()
        loss = sum(weight * error for weight, error in zip(weights, errors, strict=True)) / len(errors)
        metrics = {"value_loss": loss.item(), "priorities": errors.tolist()}
        if self.loss is not None:
            auxiliary = self.auxiliary(batch, given)
            metrics["auxiliary_loss"] = auxiliary.item()
            loss = loss + c.auxiliary_weight * auxiliary
        self.step(loss)
        if self.loss is not None:
            for name, value in self.p.items():
                if name.startswith("momentum_"):
                    source = self.p[name.removeprefix("momentum_")].data
                    value.data = c.encoder_tau * source + (1 - c.encoder_tau) * value.data
        return metrics
