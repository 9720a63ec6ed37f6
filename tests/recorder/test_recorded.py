"""What was recorded does what the function does, and is never run where the function would do something else."""

import copy
import types
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from checking import left_to_pytorch
from torch import nn

from a2ls.recorder import NotRecordable, Recorded
from a2ls.recorder._recording import record


class Batch(NamedTuple):
    x: torch.Tensor
    y: dict[str, torch.Tensor]


class Learner(nn.Module):
    """Regression with noise on the inputs, batch after batch."""

    def __init__(self, *, leave_gradients=False, optimizer=torch.optim.Adam, **settings):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(inplace=True), nn.LayerNorm(16), nn.Linear(16, 2))
        self.average = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = optimizer(self.net.parameters(), lr=1e-2, **(settings or {"fused": True}))
        self.generator = torch.Generator().manual_seed(3)
        self.noise, self.leave_gradients, self.history = 0.1, leave_gradients, []

    def update(self, batch, *, slowly=False):
        x = batch.x + self.noise * torch.randn(batch.x.shape, generator=self.generator)
        mean, spread = self.net(x).chunk(2, -1)
        loss = F.mse_loss(mean.squeeze(-1), batch.y["target"]) + 0.1 * F.softplus(spread).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if not self.leave_gradients:
            self.optimizer.zero_grad()
        with torch.no_grad():
            for p, q in zip(self.average.parameters(), self.net.parameters(), strict=True):
                p.lerp_(q, 0.01 if slowly else 0.1)
        return {"loss": loss.detach(), "slowly": slowly, "parts": [mean.detach().mean(), None]}


def batch(seed, size=32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 5, generator=generator)
    return Batch(x, {"target": x[:, 0] * x[:, 1]})


def tensors_of(learner):
    moments = [v for state in learner.optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
    return [*learner.parameters(), *moments, learner.generator.get_state()]


def assert_same(one, other, **tolerance):
    for a, b in zip(tensors_of(one), tensors_of(other), strict=True):
        torch.testing.assert_close(a, b, **tolerance)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("leave_gradients", [False, True])
def test_a_training_is_that_of_plain_pytorch(leave_gradients):
    plain, learner = Learner(leave_gradients=leave_gradients), Learner(leave_gradients=leave_gradients)
    update = Recorded(learner.update, learner, required=True)
    losses = []
    for i in range(50):
        expected, found = plain.update(batch(i), slowly=i % 3 == 0), update(batch(i), slowly=i % 3 == 0)
        assert found.keys() == expected.keys()
        assert (found["slowly"], found["parts"][1]) == (expected["slowly"], None)
        torch.testing.assert_close(found["loss"], expected["loss"], rtol=1e-3, atol=1e-4)
        losses.append((found["loss"], found["loss"].item()))
        if leave_gradients:
            for p, q in zip(plain.parameters(), learner.parameters(), strict=True):
                torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-4)
    assert_same(plain, learner, rtol=1e-3, atol=1e-3)
    assert left_to_pytorch(update) == []
    assert [kept.item() for kept, _ in losses] == [then for _, then in losses]  # Results are the caller's.
    assert losses[-1][1] < losses[0][1] / 2


def test_one_that_goes_on_from_a_checkpoint_rounds_as_one_that_never_stopped():
    learner = Learner()
    update = Recorded(learner.update, learner, required=True)
    for i in range(20):
        if i == 7:
            other = Learner()
            other.load_state_dict(learner.state_dict())
            other.optimizer.load_state_dict(copy.deepcopy(learner.optimizer.state_dict()))
            other.generator.set_state(learner.generator.get_state())
            again = Recorded(other.update, other, required=True)
        update(batch(i), slowly=i % 3 == 0)
        if i >= 7:
            again(batch(i), slowly=i % 3 == 0)
            assert_same(learner, other, rtol=0, atol=0)


@pytest.mark.parametrize("settings", [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "foreach": False}])
def test_what_the_first_call_sets_up_is_as_after_one_call(settings):
    """The first step of SGD makes its momentum of the gradient, so it must not happen twice."""
    plain, learner = (Learner(optimizer=torch.optim.SGD, **settings) for _ in range(2))
    update = Recorded(learner.update, learner, required=True)
    for i in range(12):
        plain.update(batch(i))
        update(batch(i))
        assert_same(plain, learner, rtol=1e-4, atol=1e-5)


