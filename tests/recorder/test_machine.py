"""The function that runs instructions is compiled once, and computes the same wherever it was compiled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import hashlib, json, torch
torch.set_num_threads(1)
from test_recorded import Learner, batch
from test_rules import BINARY, TERNARY, UNARY, views
from a2ls.recorder import Recorded
from a2ls.recorder._machine import load
from a2ls.recorder._recording import tensors_in

digest, generator = hashlib.sha256(), torch.Generator().manual_seed(0)
sums = [lambda x: (x.sum(), x.mean(0), x.norm(dim=-1), (x[0] - x[1]).square().mean(), x.T[:7] @ x[:, :5], x @ x.T)]
for functions, arity in ((UNARY, 1), (BINARY, 2), (TERNARY, 3), (sums, 1)):
    for function in functions:
        recorded = Recorded(function, required=True)
        for result in tensors_in(recorded(*(torch.randn(130, 57, generator=generator) for _ in range(arity)))):
            digest.update(result.contiguous().view(-1).numpy().tobytes())
learner = Learner()
update = Recorded(learner.update, learner, required=True)
for i in range(300):
    digest.update(update(batch(i), slowly=i % 2 == 0)["loss"].numpy().tobytes())
for parameter in learner.parameters():
    digest.update(parameter.detach().numpy().tobytes())
stats = load().stats
print(json.dumps([sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), digest.hexdigest()]))
"""


def start(cache):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


def outcome(process):
    output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output.splitlines()[-1])


@pytest.mark.slow
def test_of_two_processes_one_compiles_and_one_loads_and_a_third_cannot_write_and_all_round_alike(tmp_path):
    (tmp_path / "file").touch()
    together = [start(tmp_path / "cache") for _ in range(2)]
    first, second = sorted(map(outcome, together))
    third = outcome(start(tmp_path / "file" / "cache"))
    assert first[:2] == [0, 1]
    assert second[:2] == [1, 0]
    assert first[2] == second[2] == third[2]


def test_neither_pytorch_nor_numba_is_imported_before_it_is_needed():
    program = "import sys, a2ls.recorder; print({'torch', 'numba', 'numpy'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_instructions_work_in_the_memory_of_their_caller():
    """In memory of its own, Numba would free it while it is in use, and what lies beside it would be overwritten."""
    import numpy as np
    import torch

    from a2ls.recorder._lowering import Program, _elementwise
    from a2ls.recorder._machine import SCRATCH, Code, load

    x, y, program = torch.arange(30.0).view(5, 6).T, torch.zeros(6, 5), Program()
    _elementwise(Code.NEGATIVE, program, y, x)  # Rows of x do not lie side by side.
    rows, parameters = np.array(program.rows(), np.int64), np.array(program.parameters(), np.float64)
    scratch = np.full(SCRATCH, np.nan, np.float32)
    load()(rows, parameters, scratch)
    assert torch.equal(y, -x)
    assert not np.isnan(scratch).all()
