"""Every rule gives what PyTorch gives: for all layouts of tensors in memory, and for numbers that are none."""

import pytest
import torch
import torch.nn.functional as F
from checking import check, layouts, shapes
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls.recorder import Recorded
from a2ls.recorder._lowering import _RULES, Instruction
from a2ls.recorder._machine import WIDTH, Code

aten = torch.ops.aten

UNARY = [
    torch.abs, torch.exp, torch.neg, torch.relu, torch.sigmoid, torch.sign, torch.sgn, torch.square, torch.tanh,
    F.softplus, torch.clone, torch.zeros_like, torch.ones_like,
    lambda x: F.softplus(x, 2.0, 3.0),
    lambda x: x.abs().log(),
    lambda x: x.abs().sqrt(),
    lambda x: (x.abs() + 1).rsqrt(),
    lambda x: (x.abs() + 1).reciprocal(),
    lambda x: x**2,
    lambda x: x + 3,
    lambda x: 3 - x,
    lambda x: x - 0.3,
    lambda x: torch.sub(x, 0.3, alpha=2),
    lambda x: 0.7 * x,
    lambda x: x / 3,
    lambda x: x.clamp(-0.5, 0.25),
    lambda x: x.clamp(max=0.25),
    lambda x: x.clamp_min(0.1),
    lambda x: torch.full_like(x, 0.3),
    lambda x: (x > 0.1).float(),
    lambda x: torch.where(x != 0, x, 2.0),
    lambda x: x.clone().masked_fill_(x <= 0, -1.0),
    lambda x: x.clone().mul_(2).add_(1).relu_().sub_(3).div_(2).neg_(),
    lambda x: torch.empty_like(x).copy_(x).fill_(2.0),
    lambda x: x.clone().zero_(),
]  # fmt: skip
BINARY = [
    torch.add, torch.sub, torch.mul, torch.minimum, torch.maximum, torch.min, torch.max, torch.logaddexp,
    lambda a, b: torch.add(a, b, alpha=0.3),
    lambda a, b: torch.rsub(a, b, alpha=0.3),
    lambda a, b: a / (b.abs() + 0.5),
    lambda a, b: torch.lerp(a, b.expand_as(a), 0.3) if a.shape == torch.broadcast_shapes(a.shape, b.shape) else a + b,
    lambda a, b: torch.where(a < b, a, b),
    lambda a, b: torch.where(a >= b, a, 1.0),
    lambda a, b: (a == b) * a,
    lambda a, b: torch.where((a > b).ne(False), a, b) if a.shape == b.shape else a * b,
    aten.tanh_backward, aten.sigmoid_backward,
    lambda a, b: aten.threshold_backward(a, b, 0.2) if a.shape == b.shape else a - b,
    lambda a, b: aten.softplus_backward(a, b, 2.0, 3.0) if a.shape == b.shape else a - b,
]  # fmt: skip
TERNARY = [
    lambda a, b, c: torch.addcmul(a, b, c, value=0.5),
    lambda a, b, c: torch.addcdiv(a, b, c.abs() + 1, value=0.5),
    lambda a, b, c: torch.where(a > 0, b, c),
]


@st.composite
def elementwise(draw):
    shape = draw(shapes)
    functions = draw(st.sampled_from([(UNARY, 1), (BINARY, 2), (TERNARY, 3)]))
    function = draw(st.sampled_from(functions[0]))
    return function, [draw(layouts(shape, broadcast=functions[1] > 1)) for _ in range(functions[1])]


@settings(max_examples=300, deadline=None)
@given(elementwise(), st.booleans())
def test_elementwise_operations(case, special):
    function, operands = case

    def viewed(*tensors):
        return function(*(view(x) for x, (_, view) in zip(tensors, operands, strict=True)))

    check(viewed, *(shape for shape, _ in operands), special=special, times=2)


@pytest.mark.parametrize("function", [*UNARY, *BINARY, *TERNARY], ids=range(len([*UNARY, *BINARY, *TERNARY])))
def test_every_elementwise_operation_on_many_numbers(function):
    arity = 3 if function in TERNARY else 2 if function in BINARY else 1
    check(function, *[(700, 5)] * arity)
    check(function, *[(50, 7)] * arity, special=True)
    if arity == 2:
        check(function, (3, 600), (1,))
        check(function, (), (3, 600))


