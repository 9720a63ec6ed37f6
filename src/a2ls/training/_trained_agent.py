"""A trained agent, read back from a run."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from gymnasium import spaces

from a2ls._errors import BadInput
from a2ls.agents import Agent, make_agent
from a2ls.envs import make_env
from a2ls.training._job import TrainJob
from a2ls.training._policy import TrainedPolicy, load_networks, read_policy
from a2ls.training._replay_buffer import ReplayBuffer
from a2ls.training._run_folder import KEPT_POLICIES, PolicyName, RunFolder
from a2ls.training._trainer import require_format


@dataclass(frozen=True)
class TrainedAgent:
    """An agent as a checkpoint has it, and what it learned from."""

    agent: Agent
    replay_buffer: ReplayBuffer
    step: int
    """Environment steps that it had been trained for."""


def load_agent(path: str | Path, policy: PolicyName = "last") -> TrainedPolicy:
    """Read a trained agent, on the CPU, to let it act.

    Args:
        path: The folder of a run, or one file of a policy, such as those that searches keep.
        policy: Of a run: the `last` policy, which its training ended with, or that of its `best` evaluation.

    Raises:
        BadInput: If there is none, or the file is damaged or something else.

    Example:
        >>> agent = load_agent("runs/pendulum", policy="best")
        >>> agent.job.loss, agent.score
        >>> obs, _ = agent.make_env().reset(seed=0)
        >>> action = agent.predict(obs)
    """
    path = Path(path)
    if path.is_file():
        return read_policy(path)
    if not path.exists():
        raise BadInput(f"there is no {path}: give the folder of a run, or the file of a policy")
    if policy not in get_args(PolicyName):
        raise BadInput(f"policy is {policy!r}, but must be one of {', '.join(get_args(PolicyName))}")
    folder = RunFolder(path)
    if folder.policy(policy).is_file():
        return read_policy(folder.policy(policy))
    if policy == "last" and folder.checkpoint.path.is_file():  # Killed before an evaluation, or of an earlier version.
        return _from_checkpoint(folder)
    kept = sorted((path / KEPT_POLICIES).rglob("*.safetensors"))
    if kept:
        raise BadInput(f"{path} holds {len(kept)} policies: name one of them, such as {kept[0]}")
    raise BadInput(
        f"{path} holds no {folder.policy(policy).name}: `a2ls train` writes it at each evaluation, and searches and "
        "benchmarks keep policies when they are asked by --keep-policies"
    )


def _from_checkpoint(folder: RunFolder) -> TrainedPolicy:
    trained, job = read_trained_agent(folder), folder.job
    with closing(make_env(job.config.environment)) as env:
        actions = env.env.action_space
        curve = folder.read_curve().until(trained.step)
        score = curve.points[-1].score if curve.points else float("nan")
        shape = env.observation_shape
    return TrainedPolicy(trained.agent, job, shape, actions, trained.step, score, curve.aulc)


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
    load_networks(agent, networks)
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
