"""Agents of Stable-Baselines3 with an auxiliary loss: `SAC`, `TD3` and `DQN` under their own names.

    from a2ls.sb3 import SAC

    model = SAC("MlpPolicy", "Pendulum-v1", auxiliary_loss="a2-winner").learn(10_000)
    model.save("pendulum")

All else is as in Stable-Baselines3: arguments, callbacks, logger, `predict`, `save` and `load`. Needs the extra `sb3`.
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used

if TYPE_CHECKING:
    from a2ls.sb3._algorithms import DQN, SAC, TD3
    from a2ls.sb3._policies import DenseExtractor
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.sb3._algorithms": ("DQN", "SAC", "TD3"),
            "a2ls.sb3._policies": ("DenseExtractor",),
        },
    )

__all__ = ["DQN", "SAC", "TD3", "DenseExtractor"]


def __dir__() -> list[str]:
    return __all__