def test_undo_restores_every_tensor_and_generator_to_the_bit_and_redo_too():
    learner = Learner(leave_gradients=True)
    learner.update(batch(0))
    before = [t.clone() for t in tensors_of(learner)]
    recording = record(lambda: learner.update(batch(1)))
    after = [t.clone() for t in tensors_of(learner)]
    ended = learner.generator.get_state()
    recording.exchange()
    recording.rewind()
    assert all(map(torch.equal, tensors_of(learner), before))
    recording.exchange()
    learner.generator.set_state(ended)
    assert all(map(torch.equal, tensors_of(learner), after))
    assert not all(map(torch.equal, before, after))


def test_undo_knows_views_keywords_lists_and_the_global_generator():
    x, y, z = torch.arange(10.0), torch.zeros(3), torch.ones(4)
    torch.manual_seed(5)
    state = torch.get_rng_state()

    def function():
        x[2:5].add_(1)
        x[3:].mul_(2)
        torch.add(y, 1, out=y)
        torch._foreach_add_([z, y], 1)
        made = torch.empty(3)
        made.copy_(y).add_(torch.rand(3))
        return made

    recording = record(function)
    recording.exchange()
    recording.rewind()
    assert torch.equal(x, torch.arange(10.0))
    assert torch.equal(y, torch.zeros(3))
    assert torch.equal(z, torch.ones(4))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(recording.result, torch.full((3,), 2.0))  # What it was when it was first written.


