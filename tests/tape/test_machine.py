"""The machine is compiled once, for all processes."""

import json
import os
import subprocess
import sys

import pytest
import torch

from a2ls.tape._lowering import Program
from a2ls.tape._machine import PARAMETERS, WIDTH, Code

PROGRAM = """
import json, torch
from a2ls.tape import Tape
from a2ls.tape._machine import play
with torch.inference_mode():
    own = [torch.ones(2, 3)]
    tape = Tape(lambda: torch.addmm(torch.ones(2), own[0], own[0].T).relu_(), own, lambda result: [result])
    result = tape.play([torch.arange(6.0).view(2, 3)])
counts = sum(play.stats.cache_hits.values()), sum(play.stats.cache_misses.values())
print(json.dumps([*counts, result.tolist()]))
"""


@pytest.mark.slow
def test_a_second_process_finds_the_machine_compiled(tmp_path):
    found = []
    for _ in range(2):
        process = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(process.stdout))
    x = torch.arange(6.0).view(2, 3)
    right = (x @ x.T + 1).tolist()
    assert found == [[0, 1, right], [1, 0, right]]


def test_instructions_are_rows_of_one_width():
    program = Program()
    program.add(Code.SUM, 1, 2, 3, parameters=(0.5,))
    program.add(Code.ADAM, *range(WIDTH - 1), parameters=range(PARAMETERS))
    program.add(Code.RELU)
    assert [len(row) for row in program.rows] == [WIDTH] * 3
    assert [len(row) for row in program.parameters] == [PARAMETERS] * 3
    assert program.rows[0][:5] == [Code.SUM, 1, 2, 3, 0]
    program.cut(1)
    assert len(program.rows) == len(program.parameters) == 1
