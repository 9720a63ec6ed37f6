"""The machine that plays a tape: one compiled function, which runs one instruction after the other.

An instruction is a row of whole numbers, of which the first is its code, and a row of parameters. Most numbers are
addresses of 32-bit floats, sizes, and distances, which are counted in floats. What they mean is said at each loop.

As in PyTorch, what is not a number stays so through ReLU and minimum. All compiled code is in this file: Numba keeps
the machine for later processes until its file changes.
"""

# Numba finds the types, and every formula is given what any of them needs.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, ARG005, PLR0917

from __future__ import annotations

import ctypes
from enum import IntEnum

import llvmlite.binding
import numpy as np
import torch
from numba import carray, njit, types
from numba.extending import intrinsic

WIDTH = 24
"""How many whole numbers an instruction has."""
PARAMETERS = 4
"""How many parameters."""


class Code(IntEnum):
    """What an instruction does."""

    PRODUCT = 0
    SUM = 1
    LAYER_NORM = 2
    LAYER_NORM_BACKWARD = 3
    ADAM = 4
    FILL = 5
    AFFINE = 6
    TANH = 7
    EXP = 8
    RELU = 9
    ADD = 10
    MULTIPLY = 11
    DIVIDE = 12
    MINIMUM = 13
    LOGADDEXP = 14
    THRESHOLD_BACKWARD = 15
    LERP = 16
    ADDCMUL = 17


