"""Agents of Stable-Baselines3 with an auxiliary loss: what trains what, what they are given, and what is saved."""

import sys

import gymnasium
import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import FlattenExtractor, NatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from a2ls._errors import BadInput
from a2ls.sb3 import DQN, SAC, TD3, DenseExtractor
from a2ls.space import UnknownLoss

SMALL = {"learning_starts": 20, "batch_size": 8, "buffer_size": 100, "seed": 0, "device": "cpu"}
TINY = {"net_arch": [8]}


class Counting(gymnasium.Env):
    """An observation says which episode it is from, and which step; so does the reward.

    Episodes end by themselves after `length` steps, every second one by a time limit.
    """

    def __init__(self, length=6, *, discrete=False, image=False, first=0):
        self.action_space = spaces.Discrete(3) if discrete else spaces.Box(-2, 2, (2,))
        self.observation_space = (
            spaces.Box(0, 255, (36, 36, 1), np.uint8) if image else spaces.Box(-1e6, 1e6, (2,), np.float32)
        )
        self.length, self.image, self.episode = length, image, first

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self.episode, self.steps = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action):  # noqa: ARG002
        reward = 100.0 * self.episode + self.steps
        self.steps += 1
        over = self.steps == self.length
        return self._seen(), reward, over and self.episode % 2 == 0, over and self.episode % 2 == 1, {}

    def _seen(self):
        if self.image:
            return np.full((36, 36, 1), 10 * self.steps, np.uint8)
        return np.array([self.episode, self.steps], np.float32)


def made(algorithm, env=None, policy="MlpPolicy", **settings):
    discrete, image = algorithm is DQN, policy == "CnnPolicy"
    env = env or Counting(discrete=discrete, image=image)
    settings = SMALL | {"policy_kwargs": dict(TINY)} | settings
    return algorithm(policy, env, **settings)


def weights(module):
    return torch.cat([values.detach().flatten() for values in module.parameters()])


def owner(model):
    return model.policy.q_net if isinstance(model, DQN) else model.policy.critic


@pytest.mark.parametrize("algorithm", [SAC, TD3, DQN])
@pytest.mark.parametrize("policy", ["MlpPolicy", "CnnPolicy"])
def test_the_loss_trains_the_encoder_of_the_critic_and_is_logged(algorithm, policy):
    env = gymnasium.make("CartPole-v1" if algorithm is DQN else "Pendulum-v1") if policy == "MlpPolicy" else None
    extractor = {"features_extractor_kwargs": {"features_dim": 16}} if policy == "CnnPolicy" else {}
    model = made(algorithm, env, policy, policy_kwargs=TINY | extractor, learning_starts=30).learn(31)
    encoder = owner(model).features_extractor
    assert type(encoder) is (DenseExtractor if policy == "MlpPolicy" else NatureCNN)
    assert model.logger.name_to_value["train/auxiliary_loss"] > 0
    momentum, heads = weights(model.auxiliary.momentum_encoder), weights(model.auxiliary.loss)
    # Steps by the auxiliary loss alone: they reach the encoder and the predictor, and nothing else.
    before = {name: values.clone() for name, values in model.policy.state_dict().items()}
    buffer, sampler = model.replay_buffer, model._sequence_sampler(model.replay_buffer)
    for _ in range(3):
        model.auxiliary.update(sampler.sample(8, np.random.default_rng(0), position=buffer.pos, full=buffer.full))
    changed = {name for name, values in model.policy.state_dict().items() if not torch.equal(values, before[name])}
    prefix = "q_net.features_extractor." if algorithm is DQN else "critic.features_extractor."
    assert changed == {name for name in before if name.startswith(prefix)}
    assert not torch.equal(weights(model.auxiliary.loss), heads)
    # The momentum copy follows slowly.
    moved, way = weights(model.auxiliary.momentum_encoder) - momentum, weights(encoder) - momentum
    assert 0 < moved.norm() < 0.2 * way.norm()


