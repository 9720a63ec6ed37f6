"""The compiled function that runs instructions, and their format.

An instruction is a row of whole numbers and a row of parameters. All rows have one format:

    code, sizes of four axes, and for each operand: address, bytes of an element, distances along the four axes

Distances are counted in elements, and are 0 along axes that an operand does not have. Elements are floats of 32 bits,
or bools, which are read and written as the floats 0 and 1.

Nothing here is compiled with relaxed floating-point rules, which may be applied otherwise in the process that compiles
than in those that load what it compiled: IEEE 754 and the order of operations in this file decide every bit. So sums
along lines are taken in eight partial sums, which can be computed side by side.

As in PyTorch, what is not a number stays so through ReLU, minimum and the like.

All compiled code and all that it depends on is in this file: Numba keeps it for later processes until the file changes.
"""

# Numba finds the types, and every formula is given what any of them needs.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, ARG005, PLR0917

from __future__ import annotations

import ctypes
import warnings
from enum import IntEnum
from functools import cache
from pathlib import Path

import llvmlite.binding
import numpy as np
import torch
from filelock import FileLock, Timeout
from numba import carray, config, njit, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

AXES = 4
"""Of an instruction."""
FIRST = 1 + AXES
"""Where the operands of a row begin."""
OPERAND = 2 + AXES
"""How many numbers an operand has."""
OPERANDS = 8
"""The most operands."""
WIDTH = FIRST + OPERANDS * OPERAND
"""How many whole numbers an instruction has."""
PARAMETERS = 4
"""How many parameters."""
_PIECE = 512
"""Elements that are copied side by side at a time, where they do not lie so: they stay in the innermost cache."""
SCRATCH = 4 * _PIECE
"""Floats to work in, while instructions run."""
_PATIENCE = 600
"""Seconds to wait for another process that compiles."""


class Code(IntEnum):
    """What an instruction does, and to what: the result first, then what it is made of."""

    PRODUCT = 0
    SUM = 1
    SUM_OF_SQUARES = 2
    SUM_OF_SQUARED_ERRORS = 3
    SUM_OF_ROWS = 4
    LAYER_NORM = 5
    LAYER_NORM_BACKWARD = 6
    ADAM = 7
    COPY = 8
    NEGATIVE = 9
    ABSOLUTE = 10
    SIGN = 11
    SQUARE_ROOT = 12
    EXP = 13
    LOG = 14
    TANH = 15
    SIGMOID = 16
    SOFTPLUS = 17
    RELU = 18
    ADD = 19
    MULTIPLY = 20
    DIVIDE = 21
    MINIMUM = 22
    MAXIMUM = 23
    LOGADDEXP = 24
    LERP = 25
    TANH_BACKWARD = 26
    SIGMOID_BACKWARD = 27
    SOFTPLUS_BACKWARD = 28
    THRESHOLD_BACKWARD = 29
    EQUAL = 30
    NOT_EQUAL = 31
    LESS = 32
    LESS_OR_EQUAL = 33
    ADDCMUL = 34
    ADDCDIV = 35
    MSE_BACKWARD = 36
    WHERE = 37


_compiled = njit(error_model="numpy")
_float = np.float32
_ZERO, _HALF, _ONE, _LOG_2 = _float(0), _float(0.5), _float(1), _float(np.log(2))
_AS_STORED, _TRANSPOSED = ord("N"), ord("T")


def _address_of_product() -> int:
    """Of the product that PyTorch itself calls, be it MKL's, OpenBLAS' or Accelerate's."""
    try:
        found = ctypes.CDLL(torch._C.__file__).sgemm_  # Libraries that this one needs are searched, too.
    except (AttributeError, OSError) as error:
        raise ImportError("PyTorch does not show the product of its linear algebra library") from error
    address = ctypes.cast(found, ctypes.c_void_p).value
    assert address is not None
    return address


