"""The inner loop of the search: `train` an agent with a loss and get its learning curve.

    >>> curve = train(preset("fast", "cheetah-run"), named_loss("a2-winner"), seed=0)
    >>> curve.aulc

`Training` is the same loop as an object that can be watched, saved and taken up again; `run_in_folder` keeps one on
disk, where it survives a kill at any instant.
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.training._baselines import (
    baseline_loss,
    baseline_names,
    is_baseline,
    plain_baseline,
    require_baseline,
    usual_baselines,
    with_baseline,
)
from a2ls.training._checkpoint import DEFAULT_CHECKPOINT_SECONDS, Checkpoint
from a2ls.training._config import DEFAULT_AGENT, TrainConfig
from a2ls.training._curve import Curve, CurvePoint
from a2ls.training._files import write_whole
from a2ls.training._job import NO_LOSS, TrainJob, loss_text, parse_loss, read_job
from a2ls.training._presets import DEFAULT_PRESET, PresetName, in_environment, preset, preset_for
from a2ls.training._run_folder import NotARun, Result, RunFolder, versions
from a2ls.training._settings import differences, option_text, to_mapping, with_mapping
from a2ls.training._video import VideoFormat

if TYPE_CHECKING:
    from a2ls.training._process import prepare_process
    from a2ls.training._replay import Replay, SequenceNeeds
    from a2ls.training._requirements import require_trainable
    from a2ls.training._run import run_in_folder
    from a2ls.training._trained_agent import TrainedAgent, read_trained_agent
    from a2ls.training._training import Diverged, Training, train
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.training._process": ("prepare_process",),
            "a2ls.training._replay": ("Replay", "SequenceNeeds"),
            "a2ls.training._requirements": ("require_trainable",),
            "a2ls.training._run": ("run_in_folder",),
            "a2ls.training._trained_agent": ("TrainedAgent", "read_trained_agent"),
            "a2ls.training._training": ("Diverged", "Training", "train"),
        },
    )

__all__ = [
    "DEFAULT_AGENT",
    "DEFAULT_CHECKPOINT_SECONDS",
    "DEFAULT_PRESET",
    "NO_LOSS",
    "Checkpoint",
    "Curve",
    "CurvePoint",
    "Diverged",
    "NotARun",
    "PresetName",
    "Replay",
    "Result",
    "RunFolder",
    "SequenceNeeds",
    "TrainConfig",
    "TrainJob",
    "TrainedAgent",
    "Training",
    "VideoFormat",
    "baseline_loss",
    "baseline_names",
    "differences",
    "in_environment",
    "is_baseline",
    "loss_text",
    "option_text",
    "parse_loss",
    "plain_baseline",
    "prepare_process",
    "preset",
    "preset_for",
    "read_job",
    "read_trained_agent",
    "require_baseline",
    "require_trainable",
    "run_in_folder",
    "to_mapping",
    "train",
    "usual_baselines",
    "versions",
    "with_baseline",
    "with_mapping",
    "write_whole",
]