@pytest.mark.parametrize("algorithm", [SAC, TD3])
def test_the_actor_sees_the_encoder_and_does_not_train_it(algorithm):
    model = made(algorithm)
    critic, actor = model.policy.critic, model.policy.actor
    obs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    seen = actor.extract_features(obs, actor.features_extractor)
    assert torch.equal(seen, critic.extract_features(obs, critic.features_extractor))
    assert not seen.requires_grad
    assert {id(each) for each in actor.parameters()}.isdisjoint(id(each) for each in critic.parameters())
    optimised = [id(each) for group in actor.optimizer.param_groups for each in group["params"]]
    assert optimised == [id(each) for each in actor.parameters()]
    in_critic = {id(each) for group in critic.optimizer.param_groups for each in group["params"]}
    assert {id(each) for each in critic.features_extractor.parameters()} < in_critic


def episodes_and_steps(model, batch=2_000):
    """Of the states s0, s1 and s3 of sequences (batch, 3), and of r0 and r1 (batch, 2)."""
    buffer = model.replay_buffer
    sampler = model._sequence_sampler(buffer)
    states, _, rewards = sampler.sample(batch, np.random.default_rng(0), position=buffer.pos, full=buffer.full)
    places = torch.stack([states[step][:, 0] * 100 + states[step][:, 1] for step in (0, 1, 3)], dim=1)
    return places, torch.stack([rewards[0], rewards[1]], dim=1)