# By name, since what is compiled is kept for later processes, where the address is another.
llvmlite.binding.add_symbol("a2ls_sgemm", _address_of_product())
_sgemm = types.ExternalFunction("a2ls_sgemm", types.void(*[types.intp] * 13))


def _pointer_to(element):
    @intrinsic
    def pointer(_typing, _address):
        def codegen(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.intp), codegen

    return pointer


_float_pointer, _byte_pointer, _int_pointer = map(_pointer_to, (types.float32, types.uint8, types.int32))


@_compiled
def _floats(address, count):
    return carray(_float_pointer(address), count)


@_compiled
def _bytes(address, count):
    return carray(_byte_pointer(address), count)


# Operands in pieces of rows and columns: the last two axes.


@_compiled
def _gather(to_address, to_row, address, item, row_step, column_step, rows, columns):
    """Copy a piece as floats to rows of a distance, in which they lie side by side."""
    for i in range(rows):
        to, start = _floats(to_address + 4 * i * to_row, columns), address + item * i * row_step
        if item == 1:
            flags = _bytes(start, 1 + (columns - 1) * column_step)
            for j in range(columns):
                to[j] = flags[j * column_step]
        elif column_step == 1:
            numbers = _floats(start, columns)
            for j in range(columns):
                to[j] = numbers[j]
        elif column_step == 0:
            number = _floats(start, 1)[0]
            for j in range(columns):
                to[j] = number
        else:
            numbers = _floats(start, 1 + (columns - 1) * column_step)
            for j in range(columns):
                to[j] = numbers[j * column_step]


@_compiled
def _scatter(buffer, address, item, row_step, column_step, rows, columns):
    """Copy floats side by side to a piece."""
    for i in range(rows):
        numbers, start = _floats(buffer + 4 * i * columns, columns), address + item * i * row_step
        if item == 1:
            flags = _bytes(start, 1 + (columns - 1) * column_step)
            for j in range(columns):
                flags[j * column_step] = np.uint8(numbers[j] != _ZERO)
        else:
            to = _floats(start, 1 + (columns - 1) * column_step)
            for j in range(columns):
                to[j * column_step] = numbers[j]


@_compiled
def _at(row, operand, i, j, r, c):
    """The address of an element."""
    k = FIRST + operand * OPERAND
    return row[k] + row[k + 1] * (i * row[k + 2] + j * row[k + 3] + r * row[k + 4] + c * row[k + 5])


@_compiled
def _side_by_side(row, operand, rows, columns):
    """Whether the elements of a piece are floats that lie side by side."""
    k = FIRST + operand * OPERAND
    return row[k + 1] == 4 and (columns == 1 or row[k + 5] == 1) and (rows == 1 or row[k + 4] == columns)


@_compiled
def _piece(row, operand, address, rows, columns, buffer, y):
    """Where a piece lies side by side, and apart from y, to which is written."""
    if address != y and _side_by_side(row, operand, rows, columns):
        return address
    k = FIRST + operand * OPERAND
    _gather(buffer, columns, address, row[k + 1], row[k + 4], row[k + 5], rows, columns)
    return buffer


def _loop(formula):
    """Over numbers that lie side by side."""
    formula = _compiled(formula)

    @_compiled
    def loop(y, a, b, c, s, t, count):
        to, x1, x2, x3 = _floats(y, count), _floats(a, count), _floats(b, count), _floats(c, count)
        for k in range(count):
            to[k] = formula(x1[k], x2[k], x3[k], s, t)

    return loop


# Functions without branches or calls, so that several numbers are computed at a time. Errors are below three units in
# the last place; the coefficients are those of Chebyshev's approximation.


@intrinsic
def _with_bits(_typing, _bits):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return types.float32(types.int32), codegen


