"""Trained agents that act again: from run folders, from files, and fresh from `train`."""

import json
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch

from a2ls import BadInput, load_agent, named_loss, train
from a2ls.agents import RainbowConfig
from a2ls.envs import EnvironmentConfig
from a2ls.training import RunFolder, TrainConfig, TrainJob, run_in_folder
from a2ls.training import _seeds as seeds
from helpers.trainings import PENDULUM, STEERED, bits

# Without the recorder the agent of a training and the one that is read back compute the same bits.
VECTORS = replace(PENDULUM, evaluations=3, evaluation_episodes=2, compiled=False)
CARTPOLE = TrainConfig(
    environment=EnvironmentConfig(env="CartPole-v1", action_repeat=1),
    algorithm="rainbow",
    agent=RainbowConfig(
        encoder="dense", hidden=16, atoms=6, predictor_hidden=8, noisy_sigma=3.0, evaluation_epsilon=0.0
    ),
    steps=90,
    evaluations=3,
    evaluation_episodes=2,
    learning_starts=40,
    batch_size=8,
    compiled=False,
)
CONFIGS = {"vectors": VECTORS, "images": STEERED, "rainbow": CARTPOLE}


@pytest.fixture(scope="module", params=CONFIGS)
def run(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "run"
    folder = RunFolder.create(path, TrainJob(CONFIGS[request.param], named_loss("a2-winner"), seed=1))
    run_in_folder(folder)
    return folder


def returns_again(agent, index):
    """Of the episodes of an evaluation, played with what `load_agent` gives alone."""
    env, returns = agent.make_env(), []
    for episode in range(agent.job.config.evaluation_episodes):
        obs, _ = env.reset(seed=seeds.derived_seed(agent.job.seed, seeds.EVALUATION_EPISODE, index, episode))
        total, ended = 0.0, False
        while not ended:
            action = agent.predict(obs)
            assert env.env.action_space.contains(action if np.ndim(action) else int(action))
            obs, reward, terminated, truncated, _ = env.step(action)
            total, ended = total + reward, terminated or truncated
        returns.append(total)
    env.close()
    return returns


def test_the_last_and_the_best_policy_play_as_in_their_evaluations(run):
    points = run.read_curve().points
    best = max(range(len(points)), key=lambda index: points[index].score)
    for which, index in (("last", len(points) - 1), ("best", best)):
        agent = load_agent(run.path, policy=which)
        assert (agent.step, agent.score, agent.job) == (points[index].step, points[index].score, run.job)
        # One observation at a time is rounded otherwise than a batch of them.
        assert returns_again(agent, index) == pytest.approx(points[index].returns, rel=1e-3)


def test_a_batch_of_observations_gets_the_action_of_each(run):
    agent = load_agent(run.path)
    env = agent.make_env()
    observations = [env.reset(seed=seed)[0] for seed in range(3)]
    actions = agent.predict(np.stack(observations))
    assert actions == pytest.approx(np.stack([agent.predict(obs) for obs in observations]), abs=1e-5)
    assert env.observation_space.contains(observations[0])
    noisy = [agent.predict(observations, deterministic=False) for _ in range(20)]
    assert any(not np.array_equal(each, noisy[0]) for each in noisy)
    shape = agent.observation_shape
    with pytest.raises(BadInput, match=r"has the shape \(1, 1, "):
        agent.predict(np.zeros((1, 1, *shape)))
    if len(shape) > 1:
        with pytest.raises(BadInput, match="uint8"):
            agent.predict(np.zeros(shape, np.float32))
    env.close()


def test_train_returns_the_agent_that_its_run_keeps(tmp_path):
    plain = train(VECTORS, named_loss("a2-winner"), 1)
    curve, agent = train(VECTORS, named_loss("a2-winner"), 1, return_agent=True)
    assert bits(curve) == bits(plain)
    agent.save(tmp_path / "mine.safetensors")
    again = load_agent(tmp_path / "mine.safetensors")
    obs = np.random.default_rng(0).standard_normal((5, 3))
    assert np.array_equal(again.predict(obs), agent.predict(obs))
    assert again.aulc == curve.aulc
    assert agent.evaluate(3, seed=4) == again.evaluate(3, seed=4) != again.evaluate(3, seed=5)


def test_a_run_without_policies_is_read_from_its_checkpoint(run):
    files = {which: run.policy(which).read_bytes() for which in ("last", "best")}
    before = load_agent(run.path)
    shape = before.observation_shape
    obs = np.zeros(shape, np.uint8 if len(shape) > 1 else np.float32)
    try:
        for which in files:
            run.policy(which).unlink()
        after = load_agent(run.path)
        assert (after.step, after.score, after.aulc) == (before.step, before.score, before.aulc)
        assert after.action_space == before.action_space
        assert np.array_equal(after.predict(obs), before.predict(obs))
        with pytest.raises(BadInput, match=r"holds no policy-best\.safetensors"):
            load_agent(run.path, policy="best")
    finally:
        for which, data in files.items():
            run.policy(which).write_bytes(data)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "policy.safetensors"
    config = replace(PENDULUM, steps=60, evaluations=1)
    train(config, None, 0, return_agent=True)[1].save(path)
    return path.read_bytes()


def changed(policy, *, about=(), without=()):
    """The file with another header, or without some of its tensors."""
    size = int.from_bytes(policy[:8], "little")
    header = json.loads(policy[8 : 8 + size])["__metadata__"] | dict(about)
    tensors = safetensors.torch.load(policy)
    return safetensors.torch.save({name: tensors[name] for name in tensors if name not in without}, header)


def test_a_file_that_is_damaged_or_hostile_is_refused_in_words(policy, tmp_path):
    huge = 'loss = "none"\n[agent]\nhidden = 9000000000000\n'
    some = next(iter(safetensors.torch.load(policy)))
    for content, message in [
        (b"", "cannot be read as a policy"),
        (policy[: len(policy) // 2], "cannot be read as a policy"),
        (b"\xff" * 8 + policy[8:], "cannot be read as a policy"),
        (safetensors.torch.save(safetensors.torch.load(policy)), "is no policy that a2ls has written"),
        (changed(policy, about={"format": "other"}), "is no policy that a2ls has written"),
        (changed(policy, without=[some]), f"missing .*{some}"),
        (changed(policy, about={"job": "loss = "}), "not valid TOML"),
        (changed(policy, about={"job": "schema_version = 999"}), "install a newer one"),
        (changed(policy, about={"job": huge}), "does not hold the networks"),
        (changed(policy, about={"observation_shape": "[7]"}), "does not hold the networks"),
        (changed(policy, about={"observation_shape": "null"}), "does not hold the networks"),
        (changed(policy, about={"action_space": "{}"}), "does not hold the networks"),
        (changed(policy, about={"step": "many"}), "does not hold the networks"),
    ]:
        file = tmp_path / "policy.safetensors"
        file.write_bytes(content)
        with pytest.raises(BadInput, match=message):
            load_agent(file)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(BadInput, match="holds no policy-last"):
        load_agent(tmp_path)
    with pytest.raises(BadInput, match="must be one of last, best"):
        load_agent(tmp_path, policy="worst")
