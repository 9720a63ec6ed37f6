"""Trainings of a fraction of a second, and what they are compared by."""

import dataclasses

from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.training import TrainConfig

PENDULUM = TrainConfig(
    environment=EnvironmentConfig(env="Pendulum-v1", action_repeat=2),
    agent=SACConfig(hidden=8, predictor_hidden=8),
    steps=400,
    evaluations=2,
    evaluation_episodes=1,
    learning_starts=20,
    batch_size=8,
)

# Episodes of 6 steps that end by a time limit; their observation and their reward are the number of the step.
COUNTER = TrainConfig(
    environment=EnvironmentConfig(env="helpers.toy_envs:Toy/TimeLimited-v0", action_repeat=1),
    agent=SACConfig(hidden=16, predictor_hidden=16),
    steps=100,
    evaluations=2,
    evaluation_episodes=1,
    learning_starts=20,
    batch_size=8,
)

# From pixels. Episodes of 6 steps. Frames of 6 x 6 are scaled to 20 x 20, and cropped to 16 x 16.
STEERED = TrainConfig(
    environment=EnvironmentConfig(env="helpers.toy_envs:Toy/Steered-v0", pixels=True, frame_size=20, action_repeat=1),
    agent=SACConfig(
        encoder="conv",
        encoder_layers=2,
        filters=4,
        augmentation="crop",
        image_size=16,
        actor_encoder="shared",
        hidden=8,
        predictor_hidden=8,
    ),
    steps=40,
    evaluations=4,
    evaluation_episodes=1,
    learning_starts=10,
    batch_size=4,
    buffer_size=25,
)


def bits(curve):
    """A curve such that only equal bits are equal."""
    return [(point.step, [value.hex() for value in point.returns]) for point in curve.points]


def flat(config):
    """Every setting by its dotted name."""
    values = dataclasses.asdict(config)
    groups = {name: value for name, value in values.items() if isinstance(value, dict)}
    inner = {f"{group}.{name}": value for group, fields in groups.items() for name, value in fields.items()}
    return inner | {name: value for name, value in values.items() if name not in groups}