@_compiled
def _exponential(x):
    """2^n e^r, where r is between -log(2) / 2 and log(2) / 2."""
    within = min(max(x, _float(-104)), _float(89))
    n = np.floor(within * _float(1.44269504) + _HALF)
    r = within - n * _float(0.693359375) + n * _float(2.12194440e-4)  # With log(2) in two parts, the first exact.
    p = _float(1.39345450e-3) + r * _float(1.99004440e-4)
    p = _float(4.16664556e-2) + r * (_float(8.33329745e-3) + r * p)
    p = _ONE + r + r * r * (_HALF + r * (_float(1.66666672e-1) + r * p))
    half = np.int32(n) >> np.int32(1)  # 2^n alone may be out of range where the result is not.
    rest = np.int32(n) - half
    y = p * _with_bits((half + np.int32(127)) << np.int32(23)) * _with_bits((rest + np.int32(127)) << np.int32(23))
    return x if x != x else y  # noqa: PLR0124


@_compiled
def _hyperbolic_tangent(x):
    size, z = abs(x), x * x
    p = _float(2.17699613e-2) + z * (_float(-8.34698044e-3) + z * _float(2.29584123e-3))
    p = _float(-3.33333343e-1) + z * (_float(1.33333042e-1) + z * (_float(-5.39594069e-2) + z * p))
    small, sign = x + x * z * p, -_ONE if x < _ZERO else _ONE
    large = sign * (_ONE - _float(2) / (_exponential(_float(2) * size) + _ONE))
    return small if size < _float(0.625) else large


@_compiled
def _log_of_one_more(u):
    """log(1 + u) for u between 0 and 1, which is 2 atanh(u / (2 + u))."""
    s = u / (_float(2) + u)
    z = s * s
    p = _float(1.11325406e-1) + z * (_float(8.73044580e-2) + z * _float(1.04006864e-1))
    p = _float(3.33333343e-1) + z * (_float(2.00000048e-1) + z * (_float(1.42851457e-1) + z * p))
    return _float(2) * (s + s * z * p)


@_compiled
def _softplus_of(x):
    return max(x, _ZERO) + _log_of_one_more(_exponential(-abs(x)))


@_compiled
def _log_of_sum(a, b):
    return max(a, b) + (_LOG_2 if a == b else _log_of_one_more(_exponential(-abs(a - b))))


_copy = _loop(lambda a, b, c, s, t: a)
_negative = _loop(lambda a, b, c, s, t: -a)
_absolute = _loop(lambda a, b, c, s, t: abs(a))
_sign = _loop(lambda a, b, c, s, t: _float(a > _ZERO) - _float(a < _ZERO))
_square_root = _loop(lambda a, b, c, s, t: np.sqrt(a))
_exp = _loop(lambda a, b, c, s, t: _exponential(a))
_log = _loop(lambda a, b, c, s, t: np.log(a))
_tanh = _loop(lambda a, b, c, s, t: _hyperbolic_tangent(a))
_sigmoid = _loop(lambda a, b, c, s, t: _ONE / (_ONE + _exponential(-a)))
_softplus = _loop(lambda a, b, c, s, t: a if a * s > t else _softplus_of(a * s) / s)
_relu = _loop(lambda a, b, c, s, t: _ZERO if a <= _ZERO else a)
_add = _loop(lambda a, b, c, s, t: a + s * b)
_multiply = _loop(lambda a, b, c, s, t: a * b)
_divide = _loop(lambda a, b, c, s, t: a / b)
_minimum = _loop(lambda a, b, c, s, t: a if a < b or a != a else b)  # noqa: PLR0124
_maximum = _loop(lambda a, b, c, s, t: a if a > b or a != a else b)  # noqa: PLR0124
_logaddexp = _loop(lambda a, b, c, s, t: _log_of_sum(a, b))
_lerp = _loop(lambda a, b, c, s, t: a + s * (b - a) if s < _HALF else b - (b - a) * (_ONE - s))
_tanh_backward = _loop(lambda a, b, c, s, t: a * (_ONE - b * b))
_sigmoid_backward = _loop(lambda a, b, c, s, t: a * (_ONE - b) * b)
_softplus_backward = _loop(lambda a, b, c, s, t: a if b * s > t else a / (_ONE + _exponential(-b * s)))
_threshold_backward = _loop(lambda a, b, c, s, t: _ZERO if b <= s else a)
_equal = _loop(lambda a, b, c, s, t: _float(a == b))
_not_equal = _loop(lambda a, b, c, s, t: _float(a != b))
_less = _loop(lambda a, b, c, s, t: _float(a < b))
_less_or_equal = _loop(lambda a, b, c, s, t: _float(a <= b))
_addcmul = _loop(lambda a, b, c, s, t: a + s * b * c)
_addcdiv = _loop(lambda a, b, c, s, t: a + s * b / c)
_mse_backward = _loop(lambda a, b, c, s, t: s * (a - b) * c)
_where = _loop(lambda a, b, c, s, t: b if a != _ZERO else c)


