"""`SequenceSampler` against a list of all sequences that an episode, kept whole, has."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls import AuxiliaryLoss, SequenceSampler
from a2ls._errors import BadInput
from a2ls.space import Loss
from helpers.losses import valid_loss

SIZE = 12
FIRST = {"s": 0, "a": 10_000, "r": 20_000}


class Ring:
    """A buffer that writes over its oldest rows, and beside it all that it was given, env by env.

    Observations, actions and rewards are numbers of moments, each kind from another one on. Within an episode moments
    follow each other; the last observation of one is not the first one of the next.
    """

    def __init__(self, size, envs):
        shape = (size,) if envs is None else (size, envs)
        self.obs, self.next_obs, self.actions = (np.full((*shape, 1), -1.0) for _ in range(3))
        self.rewards, self.dones = np.full(shape, -1.0), np.zeros(shape, bool)
        self.size, self.envs, self.added = size, envs, 0
        self.histories = [[] for _ in range(envs or 1)]
        self.moments = [1_000 * env for env in range(envs or 1)]
        self.episodes = [0] * (envs or 1)

    def add(self, ends):
        for env, (end, moment) in enumerate(zip(ends, self.moments, strict=True)):
            at = self.added % self.size if self.envs is None else (self.added % self.size, env)
            self.obs[at], self.next_obs[at], self.actions[at] = moment, moment + 1, FIRST["a"] + moment
            self.rewards[at], self.dones[at] = FIRST["r"] + moment, end
            self.histories[env].append((self.episodes[env], moment))
            self.moments[env] += 2 if end else 1
            self.episodes[env] += end
        self.added += 1

    @property
    def state(self):
        return {"position": self.added % self.size, "full": self.added >= self.size}

    def sequences(self, loss, *, with_next):
        """All that may be drawn: moments of the selected elements, in order."""
        elements = sorted({(e.kind, e.step) for e in (*loss.source_elements, *loss.target_elements)})
        first = min(step for _, step in elements)
        elements = [(kind, step - first) for kind, step in elements]
        # The last state is within the transition before it, if that has it.
        rows = max([1, *(step + (kind != "s" or not with_next) for kind, step in elements)])
        found = set()
        for kept in (history[-self.size :] for history in self.histories):
            for start in range(len(kept) - rows + 1):
                if len({episode for episode, _ in kept[start : start + rows]}) == 1:
                    found.add(tuple(FIRST[kind] + kept[start][1] + step for kind, step in elements))
        return found


def drawn(sequences):
    """The same of a batch."""
    parts = {"s": sequences.states, "a": sequences.actions, "r": sequences.rewards}
    columns = sorted((kind, step) for kind, steps in parts.items() for step in steps)
    return list(zip(*(parts[kind][step].reshape(-1).tolist() for kind, step in columns), strict=True))


@settings(max_examples=100)
@given(
    valid_loss(max_horizon=4),
    st.sampled_from([None, 1, 3]),
    st.integers(0, 40).flatmap(
        lambda steps: st.lists(st.lists(st.integers(0, 5).map(lambda n: n == 0), min_size=3, max_size=3),
                               min_size=steps, max_size=steps)
    ),
    st.booleans(),
)  # fmt: skip
def test_what_is_drawn_is_what_there_is_within_episodes_and_all_of_it(loss, envs, ends, with_next):
    ring = Ring(SIZE, envs)
    for row in ends:
        ring.add(row[: envs or 1])
    sampler = SequenceSampler(
        loss, ring.obs, ring.actions, ring.rewards, ring.dones, next_obs=ring.next_obs if with_next else None
    )
    expected = ring.sequences(loss, with_next=with_next)
    sequences = sampler.sample(30 * 3 * SIZE, np.random.default_rng(0), **ring.state)
    assert (sequences is None) == (not expected)
    if expected:
        assert set(drawn(sequences)) == expected


def test_every_start_is_equally_likely_where_few_are_valid():
    """Of episodes of 1, 1, 1, 3 and 6 transitions, in which a sequence of three starts once and four times."""
    ring = Ring(SIZE, None)
    for end in (1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1):
        ring.add([end])
    sampler = SequenceSampler("s0 -> s3", ring.obs, ring.actions, ring.rewards, ring.dones, next_obs=ring.next_obs)
    counts = np.unique(
        drawn(sampler.sample(10_000, np.random.default_rng(0), **ring.state)), axis=0, return_counts=True
    )
    assert len(counts[1]) == 5
    assert np.abs(counts[1] - 2_000).max() < 5 * np.sqrt(2_000)


def test_batches_are_tensors_that_went_through_the_transforms():
    ring = Ring(SIZE, 2)
    for _ in range(20):
        ring.add([False, False])
    columns = ring.obs.astype(np.float32), ring.actions.astype(np.int64), ring.rewards[..., None], ring.dones
    sampler = SequenceSampler(
        Loss.parse("s0 a0 -> r0 s1"),
        *columns,
        obs_transform=lambda obs: obs / 2,
        reward_transform=lambda r: r - FIRST["r"],
    )
    states, actions, rewards = sampler.sample(8, np.random.default_rng(0), **ring.state)
    assert {(each.dtype, each.shape) for each in states.values()} == {(torch.float32, (8, 1))}
    assert (actions[0].dtype, actions[0].shape, rewards[0].shape) == (torch.int64, (8, 1), (8,))
    assert torch.equal(2 * states[0][:, 0], rewards[0])
    assert torch.equal(actions[0][:, 0] - FIRST["a"], rewards[0])


def test_numbers_of_64_bits_become_those_that_networks_have():
    obs, actions, rewards, dones = np.ones((9, 3)), np.ones((9, 2)), np.ones(9), np.zeros(9, bool)
    sampler = SequenceSampler("s0 a0 -> r0 s1", obs, actions, rewards, dones, next_obs=obs)
    sequences = sampler.sample(4, np.random.default_rng(0), position=0, full=True)
    assert {each.dtype for part in sequences for each in part.values()} == {torch.float32}
    auxiliary, encoder = AuxiliaryLoss(sampler.loss, feature_dim=5, action_dim=2), torch.nn.Linear(3, 5)
    auxiliary(sequences, encoder, encoder).backward()


def test_arrays_that_do_not_belong_together_are_refused():
    obs, actions, rewards, dones = np.zeros((9, 3)), np.zeros((9, 1)), np.zeros(9), np.zeros(9)
    with pytest.raises(BadInput, match=r"actions has the shape \(8, 1\), but must begin with that of dones, \(9,\)"):
        SequenceSampler("s0 -> s1", obs, actions[:8], rewards, dones)
    with pytest.raises(BadInput, match=r"next_obs has the shape \(9, 4\), but obs has \(9, 3\)"):
        SequenceSampler("s0 -> s1", obs, actions, rewards, dones, next_obs=np.zeros((9, 4)))
    with pytest.raises(BadInput, match=r"rewards has the shape \(9, 3\)"):
        SequenceSampler("s0 -> s1", obs, actions, obs, dones)
    with pytest.raises(BadInput, match=r"dones has the shape \(9, 1, 1\)"):
        SequenceSampler("s0 -> s1", obs, actions, rewards, dones.reshape(9, 1, 1))
    sampler = SequenceSampler("s0 -> s1", obs, actions, rewards, dones)
    with pytest.raises(BadInput, match="position is 9, but the buffer has the rows 0 to 8"):
        sampler.sample(4, np.random.default_rng(0), position=9, full=True)
