import resource
import sys

import pytest
import torch

from a2ls.training import prepare_process
from helpers.processes import run_python

CHURN = """
import resource, torch
from a2ls.training import prepare_process
prepare_process()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        kept = [torch.ones(2**20) for _ in range(8)]  # 4 MB each, as in an update of wide networks
        del kept
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator of glibc")
def test_freed_memory_is_kept():
    pages = 20 * 8 * 4 * 2**20 / resource.getpagesize()
    assert int(run_python(CHURN)) < 0.02 * pages


def test_threads_are_set():
    before = torch.get_num_threads()
    prepare_process(2)
    assert torch.get_num_threads() == 2
    prepare_process(before)
    assert torch.get_num_threads() == before
