"""Rainbow with an optional auxiliary loss on its encoder: the paper's agent for Atari, for any discrete actions.

What it is made of: a distribution of returns instead of their mean (C51), a value and an advantage stream (dueling),
the online network's choice of the next action (double), noise on the weights that explores (noisy), returns of several
steps and prioritised replay. The last two are done by the replay buffer, which is told so by `RainbowConfig.replay`.

One update is a single Adam step on the sum of both losses, as in CURL's version of data-efficient Rainbow. Values are
computed from the body of the encoder, the auxiliary loss from its head, towards the targets of a momentum encoder.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from a2ls.agents._agent import PRIORITIES, Agent, Metrics, Transitions, move_towards, optimizer_step
from a2ls.agents._rainbow_config import RainbowConfig
from a2ls.auxiliary import AuxiliaryLoss, SelfPrediction, Sequences, make_augmentation, make_encoder
from a2ls.space import Loss


class NoisyLinear(nn.Module):
    """A linear layer whose weights have factorised Gaussian noise of learned strength.

    Args:
        inputs: Numbers in.
        outputs: Numbers out.
        sigma: The strength of the noise at the start, for a layer with one input.
    """

    def __init__(self, inputs: int, outputs: int, sigma: float) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), sigma * bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma * bound))

    def forward(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """(B, inputs) to (B, outputs), with new noise for all of the batch; without any if there is no generator."""
        if generator is None:
            return F.linear(x, self.weight, self.bias)
        outputs, inputs = self.weight.shape
        noise_in, noise_out = _signed_root(inputs, x, generator), _signed_root(outputs, x, generator)
        weight = torch.addcmul(self.weight, self.weight_sigma, torch.outer(noise_out, noise_in))
        return F.linear(x, weight, torch.addcmul(self.bias, self.bias_sigma, noise_out))


def _signed_root(size: int, like: Tensor, generator: torch.Generator) -> Tensor:
    noise = torch.randn(size, generator=generator, device=like.device, dtype=like.dtype)
    return noise.sign() * noise.abs().sqrt()


class ReturnNetwork(nn.Module):
    """The distribution of the return of each action: noisy streams for the value and for the advantages."""

    def __init__(self, inputs: int, actions: int, config: RainbowConfig) -> None:
        super().__init__()
        self.actions = actions
        sigma = config.noisy_sigma
        self.hidden = nn.ModuleList(NoisyLinear(inputs, config.hidden, sigma) for _ in range(2))
        self.value = NoisyLinear(config.hidden, config.atoms, sigma)
        self.advantage = NoisyLinear(config.hidden, actions * config.atoms, sigma)

    def forward(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Log-probabilities (B, actions, atoms); without noise if there is no generator."""
        for_value, for_advantage = (F.relu(layer(x, generator)) for layer in self.hidden)
        value = self.value(for_value, generator).unsqueeze(1)
        advantage = self.advantage(for_advantage, generator).unflatten(1, (self.actions, -1))
        return F.log_softmax(value + advantage - advantage.mean(dim=1, keepdim=True), dim=-1)