def test_averages_of_batch_norm_and_constants_of_python_numbers():
    def make():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(net.parameters(), fused=True)

        def function(x):
            loss = (net(x * torch.tensor(2.0)) + torch.tensor([1.0, 0.5]).sum()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return function, (net, optimizer)

    (plain, (net, _)), (function, state) = make(), make()
    recorded = Recorded(function, state, required=True)
    for i in range(12):
        torch.testing.assert_close(plain(batch(i).x), recorded(batch(i).x), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(net.state_dict(), state[0].state_dict(), rtol=1e-4, atol=1e-5)


def test_random_numbers_of_all_kinds_are_drawn_in_the_order_of_the_function():
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]

    def make(generator):
        def function(x):
            first = torch.rand(3, generator=generator)
            noise = torch.randn(3, generator=generator)
            return x + first, noise, F.dropout(x, 0.5), torch.randperm(3, generator=generator)

        return function

    plain, recorded = make(generators[0]), Recorded(make(generators[1]), required=True)
    for i in range(4):
        torch.manual_seed(i)
        expected = plain(torch.ones(3))
        torch.manual_seed(i)
        for a, b in zip(expected, recorded(torch.ones(3)), strict=True):
            assert torch.equal(a, b)


def test_gradients_that_are_added_up_are_those_of_the_caller():
    def make():
        w = nn.Parameter(torch.ones(3))

        def function(x):
            (w * x).sum().backward()
            return w.grad.clone()

        return function, w

    (plain, v), (function, w) = make(), make()
    recorded = Recorded(function, w, required=True)
    for i in range(12):
        if i == 6:
            v.grad = w.grad = None
        if i == 9:
            v.grad, w.grad = torch.zeros(3), torch.zeros(3)
        assert torch.equal(plain(torch.full((3,), float(i))), recorded(torch.full((3,), float(i))))
        assert torch.equal(v.grad, w.grad)


# Never frozen.


class Agent:
    """What a function may read, and does."""

    def __init__(self):
        self.scale, self.nested, self.updates = 1.0, {"list": [1.0, types.SimpleNamespace(weight=2.0)]}, 0
        self.net = nn.Linear(3, 2)
        self.drop = nn.Dropout(0.0)
        self.flag = torch.tensor(1.0)

    def function(self, x):
        weight = self.nested["list"][1].weight * self.scale * self.nested["list"][0]
        return self.drop(self.net(x)) * weight * (2 if self.net.training else 3) * self.flag


def replace_parameter(agent):
    agent.net.weight = nn.Parameter(torch.ones(2, 3))


def move_memory(agent):
    agent.net.weight.data = torch.ones(2, 3)


CHANGES = [
    lambda agent: setattr(agent, "scale", 5.0),
    lambda agent: setattr(agent.nested["list"][1], "weight", 7.0),
    lambda agent: agent.nested["list"].__setitem__(0, 9.0),
    lambda agent: agent.net.eval(),
    lambda agent: setattr(agent, "net", nn.Linear(3, 2)),
    lambda agent: setattr(agent, "flag", torch.tensor(4.0)),
    lambda agent: agent.flag.fill_(6.0),
    lambda agent: agent.net.register_forward_hook(lambda *given: given[-1] * 2),
    replace_parameter,
    move_memory,
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_calls_is_seen(change):
    agent = Agent()
    recorded = Recorded(agent.function, agent, required=True)
    for i in range(8):
        if i == 4:
            change(agent)
        x = torch.full((4, 3), float(i))
        torch.testing.assert_close(recorded(x), agent.function(x).detach())


def test_a_schedule_of_rates_a_loaded_optimizer_and_frozen_layers_are_seen():
    plain, learner = Learner(), Learner()
    update = Recorded(learner.update, learner, required=True)
    for i in range(16):
        for each in (plain, learner):
            if i == 4:
                each.optimizer.param_groups[0]["lr"] = 1e-3
            if i == 8:
                each.optimizer.load_state_dict(copy.deepcopy(each.optimizer.state_dict()))
            if i == 12:
                each.net[0].requires_grad_(False)
        plain.update(batch(i))
        update(batch(i))
        assert_same(plain, learner, rtol=1e-4, atol=1e-5)


def test_equal_values_are_no_change():
    agent = Agent()
    recorded = Recorded(agent.function, agent, required=True)
    for _ in range(40):
        agent.scale = float(str(1.5))
        agent.net.in_features = int(str(3))
        recorded(torch.ones(4, 3))
    assert next(iter(recorded._kinds.values())).renewals == 0
    assert next(iter(recorded._kinds.values())).tape.plays == 40


def test_what_changes_again_and_again_is_left_to_pytorch_with_one_warning():
    agent = Agent()
    recorded = Recorded(agent.function, agent)

    def run():
        for i in range(30):
            agent.updates = i
            torch.testing.assert_close(recorded(torch.ones(4, 3)), agent.function(torch.ones(4, 3)))

    with pytest.warns(UserWarning, match=r"Agent.updates changed from 1\d to 1\d") as caught:
        run()
    assert len(caught) == 1


counter = {"calls": 0}


def counts(agent, x):
    agent.updates += 1
    return x * agent.updates


def reads_item(agent, x):
    return x * x.sum().item()


def branches(agent, x):
    return x + 1 if x.sum() > 0 else x - 1


def depends_on_shape(agent, x):
    return x[x > 0]


def reads_numpy(agent, x):
    return x + float(x.numpy().sum())


def reads_array(agent, x):
    return x + float(np.asarray(x)[0])


def reads_list(agent, x):
    return x + x.tolist()[0]


def reads_address(agent, x):
    return x + float(x.data_ptr() > 0)


def copies_past_the_dispatcher(agent, x):
    return copy.deepcopy(x * 2)


def unwatched(agent, x):
    counter["calls"] += 1
    return x * counter["calls"]


def random_of_python(agent, x):
    return x * float(np.random.default_rng().random()) * 0 + x


def writes_to_argument(agent, x):
    return x.add_(1) * 2


def returns_an_object(agent, x):
    return types.SimpleNamespace(x=x + 1)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (counts, "Agent.updates changed from"),
        (reads_item, "reads a number"),
        (branches, "reads a number"),
        (depends_on_shape, "depends on numbers"),
        (reads_numpy, "Tensor.numpy"),
        (reads_array, "Tensor.__array__"),
        (reads_list, "Tensor.tolist"),
        (reads_address, "Tensor.data_ptr"),
        (copies_past_the_dispatcher, "Tensor.__deepcopy__"),
        (unwatched, "given or gave something else"),
        (random_of_python, "given or gave something else"),
        (writes_to_argument, "writes to a tensor that it is given"),
        (returns_an_object, "SimpleNamespace"),
    ],
)
def test_what_cannot_be_recorded_is_run_by_pytorch_with_one_warning(function, reason):
    agent, plain = Agent(), Agent()
    recorded = Recorded(lambda x: function(agent, x), agent)
    caught_of_all = []
    for i in range(4):
        x, y = torch.arange(4.0) + i, torch.arange(4.0) + i
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = recorded(x)
        caught_of_all += caught
        if function is unwatched:
            continue  # Python that nobody watches runs twice while it is found out.
        expected = function(plain, y)
        if function is not returns_an_object:
            assert torch.equal(found, expected)
        assert torch.equal(x, y)
        assert agent.updates == plain.updates
    assert len(caught_of_all) == 1
    assert reason in str(caught_of_all[0].message)
    assert reason in recorded.report()
    strict = Recorded(lambda x: function(agent, x), agent, required=True)
    with pytest.raises(NotRecordable, match="cannot be recorded"):
        _ = [strict(torch.arange(4.0)) for _ in range(4)]


