"""A trained agent, read back from a run."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces

from a2ls._errors import BadInput
from a2ls.agents import Agent, make_agent
from a2ls.training._job import TrainJob
from a2ls.training._replay_buffer import ReplayBuffer
from a2ls.training._run_folder import RunFolder
from a2ls.training._trainer import require_format


@dataclass(frozen=True)
class TrainedAgent:
    """An agent as a checkpoint has it, and what it learned from."""

    agent: Agent
    replay_buffer: ReplayBuffer
    step: int
    """Environment steps that it had been trained for."""


def read_trained_agent(folder: RunFolder, checkpoint: Path | None = None) -> TrainedAgent:
    """Read an agent and its replay buffer, on the CPU. No environment is made.

    Args:
        folder: The run.
        checkpoint: One of its checkpoints; its last one if not given.

    Raises:
        BadInput: If there is no checkpoint, or it is not one of this run.
    """
    path = checkpoint or folder.checkpoint.path
    if not path.is_file():
        raise BadInput(f"{path} does not exist: a run writes it between two episodes, and at its end")
    try:
        # Mapped, because a replay buffer full of images would not fit into the memory twice.
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)["training"]
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError) as error:
        raise BadInput(f"{path} is no checkpoint of a run") from error
    if not isinstance(state, dict):
        raise BadInput(f"{path} is no checkpoint of a run")
    require_format(state)
    job = folder.job
    try:
        return _trained_agent(job, state)
    # It may be of another run, damaged or a stranger's.
    except (LookupError, TypeError, AttributeError, RuntimeError, ValueError, ArithmeticError, MemoryError) as error:
        raise BadInput(f"{path} is no checkpoint of the run in {folder.path}: its networks are others") from error


def _trained_agent(job: TrainJob, state: dict[str, Any]) -> TrainedAgent:
    config = job.config
    observation_shape, action_space = tuple(state["observation_shape"]), _action_space(state)
    agent = make_agent(config.algorithm, observation_shape, action_space, config.agent, job.loss)
    # Optimisers and generators are of no use here, and the state of a GPU's generator fits no other.
    networks = {name: value for name, value in state["agent"].items() if name != "_extra_state"}
    missing, unexpected = agent.load_state_dict(networks, strict=False)
    if unexpected or set(missing) != {"_extra_state"}:
        raise KeyError(f"missing {missing}, unexpected {unexpected}")
    replay = ReplayBuffer(
        min(config.buffer_size, config.agent_steps),
        observation_shape,
        action_space,
        torch.device("cpu"),
        frames=config.environment.frames,
        replay=config.agent.replay,
    )
    replay.load_state_dict(state["replay"])
    if not isinstance(state["agent_steps"], int) or not 0 <= len(replay) <= config.buffer_size:
        raise ValueError("it does not count steps and transitions")
    return TrainedAgent(agent, replay, state["agent_steps"] * config.environment.action_repeat)


def _action_space(state: dict[str, Any]) -> spaces.Space[Any]:
    if state["discrete_actions"]:
        return spaces.Discrete(state["discrete_actions"])
    return spaces.Box(-1.0, 1.0, state["replay"]["actions"].shape[1:])
