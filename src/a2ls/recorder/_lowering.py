"""Lowering: PyTorch's operations as instructions.

An operation that has no rule here, or a case that its rule does not know, stays a call of PyTorch: it takes longer, and
gives the same.
"""

# ruff: noqa: ARG001, PLR0917 (a rule takes what its operation takes)

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from a2ls.recorder._machine import AXES, OPERAND, OPERANDS, PARAMETERS, WIDTH, Code
from a2ls.recorder._recording import TAKE_MEMORY, Operation

_FLOAT, _TYPES = {torch.float32}, {torch.float32, torch.bool}
_OF_FLOATS = {Code.PRODUCT, Code.SUM_OF_ROWS, Code.LAYER_NORM, Code.LAYER_NORM_BACKWARD, Code.ADAM}


Rule = Callable[..., None]
"""Is given the program, the result of an operation, and then what the operation was given."""


class _NoRule(Exception):
    """There is no instruction for this case."""


@dataclass(frozen=True)
class Instruction:
    """What the machine is to do: see `_machine` for the format."""

    code: Code
    sizes: tuple[int, ...]
    """Of up to four axes, the last ones."""
    operands: tuple[tuple[Tensor, tuple[int, ...]] | None, ...]
    """Tensors that begin with the element at the origin, and their distances along each axis; or none."""
    parameters: tuple[float, ...] = ()

    def row(self) -> list[int]:
        """As whole numbers.

        Raises:
            IndexError: If an operand reaches out of the memory of its tensor.
        """
        more = AXES - len(self.sizes)
        row = [int(self.code), *[1] * more, *self.sizes]
        for operand in self.operands:
            if operand is None:
                row += [0] * OPERAND
                continue
            tensor, steps = operand
            reach = [(size - 1) * step for size, step in zip(self.sizes, steps, strict=True)]
            first = tensor.storage_offset() + sum(min(0, distance) for distance in reach)
            last = tensor.storage_offset() + sum(max(0, distance) for distance in reach)
            size = tensor.element_size()
            if min(self.sizes) < 1 or first < 0 or (last + 1) * size > tensor.untyped_storage().nbytes():
                raise IndexError(f"{self} reaches out of the memory of a tensor")
            if tensor.device.type != "cpu" or tensor.dtype not in (_FLOAT if self.code in _OF_FLOATS else _TYPES):
                raise IndexError(f"{self} has an operand of another type")
            row += [tensor.data_ptr(), size, *[0] * more, *steps]
        if len(self.operands) > OPERANDS:
            raise IndexError(f"{self} has too many operands")
        return row + [0] * (WIDTH - len(row))


