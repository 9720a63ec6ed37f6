"""Every public name says what it is, and the examples in docstrings run."""

import doctest
import importlib
import inspect
import pkgutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
import torch

import a2ls
from a2ls.benchmark import Grid
from a2ls.simulation import default_records
from a2ls.studies import baseline, method
from a2ls.training import CurvePoint, RunFolder, TrainJob, run_in_folder

# Those that the reference has a page for.
PACKAGES = ["a2ls", *(f"a2ls.{each.name}" for each in pkgutil.iter_modules(a2ls.__path__) if each.ispkg)]
PACKAGES = [name for name in PACKAGES if name not in ("a2ls.cli", "a2ls.recorder")]
MODULES = [importlib.import_module(name) for name in PACKAGES]
PUBLIC = {
    f"{package.__name__}.{name}": each
    for package in MODULES
    for name in package.__all__
    if inspect.isclass(each := getattr(package, name)) or inspect.isroutine(each)
}
# Each once, by the last of the packages that offer it: that in which it is documented.
EXAMPLES = {each: name for name, each in PUBLIC.items() if ">>>" in (each.__doc__ or "")}
LONG = {"SearchFolder", "BenchmarkFolder", "validate", "train", "A2LSSampler", "WorldModel"}
# They are made by `preset` and `search_preset`, or are raised.
WITHOUT_EXAMPLE = {"SearchConfig", "TrainConfig", "BadInput", "Failure", "InvalidLoss"}


def undocumented():
    for package in MODULES:
        yield package.__name__, package.__doc__
    for name, each in PUBLIC.items():
        # A dataclass without a docstring gets its signature for one.
        yield name, "" if (each.__doc__ or "").startswith(f"{each.__name__}(") else each.__doc__
        for own, value in vars(each).items() if inspect.isclass(each) else ():
            inner = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
            if not own.startswith("_") and inspect.isfunction(inner) and inner.__name__ != "<lambda>":
                # One that overrides another means the same.
                yield f"{name}.{own}", inspect.getdoc(value if isinstance(value, property) else getattr(each, own))


def test_every_public_name_says_what_it_is():
    texts = list(undocumented())
    assert len(texts) > 700
    assert [name for name, text in texts if not text] == []


def test_the_names_of_the_package_itself_have_an_example_each():
    names = {name for name in a2ls.__all__ if not name.startswith("_")}
    assert {name for name in names if ">>>" not in getattr(a2ls, name).__doc__} == WITHOUT_EXAMPLE


class Checker(doctest.OutputChecker):
    """An example that does not say what it prints may print anything."""

    def check_output(self, want, got, optionflags):
        return want == "" or super().check_output(want, got, optionflags)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the examples take for granted."""
    monkeypatch.chdir(tmp_path)
    size, rng = 200, np.random.default_rng(0)
    dones = np.arange(size) % 50 == 49
    obs, next_obs = rng.normal(size=(2, size, 3)).astype(np.float32)
    encoder = torch.nn.Linear(3, 50)
    encoder.feature_dim = 50
    return {
        **{name: getattr(a2ls, name) for name in a2ls.__all__},
        **{"np": np, "optuna": optuna, "torch": torch, "Path": Path, "rng": rng, "step": 150, "size": size},
        **{"Grid": Grid, "baseline": baseline, "method": method, "default_records": default_records},
        **{"obs": obs, "next_obs": next_obs, "dones": dones, "rewards": rng.normal(size=size).astype(np.float32)},
        **{"actions": rng.normal(size=(size, 6)).astype(np.float32), "encoder": encoder, "target_encoder": encoder},
        "sequences": a2ls.Sequences(torch.ones(4, 8, 3), torch.ones(4, 8, 6), torch.ones(4, 8)),
        "score_of_my_agent": lambda loss: float(len(loss.source_elements)),
        "CurvePoint": CurvePoint,
    }


def run_examples(each, names):
    names = {**vars(inspect.getmodule(each)), **names}
    test = doctest.DocTestParser().get_doctest(each.__doc__, names, each.__name__, None, None)
    runner = doctest.DocTestRunner(Checker())
    said = []
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).attempted > 0
    assert "".join(said) == ""


@pytest.mark.parametrize("each", [each for each in EXAMPLES if each.__name__ not in LONG], ids=EXAMPLES.get)
def test_examples_run(each, names, tiny_training):
    if each in (a2ls.load_agent, a2ls.TrainedPolicy):
        run_in_folder(RunFolder.create(Path("runs/pendulum"), TrainJob(tiny_training, None, 0)))
    run_examples(each, names)


@pytest.mark.slow
@pytest.mark.parametrize("each", [each for each in EXAMPLES if each.__name__ in LONG], ids=EXAMPLES.get)
def test_examples_that_take_longer_run(each, names, tiny_training, tiny_search):
    small = replace(tiny_search, population_size=2, baselines=())
    if each is a2ls.validate:
        a2ls.SearchFolder.create(Path("runs/mine"), small).run(workers=2)
    # Presets are small, so that trainings end in seconds.
    names |= {"preset": lambda *_: tiny_training, "search_preset": lambda *_: small, "train": few_steps}
    run_examples(each, names)


def few_steps(config, loss=None, seed=0, *, steps=None):
    assert steps in (None, 20_000)
    return a2ls.train(config, loss, seed, steps=steps and 4_400)