@pytest.mark.parametrize("steps", [50, 63, 210])
def test_sequences_are_of_one_episode_of_one_environment(steps):
    """In a ring that is not full, just full, and written over, and after environments were reset by `learn`."""
    envs = DummyVecEnv([lambda i=i: Counting(5 + i, first=100 * i) for i in range(3)])
    model = made(SAC, envs, auxiliary_loss="s0 s1 -> r0 r1 s3", train_freq=7).learn(steps)
    model.learn(21)
    model.learn(12, reset_num_timesteps=False)
    places, rewards = episodes_and_steps(model)
    assert torch.equal(places - places[:, :1], torch.tensor([0.0, 1.0, 3.0]).expand(len(places), 3))
    assert torch.equal(rewards, places[:, :2])
    # The last observation of an episode is among them, whichever way it ended: 5, 6 or 7 steps after the start.
    ends = {(int(place) // 100 % 2, int(place) % 100) for place in places[:, 2]}
    assert ends >= {(0, 5), (1, 5), (0, 6), (1, 6), (0, 7)}
    assert {int(place) // 10_000 for place in places[:, 0]} == {0, 1, 2}


def test_what_the_algorithm_itself_learns_from_is_not_changed_by_a_reset():
    model = made(SAC, Counting(50)).learn(30)
    buffer = model.replay_buffer
    before = buffer._get_samples(np.arange(30))
    model.learn(1)
    after = buffer._get_samples(np.arange(30))
    assert all(torch.equal(a, b) for a, b in zip(before[:5], after[:5], strict=True))


def test_a_model_is_saved_and_goes_on_as_if_it_had_not_been(tmp_path):
    env = gymnasium.make("Pendulum-v1")
    model = made(SAC, env, auxiliary_weight=0.5, auxiliary_batch_size=4, encoder_tau=0.1).learn(60)
    model.save(tmp_path / "model.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    loaded = SAC.load(tmp_path / "model.zip", env=env)
    loaded.load_replay_buffer(tmp_path / "buffer.pkl")
    assert loaded.auxiliary_loss == "s1 a1 a2 a3 -> r0 r1 s2 s3"
    obs, _ = env.reset(seed=0)
    assert np.array_equal(loaded.predict(obs, deterministic=True)[0], model.predict(obs, deterministic=True)[0])
    for each in (model, loaded):
        each.set_logger(Logger(None, []))
        each.set_random_seed(1)
        each.train(5, 8)
    for name, part in (("policy", weights), ("auxiliary", weights)):
        assert torch.equal(part(getattr(model, name)), part(getattr(loaded, name))), name
    assert loaded.logger.name_to_value == model.logger.name_to_value
    # Also as Stable-Baselines3 does it in place.
    other = made(SAC, env, seed=5)
    other.set_parameters(model.get_parameters())
    assert torch.equal(weights(other.auxiliary), weights(model.auxiliary))


def test_without_a_loss_the_networks_are_the_same():
    plain, model = made(SAC, auxiliary_loss=None), made(SAC)
    assert plain.policy.state_dict().keys() == model.policy.state_dict().keys()
    assert torch.equal(weights(plain.policy), weights(model.policy))
    plain.learn(40)
    assert "train/auxiliary_loss" not in plain.logger.name_to_value
    assert "auxiliary" not in plain.get_parameters()
    plain.learn(2)
    assert not plain.replay_buffer.timeouts[39]


def test_the_rate_follows_the_schedule_and_the_encoder_has_twice_as_much():
    model = made(SAC, learning_rate=lambda progress: 1e-2 * progress).learn(40)
    rates = [group["lr"] for group in model.auxiliary.optimizer.param_groups]
    assert rates == pytest.approx([model.lr_schedule(model._current_progress_remaining), 2 * rates[0]])
    own = made(SAC, auxiliary_lr=0.25)
    assert [group["lr"] for group in own.auxiliary.optimizer.param_groups] == [0.25, 0.5]


def test_observations_and_rewards_are_normalised_as_those_of_transitions_are():
    env = VecNormalize(DummyVecEnv([lambda: Counting(9)]))
    model = made(SAC, env, auxiliary_loss="s0 -> r0").learn(60)
    buffer = model.replay_buffer
    sampler = model._sequence_sampler(buffer)
    states, _, rewards = sampler.sample(300, np.random.default_rng(0), position=buffer.pos)
    every = buffer._get_samples(np.arange(buffer.pos), env=env)
    drawn = {(*state, reward) for state, reward in zip(states[0].tolist(), rewards[0].tolist(), strict=True)}
    stored = zip(every.observations.tolist(), every.rewards[:, 0].tolist(), strict=True)
    assert drawn <= {(*state, reward) for state, reward in stored}
    assert max(abs(number) for row in drawn for number in row) <= 10


def test_episodes_that_are_too_short_are_spoken_of_once():
    model = made(SAC, Counting(2))
    with pytest.warns(UserWarning, match="is not used so far: it needs 4 steps in one episode") as warned:
        model.learn(60)
    assert len([each for each in warned if "is not used" in str(each.message)]) == 1


class Dictionary(Counting):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Dict({"a": self.observation_space})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: made(SAC, Dictionary(), "MultiInputPolicy"), BadInput, "FlattenObservation makes vectors"),
        (lambda: made(SAC, Dictionary()), BadInput, "the observations are dictionaries"),
        (lambda: made(SAC, policy="MultiInputPolicy"), BadInput, "must be one of MlpPolicy, CnnPolicy"),
        (lambda: made(SAC, policy=stable_baselines3.sac.MlpPolicy), BadInput, "policy is SACPolicy, but must inherit"),
        (lambda: made(SAC, auxiliary_loss="a2-loser"), UnknownLoss, "no loss named 'a2-loser'"),
        (lambda: made(SAC, policy_kwargs={"share_features_extractor": True}), BadInput, "lets the actor train the enc"),
        (
            lambda: made(DQN, policy_kwargs={"features_extractor_class": FlattenExtractor}),
            BadInput,
            "features_extractor_class is FlattenExtractor, in which an auxiliary loss has nothing to train",
        ),
        (
            lambda: made(SAC, optimize_memory_usage=True, replay_buffer_kwargs={"handle_timeout_termination": False}),
            BadInput,
            "optimize_memory_usage is True",
        ),
        (lambda: made(SAC, encoder_tau=2), BadInput, "encoder_tau is 2, but must be from 0 to 1"),
        (lambda: made(SAC, auxiliary_batch_size=0), BadInput, "auxiliary_batch_size is 0, but must be at least 1"),
    ],
)
def test_what_does_not_suit_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_without_stable_baselines3_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("a2ls.sb3.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    import a2ls.sb3

    with pytest.raises(ImportError, match=r"pip install 'a2ls\[sb3\]'"):
        _ = a2ls.sb3.SAC
