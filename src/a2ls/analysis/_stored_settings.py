"""The settings that an export carries: read from its metadata, and checked once, since the file may be a stranger's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from a2ls._errors import BadInput
from a2ls.analysis._columns import REMEDY, is_unicode
from a2ls.search import Budget, SearchConfig
from a2ls.training import TrainConfig, with_mapping

COLLECTION = "collection"
_KINDS = ("search", "benchmark")
_NOT_OF_THE_CONFIG = ("kind", "name", "budget", "seconds_spent", "versions")


def read_settings(text: bytes, file: Path) -> dict[str, Any]:
    """The settings of a search or a benchmark; or those of several as `studies`, by name, and the `kind` collection.

    Raises:
        BadInput: If they are none of these.
    """
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the settings in the metadata of {file} are no JSON: {REMEDY}") from error
    if not isinstance(settings, dict) or not is_unicode(json.dumps(settings, ensure_ascii=False)):
        raise BadInput(f"the settings in the metadata of {file} are no group of settings: {REMEDY}")
    studies: Any = {"": settings}
    if settings.get("kind") == COLLECTION:
        studies = settings.get("studies")
        if not isinstance(studies, dict) or not studies:
            raise BadInput(f"the settings in the metadata of {file} name no search or benchmark: {REMEDY}")
    for name, study in studies.items():
        try:
            _check(study)
        except BadInput as error:
            whose = f"the settings of {name!r}" if name else "the settings"
            raise BadInput(f"{whose} in the metadata of {file}: {error}") from error
    return settings


def search_config(settings: Mapping[str, Any]) -> SearchConfig:
    """The settings of a search, under their names of today.

    Raises:
        BadInput: For an unknown one, or a value that is not allowed.
    """
    own = {key: value for key, value in settings.items() if key not in _NOT_OF_THE_CONFIG}
    return with_mapping(SearchConfig(), own)


def _check(settings: Any) -> None:
    if not isinstance(settings, dict) or settings.get("kind") not in _KINDS:
        raise BadInput(f"they are of no {' and no '.join(_KINDS)}: {REMEDY}")
    _require(settings, "name", isinstance(settings.get("name", ""), str), "be a text")
    seconds = settings.get("seconds_spent", 0)
    _require(settings, "seconds_spent", _is_number(seconds) and 0 <= seconds < float("inf"), "be a time from 0")
    versions = settings.get("versions", {})
    _require(settings, "versions", _is_group(versions, str), "be a group of texts")
    _require(settings, "training", isinstance(settings.get("training"), dict), "be a group of settings")
    if settings["kind"] == "search":
        _require(settings, "budget", isinstance(settings.get("budget", {}), dict), "be a group of settings")
        with_mapping(Budget(), settings.get("budget", {}))
        search_config(settings)
        environment = settings["training"].get("environment", {})
        _require(environment, "env", "env" in environment, "be the name of an environment")
        return
    training = settings["training"]
    _require(settings, "training", bool(training) and _is_group(training, dict), "be groups of settings")
    for own in training.values():
        with_mapping(TrainConfig(), own)


def _require(settings: Mapping[str, Any], name: str, holds: bool, words: str) -> None:
    if not holds:
        raise BadInput(f"{name} is {settings.get(name)!r}, but must {words}: {REMEDY}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_group(value: object, kind: type) -> bool:
    return isinstance(value, dict) and all(isinstance(each, kind) for each in value.values())