@settings(max_examples=100, deadline=None)
@given(shapes.filter(bool), st.data())
def test_reductions(shape, data):
    stored, view = data.draw(layouts(shape, broadcast=False))
    axes = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    keep = data.draw(st.booleans())
    kind = data.draw(st.sampled_from(["sum", "mean", "norm"]))

    def function(x):
        x = view(x)
        if kind == "norm":
            return torch.linalg.vector_norm(x, dim=axes, keepdim=keep)
        return getattr(x, kind)() if axes is None else getattr(x, kind)(axes, keepdim=keep)

    recorded = Recorded(function, required=True)
    for seed in range(2):
        x = torch.randn(stored, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(recorded(x), function(x), rtol=1e-4, atol=1e-4)


def test_reductions_are_lowered():
    check(
        lambda x: (x.sum(), x.mean(), x.sum((0, 1)), x.mean(-1), x.sum(0), x.sum(1, keepdim=True)),
        (6, 40, 33),
        atol=1e-4,
    )
    check(lambda x: (x.T.sum(0), x.T.sum(1), x[:, 3:].mean(0), x[:, 3:].norm(dim=-1)), (130, 57), atol=1e-4)
    check(lambda x: (x.amin(0), x.amax(0), x.T.amin(1)), (2, 33))
    check(
        lambda a, b: (F.mse_loss(a, b), F.mse_loss(a.T, b.T, reduction="sum"), F.normalize(a, dim=-1)), (9, 70), (9, 70)
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_products(data):
    count, m, n, k = (data.draw(st.one_of(st.integers(1, 9), st.sampled_from([17, 64, 100, 130]))) for _ in range(4))
    a, b = (
        data.draw(st.sampled_from([lambda x: x, lambda x: x.mT.contiguous().mT, lambda x: x[..., 1:, 1:]]))
        for _ in "ab"
    )
    extra = [1 if view(torch.empty(3, 3)).shape == (2, 2) else 0 for view in (a, b)]
    bias = data.draw(st.sampled_from([(n,), (1,), (m, 1), (m, n)]))
    rectified = data.draw(st.booleans())

    def function(x, y, z):
        x, y = a(x), b(y)
        sums = torch.addmm(z, x[0], y[0]), torch.baddbmm(z, x, y)
        return x[0] @ y[0], torch.bmm(x, y), *(s.relu_() if rectified else s for s in sums)

    first, second = (count, m + extra[0], k + extra[0]), (count, k + extra[1], n + extra[1])
    check(function, first, second, bias, atol=1e-4, rtol=1e-4, times=2)


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 7), (128, 57), (20, 300)])
def test_layer_norm_and_its_gradients(rows, width):
    def function(x, scale, shift, above):
        x, scale, shift = (t.detach().requires_grad_() for t in (x, scale, shift))
        y = F.layer_norm(x, (width,), scale, shift)
        return y, torch.autograd.grad(y, [x, scale, shift], above[:, :width])

    check(function, (rows, width), (width,), (width,), (rows, width + 3), atol=1e-4)
    check(
        lambda x: F.layer_norm(x.view(2, rows, width), (width,), torch.ones(width), torch.zeros(width)),
        (2 * rows, width),
    )


def views(x):
    """Of x (6, 12), and what autograd does to come back from them."""
    x = x.detach().requires_grad_()
    first, *rest = x.chunk(3, -1)
    parts = [
        torch.cat([first.T, x.T[:4]], 1), torch.stack([first, rest[0]]), x[:, 2:8:2].exp(), x[1].tanh(),
        x.roll(1, 0), x.roll(-2, 1), x.diagonal(), torch.diag(x[0]), x.unbind(0)[2],
        x.view(3, 2, 12).permute(2, 0, 1).contiguous(),
        x.split([5, 7], 1)[1], x.narrow(1, 3, 4).reshape(-1), x.unsqueeze(0).expand(3, -1, -1).clone(), x.new_zeros(3),
    ]  # fmt: skip
    loss = sum((part * (i + 1)).square().sum() for i, part in enumerate(parts))
    return [*(part.detach() for part in parts), *torch.autograd.grad(loss, x)]


def test_views_and_copies_and_their_gradients():
    check(views, (6, 12), atol=1e-3, rtol=1e-4)