# Sums may be taken in any order, or they could not be taken in vectors.
_compiled = njit(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
_float = np.float32
_ZERO, _HALF, _ONE, _LOG_2 = _float(0), _float(0.5), _float(1), _float(np.log(2))
_AS_STORED, _TURNED = ord("N"), ord("T")


def _address_of_product() -> int:
    """Of the product that PyTorch itself calls, be it MKL's, OpenBLAS' or Accelerate's."""
    try:
        found = ctypes.CDLL(torch._C.__file__).sgemm_  # Libraries that this one needs are searched, too.
    except (AttributeError, OSError) as error:
        raise ImportError("PyTorch does not show the product of its linear algebra library") from error
    address = ctypes.cast(found, ctypes.c_void_p).value
    assert address is not None
    return address


# By name, since the machine is kept for later processes, where the address is another.
llvmlite.binding.add_symbol("a2ls_sgemm", _address_of_product())
_sgemm = types.ExternalFunction("a2ls_sgemm", types.void(*[types.intp] * 13))


@intrinsic
def _pointer(_typing, _address):
    def codegen(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float32)(types.intp), codegen


@_compiled
def _floats(address, shape):
    return carray(_pointer(address), shape)


@_compiled
def _product(row):
    """C (m, n) = A (m, k) B (k, n), `count` times; then the bias is added, and the sum rectified.

    count, m, n, k; address of A, distances of its matrices and rows, and whether the rows in memory are columns; the
    same of B; address of C and both distances; address of the bias or 0, its distances along matrices, rows and
    columns; whether to rectify.
    """
    count, m, n, k = row[1], row[2], row[3], row[4]
    # BLAS stores by columns, where C' is B' A', and wants the address of every argument.
    sizes = np.array([n, m, k, row[11], row[7], row[15]], dtype=np.int32)
    turned = np.array([_TURNED if row[12] else _AS_STORED, _TURNED if row[8] else _AS_STORED], dtype=np.uint8)
    factors = np.array([_ONE, _ZERO])
    size, turn, factor = sizes.ctypes.data, turned.ctypes.data, factors.ctypes.data
    for i in range(count):
        a, b, c = row[5] + 4 * i * row[6], row[9] + 4 * i * row[10], row[13] + 4 * i * row[14]
        _sgemm(turn, turn + 1, size, size + 4, size + 8, factor, b, size + 12, a, size + 16, factor + 4, c, size + 20)
        if row[16]:
            _add_bias(c, row[15], m, n, row[16] + 4 * i * row[17], row[18], row[19], row[20])


@_compiled
def _add_bias(c, c_row, m, n, bias, bias_row, bias_column, rectified):
    for i in range(m):
        x = _floats(c + 4 * i * c_row, n)
        y = _floats(bias + 4 * i * bias_row, 1 + (n - 1) * bias_column)
        if bias_column != 1:
            for j in range(n):
                value = x[j] + y[j * bias_column]
                x[j] = _ZERO if rectified and value <= _ZERO else value
        elif rectified:
            for j in range(n):
                value = x[j] + y[j]
                x[j] = _ZERO if value <= _ZERO else value
        else:
            for j in range(n):
                x[j] += y[j]


@_compiled
def _sum(row, factor):
    """The sum of x (outer, count, inner) over its middle axis, times a factor: y (outer, inner).

    outer, count, inner; address of x, and its three distances; address of y, which is contiguous.
    """
    outer, count, inner, x, y = row[1], row[2], row[3], row[4], row[8]
    outer_step, count_step, inner_step = row[5], row[6], row[7]
    for i in range(outer):
        start, to = x + 4 * i * outer_step, _floats(y + 4 * i * inner, inner)
        if inner_step == 1 and inner > 1:
            to[:] = _ZERO
            for r in range(count):
                line = _floats(start + 4 * r * count_step, inner)
                for j in range(inner):
                    to[j] += line[j]
            for j in range(inner):
                to[j] *= factor
        else:
            for j in range(inner):
                line = _floats(start + 4 * j * inner_step, 1 + (count - 1) * count_step)
                total = _ZERO
                for r in range(count):
                    total += line[r * count_step]
                to[j] = total * factor


@_compiled
def _layer_norm(row, eps):
    """Of x (batch, width); all tensors are contiguous.

    batch, width; addresses of x, scale, shift, the result, means and inverse deviations (batch).
    """
    batch, width = row[1], row[2]
    xs, ys = _floats(row[3], (batch, width)), _floats(row[6], (batch, width))
    scale, shift = _floats(row[4], width), _floats(row[5], width)
    means, inverses = _floats(row[7], batch), _floats(row[8], batch)
    for i in range(batch):
        x, y = xs[i], ys[i]
        mean = _ZERO
        for j in range(width):
            mean += x[j]
        mean /= _float(width)
        variance = _ZERO
        for j in range(width):
            variance += (x[j] - mean) * (x[j] - mean)
        inverse = _ONE / np.sqrt(variance / _float(width) + eps)
        means[i], inverses[i] = mean, inverse
        for j in range(width):
            y[j] = (x[j] - mean) * inverse * scale[j] + shift[j]


@_compiled
def _layer_norm_backward(row):
    """Through the same; only the gradient from above may be other than contiguous.

    batch, width; address of the gradient from above, and its two distances; addresses of x, means, inverse deviations
    and scale; addresses of the gradients of x, scale and shift.
    """
    batch, width, above_row, above_column = row[1], row[2], row[4], row[5]
    xs, belows = _floats(row[6], (batch, width)), _floats(row[10], (batch, width))
    means, inverses, scale = _floats(row[7], batch), _floats(row[8], batch), _floats(row[9], width)
    of_scale, of_shift = _floats(row[11], width), _floats(row[12], width)
    given, normal = np.empty(width, np.float32), np.empty(width, np.float32)
    of_scale[:] = _ZERO
    of_shift[:] = _ZERO
    for i in range(batch):
        above = _floats(row[3] + 4 * i * above_row, 1 + (width - 1) * above_column)
        x, below, mean, inverse = xs[i], belows[i], means[i], inverses[i]
        for j in range(width):
            given[j] = above[j * above_column]
        total = along = _ZERO
        for j in range(width):
            normal[j] = (x[j] - mean) * inverse
            of_shift[j] += given[j]
            of_scale[j] += given[j] * normal[j]
            given[j] *= scale[j]
            total += given[j]
            along += given[j] * normal[j]
        total /= _float(width)
        along /= _float(width)
        for j in range(width):
            below[j] = (given[j] - total - normal[j] * along) * inverse


@_compiled
def _adam(row, parameters):
    """One step.

    How many parameters; addresses of them, of their gradients, of both moments, and of the number of steps.
    """
    size = row[1]
    values, gradients = _floats(row[2], size), _floats(row[3], size)
    firsts, seconds, steps = _floats(row[4], size), _floats(row[5], size), np.float64(_floats(row[6], 1)[0])
    rate, beta1, beta2, eps = parameters
    step, correction = _float(rate / (1 - beta1**steps)), _float(1 / np.sqrt(1 - beta2**steps))
    new1, old2, new2, least = _float(1 - beta1), _float(beta2), _float(1 - beta2), _float(eps)
    for i in range(size):
        gradient = gradients[i]
        first = firsts[i] + new1 * (gradient - firsts[i])
        second = seconds[i] * old2 + new2 * gradient * gradient
        firsts[i], seconds[i] = first, second
        values[i] -= step * first / (np.sqrt(second) * correction + least)


def _elementwise(arity, formula):
    """A loop for y = formula(a, b, c, s, t): of tensors a to c as many as its arity says, and two parameters.

    Three sizes; address of y and its three distances; the same of every tensor. The cases of the innermost axis that
    can be done in vectors have loops of their own: numbers side by side, y apart from a or the same, and one number
    for all.
    """
    formula = _compiled(formula)

    @_compiled
    def loop(row, parameters):
        s, t = _float(parameters[0]), _float(parameters[1])
        n, dy, da, db, dc = row[3], row[7], row[11], row[15], row[19]
        beside = dy == 1 and da == 1 and (arity < 2 or db == 1) and (arity < 3 or dc == 1)
        for i in range(row[1]):
            for j in range(row[2]):
                at_y, at_a = row[4] + 4 * (i * row[5] + j * row[6]), row[8] + 4 * (i * row[9] + j * row[10])
                y, a = _floats(at_y, 1 + (n - 1) * dy), _floats(at_a, 1 + (n - 1) * da)
                b = _floats(row[12] + 4 * (i * row[13] + j * row[14]), 1 + (n - 1) * db)
                c = _floats(row[16] + 4 * (i * row[17] + j * row[18]), 1 + (n - 1) * dc)
                if beside and at_y == at_a:
                    for k in range(n):
                        y[k] = formula(y[k], b[k], c[k], s, t)
                elif beside:
                    for k in range(n):
                        y[k] = formula(a[k], b[k], c[k], s, t)
                elif arity == 2 and dy == 1 and da == 1 and db == 0:
                    for k in range(n):
                        y[k] = formula(a[k], b[0], c[0], s, t)
                elif arity == 2 and dy == 1 and da == 0 and db == 1:
                    for k in range(n):
                        y[k] = formula(a[0], b[k], c[0], s, t)
                else:
                    for k in range(n):
                        y[k * dy] = formula(a[k * da], b[k * db], c[k * dc], s, t)

    return loop


_fill = _elementwise(1, lambda a, b, c, s, t: s)
_affine = _elementwise(1, lambda a, b, c, s, t: a * s + t)
_tanh = _elementwise(1, lambda a, b, c, s, t: np.tanh(a))
_exp = _elementwise(1, lambda a, b, c, s, t: np.exp(a))
_relu = _elementwise(1, lambda a, b, c, s, t: _ZERO if a <= _ZERO else a)
_add = _elementwise(2, lambda a, b, c, s, t: a + s * b)
_multiply = _elementwise(2, lambda a, b, c, s, t: a * b)
_divide = _elementwise(2, lambda a, b, c, s, t: a / b)
_minimum = _elementwise(2, lambda a, b, c, s, t: a if a < b or np.isnan(a) else b)
_logaddexp = _elementwise(2, lambda a, b, c, s, t: max(a, b) + (_LOG_2 if a == b else np.log1p(np.exp(-abs(a - b)))))
_threshold_backward_apart = _elementwise(2, lambda a, b, c, s, t: _ZERO if b <= s else a)
_lerp = _elementwise(2, lambda a, b, c, s, t: a + s * (b - a) if s < _HALF else b - (b - a) * (_ONE - s))
_addcmul = _elementwise(3, lambda a, b, c, s, t: a + s * b * c)


@_compiled
def _threshold_backward(row, parameters):
    """In place, where some numbers stay as they are, LLVM makes no vectors of the general loop."""
    in_place, in_line = row[4] == row[8], row[1] == 1 and row[2] == 1 and row[7] == 1 and row[11] == 1 and row[15] == 1
    if in_place and in_line:
        gradient, output, threshold = _floats(row[4], row[3]), _floats(row[12], row[3]), _float(parameters[0])
        for i in range(row[3]):
            gradient[i] = _ZERO if output[i] <= threshold else gradient[i]
    else:
        _threshold_backward_apart(row, parameters)


def _kept_for_later(function):
    """Compile a function of a program and its parameters; keep it for later processes, where files can be written."""
    signature = "void(int64[:, ::1], float64[:, ::1])"
    try:
        return njit(signature, cache=True, error_model="numpy")(function)
    except RuntimeError:  # Neither beside this file nor in the home of the user.
        return njit(signature, error_model="numpy")(function)


@_kept_for_later
def play(program, parameters):  # noqa: PLR0912
    """Run the instructions (count, WIDTH) with their parameters (count, PARAMETERS)."""
    for i in range(len(program)):
        row, given = program[i], parameters[i]
        code = row[0]
        if code == Code.PRODUCT:
            _product(row)
        elif code == Code.SUM:
            _sum(row, _float(given[0]))
        elif code == Code.LAYER_NORM:
            _layer_norm(row, _float(given[0]))
        elif code == Code.LAYER_NORM_BACKWARD:
            _layer_norm_backward(row)
        elif code == Code.ADAM:
            _adam(row, given)
        elif code == Code.FILL:
            _fill(row, given)
        elif code == Code.AFFINE:
            _affine(row, given)
        elif code == Code.TANH:
            _tanh(row, given)
        elif code == Code.EXP:
            _exp(row, given)
        elif code == Code.RELU:
            _relu(row, given)
        elif code == Code.ADD:
            _add(row, given)
        elif code == Code.MULTIPLY:
            _multiply(row, given)
        elif code == Code.DIVIDE:
            _divide(row, given)
        elif code == Code.MINIMUM:
            _minimum(row, given)
        elif code == Code.LOGADDEXP:
            _logaddexp(row, given)
        elif code == Code.THRESHOLD_BACKWARD:
            _threshold_backward(row, given)
        elif code == Code.LERP:
            _lerp(row, given)
        elif code == Code.ADDCMUL:
            _addcmul(row, given)
