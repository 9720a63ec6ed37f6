"""Every operation that the machine knows against PyTorch's own, and what is left to PyTorch."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import check, functions, played, special
from torch import nn

from a2ls.agents._adam import Adam
from a2ls.tape import Tape
from a2ls.tape._lowering import _NOTHING_TO_DO, _RULES

aten = torch.ops.aten
# Long enough for loops over vectors of any processor, with some numbers left over.
B, N = 3, 71

BINARY = {
    "equal shapes": (lambda a, b: (a, b), (B, N), (B, N)),
    "vectors": (lambda a, b: (a, b), (N,), (N,)),
    "single numbers": (lambda a, b: (a, b), (), ()),
    "ones": (lambda a, b: (a, b), (1, 1), (1,)),
    "column and row": (lambda a, b: (a, b), (B, 1), (1, N)),
    "row and column": (lambda a, b: (a, b), (N,), (B, 1)),
    "number and matrix": (lambda a, b: (a, b), (), (B, N)),
    "matrix and number": (lambda a, b: (a, b), (B, N), ()),
    "row and matrix": (lambda a, b: (a, b), (N,), (B, N)),
    "matrix and row": (lambda a, b: (a, b), (B, N), (1, N)),
    "column and matrix": (lambda a, b: (a, b), (B, 1), (B, N)),
    "matrix and column": (lambda a, b: (a, b), (B, N), (B, 1)),
    "columns and rows": (lambda a, b: (a, b), (2, B, 1), (2, 1, N)),
    "rows and columns": (lambda a, b: (a, b), (2, 1, N), (2, B, 1)),
    "matrices and matrix": (lambda a, b: (a, b), (2, B, N), (B, N)),
    "matrix and matrices": (lambda a, b: (a, b), (B, N), (2, B, N)),
    "matrices and numbers": (lambda a, b: (a, b), (2, B, N), (2, 1, 1)),
    "both transposed": (lambda a, b: (a.T, b.T), (N, B), (N, B)),
    "first transposed": (lambda a, b: (a.T, b), (N, B), (B, N)),
    "second transposed": (lambda a, b: (a, b.T), (B, N), (N, B)),
    "transposed and row": (lambda a, b: (a.T, b), (N, B), (N,)),
    "transposed and column": (lambda a, b: (a.T, b), (N, B), (B, 1)),
    "columns of a matrix": (lambda a, b: (a[:, :N], b[:, 2:]), (B, N + 2), (B, N + 2)),
    "rows of a matrix": (lambda a, b: (a[1:], b[:-1]), (B + 1, N), (B + 1, N)),
    "every other": (lambda a, b: (a[:, ::2], b[::2]), (B, 2 * N), (2 * B, N)),
    "every third and a column": (lambda a, b: (a[:, ::3], b[::2]), (B, 3 * N), (2 * B, 1)),
    "every third column and a number": (lambda a, b: (a[:, ::3], b), (B, 3 * N), ()),
    "expanded": (lambda a, b: (a.expand(B, N), b.expand(B, N)), (1, N), (B, 1)),
    "expanded numbers": (lambda a, b: (a.expand(B, N), b), (), (N,)),
    "a diagonal": (lambda a, b: (a.diagonal(), b), (N, N), (N,)),
    "axes in any order": (lambda a, b: (a.transpose(0, 2), b.transpose(0, 1)), (5, 4, 2), (4, 2, 5)),
    "three axes, all of them cut": (lambda a, b: (a[:, :3, :4], b[:, 1:, 1:]), (2, 4, 5), (2, 4, 5)),
    "four axes": (lambda a, b: (a, b), (2, 3, 4, 5), (2, 3, 4, 5)),
    "four axes of which two are one": (lambda a, b: (a, b), (2, 3, 4, 5), (4, 1)),
    "four axes, all of them cut, one of size one": (
        lambda a, b: (a[:, :1, :2, :4], b[:, :1, 1:, 1:]),
        (2, 4, 3, 5),
        (2, 4, 3, 5),
    ),
    "five axes, some of size one": (lambda a, b: (a, b), (2, 1, 3, 1, 5), (3, 1, 1)),
}
UNARY = {
    "a matrix": (lambda a: (a,), (B, N)),
    "a vector": (lambda a: (a,), (N,)),
    "a number": (lambda a: (a,), ()),
    "transposed": (lambda a: (a.T,), (N, B)),
    "columns of a matrix": (lambda a: (a[:, 1:-1],), (B, N)),
    "every other": (lambda a: (a[:, ::2],), (B, N)),
    "a row": (lambda a: (a[1],), (B, N)),
    "three axes": (lambda a: (a[:, :3, :4].transpose(0, 2),), (2, 4, 5)),
    "four axes": (lambda a: (a,), (2, 3, 4, 5)),
}
TERNARY = {
    "equal shapes": (lambda *x: x, (B, N), (B, N), (B, N)),
    "a column and a row": (lambda *x: x, (B, N), (B, 1), (N,)),
    "a number": (lambda *x: x, (B, N), (), (B, N)),
    "another number": (lambda *x: x, (B, N), (B, N), ()),
    "three axes": (lambda *x: x, (2, B, N), (2, B, 1), (1, N)),
    "three axes, the other way round": (lambda *x: x, (2, B, N), (2, 1, N), (B, 1)),
    "transposed": (lambda a, b, c: (a.T, b.T, c), (N, B), (N, B), (B, N)),
    "cut": (lambda a, b, c: (a[:, 1:], b[:, ::2], c[1:]), (B, N + 1), (B, 2 * N), (B + 1, N)),
}
TERNARY_OUT_OF_PLACE = TERNARY | {
    "first a column": (lambda *x: x, (B, 1), (B, N), (B, N)),
    "first a row": (lambda *x: x, (N,), (B, 1), (B, N)),
    "first a number": (lambda *x: x, (), (B, N), (N,)),
}


def covers_the_result(view, *shapes):
    """Whether the first operand is as large as the result, and has no number twice."""
    first, *others = view(*map(torch.empty, shapes))
    return first.shape == torch.broadcast_shapes(*[x.shape for x in (first, *others)]) and 0 not in first.stride()


IN_PLACE = {name: case for name, case in BINARY.items() if covers_the_result(*case)}


def cases(layouts, *formulas):
    """Each formula with each layout."""
    return [
        pytest.param(lambda *x, f=f, view=view: f(*view(*x)), shapes, id=f"{number}-{name}")
        for number, f in enumerate(formulas)
        for name, (view, *shapes) in layouts.items()
    ]


def one(function, *shapes):
    return pytest.param(function, shapes)


def threshold_backward_into_memory(a, b):
    return aten.threshold_backward.grad_input(a, b, 0.25, grad_input=torch.empty_like(a))


def lerp(a, b, c, d):
    torch._foreach_lerp_([a, c], [b, d.T], 0.2)
    return a, c


def adam(values, gradients, firsts, seconds, steps):
    return adam_with(values, gradients, firsts, seconds, steps=steps.square() + 1)


def adam_with(values, gradients, firsts, seconds, *, steps=None, **changed):
    squares, largest = seconds * seconds, [seconds * 2] if "amsgrad" in changed else []
    usual = {"lr": 0.1, "beta1": 0.8, "beta2": 0.95, "eps": 1e-2}
    usual |= {"amsgrad": False, "maximize": False, "weight_decay": 0.0}
    counters = [torch.ones(()) if steps is None else steps]
    torch._fused_adam_([values], [gradients], [firsts], [squares], largest, counters, **(usual | changed))
    return values, firsts, squares


def sums(*shapes, axes):
    return [
        one(lambda x, axis=axis, keepdim=keepdim: x.sum(axis, keepdim), shape)
        for shape in shapes
        for axis in axes
        for keepdim in (False, True)
    ]


def layer_norm(x, scale, shift, eps=1e-5):
    return torch.native_layer_norm(x, (x.shape[1],), scale, shift, eps)


def layer_norm_backward(above, x, scale, shift, wanted=(True, True, True)):
    _, mean, inverse = layer_norm(x, scale, shift, 0.1)
    return aten.native_layer_norm_backward(above, x, [x.shape[1]], mean, inverse, scale, shift, wanted)


CASES = {
    aten._foreach_lerp_.Scalar: [one(lerp, (B, N), (B, N), (N, 2), (2, N))],
    aten._fused_adam_.default: [one(adam, *[(B, N)] * 4, ()), one(adam, *[()] * 5), one(adam, *[(5,)] * 4, ())],
    aten.add.Tensor: [
        *cases(BINARY, torch.add, lambda a, b: torch.add(a, b, alpha=-2.5)),
        *cases(UNARY, lambda a: a + 1.5, lambda a: torch.add(a, 3, alpha=0.5), lambda a: a + a),
    ],
    aten.add_.Tensor: [
        *cases(IN_PLACE, lambda a, b: a.add_(b), lambda a, b: (a * 2).add_(b, alpha=-2.5)),
        *cases(UNARY, lambda a: a.add_(1.5), lambda a: (a * 2).add_(2, alpha=0.25), lambda a: a.add_(a)),
    ],
    aten.addcmul.default: cases(TERNARY_OUT_OF_PLACE, torch.addcmul, lambda *x: torch.addcmul(*x, value=-0.5)),
    aten.addcmul_.default: cases(
        TERNARY, lambda a, b, c: a.addcmul_(b, c), lambda a, b, c: (a + 1).addcmul_(b, c, value=-0.5)
    ),
    aten.addmm.default: [
        one(torch.addmm, (N,), (B, 5), (5, N)),
        one(torch.addmm, (B, N), (B, 5), (5, N)),
        one(torch.addmm, (B, 1), (B, 5), (5, N)),
        one(torch.addmm, (), (B, 5), (5, N)),
        one(lambda bias, a, b: torch.addmm(bias.T, a.T, b.T), (N, B), (5, B), (N, 5)),
        one(lambda bias, a, b: torch.addmm(bias[::2], a, b), (2 * N,), (B, 5), (5, N)),
    ],
    aten.amin.default: [
        one(lambda x: x.amin(0), (2, N)),
        one(lambda x: x.amin(0), (2, B, N)),
        one(lambda x: x.amin(0), (2,)),
        one(lambda x: x.T.amin(0), (N, 2)),
        one(lambda x: x[::2, 1:].amin([0]), (4, N)),
        one(lambda x: x.transpose(1, 2).amin(0), (2, N, B)),
    ],
    aten.baddbmm.default: [
        one(torch.baddbmm, (2, 1, N), (2, B, 5), (2, 5, N)),
        one(torch.baddbmm, (2, B, N), (2, B, 5), (2, 5, N)),
        one(torch.baddbmm, (N,), (2, B, 5), (2, 5, N)),
        one(torch.baddbmm, (2, B, 1), (2, B, 5), (2, 5, N)),
        one(lambda c, a, b: torch.baddbmm(c, a.expand(2, B, 5), b.mT), (2, 1, N), (1, B, 5), (2, N, 5)),
    ],
    aten.bmm.default: [
        one(torch.bmm, (2, B, 5), (2, 5, N)),
        one(lambda a, b: torch.bmm(a.mT, b.mT), (2, 5, B), (2, N, 5)),
        one(lambda a, b: torch.bmm(a.expand(4, B, 5), b), (1, B, 5), (4, 5, N)),
        one(lambda a, b: torch.bmm(a, b.expand(4, 5, N)), (4, B, 5), (5, N)),
        one(lambda a, b: torch.bmm(a.transpose(0, 1), b), (B, 2, 5), (2, 5, N)),
        one(lambda a, b: torch.bmm(a[::2], b[1::2]), (4, B, 5), (4, 5, N)),
    ],
    aten.cat.default: [
        *[one(lambda a, b, axis=axis: torch.cat([a, b], axis), (2, B, 5), (2, B, 5)) for axis in (0, 1, 2, -1, -2, -3)],
        one(lambda a, b: torch.cat([a, b]), (B, N), (1, N)),
        one(lambda a, b, c: torch.cat([a, b, c], 1), (B, N), (B, 1), (B, 2)),
        one(lambda a, b: torch.cat([a, b, a]), (N,), (2,)),
        one(lambda a, b: torch.cat([a.T, b[:, 1:], a.T[:, :1]], dim=1), (4, B), (B, 7)),
        one(lambda a, b: torch.cat([a.T, b.T], 1), (4, B), (7, B)),
        one(lambda a, b: torch.cat([a.expand(B, 4), b], 1), (1, 4), (B, 7)),
        one(lambda a: torch.cat([a[:0], a]), (B, N)),
    ],
    aten.div.Tensor: [*cases(BINARY, torch.div), *cases(UNARY, lambda a: a / 3, lambda a: a / -0.7, lambda a: a / a)],
    aten.exp.default: cases(UNARY, torch.exp),
    aten.linear.default: [
        one(nn.functional.linear, (B, 5), (N, 5), (N,)),
        one(nn.functional.linear, (1, 5), (N, 5), (N,)),
        one(nn.functional.linear, (B, 5), (1, 5), (1,)),
        one(lambda x, weight, bias: nn.functional.linear(x.T, weight.T, bias), (5, B), (5, N), (N,)),
        one(lambda x, weight, bias: nn.functional.linear(x[:, 2:], weight[:, 1:], bias), (B, 7), (N, 6), (N,)),
    ],
    aten.logaddexp.default: cases(BINARY, torch.logaddexp, lambda a, b: torch.logaddexp(30 * a, 30 * b)),
    aten.matmul.default: [
        one(lambda a, b: a @ b, (B, 5), (5, N)),
        one(lambda a, b: a.T @ b[:, 1:].T, (5, B), (N, 6)),
        one(lambda a, b: a @ b, (1, 5), (5, 1)),
    ],
    aten.mean.default: [one(torch.mean, (N,)), one(torch.mean, (1,)), one(lambda x: x[:, 1].mean(), (N, 2))],
    aten.mm.default: [
        one(torch.mm, (B, 5), (5, N)),
        one(lambda a, b: torch.mm(a.T, b), (5, B), (5, N)),
        one(lambda a, b: torch.mm(a, b.T), (B, 5), (N, 5)),
        one(lambda a, b: torch.mm(a.T, b.T), (5, B), (N, 5)),
        one(lambda a, b: torch.mm(a[:, 1:], b[:5, :N]), (B, 6), (7, N + 4)),
        one(lambda a, b: torch.mm(a[::2], b[:, 1:].T), (2 * B, 5), (N, 6)),
        *[
            one(lambda a, b, turned=turned: torch.mm(*turned(a, b)), (m, k), (k, n))
            for turned in (lambda a, b: (a, b), lambda a, b: (b.T, a.T))
            for m in (1, 4)
            for k in (1, 5)
            for n in (1, 6)
        ],
        # A column and a row out of the midst of a matrix.
        one(lambda a, b: torch.mm(a[:, 1:2], b[2:3]), (B, 5), (4, N)),
        one(lambda a, b: torch.mm(a[1:2], b[:, 2:3]), (B, 5), (5, N)),
        one(lambda a, b: torch.mm(a, b[:, ::2][:, 1:2]), (B, 5), (5, N)),
        one(lambda a, b: torch.mm(a[::2, ::2][1:2], b.T), (5, 10), (N, 5)),
        one(lambda a, b: torch.mm(a[:, 1].unsqueeze(0), b), (5, B), (5, N)),
        one(lambda a, b: torch.mm(a, b[:, 1].unsqueeze(1)), (B, 5), (5, N)),
        one(lambda a, b: torch.mm(a, b[1].unsqueeze(1)), (B, 5), (N, 5)),
    ],
    aten.mul.Tensor: [*cases(BINARY, torch.mul), *cases(UNARY, lambda a: a * 3, lambda a: -0.5 * a, lambda a: a * a)],
    aten.mul_.Tensor: [
        *cases(IN_PLACE, lambda a, b: a.mul_(b), lambda a, b: (a + 1).mul_(b)),
        *cases(UNARY, lambda a: a.mul_(-2), lambda a: (a + 1).mul_(0.5), lambda a: a.mul_(a)),
    ],
    aten.native_layer_norm.default: [
        one(layer_norm, (B, N), (N,), (N,)),
        one(layer_norm, (1, N), (N,), (N,)),
        one(layer_norm, (B, 2), (2,), (2,)),
        one(lambda *x: layer_norm(*x, 0.5), (B, N), (N,), (N,)),
        one(lambda x, scale, shift: layer_norm(x + 10, scale, shift), (B, N), (N,), (N,)),
    ],
    aten.native_layer_norm_backward.default: [
        one(layer_norm_backward, (B, N), (B, N), (N,), (N,)),
        one(layer_norm_backward, (1, N), (1, N), (N,), (N,)),
        one(layer_norm_backward, (B, 2), (B, 2), (2,), (2,)),
        one(lambda above, *x: layer_norm_backward(above.T, *x), (N, B), (B, N), (N,), (N,)),
        one(lambda above, *x: layer_norm_backward(above[:, 1:-1], *x), (B, N + 2), (B, N), (N,), (N,)),
        one(lambda above, *x: layer_norm_backward(above[::2, ::3], *x), (2 * B, 3 * N), (B, N), (N,), (N,)),
        one(lambda above, *x: layer_norm_backward(above.expand(B, N), *x), (1, N), (B, N), (N,), (N,)),
        one(lambda above, *x: layer_norm_backward(above.expand(B, N), *x), (B, 1), (B, N), (N,), (N,)),
        one(lambda above, *x: layer_norm_backward(above.expand(B, N), *x), (), (B, N), (N,), (N,)),
    ],
    aten.neg.default: cases(UNARY, torch.neg),
    aten.relu_.default: [
        *cases(UNARY, torch.relu_, lambda a: torch.relu_(a + 0.1)),
        one(lambda a, b: torch.relu_(torch.mm(a, b)), (B, 5), (5, N)),
        one(lambda c, a, b: torch.relu_(torch.addmm(c, a, b)), (N,), (B, 5), (5, N)),
        one(lambda c, a, b: torch.relu_(torch.addmm(c, a, b)), (B, 1), (B, 5), (5, N)),
        one(lambda c, a, b: torch.relu_(torch.baddbmm(c, a, b)), (2, 1, N), (2, B, 5), (2, 5, N)),
    ],
    aten.rsub.Scalar: cases(UNARY, lambda a: 1.5 - a, lambda a: torch.rsub(a, 2, alpha=0.5)),
    aten.square.default: cases(UNARY, torch.square),
    aten.sub.Tensor: [
        *cases(BINARY, torch.sub, lambda a, b: torch.sub(a, b, alpha=2)),
        *cases(UNARY, lambda a: a - 1.5, lambda a: torch.sub(a, 3, alpha=0.5)),
    ],
    aten.sub_.Tensor: [
        *cases(IN_PLACE, lambda a, b: a.sub_(b), lambda a, b: (a * 2).sub_(b, alpha=2)),
        *cases(UNARY, lambda a: a.sub_(1.5), lambda a: (a * 2).sub_(3, alpha=0.5)),
    ],
    aten.sum.dim_IntList: [
        *sums((N,), (1,), axes=(0, -1)),
        *sums((B, N), (N, B), (1, N), (B, 1), axes=(0, 1, -1, -2)),
        *sums((2, B, N), (2, N, 1), (1, B, N), axes=(0, 1, 2, -1, -2, -3)),
        one(lambda x: x.T.sum(0), (N, B)),
        one(lambda x: x.T.sum(1), (N, B)),
        one(lambda x: x[:, ::2].sum(0), (B, N)),
        one(lambda x: x[:, ::2].sum(1), (B, N)),
        one(lambda x: x[::2, 1:].sum(0), (2 * B, N)),
        one(lambda x: x[::2].sum(0), (N,)),
        one(lambda x: x.expand(B, N).sum(0), (1, N)),
        one(lambda x: x.expand(B, N).sum(1), (1, N)),
        one(lambda x: x.expand(B, N).sum(0), ()),
        one(lambda x: x[:, 1:].sum(1), (2, B, N)),
        one(lambda x: x[:, :, 1:].sum(1), (2, B, N)),
        one(lambda x: x[:, :, ::2].sum(1), (2, B, N)),
    ],
    aten.tanh.default: cases(UNARY, torch.tanh, lambda a: torch.tanh(30 * a)),
    aten.threshold_backward.default: cases(
        BINARY, lambda a, b: aten.threshold_backward(a, b, 0), lambda a, b: aten.threshold_backward(a, b, 0.25)
    ),
    aten.threshold_backward.grad_input: cases(IN_PLACE, threshold_backward_into_memory),
    aten.full_like.default: cases(UNARY, lambda x: torch.full_like(x, -2.5)),
    aten.zeros_like.default: cases(UNARY, torch.zeros_like),
}


def test_every_rule_has_cases():
    assert CASES.keys() == _RULES.keys()
    assert all(CASES.values())


@pytest.mark.parametrize(
    ("operation", "function", "shapes"),
    [
        pytest.param(operation, *case.values, id=f"{operation}-{case.id or number}")
        for operation, of_operation in CASES.items()
        for number, case in enumerate(of_operation)
    ],
)
def test_an_operation_is_pytorchs(operation, function, shapes):
    # Looked at as well: what is not recorded is not tested.
    assert operation in functions(check(function, *shapes))


NOTHING_TO_DO = {
    aten.alias.default: aten.alias,
    aten.chunk.default: lambda x: x.chunk(2, 1)[1],
    aten.detach.default: lambda x: x.detach(),
    aten.diagonal.default: lambda x: x.diagonal(),
    aten.empty.memory_format: lambda x: aten.threshold_backward.grad_input(x, x, 0.25, grad_input=torch.empty(4, 3)),
    aten.empty_like.default: lambda x: aten.threshold_backward.grad_input(x, x, 0.25, grad_input=torch.empty_like(x)),
    aten.expand.default: lambda x: x[1].expand(4, 3),
    aten.expand_as.default: lambda x: x[1].expand_as(x),
    aten.mT.default: lambda x: x.mT,
    aten.numpy_T.default: lambda x: x.T,
    aten.select.int: lambda x: x[1],
    aten.slice.Tensor: lambda x: x[:, 1:],
    aten.squeeze.dim: lambda x: x[1:2].squeeze(0),
    aten.t.default: lambda x: x.t(),
    aten.transpose.int: lambda x: x.transpose(0, 1),
    aten.unsqueeze.default: lambda x: x.unsqueeze(1),
    aten.view.default: lambda x: x.view(2, 6),
}


@pytest.mark.parametrize("operation", sorted(_NOTHING_TO_DO, key=str), ids=str)
def test_a_view_of_an_intermediate_result(operation):
    function = NOTHING_TO_DO[operation]
    tape = check(lambda x: function(x + 1) * 2 + 1, (4, 3))
    assert operation in functions(tape)


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "addcmul_", "relu_"])
def test_in_place_operations_change_their_first_operand(name):
    operands = {"addcmul_": 2, "relu_": 0}.get(name, 1)

    def function(a, *others):
        result = getattr(a, name)(*others[:operands])
        assert result.data_ptr() == a.data_ptr()
        return a, result, a * 1

    check(function, *[(B, N)] * 3)


@pytest.mark.parametrize("name", ["exp", "tanh", "neg", "square", "zeros_like"])
def test_a_result_is_not_written_to_the_operand(name):
    check(lambda x: (getattr(torch, name)(x), x), (B, N))


@pytest.mark.parametrize("layout", ["first transposed", "second transposed", "both transposed", "axes in any order"])
def test_the_innermost_loop_is_along_numbers_side_by_side_in_the_result(layout):
    view, *shapes = BINARY[layout]
    tape = check(lambda a, b: torch.add(*view(a, b)), *shapes)
    ((row,),) = (part.args[0] for part in tape._parts)
    assert row[7] == 1


# Any shapes and distances.


def strided(shape, order, steps, starts):
    """A view of memory with these sizes, in which axes lie in some order, with gaps; size, and how to see it."""
    distance, strides = 1, [0] * len(shape)
    for axis in sorted(range(len(shape)), key=lambda axis: order[axis]):
        distance *= steps[axis]
        strides[axis] = distance
        distance *= shape[axis]
    return starts + distance, lambda memory: memory.as_strided(shape, strides, starts)


@st.composite
def operands(draw, shape, whole=False):
    """Something that can be broadcast to a shape: how much memory it needs, and how it is seen."""
    own = [size if whole or draw(st.booleans()) else 1 for size in shape]
    own = own if whole else own[draw(st.integers(0, len(own))) :]
    order = draw(st.permutations(range(len(own))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in own]
    size, seen = strided(own, order, steps, draw(st.integers(0, 2)))
    # One number for all of an axis may also be an axis without distance.
    if not whole and draw(st.booleans()):
        return size, lambda memory: seen(memory).expand([*shape[: len(shape) - len(own)], *own])
    return size, seen


shapes = st.lists(st.one_of(st.integers(1, 4), st.sampled_from([9, 33])), max_size=3)
FORMULAS = {
    "add": (2, lambda a, b: torch.add(a, b, alpha=0.5)),
    "multiply": (2, torch.mul),
    "divide": (2, torch.div),
    "addcmul": (3, lambda a, b, c: torch.addcmul(a, b, c, value=2)),
    "threshold": (2, lambda a, b: aten.threshold_backward(a, b, 0)),
    "affine": (1, lambda a: a + 2),
}
FORMULAS_IN_PLACE = {
    "add": (2, lambda a, b: a.add_(b, alpha=0.5)),
    "multiply": (2, lambda a, b: a.mul_(b)),
    "addcmul": (3, lambda a, b, c: a.addcmul_(b, c, value=2)),
    "affine": (1, lambda a: a.sub_(2)),
    "relu": (1, torch.relu_),
}


@settings(max_examples=150, deadline=None)
@given(data=st.data(), shape=shapes, name=st.sampled_from(sorted(FORMULAS)))
def test_operands_are_broadcast_however_they_lie_in_memory(data, shape, name):
    arity, formula = FORMULAS[name]
    sizes, views = zip(*[data.draw(operands(shape)) for _ in range(arity)], strict=True)
    check(formula, *[(size,) for size in sizes], view=lambda *m: [v(x) for v, x in zip(views, m, strict=True)])


@settings(max_examples=150, deadline=None)
@given(data=st.data(), shape=shapes, name=st.sampled_from(sorted(FORMULAS_IN_PLACE)))
def test_results_are_written_however_they_lie_in_memory(data, shape, name):
    arity, formula = FORMULAS_IN_PLACE[name]
    chosen = [data.draw(operands(shape, whole=True)), *[data.draw(operands(shape)) for _ in range(arity - 1)]]
    sizes, views = zip(*chosen, strict=True)

    def function(memory, *seen):
        formula(*seen)
        return memory  # With the gaps, in which nothing may change.

    check(
        function,
        *[(size,) for size in sizes],
        view=lambda *m: [m[0], *[v(x) for v, x in zip(views, m, strict=True)]],
    )


@settings(max_examples=100, deadline=None)
@given(data=st.data(), shape=shapes.filter(bool), keepdim=st.booleans())
def test_sums_of_whatever_lies_in_memory(data, shape, keepdim):
    size, view = data.draw(operands(shape, whole=True))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    tape = played(lambda x: x.sum(axis, keepdim), (size,), view=lambda memory: [view(memory)])
    assert tape.calls == [] or len(shape) == 3


@st.composite
def matrices(draw, count, rows, columns):
    """As many as `count`, with rows or columns side by side, apart from each other, or the same matrix each time."""
    shape = [1 if draw(st.booleans()) else count, rows, columns]
    order, steps = draw(st.sampled_from([(0, 2, 1), (0, 1, 2), (1, 2, 0)])), [1, 1, 1]
    order = [order.index(axis) for axis in (2, 1, 0)]
    # There may be gaps everywhere but between the numbers of what lies side by side.
    for axis in range(3):
        if order[axis] > 0:
            steps[axis] = draw(st.sampled_from([1, 1, 2]))
    size, seen = strided(shape, order, steps, draw(st.integers(0, 2)))
    return size, lambda memory: seen(memory).expand(count, rows, columns)


small = st.one_of(st.just(1), st.integers(1, 6), st.just(33))


@settings(max_examples=200, deadline=None)
@given(data=st.data(), sizes=st.tuples(st.integers(1, 3), small, small, small), rectified=st.booleans())
def test_products_of_whatever_lies_in_memory(data, sizes, rectified):
    count, m, n, k = sizes
    (a_size, a_view), (b_size, b_view) = data.draw(matrices(count, m, k)), data.draw(matrices(count, k, n))
    bias_size, bias_view = data.draw(operands([count, m, n]))
    biased = data.draw(st.booleans())

    def function(a, b, bias):
        if count > 1:
            result = torch.baddbmm(bias, a, b) if biased else torch.bmm(a, b)
        else:
            bias = bias.expand(1, m, n)[0]
            result = torch.addmm(bias, a[0], b[0]) if biased else torch.mm(a[0], b[0])
        return torch.relu_(result) if rectified else result

    played(
        function,
        (a_size,),
        (b_size,),
        (bias_size,),
        view=lambda a, b, bias: (a_view(a), b_view(b), bias_view(bias)),
    )


# Rectified products.


def instructions(tape):
    return sum(len(part.args[0]) for part in tape._parts)


@pytest.mark.parametrize(
    ("function", "shapes", "count"),
    [
        (lambda c, a, b: torch.addmm(c, a, b).relu_(), [(N,), (B, 5), (5, N)], 1),
        (lambda c, a, b: torch.baddbmm(c, a, b).relu_(), [(2, 1, N), (2, B, 5), (2, 5, N)], 1),
        (lambda x, w, c: nn.functional.linear(x, w, c).relu_(), [(B, 5), (N, 5), (N,)], 1),
        (lambda a, b: torch.mm(a, b).relu_(), [(B, 5), (5, N)], 2),
        (lambda c, a, b: torch.addmm(c, a, b).exp().sub_(1).relu_(), [(N,), (B, 5), (5, N)], 4),
    ],
)
def test_a_rectified_product_is_one_instruction_if_it_has_a_bias(function, shapes, count):
    assert instructions(check(function, *shapes)) == count


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x[:2],
        lambda x: x[:, :3],
        lambda x: x[0],
        lambda x: x[:, ::2],
        lambda x: x[2:],
        lambda x: x.view(-1)[: 2 * N],
    ],
)
def test_a_part_of_a_product_is_rectified_and_the_rest_is_not(part):
    def function(bias, a, b):
        result = torch.addmm(bias, a, b)
        torch.relu_(part(result))
        return result

    check(function, (N,), (B, 5), (5, N))


def test_another_view_of_a_whole_product_is_rectified():
    def function(bias, a, b):
        result = torch.addmm(bias, a, b)
        torch.relu_(result.T)
        return result, torch.relu_(torch.addmm(bias, a, b).view(-1)) + 1

    check(function, (N,), (B, 5), (5, N))


def test_something_else_is_rectified_after_a_product():
    def function(bias, a, b, other):
        result = torch.addmm(bias, a, b)
        return torch.relu_(other), result

    check(function, (N,), (B, 5), (5, N), (B, N))


def test_a_product_is_rectified_after_something_else():
    def function(bias, a, b):
        result = torch.addmm(bias, a, b)
        before = result * 1
        return torch.relu_(result), before

    check(function, (N,), (B, 5), (5, N))


def test_a_product_is_rectified_after_a_call():
    def function(bias, a, b):
        result = torch.addmm(bias, a, b)
        before = result.softmax(1)
        return torch.relu_(result), before

    assert played(function, (N,), (B, 5), (5, N)).calls == ["aten.softmax.int"]


# Left to PyTorch.


def in_any_dtype(dtype):
    def function(x, y):
        a, b = (10 * x).to(dtype), (10 * y).to(dtype)
        return a + b, a * 2, torch.cat([a, b]), a.sum(0), a.neg(), a.sub_(b)

    return function


UNKNOWN = {
    "float64": (in_any_dtype(torch.float64), (B, N), (B, N)),
    "whole numbers": (in_any_dtype(torch.int64), (B, N), (B, N)),
    "float16": (in_any_dtype(torch.float16), (B, N), (B, N)),
    "sum as float64": (lambda x: x.sum(0, dtype=torch.float64), (B, N)),
    "zeros as float64": (lambda x: torch.zeros_like(x, dtype=torch.float64), (B, N)),
    "numbers of two kinds": (lambda x: x + torch.arange(N), (B, N)),
    "four axes": (lambda x: x[:, :2, :3, :4] * 2, (2, 3, 4, 5)),
    "sum over two axes": (lambda x: x.sum((0, 2)), (2, B, N)),
    "sum over the last two axes": (lambda x: x.sum((-1, -2)), (2, B, N)),
    "sum over no axis": (lambda x: x.sum((), keepdim=True), (2, B, N)),
    "sum over all axes": (lambda x: x.sum(None, keepdim=True), (2, B, N)),
    "sum of what is no line": (lambda x: x[:, :2].sum(2), (2, B, N)),
    "sum over the first of two axes with a gap": (lambda x: x[:, :, 1:].sum(0), (2, B, N)),
    "sum of a number": (lambda x: x.sum(0), ()),
    "mean of a matrix": (lambda x: x.mean(), (B, N)),
    "mean of a number": (lambda x: x.mean(), ()),
    "mean over an axis": (lambda x: x.mean(0), (B, N)),
    "mean as float64": (lambda x: x.mean(dtype=torch.float64), (N,)),
    "least of three": (lambda x: x.amin(0), (3, N)),
    "least of one": (lambda x: x.amin(0), (1, N)),
    "least over another axis": (lambda x: x.amin(1), (2, 2)),
    "least of all": (lambda x: x.amin(), (2, 2)),
    "least over both axes": (lambda x: x.amin((0, 1)), (2, 2)),
    "least with its axis kept": (lambda x: x.amin(0, keepdim=True), (2, N)),
    "a multiple of a bias": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5), (N,), (B, 5), (5, N)),
    "a multiple of a product": (lambda c, a, b: torch.addmm(c, a, b, alpha=2), (N,), (B, 5), (5, N)),
    "a multiple of products": (lambda c, a, b: torch.baddbmm(c, a, b, alpha=2), (N,), (2, B, 5), (2, 5, N)),
    "a rectified multiple": (lambda c, a, b: torch.addmm(c, a, b, beta=2).relu_(), (N,), (B, 5), (5, N)),
    "a matrix and a vector": (torch.matmul, (B, 5), (5,)),
    "a vector and a matrix": (torch.matmul, (5,), (5, N)),
    "two vectors": (torch.matmul, (5,), (5,)),
    "many matrices and one": (torch.matmul, (2, B, 5), (5, N)),
    "a layer without bias": (nn.functional.linear, (B, 5), (N, 5)),
    "a layer of many axes": (nn.functional.linear, (2, B, 5), (N, 5), (N,)),
    "a product with the same row again": (lambda a, b: torch.mm(a.expand(B, 5), b), (1, 5), (5, N)),
    "a product with gaps between numbers": (lambda a, b: torch.mm(a[:, ::2], b), (B, 10), (5, N)),
    "division that rounds": (lambda x: torch.div(x, 0.3, rounding_mode="floor"), (B, N)),
    "layer norm without weights": (lambda x: torch.native_layer_norm(x, (N,), None, None, 1e-5), (B, N)),
    "layer norm over two axes": (lambda x, *w: torch.native_layer_norm(x, (B, N), *w, 1e-5), *[(B, N)] * 3),
    "layer norm of three axes": (lambda x, *w: torch.native_layer_norm(x, (N,), *w, 1e-5), (2, B, N), (N,), (N,)),
    "layer norm of columns": (lambda x, *w: layer_norm(x.T, *w), (N, B), (N,), (N,)),
    "layer norm with gaps": (lambda x, *w: layer_norm(x[:, 1:], *w), (B, N + 1), (N,), (N,)),
    "layer norm backward with gaps": (
        lambda above, x, *w: layer_norm_backward(above, x[:, 1:], *w),
        (B, N),
        (B, N + 1),
        (N,),
        (N,),
    ),
    "softmax": (lambda x: x.softmax(1), (B, N)),
    "least with its place": (lambda x: x.min(1), (B, N)),
    "scatter": (lambda x, y: x.scatter_(1, torch.tensor([[0], [2], [1]]), y), (B, N), (B, N)),
    "roll": (lambda x: x.roll(1, 0), (B, N)),
    "length": (lambda x: torch.linalg.vector_norm(x, dim=1), (B, N)),
    "several results": (lambda x: torch.std_mean(x, dim=0), (B, N)),
    "results in a list": (lambda x, y: torch._foreach_add([x, y], 2.0), (B, N), (N,)),
    "lists changed in place": (lambda x, y: (torch._foreach_mul_([x, y], 2.0), x, y), (B, N), (N,)),
    "views": (lambda x: (x.unbind(0)[1], x.permute(1, 0), x.reshape(-1), x.contiguous(), x.T.contiguous()), (B, N)),
    "copies": (lambda x: (x.clone(), x.T.clone(), torch.empty(B, N).copy_(x[0])), (B, N)),
    "power": (lambda x: x.pow(3), (B, N)),
    "weight decay": (lambda *x: adam_with(*x, weight_decay=0.1), *[(B, N)] * 4),
    "the largest moment": (lambda *x: adam_with(*x, amsgrad=True), *[(B, N)] * 4),
    "the other way": (lambda *x: adam_with(*x, maximize=True), *[(B, N)] * 4),
    "adam of columns": (lambda *x: adam_with(*[t.T for t in x]), *[(B, N)] * 4),
    # Of the first there is an instruction already when the second is found to have none.
    "lerp of few axes and of many": (
        lambda a, b, c, d: (torch._foreach_lerp_([a, c[:, :2, :3, :4]], [b, d[:, :2, :3, :4]], 0.2), a, c),
        *[(B, N)] * 2,
        *[(2, 3, 4, 5)] * 2,
    ),
    "lerp with its own weights": (lambda x, y, w: (torch._foreach_lerp_([x], [y], [w]), x), *[(B, N)] * 3),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_has_no_rule_is_left_to_pytorch(name):
    function, *shapes = UNKNOWN[name]
    assert played(function, *shapes).calls


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_has_no_rule_amid_what_has(name):
    function, *shapes = UNKNOWN[name]

    def amid(*inputs):
        found = function(*[x + 1 for x in inputs])
        results = [found] if isinstance(found, torch.Tensor) else [x for x in found if x is not None]
        return [x * 2 for x in results], [x + x for x in inputs]

    assert played(amid, *shapes).calls


def test_calls_name_what_is_left_in_its_order():
    tape = played(lambda x: (x.softmax(1).exp() + 1).roll(1, 0).square().cumsum(0), (B, N))
    assert tape.calls == ["aten.softmax.int", "aten.roll.default", "aten.cumsum.default"]


@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, True), (True, True, False)])
def test_some_gradients_of_layer_norm(wanted):
    tape = played(lambda *x: layer_norm_backward(*x, wanted), (B, N), (B, N), (N,), (N,))
    assert tape.calls == ["aten.native_layer_norm_backward.default"]


# Not a number, and infinities.


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (torch.relu_, [(B, N)]),
        (lambda x: torch.relu_(x[:, ::2]), [(B, N)]),
        (lambda c, a, b: torch.addmm(c, a, b).relu_(), [(N,), (B, 1), (1, N)]),
        (lambda c, a, b: torch.addmm(c, a, b).relu_(), [(B, 1), (B, 1), (1, N)]),
        (torch.addmm, [(N,), (B, 1), (1, N)]),
        (lambda a, b: torch.mm(a, b).relu_(), [(B, 1), (1, N)]),
        (lambda a, b: aten.threshold_backward(a, b, 0), [(B, N), (B, N)]),
        (lambda a, b: aten.threshold_backward(a, b, 0), [(B, N), (B, 1)]),
        (lambda a, b: aten.threshold_backward(a.T, b, 0), [(N, B), (B, N)]),
        (lambda x: x.amin(0), [(2, 50 * N)]),
        (lambda x: x.T.amin(0), [(50 * N, 2)]),
        (lambda x: x.sum(0), [(2, N)]),
        (lambda x: x.sum(1), [(N, 2)]),
        (torch.mean, [(2,)]),
        (torch.add, [(50 * N,), (50 * N,)]),
        (torch.sub, [(50 * N,), (50 * N,)]),
        (torch.mul, [(50 * N,), (50 * N,)]),
        (torch.div, [(50 * N,), (50 * N,)]),
        (torch.addcmul, [(50 * N,), (50 * N,), (50 * N,)]),
        (lambda x: (x * 0, x + 1, 1 - x, x - torch.inf, -x, x.square(), x / 2), [(B, N)]),
        (lambda x: (torch.exp(x), torch.tanh(x), torch.zeros_like(x)), [(B, N)]),
        (lambda x: (torch.exp(200 * x), torch.tanh(200 * x)), [(B, N)]),
        (lambda a, b: torch.cat([a, b], 1), [(B, N), (B, 2)]),
        (lambda *x: layer_norm(*x)[0], [(50, 2), (2,), (2,)]),
    ],
)
def test_what_is_not_a_number_or_not_finite_is_as_in_pytorch(function, shapes):
    # One at a time in small tensors, so that not all results are the same.
    check(function, *shapes, make=special, times=6)


@pytest.mark.parametrize("number", [0.0, 0, 1e-39, math.inf, math.nan], ids=str)
def test_division_by_an_extreme_number(number):
    played(lambda x: (x / number, (1e-38 * x) / number, (1e38 * x) / number), (B, N))


def test_what_is_empty():
    check(lambda x: (x + 1, x.sum(0), x.sum(1), x.T.sum(0), torch.mm(x.T, x), torch.cat([x, x]), x.tanh()), (0, N))


@pytest.mark.parametrize("axis", [0, 1])
def test_an_empty_vector_is_no_part_of_a_matrix(axis):
    played(lambda x: torch.cat([torch.empty(0), x, x], axis), (B, N))


def test_the_mean_of_nothing():
    played(torch.mean, (0,))


def test_logaddexp_of_what_is_not_finite():
    check(torch.logaddexp, (50 * N,), (50 * N,), make=special)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_adam_with_a_gradient_that_is_no_number(bad):
    with torch.inference_mode():
        results = []
        for play in (True, False):
            parameters, gradients = [torch.zeros(N)], [torch.ones(N)]
            optimizer = Adam(parameters, 0.1)
            tape = Tape(lambda o=optimizer, g=gradients: o.step(g), gradients, lambda _: [])
            assert tape.calls == []
            new = [torch.ones(N)]
            new[0][[1, N - 1]] = bad
            tape.play(new) if play else optimizer.step(new)
            results.append((parameters[0], optimizer.first_moments[0], optimizer.second_moments[0]))
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)
    assert results[0][0].isnan().sum() == 2


# Optimisers, which change what is there.


@pytest.mark.parametrize(("rate", "betas"), [(1e-3, (0.9, 0.999)), (3e-2, (0.5, 0.95))])
def test_adam_step_by_step(rate, betas):
    generator = torch.Generator().manual_seed(0)
    shapes = [(B, N), (N,), (), (2, 3, 1)]
    start = [torch.randn(shape, generator=generator) for shape in shapes]
    # Of very different sizes, some of them zero, so that eps and the bias corrections count.
    gradients = [
        [10.0 ** (step % 5 - 3 * i) * torch.randn(shape, generator=generator) * (step % 7 > 0) for shape in shapes]
        for i, step in ((i, step) for step in range(30) for i in [step % 4])
    ]
    mine, theirs = copy.deepcopy(start), copy.deepcopy(start)
    with torch.inference_mode():
        optimizer, own = Adam(mine, rate, betas), copy.deepcopy(gradients[0])
        tape = Tape(lambda: optimizer.step(own), own, lambda _: [])
    assert tape.calls == []
    reference = torch.optim.Adam(theirs, rate, betas)
    for number, step in enumerate(gradients):
        if number > 0:  # The first was made when the tape was.
            with torch.inference_mode():
                tape.play(step)
        for parameter, gradient in zip(theirs, step, strict=True):
            parameter.grad = gradient
        reference.step()
        assert optimizer.steps == number + 1
        for i, parameter in enumerate(theirs):
            torch.testing.assert_close(mine[i], parameter, rtol=1e-5, atol=1e-6)
            state = reference.state[parameter]
            for moment, right in (
                (optimizer.first_moments[i], state["exp_avg"]),
                (optimizer.second_moments[i], state["exp_avg_sq"]),
            ):
                torch.testing.assert_close(moment, right, rtol=1e-4, atol=1e-6 * right.abs().max().item())


@pytest.mark.parametrize("weight", [0.0, 0.05, 0.7, 1.0])
def test_targets_move_at_each_play(weight):
    torch.manual_seed(0)
    with torch.inference_mode():
        sources, targets = [torch.randn(B, N), torch.randn(N)], [torch.randn(B, N), torch.randn(N)]
        twins = [x.clone() for x in targets]
        torch._foreach_lerp_(twins, sources, weight)  # What the recording does.
        tape = Tape(lambda: torch._foreach_lerp_(targets, sources, weight), sources, lambda _: [])
        assert tape.calls == []
        for _ in range(5):
            new = [torch.randn(B, N), torch.randn(N)]
            tape.play(new)
            torch._foreach_lerp_(twins, new, weight)
            torch.testing.assert_close(targets, twins)
            torch.testing.assert_close(sources, new, rtol=0, atol=0)
    assert torch.allclose(targets[0], sources[0], atol=1e-5) == (weight == 1)