def test_a_branch_that_shows_later_is_found_when_calls_are_compared_again():
    recorded = Recorded(lambda x: x + 1 if counter["calls"] > 5 else x - 1)
    one = torch.ones(3)
    for i in range(9):
        counter["calls"] = i
        recorded(one)
    with pytest.warns(UserWarning, match=r"not do the same each time: operation 0"):
        assert torch.equal(recorded(one), one + 1)  # The tenth.
    assert torch.equal(recorded(one), one + 1)


def test_an_error_of_the_function_is_the_callers():
    recorded = Recorded(lambda x, y: x @ y)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            recorded(torch.ones(2, 3), torch.ones(2, 3))
    assert torch.equal(recorded(torch.ones(2, 3), torch.ones(3, 2)), torch.full((2, 2), 3.0))


# Kinds of calls.


def test_each_kind_has_a_recording_and_too_many_are_left_to_pytorch():
    recorded = Recorded(lambda x, n, flag=True: x * n if flag else x + n)
    assert torch.equal(recorded(torch.ones(3), True), torch.ones(3))
    assert torch.equal(recorded(torch.ones(3), 1.5), torch.full((3,), 1.5))
    assert torch.equal(recorded(torch.ones(4), 1.5, flag=False), torch.full((4,), 2.5))
    assert len(recorded._kinds) == 3
    with pytest.warns(UserWarning, match="more than 32 kinds") as caught:
        found = [recorded(torch.ones(3), i) for i in range(60)]
    assert all(torch.equal(y, torch.full((3,), float(i))) for i, y in enumerate(found))
    assert len(caught) == 1
    assert recorded.report().count("\n") == 32


@pytest.mark.parametrize("odd", [{1, 2}, object(), np.ones(2), torch.ones(2, requires_grad=True)])
def test_odd_arguments_are_left_to_pytorch(odd):
    recorded = Recorded(lambda x, _: x + 1)
    with pytest.warns(UserWarning, match="an argument is"):
        recorded(torch.ones(2), odd)
    assert torch.equal(recorded(torch.ones(2), odd), torch.full((2,), 2.0))


def test_modes_of_pytorch_are_kinds_of_their_own_and_a_recording_inside_a_recording_is_seen():
    w = nn.Parameter(torch.ones(3))
    inner = Recorded(lambda x: x * w, w)
    outer = Recorded(lambda x: inner(x) + 1, w, required=True)
    products = Recorded(lambda x: x @ x, required=True)
    for _ in range(3):
        with torch.inference_mode():
            assert torch.equal(inner(torch.ones(3)), torch.ones(3))
        assert torch.equal(outer(torch.full((3,), 2.0)), torch.full((3,), 3.0))
        assert products(torch.ones(3, 3)).dtype == torch.float32
        with torch.autocast("cpu"):
            assert products(torch.ones(3, 3)).dtype == torch.bfloat16
    assert len(inner._kinds) == 1


def test_doubles_are_recordable():
    w = nn.Parameter(torch.ones(3, dtype=torch.float64))
    optimizer = torch.optim.Adam([w], fused=True)

    def function(x):
        w.grad = torch.autograd.grad((w * x).square().sum(), w)[0]
        optimizer.step()
        return w.detach().clone()

    recorded = Recorded(function, (w, optimizer), required=True)
    found = [recorded(torch.arange(3.0, dtype=torch.float64)) for _ in range(5)]
    assert len(left_to_pytorch(recorded)) > 1
    with torch.no_grad():
        w.fill_(1)
    for state in optimizer.state.values():
        for value in state.values():
            value.zero_()
    assert all(map(torch.equal, found, [function(torch.arange(3.0, dtype=torch.float64)) for _ in range(5)]))
