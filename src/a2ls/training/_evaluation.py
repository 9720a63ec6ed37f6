"""Playing whole episodes with a policy: what an agent is judged by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from a2ls.envs import AgentEnv, Observation, UnsuitableEnvironment

Policy = Callable[[Observation], Any]
"""Maps an observation to an action, or a batch of observations to one of actions."""


LONGEST_EVALUATION = 100_000
"""Agent steps after which an evaluation episode is taken to have no end."""


def evaluate(
    policy: Policy, envs: Sequence[AgentEnv], seeds: Sequence[int], on_step: Callable[[], None] = lambda: None
) -> tuple[float, ...]:
    """The return of one episode per environment, played side by side so that the policy sees them as one batch.

    Args:
        policy: Maps observations (E, *observation) to actions (E, action_dim).
        envs: One environment per episode.
        seeds: One seed per episode.
        on_step: Called after each step of all that still play.

    Raises:
        UnsuitableEnvironment: If an episode does not end.
    """
    returns = [0.0] * len(envs)
    observations = {i: env.reset(seed=seed)[0] for i, (env, seed) in enumerate(zip(envs, seeds, strict=True))}
    for _ in range(LONGEST_EVALUATION):
        actions = policy(np.stack(list(observations.values())))
        for i, action in zip(list(observations), actions, strict=True):
            observation, reward, terminated, truncated, _ = envs[i].step(action)
            returns[i] += float(reward)
            if terminated or truncated:
                del observations[i]
            else:
                observations[i] = observation
        on_step()
        if not observations:
            return tuple(returns)
    raise UnsuitableEnvironment(
        f"An evaluation episode had not ended after {LONGEST_EVALUATION:,} agent steps: the environment needs a time "
        "limit, such as max_episode_steps where it is registered."
    )