def test_what_operators_of_auxiliary_losses_leave_to_pytorch():
    def cross_entropy(x, y):
        x = x.detach().requires_grad_()
        loss = F.cross_entropy(F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).T, torch.arange(len(x)))
        return loss.detach(), *torch.autograd.grad(loss, x)

    left = ["_log_softmax", "_log_softmax_backward_data", "nll_loss_backward", "nll_loss_forward"]
    check(cross_entropy, (12, 7), (12, 7), calls=[f"aten.{name}.default" for name in left])


def test_integers_and_doubles_stay_calls_of_pytorch():
    check(lambda x: (x.double() * 2, x.argmax(1) + 1), (3, 4), calls=[
        "aten._to_copy.default", "aten.add.Tensor", "aten.argmax.default", "aten.mul.Tensor"])  # fmt: skip
    check(lambda x: x[:0].sum() + x.sum(), (3,), calls=["aten.sum.default"])


def test_places_are_looked_up_anew_at_each_call():
    def looked_up(x, y):
        rows = torch.arange(len(x))
        places = y.argmax(1)
        x = x.detach().requires_grad_()
        chosen = x[rows, places]
        return chosen.detach(), *torch.autograd.grad(chosen.sum(), x), torch.eye(5)[places]

    calls = ["aten.argmax.default", "aten.index.Tensor", "aten.index_put.default"]
    check(looked_up, (6, 5), (6, 5), calls=calls)


def trained(**settings):
    """A function that takes a step of an optimizer, and one that says what it has changed."""
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in ((3, 700), (), (5,))]
    optimizer = torch.optim.Adam(parameters, fused=True, **settings)

    def step(*gradients):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        optimizer.step()
        return [p.detach().clone() for p in parameters]

    return step, (parameters, optimizer)


@pytest.mark.parametrize(
    ("settings", "left"),
    [({}, 0), ({"betas": (0.5, 0.9), "eps": 1e-3, "lr": 0.1}, 0), ({"weight_decay": 0.1}, 1), ({"amsgrad": True}, 1)],
)
def test_adam(settings, left):
    (plain, _), (step, state) = trained(**settings), trained(**settings)
    recorded = Recorded(step, state, required=True)
    for i in range(12):
        generator = torch.Generator().manual_seed(i)
        gradients = [torch.randn(shape, generator=generator) for shape in ((3, 700), (), (5,))]
        for a, b in zip(plain(*gradients), recorded(*gradients), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert f"{left} calls of PyTorch" in recorded.report()
    assert len(state[1].state) == 3


def test_moving_averages():
    targets = [torch.zeros(5, 3), torch.zeros(7)]

    def move(a, b):
        targets[0].lerp_(a, 0.3)
        torch._foreach_lerp_(targets, [a, b], 0.7)
        torch._foreach_mul_(targets, 0.5)
        return [t.clone() for t in targets]

    plain = Recorded(move, required=True)
    a, b = torch.ones(5, 3), torch.ones(7)
    for _ in range(3):
        before = [t.clone() for t in targets]
        found = plain(a, b)
        first = before[0].lerp(a, 0.3)
        torch.testing.assert_close(found, [first.lerp(a, 0.7) * 0.5, before[1].lerp(b, 0.7) * 0.5])


# Instructions are safe.


@pytest.mark.parametrize(
    ("sizes", "steps"), [((7,), (1,)), ((2, 3), (4, 1)), ((4,), (-1,)), ((0,), (1,)), ((2, 2), (4, 2))]
)
def test_an_instruction_that_would_leave_the_memory_of_a_tensor_is_refused(sizes, steps):
    y, x = torch.zeros(100), torch.zeros(8)[2:]
    good = Instruction(Code.COPY, (6,), ((y, (1,)), (x, (1,))))
    assert len(good.row()) == WIDTH
    bad = Instruction(Code.COPY, sizes, ((y, (0,) * len(sizes)), (x, steps)))
    with pytest.raises(IndexError, match="memory of a tensor"):
        bad.row()


def test_an_instruction_of_floats_is_refused_other_types():
    x = torch.zeros(4)
    for other in (x.double(), x.long(), x.bool()):
        with pytest.raises(IndexError, match="type"):
            Instruction(Code.ADAM, (4,), tuple((t, (1,)) for t in (x, x, x, other, x))).row()


def test_every_rule_is_known_to_pytorch():
    assert [name for name in _RULES if not hasattr(aten, name)] == []
