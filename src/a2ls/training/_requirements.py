"""What a training needs of the machine."""

from __future__ import annotations

import torch

from a2ls._errors import BadInput
from a2ls.agents import make_agent
from a2ls.envs import make_env
from a2ls.training._config import TrainConfig


def require_trainable(config: TrainConfig, *, render: bool = False) -> None:
    """Check that this machine has what a training needs, before anything is written for it.

    Raises:
        BadInput: If the device is not there, the environment cannot be used, or drawn, or the networks do not suit it.
    """
    require_device(config.device)
    env = make_env(config.environment, render=render)
    env.close()
    make_agent(config.algorithm, env.observation_shape, env.action_space, config.agent)


def require_device(name: str) -> None:
    """Check that this machine can train on a device.

    Raises:
        BadInput: If it cannot, naming the devices that it has.
    """
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available[name.partition(":")[0]]:
        there = ", ".join(device for device, yes in available.items() if yes)
        raise BadInput(f"device is {name!r}, which this machine or its PyTorch lacks; available: {there}")
