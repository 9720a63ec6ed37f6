"""Lowering: PyTorch's operations as instructions of the machine.

An operation that has no rule here, or a case that its rule does not know, stays a call of PyTorch: it takes longer, and
gives the same.
"""

# ruff: noqa: PLR0917 (a rule takes what its operation takes)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from a2ls.tape._machine import PARAMETERS, WIDTH, Code
from a2ls.tape._recording import Operation

_aten = torch.ops.aten
_LARGE = 1e30
"""One divided by a number between this and its inverse is a float of 32 bits with all digits."""
_AXES = 3
"""How many axes an elementwise loop has."""


class _NoRule(Exception):
    """There is no instruction for this case."""


class Program:
    """Instructions: `rows` of whole numbers and, for each, a row of `parameters`."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.parameters: list[list[float]] = []

    def add(self, code: Code, *numbers: int, parameters: Sequence[float] = ()) -> None:
        """Append an instruction."""
        self.rows.append([code, *numbers, *[0] * (WIDTH - 1 - len(numbers))])
        self.parameters.append([*parameters, *[0.0] * (PARAMETERS - len(parameters))])

    def cut(self, length: int) -> None:
        """Leave just the first instructions."""
        del self.rows[length:], self.parameters[length:]


def lower(operation: Operation, program: Program) -> bool:
    """Append the instructions of an operation; if there are none for it, append nothing and return False."""
    if operation.function in _NOTHING_TO_DO:
        return True
    rule = _RULES.get(operation.function)
    tensors = (*operation.inputs(), *operation.outputs())
    if rule is None or any(tensor.dtype != torch.float32 for tensor in tensors):
        return False
    length = len(program.rows)
    try:
        rule(program, operation.result, *operation.arguments, **operation.keywords)
    except (_NoRule, TypeError):  # TypeError: an argument that the rule does not know.
        program.cut(length)
        return False
    return True


# Elementwise operations. A rule is given the program, the result, and then what the operation was given.


def _elementwise(program: Program, code: Code, y: Tensor, *inputs: Tensor, parameters: Sequence[float] = ()) -> None:
    """Fill y with what the code makes of the inputs, which are broadcast to its shape."""
    tensors = [y, *(x.expand(y.shape) for x in inputs)]
    axes = _axes(tensors)
    numbers = [size for size, _ in axes]
    for i, tensor in enumerate(tensors):
        numbers += tensor.data_ptr(), *(steps[i] for _, steps in axes)
    program.add(code, *numbers, parameters=parameters)


def _axes(tensors: Sequence[Tensor]) -> list[tuple[int, list[int]]]:
    """Three axes of tensors of one shape: size, and distance in each. Those that are one in memory are joined."""
    axes: list[tuple[int, list[int]]] = []
    for axis, size in enumerate(tensors[0].shape):
        if size == 1:
            continue
        steps = [tensor.stride(axis) for tensor in tensors]
        if axes and axes[-1][1] == [step * size for step in steps]:
            axes[-1] = axes[-1][0] * size, steps
        else:
            axes.append((size, steps))
    if len(axes) > _AXES:
        raise _NoRule
    # The last is the one along which the result is contiguous.
    axes.sort(key=lambda axis: -axis[1][0])
    return [(1, [0] * len(tensors))] * (_AXES - len(axes)) + axes


def _affine(program: Program, y: Tensor, x: Tensor, factor: float, summand: float) -> None:
    _elementwise(program, Code.AFFINE, y, x, parameters=(factor, summand))


def _add(program: Program, y: Tensor, a: Tensor, b: Tensor | float, *, alpha: float = 1) -> None:
    if isinstance(b, Tensor):
        _elementwise(program, Code.ADD, y, a, b, parameters=(alpha,))
    else:
        _affine(program, y, a, 1, alpha * b)


def _sub(program: Program, y: Tensor, a: Tensor, b: Tensor | float, *, alpha: float = 1) -> None:
    _add(program, y, a, b, alpha=-alpha)


def _rsub(program: Program, y: Tensor, a: Tensor, b: float, alpha: float = 1) -> None:
    _affine(program, y, a, -alpha, b)


def _neg(program: Program, y: Tensor, x: Tensor) -> None:
    _affine(program, y, x, -1, 0)


def _mul(program: Program, y: Tensor, a: Tensor, b: Tensor | float) -> None:
    if isinstance(b, Tensor):
        _elementwise(program, Code.MULTIPLY, y, a, b)
    else:
        _affine(program, y, a, b, 0)


def _square(program: Program, y: Tensor, x: Tensor) -> None:
    _mul(program, y, x, x)


def _div(program: Program, y: Tensor, a: Tensor, b: Tensor | float) -> None:
    if isinstance(b, Tensor):
        _elementwise(program, Code.DIVIDE, y, a, b)
    elif 1 / _LARGE < abs(b) < _LARGE:
        _affine(program, y, a, 1 / b, 0)
    else:
        raise _NoRule


def _tanh(program: Program, y: Tensor, x: Tensor) -> None:
    _elementwise(program, Code.TANH, y, x)


def _exp(program: Program, y: Tensor, x: Tensor) -> None:
    _elementwise(program, Code.EXP, y, x)


def _logaddexp(program: Program, y: Tensor, a: Tensor, b: Tensor) -> None:
    _elementwise(program, Code.LOGADDEXP, y, a, b)


def _addcmul(program: Program, y: Tensor, a: Tensor, b: Tensor, c: Tensor, *, value: float = 1) -> None:
    _elementwise(program, Code.ADDCMUL, y, a, b, c, parameters=(value,))


def _relu_(program: Program, y: Tensor, x: Tensor) -> None:
    last = program.rows[-1] if program.rows else [None]
    if last[0] == Code.PRODUCT and last[13] == x.data_ptr() and last[16] and _is_whole_product(last, x):
        last[20] = 1  # In the same pass as the bias.
    else:
        _elementwise(program, Code.RELU, y, x)


def _threshold_backward(
    program: Program,
    y: Tensor,
    above: Tensor,
    output: Tensor,
    threshold: float,
    grad_input: Tensor | None = None,  # noqa: ARG001
) -> None:
    _elementwise(program, Code.THRESHOLD_BACKWARD, y, above, output, parameters=(threshold,))


def _full_like(program: Program, y: Tensor, x: Tensor, value: float, *, pin_memory: bool = False) -> None:  # noqa: ARG001
    _elementwise(program, Code.FILL, y, y, parameters=(value,))


def _zeros_like(program: Program, y: Tensor, x: Tensor, *, pin_memory: bool = False) -> None:
    _full_like(program, y, x, 0, pin_memory=pin_memory)


def _cat(program: Program, y: Tensor, tensors: Sequence[Tensor], axis: int = 0) -> None:
    if any(tensor.dim() != y.dim() for tensor in tensors):
        raise _NoRule
    start = 0
    for tensor in tensors:
        size = tensor.shape[axis]
        _affine(program, y.narrow(axis, start, size), tensor, 1, 0)
        start += size


def _lerp_(program: Program, _: None, targets: Sequence[Tensor], sources: Sequence[Tensor], weight: float) -> None:
    for target, source in zip(targets, sources, strict=True):
        _elementwise(program, Code.LERP, target, target, source, parameters=(weight,))


# Reductions.


def _sum(
    program: Program,
    y: Tensor,
    x: Tensor,
    axes: Sequence[int],
    keepdim: bool = False,  # noqa: ARG001
    *,
    factor: float = 1,
) -> None:
    if len(axes) != 1 or not x.dim() or not y.is_contiguous():
        raise _NoRule
    axis = axes[0] % x.dim()
    outer, outer_step = _joined(x, range(axis))
    inner, inner_step = _joined(x, range(axis + 1, x.dim()))
    numbers = outer, x.shape[axis], inner, x.data_ptr(), outer_step, x.stride(axis), inner_step, y.data_ptr()
    program.add(Code.SUM, *numbers, parameters=(factor,))


def _joined(x: Tensor, axes: Sequence[int]) -> tuple[int, int]:
    """Size and distance of neighbouring axes that are one in memory."""
    size, step = 1, 0
    for axis in reversed(axes):
        if x.shape[axis] == 1:
            continue
        if size > 1 and x.stride(axis) != size * step:
            raise _NoRule
        size, step = size * x.shape[axis], step if size > 1 else x.stride(axis)
    return size, step


def _mean(program: Program, y: Tensor, x: Tensor) -> None:
    if x.dim() != 1 or not len(x):
        raise _NoRule
    _sum(program, y, x, [0], factor=1 / len(x))


def _amin(program: Program, y: Tensor, x: Tensor, axes: Sequence[int] = ()) -> None:
    if list(axes) != [0] or len(x) != 2:
        raise _NoRule
    _elementwise(program, Code.MINIMUM, y, x[0], x[1])


# Products.


def _bmm(program: Program, c: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None) -> None:
    """Fill c (count, m, n) with the products of a (count, m, k) and b (count, k, n), plus the bias."""
    c_row, c_turned = _rows(c)
    if c_turned:
        raise _NoRule
    numbers = [*c.shape, a.shape[2], a.data_ptr(), a.stride(0), *_rows(a), b.data_ptr(), b.stride(0), *_rows(b)]
    numbers += c.data_ptr(), c.stride(0), c_row
    if bias is not None:
        numbers += bias.data_ptr(), *bias.expand(c.shape).stride()
    program.add(Code.PRODUCT, *numbers)


def _rows(matrices: Tensor) -> tuple[int, int]:
    """The distance of the rows that lie in memory, and whether these are the columns."""
    _, rows, columns = matrices.shape
    _, row, column = matrices.stride()
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return max(row, columns), 0
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return max(column, rows), 1
    raise _NoRule


def _is_whole_product(row: Sequence[int], x: Tensor) -> bool:
    count, m, n = row[1:4]
    return x.is_contiguous() and x.numel() == count * m * n and row[15] == n


def _mm(program: Program, c: Tensor, a: Tensor, b: Tensor) -> None:
    _bmm(program, c.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0))


def _matmul(program: Program, c: Tensor, a: Tensor, b: Tensor) -> None:
    if a.dim() != 2 or b.dim() != 2:
        raise _NoRule
    _mm(program, c, a, b)


def _addmm(program: Program, c: Tensor, bias: Tensor, a: Tensor, b: Tensor) -> None:
    _bmm(program, c.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0), bias)


def _baddbmm(program: Program, c: Tensor, bias: Tensor, a: Tensor, b: Tensor) -> None:
    _bmm(program, c, a, b, bias)


def _linear(program: Program, y: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> None:
    if x.dim() != 2:
        raise _NoRule
    _addmm(program, y, bias, x, weight.T)


# Layers and optimisers.


def _layer_norm(
    program: Program,
    results: Sequence[Tensor],
    x: Tensor,
    shape: Sequence[int],
    scale: Tensor,
    shift: Tensor,
    eps: float,
) -> None:
    tensors = x, scale, shift, *results
    _require_rows(x, shape, tensors)
    program.add(Code.LAYER_NORM, *x.shape, *(tensor.data_ptr() for tensor in tensors), parameters=(eps,))


def _layer_norm_backward(
    program: Program,
    results: Sequence[Tensor],
    above: Tensor,
    x: Tensor,
    shape: Sequence[int],
    mean: Tensor,
    inverse: Tensor,
    scale: Tensor,
    shift: Tensor,  # noqa: ARG001
    wanted: Sequence[bool],
) -> None:
    if not all(wanted):
        raise _NoRule
    tensors = x, mean, inverse, scale, *results
    _require_rows(x, shape, tensors)
    addresses = (tensor.data_ptr() for tensor in tensors)
    program.add(Code.LAYER_NORM_BACKWARD, *x.shape, above.data_ptr(), *above.stride(), *addresses)


def _require_rows(x: Tensor, shape: Sequence[int], tensors: Sequence[Tensor | None]) -> None:
    if len(shape) != 1 or x.dim() != 2 or not all(tensor is not None and tensor.is_contiguous() for tensor in tensors):
        raise _NoRule


def _adam_(
    program: Program,
    _: None,
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    firsts: Sequence[Tensor],
    seconds: Sequence[Tensor],
    largest: Sequence[Tensor],  # noqa: ARG001
    steps: Sequence[Tensor],
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
) -> None:
    if weight_decay or amsgrad or maximize:
        raise _NoRule
    for tensors in zip(parameters, gradients, firsts, seconds, steps, strict=True):
        if not all(tensor.is_contiguous() for tensor in tensors):
            raise _NoRule
        addresses = (tensor.data_ptr() for tensor in tensors)
        program.add(Code.ADAM, tensors[0].numel(), *addresses, parameters=(lr, beta1, beta2, eps))


_NOTHING_TO_DO = {
    # Other views of the same memory: operations on them have the right addresses already.
    _aten.alias.default,
    _aten.chunk.default,
    _aten.detach.default,
    _aten.diagonal.default,
    _aten.expand.default,
    _aten.expand_as.default,
    _aten.mT.default,
    _aten.numpy_T.default,
    _aten.select.int,
    _aten.slice.Tensor,
    _aten.squeeze.dim,
    _aten.t.default,
    _aten.transpose.int,
    _aten.unsqueeze.default,
    _aten.view.default,
    # Memory to be written to later.
    _aten.empty.memory_format,
    _aten.empty_like.default,
}

_RULES: dict[Any, Callable[..., None]] = {
    _aten._foreach_lerp_.Scalar: _lerp_,
    _aten._fused_adam_.default: _adam_,
    _aten.add.Tensor: _add,
    _aten.add_.Tensor: _add,
    _aten.addcmul.default: _addcmul,
    _aten.addcmul_.default: _addcmul,
    _aten.addmm.default: _addmm,
    _aten.amin.default: _amin,
    _aten.baddbmm.default: _baddbmm,
    _aten.bmm.default: _bmm,
    _aten.cat.default: _cat,
    _aten.div.Tensor: _div,
    _aten.exp.default: _exp,
    _aten.full_like.default: _full_like,
    _aten.linear.default: _linear,
    _aten.logaddexp.default: _logaddexp,
    _aten.matmul.default: _matmul,
    _aten.mean.default: _mean,
    _aten.mm.default: _mm,
    _aten.mul.Tensor: _mul,
    _aten.mul_.Tensor: _mul,
    _aten.native_layer_norm.default: _layer_norm,
    _aten.native_layer_norm_backward.default: _layer_norm_backward,
    _aten.neg.default: _neg,
    _aten.relu_.default: _relu_,
    _aten.rsub.Scalar: _rsub,
    _aten.square.default: _square,
    _aten.sub.Tensor: _sub,
    _aten.sub_.Tensor: _sub,
    _aten.sum.dim_IntList: _sum,
    _aten.tanh.default: _tanh,
    _aten.threshold_backward.default: _threshold_backward,
    _aten.threshold_backward.grad_input: _threshold_backward,
    _aten.zeros_like.default: _zeros_like,
}
