"""Small agents on vectors and on images, what they learn from, and what of them changed."""

import numpy as np
import torch
from gymnasium import spaces

from a2ls.agents import SAC, SACConfig, Transitions
from a2ls.auxiliary import Sequences
from a2ls.space import named_loss

OBSERVATION, ACTION, BATCH, SEQUENCES = 4, 2, 6, 5
CHANNELS, FRAME, SIZE = 9, 14, 12
ACTIONS = spaces.Box(-1.0, 1.0, (ACTION,))
SMALL = {
    "hidden": 16,
    "predictor_hidden": 8,
    "lr": 3e-3,
    "predictor_lr": 4e-3,
    "encoder_lr": 8e-3,
    "alpha_lr": 2e-2,
}
PIXELS = {
    "encoder": "conv",
    "encoder_layers": 2,
    "filters": 4,
    "augmentation": "crop",
    "image_size": SIZE,
    "actor_encoder": "shared",
    "hidden": 8,
}
WINNER, CURL = named_loss("a2-winner"), named_loss("curl")


def make_agent(loss=WINNER, seed=0, **settings):
    return SAC((OBSERVATION,), ACTIONS, SACConfig(**SMALL | settings), loss, seed=seed)


def pixel_agent(loss=WINNER, seed=0, frame=FRAME, **settings):
    return SAC((CHANNELS, frame, frame), ACTIONS, SACConfig(**SMALL | PIXELS | settings), loss, seed=seed)


def images(count=3, seed=0, frame=FRAME):
    """Noise, so that no two windows look alike."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, CHANNELS, frame, frame), dtype=np.uint8)
    return torch.from_numpy(pixels)


def vectors(count=3, seed=0):
    # Never zero, so that a factor can be read off.
    return torch.from_numpy(np.random.default_rng(seed).uniform(0.2, 2, (count, OBSERVATION))).to(
        torch.get_default_dtype()
    )


def transitions(i=0, observed=vectors):
    """The batch of the update of number i, of observations of a kind."""
    g = torch.Generator().manual_seed(i)
    return Transitions(
        observed(BATCH, [1, i]),
        torch.rand(BATCH, ACTION, generator=g) * 2 - 1,
        torch.randn(BATCH, generator=g),
        observed(BATCH, [2, i]),
        (torch.rand(BATCH, generator=g) > 0.3).to(torch.get_default_dtype()),
    )


def sequences(loss, i=0, observed=vectors):
    """Just the elements that the loss selects, or None without a loss."""
    if loss is None:
        return None
    g, steps = torch.Generator().manual_seed(1000 + i), range(loss.horizon + 1)
    selected = [a or b for a, b in zip(loss.source, loss.target, strict=True)]
    return Sequences(
        {t: observed(SEQUENCES, [3 + t, i]) for t in steps if selected[3 * t]},
        {t: torch.randn(SEQUENCES, ACTION, generator=g) for t in steps if selected[3 * t + 1]},
        {t: torch.randn(SEQUENCES, generator=g) for t in steps if selected[3 * t + 2]},
    )


def learn(agent, start, stop, loss=None, observed=vectors):
    """The updates of these numbers, as a training does them; returns their metrics."""
    return [
        agent.update(transitions(i, observed), sequences(loss, i, observed), **agent.schedule(i))
        for i in range(start, stop)
    ]


def snapshot(agent):
    return {name: p.detach().clone() for name, p in agent.named_parameters()}


def part(name):
    """The network of a parameter; the actor is two."""
    return ".".join(name.split(".")[: 2 if name.startswith("actor.") else 1])


def changed(before, after):
    """The networks of which any parameter is not as it was."""
    return {part(name) for name in before if not torch.equal(before[name], after[name])}


class Watched:
    """How many images the bodies of the encoders of an agent are given, call by call, and whether a graph is kept.

    `O` is the encoder, `T` the target encoder, `A` the actor's own body if it has one.
    """

    def __init__(self, agent):
        self.calls = []
        bodies = {"A": agent.actor_body, "O": agent.encoder.body, "T": agent.target_encoder.body}
        names = {body: name for name, body in bodies.items()}
        self._hooks = [body.register_forward_hook(self._note(name)) for body, name in names.items()]

    def _note(self, name):
        return lambda _, inputs, output: self.calls.append((name, len(inputs[0]), output.requires_grad))

    def remove(self):
        for hook in self._hooks:
            hook.remove()


# Agents with weights as if they had been trained.


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def some_agent(observation, seed=0, loss=None, **settings):
    agent = SAC(observation, ACTIONS, SACConfig(**{"hidden": 6, "predictor_hidden": 6, **settings}), loss, seed=seed)
    # After the initialisation filters are of one size, biases zero, and target networks the same as the others.
    noise = generator(seed)
    with torch.no_grad():
        for parameter in agent.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=noise), alpha=0.3)
    return agent


CONV = {"encoder": "conv", "encoder_layers": 2, "filters": 3, "image_size": 12}
AGENTS = {
    "dense": ((5,), {}),
    "mlp": ((5,), {"encoder": "mlp", "encoder_layers": 2}),
    "identity": ((5,), {"encoder": "identity"}),
    "scale": ((5,), {"augmentation": "scale"}),
    "conv": ((9, 12, 12), CONV),
    "crop": ((9, 14, 14), {**CONV, "augmentation": "crop", "actor_encoder": "shared"}),
    "drq": ((9, 12, 12), {**CONV, "augmentation": "shift", "actor_encoder": "shared", "augmented_views": 2}),
}