class Rainbow(Agent):
    """The agent: `act` chooses actions, `update` learns from a batch.

    Args:
        observation_shape: Of one observation: (length,) of a vector, or channels, height and width of an image, whose
            pixels are from 0 to 255 and best stay uint8.
        action_space: The actions to choose from.
        config: Networks and learning.
        loss: The auxiliary loss, or None for the plain agent.
        seed: Determines the initial weights and all noise.
        device: Where the networks are.
    """

    support: Tensor

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        action_space: spaces.Discrete,
        config: RainbowConfig,
        loss: Loss | None = None,
        *,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        self.config = config
        self.device = torch.device(device)
        self.actions = int(action_space.n)
        self.augmentation = make_augmentation(config.augmentation, observation_shape, observation_shape[-1])
        # Layers are initialised from torch's global generator: seed it for them, and leave it as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = make_encoder(
                config.encoder,
                observation_shape,
                layers=config.encoder_layers,
                width=config.encoder_width,
                filters=config.filters,
            )
            with torch.no_grad():
                body_dim = self.encoder.body(torch.zeros(1, *observation_shape)).shape[1]
            self.returns = ReturnNetwork(body_dim, self.actions, config)
            self.auxiliary = None if loss is None else self._make_auxiliary(loss, body_dim)
        self.target_body = copy.deepcopy(self.encoder.body).requires_grad_(False)
        self.target_returns = copy.deepcopy(self.returns).requires_grad_(False)
        self.momentum_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.register_buffer("support", torch.linspace(config.value_min, config.value_max, config.atoms))
        self.to(self.device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.evaluation_generator = torch.Generator(self.device).manual_seed(seed)
        parameters = [*self.encoder.body.parameters(), *self.returns.parameters()]
        if self.auxiliary is not None:
            parameters += [*self.encoder.head.parameters(), *self.auxiliary.parameters()]
        self.optimizer = torch.optim.Adam(parameters, config.lr, eps=config.adam_eps, fused=True)

    def _make_auxiliary(self, loss: Loss, body_dim: int) -> AuxiliaryLoss | SelfPrediction:
        config = self.config
        config.require_loss(loss)
        if config.predictor == "transition":
            return SelfPrediction(loss, self.encoder, body_dim, self.actions)
        return AuxiliaryLoss(
            loss,
            self.encoder.feature_dim,
            self.actions,
            predictor=config.predictor,
            predictor_hidden=config.predictor_hidden,
        )

    @torch.no_grad()
    def act(self, obs: Tensor, *, deterministic: bool) -> Tensor:
        """Actions (B,) for observations (B, *observation): the best ones, with noise on the weights.

        If they shall be deterministic, without that noise, but a few of them are random all the same.
        """
        x = self.encoder.body(obs)
        if not deterministic:
            return self.q_values(self.returns(x, self.generator)).argmax(dim=1)
        best = self.q_values(self.returns(x, None)).argmax(dim=1)
        # From a generator of its own, so that an evaluation changes nothing of the training.
        drawn = torch.rand(2, len(obs), generator=self.evaluation_generator, device=self.device)
        random = (drawn[0] * self.actions).long()
        return torch.where(drawn[1] < self.config.evaluation_epsilon, random, best)

    def schedule(self, update: int) -> dict[str, bool]:
        """Whether the update of this number copies the networks to the targets first."""
        return {"targets": update % self.config.target_every == 0}

    def update(self, batch: Transitions, sequences: Sequences | None = None, *, targets: bool = True) -> Metrics:
        """Learn from a batch, and from sequences if there is an auxiliary loss."""
        if sequences is not None and self.auxiliary is None:
            raise ValueError("sequences were given to an agent without an auxiliary loss")
        if targets:
            move_towards(self.target_body, self.encoder.body, 1.0)
            move_towards(self.target_returns, self.returns, 1.0)
        views = self.views(batch)
        errors = self.errors(views, self.target_distribution(views))
        loss = (errors if batch.weights is None else batch.weights * errors).mean()
        metrics = {"value_loss": loss.detach(), PRIORITIES: errors.detach()}
        if self.auxiliary is not None and not self.config.samples_sequences:
            sequences = Sequences({0: batch.obs}, {}, {})
        if sequences is not None:
            auxiliary = self.auxiliary_loss(sequences)
            metrics["auxiliary_loss"] = auxiliary.detach()
            loss = loss + self.config.auxiliary_weight * auxiliary
        optimizer_step(self.optimizer, loss, max_norm=self.config.max_gradient_norm)
        if self.auxiliary is not None:
            move_towards(self.momentum_encoder, self.encoder, self.config.encoder_tau)
        return metrics

    def q_values(self, log_probabilities: Tensor) -> Tensor:
        """The mean returns (B, actions) of distributions (B, actions, atoms)."""
        return log_probabilities.exp() @ self.support

    def errors(self, batch: Transitions, target: Tensor) -> Tensor:
        """The cross entropy (B,) of the distributions of the actions taken, towards target distributions (B, atoms)."""
        log_probabilities = _chosen(self.returns(self.encoder.body(batch.obs), self.generator), batch.actions)
        return -(target * log_probabilities).sum(dim=-1)

    @torch.no_grad()
    def target_distribution(self, batch: Transitions) -> Tensor:
        """The distributions (B, atoms) that are learned for these transitions, with new noise."""
        # The online network chooses the next action, the target network says what it is worth.
        next_actions = self.q_values(self.returns(self.encoder.body(batch.next_obs), self.generator)).argmax(dim=1)
        log_probabilities = self.target_returns(self.target_body(batch.next_obs), self.generator)
        probabilities = _chosen(log_probabilities, next_actions).exp()
        discounts = self.config.gamma if batch.steps is None else self.config.gamma**batch.steps
        returns = batch.rewards.unsqueeze(1) + (discounts * batch.continues).unsqueeze(1) * self.support
        return projected(probabilities, returns, self.support)

    def auxiliary_loss(self, sequences: Sequences) -> Tensor:
        """The auxiliary loss on random views of the states; those of source and target are different."""
        assert self.auxiliary is not None
        loss: Tensor
        if isinstance(self.auxiliary, SelfPrediction):
            loss = self.auxiliary(sequences, self.encoder, self.momentum_encoder, self._view)
            return loss
        loss = self.auxiliary(
            sequences,
            lambda obs: self.encoder(self._view(obs)),
            lambda obs: self.momentum_encoder(self._view(obs)),
        )
        return loss

    def views(self, batch: Transitions) -> Transitions:
        """The transitions as values are learned from them: random views, if all losses are augmented."""
        if self.config.augmented == "auxiliary":
            return batch
        return batch._replace(obs=self._view(batch.obs), next_obs=self._view(batch.next_obs))

    def _view(self, obs: Tensor) -> Tensor:
        return self.augmentation.views([obs], self.generator)[0]

    def value_loss(self, batch: Transitions, generator: torch.Generator) -> tuple[nn.Module, Callable[[], Tensor]]:
        """The body of the encoder and the streams, and their loss on one view of the batch, without noise."""
        own, self.generator = self.generator, generator
        try:
            views = self.views(batch)
            target = self.target_distribution(views)
        finally:
            self.generator = own

        def loss() -> Tensor:
            log_probabilities = _chosen(self.returns(self.encoder.body(views.obs), None), views.actions)
            errors = -(target * log_probabilities).sum(dim=-1)
            return (errors if batch.weights is None else batch.weights * errors).mean()

        return nn.ModuleList([self.encoder.body, self.returns]), loss


def projected(probabilities: Tensor, returns: Tensor, support: Tensor) -> Tensor:
    """The distribution on evenly spaced returns that is nearest to one on any others (C51's projection).

    The probability of a return goes to the two of the support that it lies between, the more to the nearer one.

    Args:
        probabilities: (B, atoms).
        returns: Their returns (B, atoms); those outside the support count as its ends.
        support: (atoms,), in ascending order.
    """
    last = len(support) - 1
    places = ((returns - support[0]) / (support[1] - support[0])).clamp(0, last)
    below = places.floor()
    to_upper = probabilities * (places - below)
    lower = below.nan_to_num().long()  # What is not a number has no place, and shows in the probabilities.
    upper = (lower + 1).clamp(max=last)
    distribution = torch.zeros_like(probabilities).scatter_add_(1, lower, probabilities - to_upper)
    return distribution.scatter_add_(1, upper, to_upper)


def _chosen(values: Tensor, actions: Tensor) -> Tensor:
    """The rows (B, atoms) of these actions (B,) in values (B, actions, atoms)."""
    return values[torch.arange(len(actions), device=actions.device), actions]
