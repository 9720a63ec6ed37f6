"""An agent for discrete actions, from the environment through the replay buffer to the loss and back."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from a2ls._errors import BadInput
from a2ls.agents import Agent, AgentConfig, AgentSpec, optimizer_step, register_agent
from a2ls.auxiliary import AuxiliaryLoss, make_encoder
from a2ls.envs import EnvironmentConfig
from a2ls.space import Loss
from a2ls.training import TrainConfig, Training, preset, require_trainable

CARTPOLE = EnvironmentConfig(env="CartPole-v1", action_repeat=1)
LOSS = Loss.parse("s0 a0 a1 -> s2 a2")


@dataclasses.dataclass(frozen=True)
class DQNConfig(AgentConfig):
    """What little there is to set."""

    epsilon: float = 0.2


class DQN(Agent):
    """Deep Q-learning, with the values of the same network as its targets."""

    def __init__(self, observation_shape, action_space, config, loss=None, *, seed=0, device="cpu"):
        super().__init__()
        torch.manual_seed(seed)
        self.config, self.actions = config, int(action_space.n)
        self.encoder = make_encoder("dense", observation_shape)
        self.values = nn.Linear(self.encoder.feature_dim, self.actions)
        self.auxiliary = None if loss is None else AuxiliaryLoss(loss, self.encoder.feature_dim, self.actions)
        self.optimizer = torch.optim.Adam(self.parameters(), 1e-3, fused=True)
        self.generator = torch.Generator(device).manual_seed(seed)

    @torch.no_grad()
    def act(self, obs, *, deterministic):
        values = self.values(self.encoder(obs))
        noise = torch.rand(values.shape, generator=self.generator) * self.config.epsilon
        return (values if deterministic else values + noise).argmax(dim=1)

    def update(self, batch, sequences=None):
        with torch.no_grad():
            target = batch.rewards + 0.9 * batch.continues * self.values(self.encoder(batch.next_obs)).amax(dim=1)
        values = self.values(self.encoder(batch.obs)).gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        loss = nn.functional.mse_loss(values, target)
        metrics = {"critic_loss": loss.detach()}
        if sequences is not None:
            auxiliary = self.auxiliary(sequences, self.encoder, self.encoder)
            metrics["auxiliary_loss"] = auxiliary.detach()
            loss = loss + auxiliary
        optimizer_step(self.optimizer, loss)
        return metrics


@pytest.fixture(autouse=True)
def _registered(_registries_as_they_were):
    register_agent(AgentSpec("dqn", DQNConfig, lambda: DQN, discrete=True))


def trained(**settings):
    config = TrainConfig(CARTPOLE, DQNConfig(), "dqn", steps=300, evaluations=2, evaluation_episodes=2)
    config = dataclasses.replace(config, learning_starts=100, batch_size=16, **settings)
    training = Training(config, LOSS, seed=0)
    training.run()
    training.close()
    return training


def test_an_agent_for_discrete_actions_is_trained_with_a_loss():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Its update is recorded.
        one = trained()
    stored = one.replay_buffer.state_dict()["actions"]
    assert (stored.dtype, stored.shape, set(stored.tolist())) == (torch.int64, (300,), {0, 1})
    assert np.isfinite(list(one.metrics.values())).all()
    assert one.metrics.keys() == {"critic_loss", "auxiliary_loss"}
    assert isinstance(int(one.policy(np.zeros(4, np.float32))), int)
    assert trained().curve == one.curve
    plain = trained(compiled=False)
    for mine, theirs in zip(one.agent.parameters(), plain.agent.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=5e-3)


def test_an_agent_is_refused_actions_that_it_is_not_for():
    with pytest.raises(BadInput, match=r"Discrete\(2\).*the agent sac needs continuous.* there is rainbow, dqn"):
        require_trainable(dataclasses.replace(preset("fast"), environment=CARTPOLE))
    continuous = TrainConfig(EnvironmentConfig(env="Pendulum-v1"), DQNConfig(), "dqn")
    with pytest.raises(BadInput, match="but the agent dqn needs discrete ones; for these there is sac"):
        require_trainable(continuous)
