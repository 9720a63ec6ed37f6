"""Playing episodes with the deterministic policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from a2ls.envs import AgentEnv, Observation

Policy = Callable[[Observation], Any]
"""Maps an observation to an action, or a batch of observations to one of actions."""


def evaluate(policy: Policy, envs: Sequence[AgentEnv], seeds: Sequence[int]) -> tuple[float, ...]:
    """The return of one episode per environment, played side by side so that the policy sees them as one batch.

    Args:
        policy: Maps observations (E, *observation) to actions (E, action_dim).
        envs: One environment per episode.
        seeds: One seed per episode.
    """
    returns = [0.0] * len(envs)
    observations = {i: env.reset(seed=seed)[0] for i, (env, seed) in enumerate(zip(envs, seeds, strict=True))}
    while observations:
        actions = policy(np.stack(list(observations.values())))
        for i, action in zip(list(observations), actions, strict=True):
            observation, reward, terminated, truncated, _ = envs[i].step(action)
            returns[i] += float(reward)
            if terminated or truncated:
                del observations[i]
            else:
                observations[i] = observation
    return tuple(returns)
