"""Trainings in an Optuna storage: what searches and benchmarks have in common.

A `StudyFolder` is one of either on disk. Each training is a trial of a study, written by a `TrialWriter` and read as a
`TrialRecord`. A `Method` is what is trained, and `GridSource` the jobs of methods x environments x seeds.
"""

from a2ls.studies._folder import Access, StudyFolder, engine_for, find_study, note_versions, noted_versions, open_study
from a2ls.studies._grid import (
    GridSource,
    Method,
    Run,
    baseline,
    loss_label,
    loss_method,
    method,
    method_label,
    stored_method,
)
from a2ls.studies._kept_policies import best_kept_policy, policy_keeper
from a2ls.studies._logs import TrainingLogs
from a2ls.studies._source import RecordedSource
from a2ls.studies._trial_records import (
    Candidate,
    FurtherTraining,
    State,
    TrialRecord,
    TrialWriter,
    further_identity,
    has_record,
    label_of,
    origin_name,
    read_candidate,
    read_further,
    read_record,
    read_records,
    reopen_failed,
    running_trials,
    stage_and_environment,
    waits_for_others,
)

__all__ = [
    "Access",
    "Candidate",
    "FurtherTraining",
    "GridSource",
    "Method",
    "RecordedSource",
    "Run",
    "State",
    "StudyFolder",
    "TrainingLogs",
    "TrialRecord",
    "TrialWriter",
    "baseline",
    "best_kept_policy",
    "engine_for",
    "find_study",
    "further_identity",
    "has_record",
    "label_of",
    "loss_label",
    "loss_method",
    "method",
    "method_label",
    "note_versions",
    "noted_versions",
    "open_study",
    "origin_name",
    "policy_keeper",
    "read_candidate",
    "read_further",
    "read_record",
    "read_records",
    "reopen_failed",
    "running_trials",
    "stage_and_environment",
    "stored_method",
    "waits_for_others",
]
