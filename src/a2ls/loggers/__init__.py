"""Where the numbers of a training or a search go besides its folder: TensorBoard, Weights & Biases, MLflow.

    >>> loggers = open_loggers(LogTargets(wandb="my-project"), Path("runs/mine"), name="mine", config={"seed": 0})
    >>> for logger in loggers:
    ...     logger.log({"evaluation/score": 12.5}, step=4000)
    ...     logger.close()

Each is an extra of its own and is imported when it is asked for. Nothing here knows what is logged.
"""

from a2ls.loggers._logger import Logger, LogTargets, logging_to, open_loggers, require_packages
from a2ls.loggers._tensorboard import TensorBoardLogger, has_tensorboard

__all__ = [
    "LogTargets",
    "Logger",
    "TensorBoardLogger",
    "has_tensorboard",
    "logging_to",
    "open_loggers",
    "require_packages",
]
