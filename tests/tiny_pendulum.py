"""A training of a fraction of a second."""

from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.training import TrainConfig

PENDULUM = TrainConfig(
    environment=EnvironmentConfig(env="Pendulum-v1", action_repeat=2),
    agent=SACConfig(hidden=8, predictor_hidden=8),
    steps=400,
    evaluations=2,
    evaluation_episodes=1,
    initial_steps=20,
    batch_size=8,
)
