"""A training from pixels of a fraction of a second; its environment is one of `tests/envs/a2ls_toy_envs.py`."""

from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.training import TrainConfig

# Episodes of 6 steps. Frames of 6 x 6 are scaled to 20 x 20, and cropped to 16 x 16.
STEERED = TrainConfig(
    environment=EnvironmentConfig(env="a2ls_toy_envs:Toy/Steered-v0", pixels=True, frame_size=20, action_repeat=1),
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
    initial_steps=10,
    batch_size=4,
    replay_capacity=25,
)