@_compiled
def _compute(code, y, a, b, c, s, t, count):  # noqa: PLR0912, PLR0915
    if code == Code.COPY:
        _copy(y, a, b, c, s, t, count)
    elif code == Code.NEGATIVE:
        _negative(y, a, b, c, s, t, count)
    elif code == Code.ABSOLUTE:
        _absolute(y, a, b, c, s, t, count)
    elif code == Code.SIGN:
        _sign(y, a, b, c, s, t, count)
    elif code == Code.SQUARE_ROOT:
        _square_root(y, a, b, c, s, t, count)
    elif code == Code.EXP:
        _exp(y, a, b, c, s, t, count)
    elif code == Code.LOG:
        _log(y, a, b, c, s, t, count)
    elif code == Code.TANH:
        _tanh(y, a, b, c, s, t, count)
    elif code == Code.SIGMOID:
        _sigmoid(y, a, b, c, s, t, count)
    elif code == Code.SOFTPLUS:
        _softplus(y, a, b, c, s, t, count)
    elif code == Code.RELU:
        _relu(y, a, b, c, s, t, count)
    elif code == Code.ADD:
        _add(y, a, b, c, s, t, count)
    elif code == Code.MULTIPLY:
        _multiply(y, a, b, c, s, t, count)
    elif code == Code.DIVIDE:
        _divide(y, a, b, c, s, t, count)
    elif code == Code.MINIMUM:
        _minimum(y, a, b, c, s, t, count)
    elif code == Code.MAXIMUM:
        _maximum(y, a, b, c, s, t, count)
    elif code == Code.LOGADDEXP:
        _logaddexp(y, a, b, c, s, t, count)
    elif code == Code.LERP:
        _lerp(y, a, b, c, s, t, count)
    elif code == Code.TANH_BACKWARD:
        _tanh_backward(y, a, b, c, s, t, count)
    elif code == Code.SIGMOID_BACKWARD:
        _sigmoid_backward(y, a, b, c, s, t, count)
    elif code == Code.SOFTPLUS_BACKWARD:
        _softplus_backward(y, a, b, c, s, t, count)
    elif code == Code.THRESHOLD_BACKWARD:
        _threshold_backward(y, a, b, c, s, t, count)
    elif code == Code.EQUAL:
        _equal(y, a, b, c, s, t, count)
    elif code == Code.NOT_EQUAL:
        _not_equal(y, a, b, c, s, t, count)
    elif code == Code.LESS:
        _less(y, a, b, c, s, t, count)
    elif code == Code.LESS_OR_EQUAL:
        _less_or_equal(y, a, b, c, s, t, count)
    elif code == Code.ADDCMUL:
        _addcmul(y, a, b, c, s, t, count)
    elif code == Code.ADDCDIV:
        _addcdiv(y, a, b, c, s, t, count)
    elif code == Code.MSE_BACKWARD:
        _mse_backward(y, a, b, c, s, t, count)
    elif code == Code.WHERE:
        _where(y, a, b, c, s, t, count)


