"""Episodes played side by side against episodes played one by one."""

import numpy as np
import pytest

from a2ls.training._evaluation import evaluate


class Walk:
    """A seeded random walk, pushed by the actions, whose seed also decides how long it is and how it ends."""

    def reset(self, *, seed):
        self.rng = np.random.default_rng(seed)
        self.left = 3 + seed % 7
        self.by_time_limit = seed % 2 == 0
        self.state = self.rng.normal(size=2).astype(np.float32)
        return self.state, {}

    def step(self, action):
        assert self.left > 0, "stepped after the end"
        self.left -= 1
        self.state = (self.state + action + self.rng.normal(size=2)).astype(np.float32)
        ends = self.left == 0
        return self.state, float(self.state.sum()), ends and not self.by_time_limit, ends and self.by_time_limit, {}


def one_by_one(policy, make, seeds):
    returns = []
    for seed in seeds:
        env, total, ended = make(), 0.0, False
        observation, _ = env.reset(seed=seed)
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(policy(observation[None])[0])
            total += float(reward)
            ended = terminated or truncated
        returns.append(total)
    return tuple(returns)


def test_side_by_side_is_one_by_one_although_lengths_differ():
    calls = []

    def policy(observations):
        calls.append(len(observations))
        return np.clip(-0.5 * observations, -1, 1)

    seeds = [11, 4, 6, 9, 2, 20]  # lengths 7, 7, 9, 5, 5, 9
    returns = evaluate(policy, [Walk() for _ in seeds], seeds)
    assert calls == [6] * 5 + [4] * 2 + [2] * 2  # one call a step of the longest, for those that still run
    assert returns == one_by_one(policy, Walk, seeds)
    assert len(set(returns)) == len(seeds)


def test_a_seed_for_every_environment():
    with pytest.raises(ValueError, match="zip"):
        evaluate(lambda observations: observations, [Walk(), Walk()], [1])