class Program:
    """Instructions, one after the other."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._scratch: dict[int, Tensor] = {}

    def copy(self, y: Tensor, x: Tensor) -> None:
        """Append one that fills y with x."""
        _elementwise(Code.COPY, self, y, x)

    def scratch(self, size: int) -> Tensor:
        """Memory that an instruction may use while it runs."""
        return self._scratch.setdefault(size, torch.empty(size))

    def add(
        self,
        code: Code,
        sizes: Sequence[int],
        *operands: tuple[Tensor, Sequence[int]] | None,
        parameters: Sequence[float] = (),
    ) -> None:
        """Append an instruction."""
        given = tuple(None if operand is None else (operand[0], tuple(operand[1])) for operand in operands)
        self.instructions.append(Instruction(code, tuple(sizes), given, tuple(map(float, parameters))))

    def rows(self) -> list[list[int]]:
        """All instructions as whole numbers."""
        return [instruction.row() for instruction in self.instructions]

    def parameters(self) -> list[list[float]]:
        """Of all instructions."""
        return [[*i.parameters, *[0.0] * (PARAMETERS - len(i.parameters))] for i in self.instructions]


def lower(operation: Operation, program: Program) -> bool:
    """Append the instructions of an operation; if there are none for it, append nothing and return False."""
    if operation.name in _NOTHING_TO_DO:
        return True
    rule = _RULES.get(operation.name)
    tensors = (*operation.inputs(), *operation.outputs())
    # Empty tensors have no first element for an instruction to begin with.
    if rule is None or not all(tensor.dtype in _TYPES and tensor.numel() for tensor in tensors):
        return False
    keywords = {name: value for name, value in operation.keywords.items() if name not in _SAID_BY_RESULT}
    result = operation.result
    if result is None and operation.written():
        result = operation.written()
    try:
        given = _signature(rule).bind(program, result, *operation.arguments, **keywords)
    except TypeError:  # An argument that the rule does not know.
        return False
    length = len(program.instructions)
    try:
        rule(*given.args, **given.kwargs)
    except _NoRule:
        del program.instructions[length:]
        return False
    return True


@cache
def _signature(rule: Rule) -> inspect.Signature:
    return inspect.signature(rule)


# Elementwise operations.


def _elementwise(
    code: Code, program: Program, y: Tensor, *given: Tensor | float, parameters: Sequence[float] = ()
) -> None:
    """Fill y with what the code makes of tensors and numbers, which are broadcast to its shape."""
    tensors = [y, *(_tensor(x).expand(y.shape) for x in given)]
    sizes, steps = _joined(y.shape, [tensor.stride() for tensor in tensors])
    if len(sizes) > AXES:
        raise _NoRule
    # The last axis is the one along which the result is contiguous.
    order = sorted(range(len(sizes)), key=lambda axis: -steps[0][axis])
    operands = [(tensor, [own[axis] for axis in order]) for tensor, own in zip(tensors, steps, strict=True)]
    program.add(code, [sizes[axis] for axis in order], *operands, parameters=parameters)


def _tensor(x: Tensor | float) -> Tensor:
    """A number as one of the tensors of an instruction."""
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, (bool, int, float)):
        raise _NoRule
    return torch.tensor(float(x), dtype=torch.float32)


def _joined(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Sizes and distances of as few axes as possible: those that are one in the memory of all tensors are joined."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(own[-1] == stride[axis] * size for own, stride in zip(steps, strides, strict=True)):
            sizes[-1] *= size
            for own, stride in zip(steps, strides, strict=True):
                own[-1] = stride[axis]
        else:
            sizes.append(size)
            for own, stride in zip(steps, strides, strict=True):
                own.append(stride[axis])
    return (sizes, steps) if sizes else ([1], [[0] for _ in strides])


def _computed(code: Code, arity: int, *defaults: float, swapped: bool = False, to: torch.dtype = torch.float32) -> Rule:
    """The rule of operations that are given as many operands, tensors or numbers, and then parameters."""

    def rule(program: Program, y: Tensor, *given: Any, **keywords: Any) -> None:
        parameters = (*given[arity:], *keywords.values()) or defaults
        numbers = all(isinstance(number, (bool, int, float)) for number in parameters)
        if len(given) < arity or len(parameters) != len(defaults) or not numbers or y.dtype != to:
            raise _NoRule
        _elementwise(code, program, y, *given[:arity][:: -1 if swapped else 1], parameters=parameters)

    return rule


_comparison = partial(_computed, to=torch.bool)
_add, _divide = _computed(Code.ADD, 2, 1), _computed(Code.DIVIDE, 2)


def _sub(program: Program, y: Tensor, a: Any, b: Any, alpha: float = 1) -> None:
    _add(program, y, a, b, -alpha)


def _pow(program: Program, y: Tensor, x: Tensor, exponent: Any) -> None:
    if isinstance(exponent, Tensor) or exponent not in {1, 2}:
        raise _NoRule
    if exponent == 1:  # In the gradient of a square.
        _elementwise(Code.COPY, program, y, x)
    else:
        _elementwise(Code.MULTIPLY, program, y, x, x)


def _rsqrt(program: Program, y: Tensor, x: Tensor) -> None:
    _elementwise(Code.SQUARE_ROOT, program, y, x)
    _elementwise(Code.DIVIDE, program, y, 1, y)


def _clamp(program: Program, y: Tensor, x: Tensor, least: Any = None, most: Any = None) -> None:
    if least is not None:
        _elementwise(Code.MAXIMUM, program, y, x, least)
    if most is not None:
        _elementwise(Code.MINIMUM, program, y, x if least is None else y, most)


def _extreme(code: Code) -> Rule:
    def rule(program: Program, y: Tensor, x: Tensor, other: Any = (), keepdim: bool = False) -> None:
        """Of two tensors, or along an axis of two."""
        if isinstance(other, Tensor):
            return _elementwise(code, program, y, x, other)
        if not isinstance(other, (list, tuple)) or len(other) != 1 or x.shape[other[0]] != 2:
            raise _NoRule
        first, second = x.movedim(other[0], 0)
        return _elementwise(code, program, y.view(first.shape), first, second)

    return rule


def _masked_fill(program: Program, y: Tensor, x: Tensor, mask: Tensor, value: Any) -> None:
    _elementwise(Code.WHERE, program, y, mask, value, x)


def _relu(program: Program, y: Tensor, x: Tensor) -> None:
    last = program.instructions[-1] if program.instructions else None
    if last is not None and _is_biased_product(last, x, y):
        program.instructions[-1] = replace(last, parameters=(1.0,))  # In the same pass as the bias.
    else:
        _elementwise(Code.RELU, program, y, x)


def _is_biased_product(last: Instruction, x: Tensor, y: Tensor) -> bool:
    """Whether an operation in place is one on all that a product with a bias gave."""
    c = last.operands[0]
    if x is not y or last.code != Code.PRODUCT or len(last.operands) != 4 or c is None:
        return False
    (count, m, n, _), (_, row, _, _) = last.sizes, c[1]
    whole = count * m * n == x.numel() and (count * m == 1 or row == n) and x.is_contiguous()
    return whole and c[0].data_ptr() == x.data_ptr()


def _foreach(rule: Rule) -> Rule:
    def rule_of_lists(program: Program, ys: Sequence[Tensor], xs: Sequence[Tensor], *given: Any) -> None:
        for i, (y, x) in enumerate(zip(ys, xs, strict=True)):
            rule(program, y, x, *(own[i] if isinstance(own, (list, tuple)) else own for own in given))

    return rule_of_lists


# Memory.


def _fill(program: Program, y: Tensor, *given: Any) -> None:
    """With the last of the arguments."""
    _elementwise(Code.COPY, program, y, given[-1])


def _filled(value: float) -> Rule:
    return lambda program, y, *_: _fill(program, y, value)


def _copy(program: Program, y: Tensor, x: Tensor, source: Tensor, non_blocking: bool = False) -> None:
    _fill(program, y, source)


def _clone(program: Program, y: Tensor, x: Tensor, *_: Any) -> None:
    if y.data_ptr() != x.data_ptr():
        _fill(program, y, x)


def _cat(program: Program, y: Tensor, tensors: Sequence[Tensor], axis: int = 0) -> None:
    if any(tensor.dim() != y.dim() for tensor in tensors):
        raise _NoRule
    start = 0
    for tensor in tensors:
        size = tensor.shape[axis]
        _elementwise(Code.COPY, program, y.narrow(axis, start, size), tensor)
        start += size


def _stack(program: Program, y: Tensor, tensors: Sequence[Tensor], axis: int = 0) -> None:
    for part, tensor in zip(y.unbind(axis), tensors, strict=True):
        _elementwise(Code.COPY, program, part, tensor)


def _roll(program: Program, y: Tensor, x: Tensor, shifts: Sequence[int], axes: Sequence[int] = ()) -> None:
    if len(axes) != 1:
        raise _NoRule
    (axis,), size = axes, x.shape[axes[0]]
    shift = shifts[0] % size
    for start, count, to in ((0, size - shift, shift), (size - shift, shift, 0)):
        if count:
            _elementwise(Code.COPY, program, y.narrow(axis, to, count), x.narrow(axis, start, count))


def _view_backward(view: Callable[..., Tensor]) -> Rule:
    def rule(program: Program, y: Tensor, grad_output: Tensor, sizes: Sequence[int], *given: Any) -> None:
        part = view(y, *given)
        if part.numel() < y.numel():
            _fill(program, y, 0)
        _elementwise(Code.COPY, program, part, grad_output)

    return rule


def _diag_embed(program: Program, y: Tensor, x: Tensor, offset: int = 0, first: int = -2, second: int = -1) -> None:
    _fill(program, y, 0)
    _elementwise(Code.COPY, program, y.diagonal(offset, first, second), x)


# Reductions.


def _sum(program: Program, y: Tensor, x: Tensor, axes: Any = None, keepdim: bool = False) -> None:
    _reduce(Code.SUM, program, y, x, axes=axes)


def _mean(program: Program, y: Tensor, x: Tensor, axes: Any = None, keepdim: bool = False) -> None:
    _reduce(Code.SUM, program, y, x, axes=axes, divisor=x.numel() / y.numel())


def _vector_norm(
    program: Program, y: Tensor, x: Tensor, order: float = 2, axes: Any = None, keepdim: bool = False
) -> None:
    if order != 2:
        raise _NoRule
    _reduce(Code.SUM_OF_SQUARES, program, y, x, axes=axes, root=True)


def _mse_loss(program: Program, y: Tensor, a: Tensor, b: Tensor, reduction: int = 1) -> None:
    if not reduction or a.shape != b.shape:
        raise _NoRule
    _reduce(Code.SUM_OF_SQUARED_ERRORS, program, y, a, b, divisor=a.numel() if reduction == _OF_MEAN else 1)


_OF_MEAN = 1
"""How PyTorch numbers `reduction="mean"`; none is 0, a sum is 2."""


def _mse_backward(program: Program, y: Tensor, grad_output: Tensor, a: Tensor, b: Tensor, reduction: int) -> None:
    factor = 2 / a.numel() if reduction == _OF_MEAN else 2
    _elementwise(Code.MSE_BACKWARD, program, y, a, b, grad_output, parameters=(factor,))


def _reduce(
    code: Code, program: Program, y: Tensor, *given: Tensor, axes: Any = None, divisor: float = 1, root: bool = False
) -> None:
    """Fill y with sums of what the code makes of tensors of one shape, divided, and their roots if wanted."""
    x = given[0]
    axes = (axes,) if isinstance(axes, int) else axes or range(x.dim())
    summed = sorted({axis % x.dim() for axis in axes}) if x.dim() else []
    left = [axis for axis in range(x.dim()) if axis not in summed]
    y = y.view([x.shape[axis] for axis in left])
    strides = [y.stride(), *([tensor.stride(axis) for axis in left] for tensor in given)]
    sizes, steps = _joined(y.shape, strides)
    counts, distances = _joined(
        [x.shape[axis] for axis in summed], [[tensor.stride(axis) for axis in summed] for tensor in given]
    )
    if len(sizes) > 2 or len(counts) > 2 or any(tensor.dtype != torch.float32 for tensor in (y, *given)):
        raise _NoRule
    parameters = divisor, root
    if code == Code.SUM and len(counts) == 1 and steps[0][-1] == steps[1][-1] == 1 and sizes[-1] > 1:
        order = [*sizes[:-1], *counts, sizes[-1]]
        rows = (y, [*steps[0][:-1], 0, 1]), (x, [*steps[1][:-1], distances[0][0], 1])
        program.add(Code.SUM_OF_ROWS, order, *rows, parameters=parameters)
        return
    # Two axes are summed, of which the first may have just one element.
    counts, distances = ([1, *counts], [[0, *own] for own in distances]) if len(counts) == 1 else (counts, distances)
    operands = [(y, [*steps[0], 0, 0])]
    operands += [(tensor, [*a, *b]) for tensor, a, b in zip(given, steps[1:], distances, strict=True)]
    program.add(code, [*sizes, *counts], *operands, parameters=parameters)


# Products.


def _bmm(program: Program, c: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None) -> None:
    """Fill c (count, m, n) with the products of a (count, m, k) and b (count, k, n), plus the bias."""
    bias = None if bias is None else bias.expand(c.shape)
    if c.shape[2] == 1 and c.stride(1) == 1:
        # With the one column as a row: a third of the time.
        c, a, b, bias = c.mT, b.mT, a.mT, None if bias is None else bias.mT
    (count, m, n), k = c.shape, a.shape[2]
    (c_row, c_column), (a_row, a_column), (b_row, b_column) = _rows(c), _rows(a), _rows(b)
    if n > 1 and c_column != 1:
        raise _NoRule
    operands: list[tuple[Tensor, Sequence[int]] | None] = [
        (c, (c.stride(0), c_row, 1, 0)),
        (a, (a.stride(0), a_row, 0, a_column)),
        (b, (b.stride(0), 0, b_column, b_row)),
    ]
    if bias is not None:
        operands.append((bias, (*bias.stride(), 0)))
    elif k >= _LONG and n < _WIDE and n % 8 and m > n:
        # BLAS stores by columns. A length of them that fills no vectors takes it half as long again as such a number of
        # columns, and to transpose the result takes less than that.
        operands += [None, (program.scratch(m * n), (0, 1, m, 0))]
    program.add(Code.PRODUCT, (count, m, n, k), *operands)


_LONG, _WIDE = 96, 112


def _rows(matrices: Tensor) -> tuple[int, int]:
    """The distances of rows and columns, of which one must be 1, as BLAS wants them where there is just one of them."""
    _, rows, columns = matrices.shape
    _, row, column = matrices.stride()
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return max(row, columns), 1
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return 1, max(column, rows)
    raise _NoRule


def _mm(program: Program, c: Tensor, a: Tensor, b: Tensor) -> None:
    _bmm(program, c.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0))


def _addmm(program: Program, c: Tensor, bias: Tensor, a: Tensor, b: Tensor) -> None:
    _bmm(program, c.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0), bias)


def _baddbmm(program: Program, c: Tensor, bias: Tensor, a: Tensor, b: Tensor) -> None:
    _bmm(program, c, a, b, bias)


def _matmul(program: Program, c: Tensor, a: Tensor, b: Tensor) -> None:
    if a.dim() != 2 or b.dim() != 2:
        raise _NoRule
    _mm(program, c, a, b)


def _linear(program: Program, y: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> None:
    if x.dim() != 2:
        raise _NoRule
    _bmm(program, y.unsqueeze(0), x.unsqueeze(0), weight.T.unsqueeze(0), bias)


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
    y, means, inverses = results
    rows = _require_rows(shape, x, scale, shift, *results)
    operands = [(y, (shape[0], 1)), (x, (shape[0], 1)), (scale, (0, 1)), (shift, (0, 1)), (means, (1, 0))]
    program.add(Code.LAYER_NORM, (rows, shape[0]), *operands, (inverses, (1, 0)), parameters=(eps,))


def _layer_norm_backward(
    program: Program,
    results: Sequence[Tensor],
    grad_output: Tensor,
    x: Tensor,
    shape: Sequence[int],
    means: Tensor,
    inverses: Tensor,
    scale: Tensor,
    shift: Tensor,
    wanted: Sequence[bool],
) -> None:
    rows = _require_rows(shape, x, means, inverses, scale, *results)
    of_x, of_scale, of_shift = results
    width = shape[0]
    joined = _joined(grad_output.shape[:-1], [grad_output.stride()[:-1]])
    if len(joined[0]) > 1:
        raise _NoRule
    operands = [
        (of_x, (width, 1)),
        (of_scale, (0, 1)),
        (of_shift, (0, 1)),
        (grad_output, (joined[1][0][0], grad_output.stride(-1))),
    ]
    operands += [(x, (width, 1)), (means, (1, 0)), (inverses, (1, 0)), (scale, (0, 1))]
    program.add(Code.LAYER_NORM_BACKWARD, (rows, width), *operands)


def _require_rows(shape: Sequence[int], *tensors: Tensor | None) -> int:
    """How many rows there are, if all is contiguous and the last axis alone is normalised."""
    if len(shape) != 1 or not all(tensor is not None and tensor.is_contiguous() for tensor in tensors):
        raise _NoRule
    x = tensors[0]
    assert x is not None
    return prod(x.shape[:-1])


def _adam(
    program: Program,
    _: Any,
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    firsts: Sequence[Tensor],
    seconds: Sequence[Tensor],
    largest: Sequence[Tensor],
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
    if weight_decay or amsgrad or maximize or isinstance(lr, Tensor):
        raise _NoRule
    for *tensors, step in zip(parameters, gradients, firsts, seconds, steps, strict=True):
        if not all(tensor.is_contiguous() for tensor in tensors):
            raise _NoRule
        operands = [(tensor, (1,)) for tensor in tensors]
        program.add(Code.ADAM, (tensors[0].numel(),), *operands, (step, (0,)), parameters=(lr, beta1, beta2, eps))


_SAID_BY_RESULT = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "out", "grad_input"}
"""Keywords that say where to put a result and of which type it is."""

_VIEWS = """
    alias as_strided chunk detach diagonal expand expand_as lift_fresh mT movedim narrow numpy_T permute select slice
    split split_with_sizes squeeze swapaxes t transpose unbind unsafe_chunk unsafe_split unsqueeze view view_as
    _unsafe_view
