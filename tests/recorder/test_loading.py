"""Where updates cannot be compiled, PyTorch runs them, and one warning says why and what to do."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import pytest
import torch

from a2ls.recorder import Recorded, _machine, _recorded, prepare


@pytest.fixture
def _unloaded():
    """As in a process that has neither loaded nor compiled anything."""

    def forget():
        _machine.load.cache_clear()
        _recorded._machine_is_there.cache_clear()

    forget()
    yield
    forget()


def assert_left_to_pytorch(message):
    """All is done by PyTorch, to the bit, with one warning."""
    torch.manual_seed(0)
    inputs = torch.randn(4, 100)
    functions = [Recorded(lambda x: torch.tanh(x).exp().sum()) for _ in range(2)]
    with pytest.warns(UserWarning, match=message) as caught:
        found = [function(x) for function in functions for x in inputs]
    assert torch.equal(torch.stack(found), torch.stack([torch.tanh(x).exp().sum() for x in inputs] * 2))
    assert len(caught) == 1
    assert functions[0].report() == "no calls yet"


@pytest.mark.usefixtures("_unloaded")
def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "a2ls.recorder._machine", None)
    assert_left_to_pytorch(r"updates are run by PyTorch, and take longer: .*; install 'a2ls\[fast\]'")


BROKEN = {
    "empty": lambda content: content[:0],
    "cut off": lambda content: content[: len(content) // 2],
    "garbage": lambda content: bytes(range(255, -1, -1)) * (len(content) // 256),
}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN.keys())
def test_with_a_broken_cache(change, ending, cache):
    for file in cache.glob(f"*.{ending}"):
        file.write_bytes(change(file.read_bytes()))
    with pytest.raises(ImportError, match="cannot be read"):  # What the command line passes over.
        prepare()
    assert_left_to_pytorch(f"{cache} cannot be read .*; delete this folder")


def test_with_a_whole_cache(cache):
    assert str(cache) == _machine.load().stats.cache_path
    assert sum(_machine.load().stats.cache_hits.values()) == 1


@pytest.fixture
def cache(tmp_path, monkeypatch, request):
    """A copy of what Numba keeps, in a folder that is now the one that it looks in."""
    kept = Path(_machine.load().stats.cache_path)
    request.getfixturevalue("_unloaded")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    folder = Path(numba.njit(cache=True)(_machine.play).stats.cache_path)
    folder.mkdir(exist_ok=True)
    for file in kept.glob("_machine.play-*"):
        shutil.copy2(file, folder)
    return folder


@pytest.mark.usefixtures("_unloaded")
def test_where_no_folder_can_be_written_to_each_process_compiles_for_itself(monkeypatch):
    class Compiled:
        signatures = 0

        def compile(self, _signature):
            self.signatures += 1

    def njit(*, cache=False, error_model):
        if cache:
            raise RuntimeError("cannot cache function 'play': no locator available")
        return lambda _function: Compiled()

    monkeypatch.setattr(_machine, "njit", njit)
    with pytest.warns(UserWarning, match=r"for this process alone.*no locator.*; set NUMBA_CACHE_DIR"):
        assert _machine.load().signatures == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _machine.load()


def test_with_numba_switched_off():
    program = "from test_loading import *; assert_left_to_pytorch('unset NUMBA_DISABLE_JIT')"
    env = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
