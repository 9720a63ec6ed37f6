"""The examples of docs/sb3.md and docs/pytorch.md, run from top to bottom as a reader would."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _random_as_it_was():
    """The examples draw from the global generators."""
    ours, theirs = torch.random.get_rng_state(), np.random.get_state()  # noqa: NPY002
    yield
    torch.random.set_rng_state(ours)
    np.random.set_state(theirs)  # noqa: NPY002


def code(document):
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / document).read_text(), re.DOTALL)


@pytest.mark.usefixtures("_random_as_it_was")
def test_stable_baselines3(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks, names = code("sb3.md"), {}
    assert len(blocks) == 4
    models = []
    for block in blocks:
        assert "learn(20_000" in block
        exec(block.replace("learn(20_000", "learn(112"), names)
        models.append(names["model"])
    assert [type(model).__name__ for model in models] == ["SAC", "SAC", "SAC", "DQN"]
    assert [model.num_timesteps for model in models] == [112, 112, 224, 112]
    assert all(model.logger.name_to_value["train/auxiliary_loss"] > 0 for model in models)
    assert models[1].policy.critic.features_extractor.features_dim == 3 + 2 * 64


@pytest.mark.usefixtures("_random_as_it_was")
def test_plain_pytorch():
    names, values = {}, []
    for block in code("pytorch.md"):
        exec(block, names)
        values.append(names.pop("value", None))
    assert [value is not None and bool(torch.isfinite(value)) for value in values] == [False] * 2 + [True] * 3
