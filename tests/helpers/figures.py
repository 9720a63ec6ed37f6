"""What a browser gets of a figure."""

import base64
import json
import re

import numpy as np


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
