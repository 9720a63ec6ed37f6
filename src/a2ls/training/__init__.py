"""The inner loop of the search: `train` an agent with a loss and get its learning curve.

    >>> curve = train(preset("fast", "cheetah-run"), named_loss("a2-winner"), seed=0)
    >>> curve.aulc

`Training` is the same loop as an object that can be watched, saved and taken up again. `CheckpointedRun` lets one
survive a kill at any instant, and `run_in_folder` keeps one on disk with all that it found.
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.training._config import DEFAULT_AGENT, USUAL_AGENTS, TrainConfig
from a2ls.training._curve import EPISODE_RETURN, EVALUATION_SCORE, Curve, CurvePoint
from a2ls.training._job import NO_LOSS, TrainJob, loss_text, parse_loss, read_job
from a2ls.training._objective import find_objective, run_objective
from a2ls.training._presets import (
    DEFAULT_PRESET,
    PresetName,
    action_repeat,
    baseline_loss,
    baseline_names,
    baseline_with,
    in_environment,
    is_baseline,
    known_preset,
    own_settings,
    plain_baseline,
    preset,
    preset_for,
    presets_like,
    require_baseline,
    suitable_agent,
    usual_baselines,
    with_baseline,
)
from a2ls.training._run_folder import (
    DEFAULT_CHECKPOINT_SECONDS,
    KEPT_POLICIES,
    Checkpoint,
    DamagedCheckpoint,
    NotARun,
    NotSaved,
    PolicyName,
    Result,
    RunFolder,
    versions,
)
from a2ls.training._seeds import derived_seed, require_seed
from a2ls.training._settings import (
    differences,
    option_text,
    parse_settings,
    settings_text,
    split_method,
    to_mapping,
    with_mapping,
    with_settings,
)
from a2ls.training._video import VideoFormat

if TYPE_CHECKING:
    from a2ls.auxiliary import SequenceNeeds
    from a2ls.training._policy import TrainedPolicy, policy_aulc
    from a2ls.training._replay_buffer import ReplayBuffer
    from a2ls.training._run import CheckpointedRun, prepare_process, release_memory, run_in_folder
    from a2ls.training._trained_agent import TrainedAgent, load_agent, read_trained_agent
    from a2ls.training._trainer import Diverged, Training, require_trainable, train
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.auxiliary": ("SequenceNeeds",),
            "a2ls.training._policy": (
                "TrainedPolicy",
                "policy_aulc",
            ),
            "a2ls.training._replay_buffer": ("ReplayBuffer",),
            "a2ls.training._run": (
                "CheckpointedRun",
                "prepare_process",
                "release_memory",
                "run_in_folder",
            ),
            "a2ls.training._trained_agent": (
                "TrainedAgent",
                "load_agent",
                "read_trained_agent",
            ),
            "a2ls.training._trainer": (
                "Diverged",
                "Training",
                "require_trainable",
                "train",
            ),
        },
    )

__all__ = [
    "DEFAULT_AGENT",
    "DEFAULT_CHECKPOINT_SECONDS",
    "DEFAULT_PRESET",
    "EPISODE_RETURN",
    "EVALUATION_SCORE",
    "KEPT_POLICIES",
    "NO_LOSS",
    "USUAL_AGENTS",
    "Checkpoint",
    "CheckpointedRun",
    "Curve",
    "CurvePoint",
    "DamagedCheckpoint",
    "Diverged",
    "NotARun",
    "NotSaved",
    "PolicyName",
    "PresetName",
    "ReplayBuffer",
    "Result",
    "RunFolder",
    "SequenceNeeds",
    "TrainConfig",
    "TrainJob",
    "TrainedAgent",
    "TrainedPolicy",
    "Training",
    "VideoFormat",
    "action_repeat",
    "baseline_loss",
    "baseline_names",
    "baseline_with",
    "derived_seed",
    "differences",
    "find_objective",
    "in_environment",
    "is_baseline",
    "known_preset",
    "load_agent",
    "loss_text",
    "option_text",
    "own_settings",
    "parse_loss",
    "parse_settings",
    "plain_baseline",
    "policy_aulc",
    "prepare_process",
    "preset",
    "preset_for",
    "presets_like",
    "read_job",
    "read_trained_agent",
    "release_memory",
    "require_baseline",
    "require_seed",
    "require_trainable",
    "run_in_folder",
    "run_objective",
    "settings_text",
    "split_method",
    "suitable_agent",
    "to_mapping",
    "train",
    "usual_baselines",
    "versions",
    "with_baseline",
    "with_mapping",
    "with_settings",
]


def __dir__() -> list[str]:
    return __all__
