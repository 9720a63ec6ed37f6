"""Searches of a few candidates, written down one by one, so that a test can say what should come out."""

import base64
import json
import re
from pathlib import Path

import numpy as np

from a2ls.analysis import Dataset
from a2ls.search import Candidate, Row
from a2ls.space import Loss
from a2ls.training import Curve, CurvePoint


def curve(scores):
    """A point every thousand steps, with two episodes that average to the score."""
    return Curve(tuple(CurvePoint(1000 * (i + 1), (score - 1, score + 1)) for i, score in enumerate(scores)))


def candidate(number, scores=(1.0, 2.0, 3.0), *, loss="s0 a0 -> s1", stage=1, state="finished", **others):
    parsed = Loss.parse(loss) if isinstance(loss, str) else loss
    fields = {"origin": "random", "parents": (), "repeat_of": None, **others}
    return Candidate(number, str(parsed), parsed, "pendulum", 0, state, curve(scores), 1.0, (), stage=stage, **fields)


def baseline(name, seed, scores, state="finished"):
    return Row(seed, name, None, "pendulum", seed, state, curve(scores), 1.0, ())


def dataset(*rows, name="by-hand", **settings):
    return Dataset(name, Path(name), "search", rows, {"kind": "search", "operators": ["mse"], **settings})


def strict(figure):
    """What a browser gets, read by a parser that refuses NaN; packed arrays are unpacked and must be finite, too."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return _unpacked(json.loads(figure.to_json(), parse_constant=refuse))


def _unpacked(value):
    if isinstance(value, list):
        return [_unpacked(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "bdata" in value:
        array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        assert np.isfinite(array.astype(float)).all()
        return array.tolist()
    return {name: _unpacked(each) for name, each in value.items()}


def unwrapped(text):
    """A text under the pointer, without its line breaks and tags."""
    return re.sub(r"<[^>]+>", "", text.replace("<br>", " "))