"""
_NOTHING_TO_DO = {*_VIEWS.split(), *TAKE_MEMORY}
"""Operations on views have the right addresses already."""

_RULES: dict[str, Rule] = {
    # Elementwise.
    "abs": _computed(Code.ABSOLUTE, 1),
    "add": _add,
    "addcdiv": _computed(Code.ADDCDIV, 3, 1),
    "addcmul": _computed(Code.ADDCMUL, 3, 1),
    "amax": _extreme(Code.MAXIMUM),
    "amin": _extreme(Code.MINIMUM),
    "clamp": _clamp,
    "clamp_max": lambda program, y, x, most: _clamp(program, y, x, None, most),
    "clamp_min": _clamp,
    "div": _divide,
    "eq": _comparison(Code.EQUAL, 2),
    "exp": _computed(Code.EXP, 1),
    "ge": _comparison(Code.LESS_OR_EQUAL, 2, swapped=True),
    "gt": _comparison(Code.LESS, 2, swapped=True),
    "le": _comparison(Code.LESS_OR_EQUAL, 2),
    "lerp": _computed(Code.LERP, 2, 0),
    "log": _computed(Code.LOG, 1),
    "logaddexp": _computed(Code.LOGADDEXP, 2),
    "lt": _comparison(Code.LESS, 2),
    "masked_fill": _masked_fill,
    "max": _extreme(Code.MAXIMUM),
    "maximum": _computed(Code.MAXIMUM, 2),
    "min": _extreme(Code.MINIMUM),
    "minimum": _computed(Code.MINIMUM, 2),
    "mul": _computed(Code.MULTIPLY, 2),
    "ne": _comparison(Code.NOT_EQUAL, 2),
    "neg": _computed(Code.NEGATIVE, 1),
    "pow": _pow,
    "reciprocal": lambda program, y, x: _divide(program, y, 1, x),
    "relu": _relu,
    "rsqrt": _rsqrt,
    "rsub": lambda program, y, a, b, alpha=1: _sub(program, y, b, a, alpha),
    "sgn": _computed(Code.SIGN, 1),
    "sigmoid": _computed(Code.SIGMOID, 1),
    "sigmoid_backward": _computed(Code.SIGMOID_BACKWARD, 2),
    "sign": _computed(Code.SIGN, 1),
    "softplus": _computed(Code.SOFTPLUS, 1, 1, 20),
    "softplus_backward": _computed(Code.SOFTPLUS_BACKWARD, 2, 1, 20),
    "sqrt": _computed(Code.SQUARE_ROOT, 1),
    "square": lambda program, y, x: _pow(program, y, x, 2),
    "sub": _sub,
    "tanh": _computed(Code.TANH, 1),
    "tanh_backward": _computed(Code.TANH_BACKWARD, 2),
    "threshold_backward": _computed(Code.THRESHOLD_BACKWARD, 2, 0),
    "where": _computed(Code.WHERE, 3),
    # Memory.
    "_to_copy": _clone,
    "cat": _cat,
    "clone": _clone,
    "contiguous": _clone,
    "copy": _copy,
    "diag_embed": _diag_embed,
    "diagonal_backward": _view_backward(torch.diagonal),
    "fill": _fill,
    "full": _fill,
    "full_like": _fill,
    "new_zeros": _filled(0),
    "ones": _filled(1),
    "ones_like": _filled(1),
    "reshape": _clone,
    "roll": _roll,
    "scalar_tensor": _fill,
    "select_backward": _view_backward(torch.select),
    "slice_backward": _view_backward(torch.ops.aten.slice.Tensor),
    "stack": _stack,
    "zero": _filled(0),
    "zeros": _filled(0),
    "zeros_like": _filled(0),
    # Reductions, products, layers and optimisers.
    "_foreach_add": _foreach(_add),
    "_foreach_lerp": _foreach(_computed(Code.LERP, 2, 0)),
    "_foreach_mul": _foreach(_computed(Code.MULTIPLY, 2)),
    "_fused_adam": _adam,
    "addmm": _addmm,
    "baddbmm": _baddbmm,
    "bmm": _bmm,
    "linalg_vector_norm": _vector_norm,
    "linear": _linear,
    "matmul": _matmul,
    "mean": _mean,
    "mm": _mm,
    "mse_loss": _mse_loss,
    "mse_loss_backward": _mse_backward,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "sum": _sum,
}
