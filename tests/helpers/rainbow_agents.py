"""Small Rainbow agents on vectors and on screens of Atari games, and what they learn from."""

import numpy as np
import torch
from gymnasium.spaces import Discrete

from a2ls.agents import Rainbow, RainbowConfig, Transitions
from a2ls.auxiliary import Sequences
from helpers.agents import OBSERVATION, vectors

ACTIONS, BATCH, SEQUENCES = 3, 6, 5
SCREEN, SCREENS = (4, 84, 84), 3
# A support that returns leave at both ends, noise that matters, and targets that are not those of the last update.
SMALL = {
    "encoder": "dense",
    "encoder_width": 5,
    "hidden": 8,
    "predictor_hidden": 7,
    "atoms": 6,
    "value_min": -3.0,
    "value_max": 4.0,
    "noisy_sigma": 0.7,
    "gamma": 0.8,
    "lr": 1e-2,
    "encoder_tau": 0.3,
    "target_every": 3,
    "evaluation_epsilon": 0.0,
}


def rainbow(loss=None, seed=0, **settings):
    return Rainbow((OBSERVATION,), Discrete(ACTIONS), RainbowConfig(**SMALL | settings), loss, seed=seed)


def screen_rainbow(loss=None, seed=0, **settings):
    config = RainbowConfig(**SMALL | {"encoder": "atari", "augmentation": "shift"} | settings)
    return Rainbow(SCREEN, Discrete(ACTIONS), config, loss, seed=seed)


def screens(count=SCREENS, seed=0):
    """Noise, so that no two windows look alike."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (count, *SCREEN), dtype=np.uint8))


def transitions(i=0, observed=vectors):
    """The batch of the update of number i; every fourth is of single steps that are all equally likely."""
    g, count = torch.Generator().manual_seed(i), SCREENS if observed is screens else BATCH
    batch = Transitions(
        observed(count, [1, i]),
        torch.randint(ACTIONS, (count,), generator=g),
        2 * torch.randn(count, generator=g),
        observed(count, [2, i]),
        (torch.rand(count, generator=g) > 0.4).to(torch.get_default_dtype()),
        torch.randint(1, 5, (count,), generator=g).to(torch.get_default_dtype()),
        0.1 + 0.9 * torch.rand(count, generator=g),
    )
    return batch._replace(steps=None, weights=None) if i % 4 == 3 else batch


def sequences(loss, i=0, observed=vectors):
    """Just the elements that the loss selects."""
    g, steps, count = torch.Generator().manual_seed(1000 + i), range(loss.horizon + 1), SEQUENCES
    selected = [a or b for a, b in zip(loss.source, loss.target, strict=True)]
    return Sequences(
        {t: observed(count, [3 + t, i]) for t in steps if selected[3 * t]},
        {t: torch.randint(ACTIONS, (count,), generator=g) for t in steps if selected[3 * t + 1]},
        {t: torch.randn(count, generator=g) for t in steps if selected[3 * t + 2]},
    )


def given_to(agent, loss, i, observed=vectors):
    """The sequences of an update, or None where the agent has no use for them."""
    return sequences(loss, i, observed) if loss is not None and agent.config.samples_sequences else None
