"""Agents of all kinds with networks of a few units, and weights as if they had been trained."""

import torch
from gymnasium.spaces import Box

from a2ls.agents import SAC, SACConfig


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def some_agent(observation, seed=0, loss=None, **settings):
    agent = SAC(
        observation, Box(-1, 1, (2,)), SACConfig(**{"hidden": 6, "predictor_hidden": 6, **settings}), loss, seed=seed
    )
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