@_compiled
def _elementwise(row, parameters, buffer):
    """Fill y with formula(a, b, c, s, t): of up to three operands and two parameters, with the formula of the code."""
    s, t = _float(parameters[0]), _float(parameters[1])
    rows, columns = row[3], row[4]
    arity, whole = 0, _side_by_side(row, 0, 1, columns)
    for operand in range(1, 4):
        if row[FIRST + operand * OPERAND]:
            arity = operand
            apart = row[FIRST] != row[FIRST + operand * OPERAND]
            whole = whole and apart and _side_by_side(row, operand, 1, columns)
    wide = columns if whole else min(columns, _PIECE)
    high = 1 if whole else max(1, _PIECE // columns)
    straight = row[0] == Code.COPY and row[FIRST + 1] == 4 and row[FIRST + 5] == 1
    for i in range(row[1]):
        for j in range(row[2]):
            if straight:
                k, at_a, at_y = FIRST + OPERAND, _at(row, 1, i, j, 0, 0), _at(row, 0, i, j, 0, 0)
                _gather(at_y, row[FIRST + 4], at_a, row[k + 1], row[k + 4], row[k + 5], rows, columns)
                continue
            for r in range(0, rows, high):
                m = min(high, rows - r)
                for q in range(0, columns, wide):
                    n = min(wide, columns - q)
                    at_y = _at(row, 0, i, j, r, q)
                    y = at_y if _side_by_side(row, 0, m, n) else buffer
                    a = _piece(row, 1, _at(row, 1, i, j, r, q), m, n, buffer + 4 * _PIECE, at_y)
                    b, c = a, a
                    if arity > 1:
                        b = _piece(row, 2, _at(row, 2, i, j, r, q), m, n, buffer + 8 * _PIECE, at_y)
                    if arity > 2:
                        c = _piece(row, 3, _at(row, 3, i, j, r, q), m, n, buffer + 12 * _PIECE, at_y)
                    _compute(row[0], y, a, b, c, s, t, m * n)
                    if y != at_y:
                        _scatter(buffer, at_y, row[FIRST + 1], row[FIRST + 4], row[FIRST + 5], m, n)


# Sums.


def _line(formula):
    """The sum of formula(a, b, s) along lines a and b."""
    formula = _compiled(formula)

    @_compiled
    def total(a, b, s, count):
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = rest = _ZERO
        whole = count - count % 8
        for k in range(0, whole, 8):
            t0 += formula(a[k], b[k], s)
            t1 += formula(a[k + 1], b[k + 1], s)
            t2 += formula(a[k + 2], b[k + 2], s)
            t3 += formula(a[k + 3], b[k + 3], s)
            t4 += formula(a[k + 4], b[k + 4], s)
            t5 += formula(a[k + 5], b[k + 5], s)
            t6 += formula(a[k + 6], b[k + 6], s)
            t7 += formula(a[k + 7], b[k + 7], s)
        for k in range(whole, count):
            rest += formula(a[k], b[k], s)
        return ((t0 + t4) + (t2 + t6)) + ((t1 + t5) + (t3 + t7)) + rest

    return total


_total = _line(lambda a, b, s: a)
_total_of_squares = _line(lambda a, b, s: a * a)
_total_of_squared_errors = _line(lambda a, b, s: (a - b) * (a - b))
_total_of_deviations = _line(lambda a, b, s: (a - s) * (a - s))
_total_of_products = _line(lambda a, b, s: a * b)


@_compiled
def _sum(row, parameters, buffer):
    """Of what the code makes of one or two operands, over the last two axes; y = the sum, divided, or the root of it.

    Parameters: what to divide by; whether the root is wanted.
    """
    code, divisor, root = row[0], _float(parameters[0]), parameters[1] != 0
    nowhere = 0
    for i in range(row[1]):
        for j in range(row[2]):
            total = _ZERO
            for r in range(row[3]):
                for q in range(0, row[4], _PIECE):
                    n = min(_PIECE, row[4] - q)
                    at = _piece(row, 1, _at(row, 1, i, j, r, q), 1, n, buffer + 4 * _PIECE, nowhere)
                    a = _floats(at, n)
                    if code == Code.SUM:
                        total += _total(a, a, _ZERO, n)
                    elif code == Code.SUM_OF_SQUARES:
                        total += _total_of_squares(a, a, _ZERO, n)
                    else:
                        at = _piece(row, 2, _at(row, 2, i, j, r, q), 1, n, buffer + 8 * _PIECE, nowhere)
                        total += _total_of_squared_errors(a, _floats(at, n), _ZERO, n)
            total /= divisor
            _floats(_at(row, 0, i, j, 0, 0), 1)[0] = np.sqrt(total) if root else total


@_compiled
def _sum_of_rows(row, parameters):
    """The sum of x over its third axis, divided; along the fourth all elements lie side by side."""
    divisor = _float(parameters[0])
    count, columns, step = row[3], row[4], row[FIRST + OPERAND + 4]
    for i in range(row[1]):
        for j in range(row[2]):
            y, start = _floats(_at(row, 0, i, j, 0, 0), columns), _at(row, 1, i, j, 0, 0)
            for k in range(columns):
                y[k] = _ZERO
            whole = count - count % 4
            for r in range(0, whole, 4):
                a, b = _floats(start + 4 * r * step, columns), _floats(start + 4 * (r + 1) * step, columns)
                c, d = _floats(start + 4 * (r + 2) * step, columns), _floats(start + 4 * (r + 3) * step, columns)
                for k in range(columns):
                    y[k] += (a[k] + b[k]) + (c[k] + d[k])
            for r in range(whole, count):
                a = _floats(start + 4 * r * step, columns)
                for k in range(columns):
                    y[k] += a[k]
            for k in range(columns):
                y[k] /= divisor


# Layers and optimisers.


@_compiled
def _product(row, parameters, buffer):
    """C (m, n) = A (m, k) B (k, n), `count` times; then a bias is added if there is one, and the sum rectified.

    Axes: count, m, n, k. Operands: C, A, B, the bias or none, and memory for C by columns or none. Parameters: whether
    to rectify.
    """
    m, n, k = row[2], row[3], row[4]
    a, b, c, bias, columns = FIRST + OPERAND, FIRST + 2 * OPERAND, FIRST, FIRST + 3 * OPERAND, FIRST + 4 * OPERAND
    a_by_rows, b_by_rows = row[a + 5] == 1, row[b + 4] == 1
    a_distance, b_distance = row[a + 3] if a_by_rows else row[a + 5], row[b + 5] if b_by_rows else row[b + 4]
    for i in range(row[1]):
        at_a, at_b, at_c = _at(row, 1, i, 0, 0, 0), _at(row, 2, i, 0, 0, 0), _at(row, 0, i, 0, 0, 0)
        if row[columns]:
            at = row[columns]
            _by_columns(buffer, m, n, k, at_a, a_distance, a_by_rows, at_b, b_distance, b_by_rows, at, m)
            _transpose(at, m, n, at_c, row[c + 3])
        else:  # Columns of C' = B' A' are rows of C.
            a_turned, b_turned = not a_by_rows, not b_by_rows
            _by_columns(buffer, n, m, k, at_b, b_distance, b_turned, at_a, a_distance, a_turned, at_c, row[c + 3])
        if row[bias]:
            at_bias = row[bias] + 4 * i * row[bias + 2]
            _add_bias(at_c, row[c + 3], m, n, at_bias, row[bias + 3], row[bias + 4], parameters[0] != 0)


@_compiled
def _by_columns(buffer, m, n, k, a, a_distance, a_transposed, b, b_distance, b_transposed, c, c_distance):
    """C = A B as BLAS has it: all stored by columns, of the given distances, or transposed."""
    sizes, letters, factors = carray(_int_pointer(buffer), 6), _bytes(buffer + 24, 2), _floats(buffer + 28, 2)
    sizes[0], sizes[1], sizes[2] = m, n, k
    sizes[3], sizes[4], sizes[5] = a_distance, b_distance, c_distance
    letters[0] = _TRANSPOSED if a_transposed else _AS_STORED
    letters[1] = _TRANSPOSED if b_transposed else _AS_STORED
    factors[0], factors[1] = _ONE, _ZERO
    size, letter, factor = buffer, buffer + 24, buffer + 28
    # fmt: off
    _sgemm(
        letter, letter + 1, size, size + 4, size + 8, factor,
        a, size + 12, b, size + 16, factor + 4, c, size + 20,
    )
    # fmt: on


@_compiled
def _transpose(x, m, n, y, y_row):
    """Copy x (m, n), which is stored by columns, to y; a line of the cache at a time."""
    for start in range(0, m, 16):
        rows = min(16, m - start)
        to = _floats(y + 4 * start * y_row, (rows - 1) * y_row + n)
        for j in range(n):
            column = _floats(x + 4 * (j * m + start), rows)
            for i in range(rows):
                to[i * y_row + j] = column[i]


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
def _layer_norm(row, parameters):
    """Of x along the last axis, where all but x lie side by side.

    Operands: the result, x, scale, shift, means and inverse deviations. Parameters: eps.
    """
    width, eps = row[4], _float(parameters[0])
    size = _float(width)
    scale, shift = _floats(_at(row, 2, 0, 0, 0, 0), width), _floats(_at(row, 3, 0, 0, 0, 0), width)
    for i in range(row[3]):
        x, y = _floats(_at(row, 1, 0, 0, i, 0), width), _floats(_at(row, 0, 0, 0, i, 0), width)
        mean = _total(x, x, _ZERO, width) / size
        inverse = _ONE / np.sqrt(_total_of_deviations(x, x, mean, width) / size + eps)
        _floats(_at(row, 4, 0, 0, i, 0), 1)[0] = mean
        _floats(_at(row, 5, 0, 0, i, 0), 1)[0] = inverse
        for j in range(width):
            y[j] = (x[j] - mean) * inverse * scale[j] + shift[j]


@_compiled
def _layer_norm_backward(row):
    """Through the same; the gradient of the result may lie in any way.

    Operands: the gradients of x, scale and shift; that of the result, x, means, inverse deviations, scale.
    """
    width = row[4]
    size = _float(width)
    of_scale, of_shift = _floats(_at(row, 1, 0, 0, 0, 0), width), _floats(_at(row, 2, 0, 0, 0, 0), width)
    scale = _floats(_at(row, 7, 0, 0, 0, 0), width)
    given, normal = np.empty(width, np.float32), np.empty(width, np.float32)
    of_scale[:] = _ZERO
    of_shift[:] = _ZERO
    grad_output, row_step, column_step = (
        row[FIRST + 3 * OPERAND],
        row[FIRST + 3 * OPERAND + 4],
        row[FIRST + 3 * OPERAND + 5],
    )
    for i in range(row[3]):
        _gather(given.ctypes.data, width, grad_output + 4 * i * row_step, 4, 0, column_step, 1, width)
        x, grad_input = _floats(_at(row, 4, 0, 0, i, 0), width), _floats(_at(row, 0, 0, 0, i, 0), width)
        mean, inverse = _floats(_at(row, 5, 0, 0, i, 0), 1)[0], _floats(_at(row, 6, 0, 0, i, 0), 1)[0]
        for j in range(width):
            normal[j] = (x[j] - mean) * inverse
            of_shift[j] += given[j]
            of_scale[j] += given[j] * normal[j]
            given[j] *= scale[j]
        total = _total(given, given, _ZERO, width) / size
        along = _total_of_products(given, normal, _ZERO, width) / size
        for j in range(width):
            grad_input[j] = (given[j] - total - normal[j] * along) * inverse


@_compiled
def _adam(row, parameters):
    """One step along the last axis, where all lies side by side.

    Operands: the parameters, their gradients, both moments, and the number of steps. Parameters: rate, betas and eps.
    """
    size = row[4]
    values, gradients = _floats(_at(row, 0, 0, 0, 0, 0), size), _floats(_at(row, 1, 0, 0, 0, 0), size)
    firsts, seconds = _floats(_at(row, 2, 0, 0, 0, 0), size), _floats(_at(row, 3, 0, 0, 0, 0), size)
    steps = np.float64(_floats(_at(row, 4, 0, 0, 0, 0), 1)[0])
    rate, beta1, beta2, eps = parameters
    step, correction = _float(rate / (1 - beta1**steps)), _float(1 / np.sqrt(1 - beta2**steps))
    new1, old2, new2, least = _float(1 - beta1), _float(beta2), _float(1 - beta2), _float(eps)
    for i in range(size):
        gradient = gradients[i]
        first = firsts[i] + new1 * (gradient - firsts[i])
        second = seconds[i] * old2 + new2 * gradient * gradient
        firsts[i], seconds[i] = first, second
        values[i] -= step * first / (np.sqrt(second) * correction + least)


def play(program, parameters, scratch):
    """Run the instructions (count, WIDTH) with their parameters (count, PARAMETERS).

    The memory to work in (SCRATCH,) is the caller's: Numba frees an array after the last line that names it, however
    long its address is in use.
    """
    buffer = scratch.ctypes.data
    for i in range(len(program)):
        row, given = program[i], parameters[i]
        code = row[0]
        if code == Code.PRODUCT:
            _product(row, given, buffer)
        elif code == Code.SUM_OF_ROWS:
            _sum_of_rows(row, given)
        elif code == Code.LAYER_NORM:
            _layer_norm(row, given)
        elif code == Code.LAYER_NORM_BACKWARD:
            _layer_norm_backward(row)
        elif code == Code.ADAM:
            _adam(row, given)
        elif code < Code.COPY:
            _sum(row, given, buffer)
        else:
            _elementwise(row, given, buffer)


@cache
def load():
    """`play`, compiled or loaded.

    Several processes that start at the same time after an installation compile it once: the others wait for the first.

    Raises:
        ImportError: If Numba is switched off, or cannot read what it has kept.
    """
    if config.DISABLE_JIT:
        raise ImportError("Numba is switched off; unset NUMBA_DISABLE_JIT to have them compiled")
    signature = types.void(types.int64[:, ::1], types.float64[:, ::1], types.float32[::1])
    folder = None
    try:
        function = njit(cache=True, error_model="numpy")(play)
        folder = Path(function._cache.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        alone = FileLock(folder / "a2ls-recorder.lock", timeout=_PATIENCE)
        with alone:
            function.compile(signature)
    except (RuntimeError, OSError, Timeout) as error:  # No folder can be written to: each process compiles for itself.
        warnings.warn(
            f"updates are compiled for this process alone, for about 20 seconds: Numba cannot keep them ({error}); "
            "set NUMBA_CACHE_DIR to a folder that can be written to",
            stacklevel=2,
        )
        function = njit(error_model="numpy")(play)
        function.compile(signature)
    except NumbaError:
        raise
    except Exception as error:  # Of pickle, for which files that are cut off or overwritten can be anything.
        found = f"what Numba has kept in {folder} cannot be read ({type(error).__name__}: {error})"
        raise ImportError(f"{found}; delete this folder to have them compiled anew") from error
    return function
