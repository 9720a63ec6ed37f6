"""In which operators of PyTorch the time of a run goes, by PyTorch's own profiler."""

from __future__ import annotations

import os
from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile, record_function

CONVOLUTIONS, PRODUCTS = "convolutions", "matrix products"
COPIES, OPTIMISER, OTHERS = "copies and conversions", "optimiser", "other operators"
OUTSIDE = "Python and NumPy"

_GROUPS = {
    CONVOLUTIONS: ("mkldnn_convolution", "convolution_backward", "convolution", "_slow_conv2d_forward", "thnn_conv2d"),
    PRODUCTS: ("addmm", "mm", "bmm", "baddbmm", "addbmm", "matmul", "linear", "mv", "addmv", "addmv_", "dot"),
    COPIES: ("copy_", "_to_copy", "to", "contiguous", "clone", "cat", "stack", "index_select", "index", "fill_"),
    OPTIMISER: ("_fused_adam_", "_foreach_norm", "linalg_vector_norm", "_foreach_mul_", "lerp_"),
}
_RUN = "one run"


def group_shares(run: Callable[[], object], runs: int) -> dict[str, float]:
    """The share of each group in the time of some runs.

    The time of an operator is that outside of the operators that it calls. What is in no operator is Python's and
    NumPy's, with PyTorch's own bookkeeping in Python. Profiling takes time too, the more the smaller an operator is.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # Otherwise the profiler says when it begins and ends.
    run()  # Warms up, and is not looked at.
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(runs):
            with record_function(_RUN):
                run()
    times = dict.fromkeys((*_GROUPS, OTHERS, OUTSIDE), 0.0)
    for event in profiled.key_averages():
        times[_group(event.key)] += event.self_cpu_time_total
    total = sum(times.values())
    return {group: time / total for group, time in times.items()}


def _group(operator: str) -> str:
    if operator == _RUN:
        return OUTSIDE
    if operator.startswith("Optimizer."):  # A step of it, of which the fused kernel is another event.
        return OPTIMISER
    name = operator.removeprefix("aten::")
    return next((group for group, names in _GROUPS.items() if name in names), OTHERS)
