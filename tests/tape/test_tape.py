"""What a tape reads and writes each time that it is played."""

import gc
import itertools

import pytest
import torch
from torch import nn

from a2ls.tape import NotRecordable, Tape
from a2ls.tape._recording import tensors_in

SHAPE = (3, 70)


@pytest.fixture(autouse=True)
def inference_mode():
    with torch.inference_mode():
        yield


@pytest.fixture
def layers():
    """Weights and biases of three layers."""
    torch.manual_seed(0)
    return [(torch.randn(out, width) / width**0.5, torch.randn(out)) for width, out in ((70, 40), (40, 40), (40, 5))]


def network(layers, x):
    for weight, bias in layers[:-1]:
        x = nn.functional.linear(x, weight, bias).relu_()
    return nn.functional.linear(x, *layers[-1])


def taped(function, *inputs, kept=tensors_in):
    own = [x.clone() for x in inputs]
    return Tape(lambda: function(*own), own, kept)


# Noise.


def drawing(generator):
    def function(x):
        first = torch.randn(SHAPE, generator=generator)
        between = (x * first).softmax(1)
        second = torch.randn(5, generator=generator)
        return first * 2, second + 1, between

    return function


def test_noise_is_what_pytorch_draws_from_the_same_state():
    generator, twin = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    tape = taped(drawing(generator), torch.ones(SHAPE))
    drawing(twin)(torch.ones(SHAPE))
    seen = []
    for _ in range(4):
        x = torch.randn(SHAPE)
        mine, right = tape.play([x]), drawing(twin)(x)
        torch.testing.assert_close(mine, right)
        seen.append(mine[0].clone())
    assert torch.equal(generator.get_state(), twin.get_state())
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise(seen))
    assert tape.calls == ["aten.softmax.int"]


def test_noise_begins_anew_when_the_generator_does():
    generator = torch.Generator().manual_seed(1)
    tape = taped(drawing(generator), torch.ones(SHAPE))
    x = torch.randn(SHAPE)
    generator.manual_seed(7)
    before = [result.clone() for result in tape.play([x])]
    tape.play([x])
    generator.manual_seed(7)
    assert all(torch.equal(a, b) for a, b in zip(before, tape.play([x]), strict=True))


def test_noise_that_is_changed_where_it_lies():
    generator, twin = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)

    def function(x, generator):
        noise = torch.randn(SHAPE, generator=generator)
        return noise.mul_(2).add_(x), noise

    tape = taped(lambda x: function(x, generator), torch.ones(SHAPE))
    function(torch.ones(SHAPE), twin)
    for _ in range(3):
        x = torch.randn(SHAPE)
        torch.testing.assert_close(tape.play([x]), function(x, twin))


def test_noise_from_two_generators():
    def function(x, one, other):
        return x + torch.randn(3, generator=one) + 10 * torch.randn(3, generator=other), torch.randn(3, generator=one)

    mine, right = ([torch.Generator().manual_seed(seed) for seed in (1, 2)] for _ in range(2))
    tape = taped(lambda x: function(x, *mine), torch.zeros(3))
    function(torch.zeros(3), *right)
    for _ in range(3):
        torch.testing.assert_close(tape.play([torch.ones(3)]), function(torch.ones(3), *right))


def test_noise_of_other_kinds_is_drawn_in_its_order():
    def function(x, generator):
        uniform = torch.rand(3, generator=generator)
        return x + uniform, torch.randn(3, generator=generator)

    generator, twin = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    tape = taped(lambda x: function(x, generator), torch.zeros(3))
    function(torch.zeros(3), twin)
    torch.testing.assert_close(tape.play([torch.ones(3)]), function(torch.ones(3), twin))


# Tensors from outside.


def test_parameters_are_read_anew(layers):
    tape = taped(lambda x: network(layers, x), torch.randn(SHAPE))
    assert tape.calls == []
    for _ in range(3):
        x = torch.randn(SHAPE)
        for weight, bias in layers:
            weight.mul_(-1.5)
            bias.copy_(torch.randn(bias.shape))
        torch.testing.assert_close(tape.play([x]), network(layers, x))


def test_changes_of_parameters_persist():
    parameter, count = torch.ones(70), torch.zeros(())

    def function(x):
        parameter.add_(x[0])
        count.add_(1)
        return parameter * 2

    tape = taped(function, torch.ones(SHAPE))
    assert count == 1
    for number in range(3):
        result = tape.play([torch.full(SHAPE, 3.0)])
        assert torch.equal(parameter, torch.full([70], 2.0 + 3 * (number + 1)))
        assert torch.equal(result, 2 * parameter)
    assert count == 4


def test_a_parameter_changed_through_a_view():
    parameter = torch.zeros(4, 70)

    def function(x):
        parameter[1:].T.mul_(2).add_(x.T)
        return parameter[2] + 1

    twin = torch.zeros(4, 70)
    tape = taped(function, torch.zeros(SHAPE))
    for _ in range(3):
        x = torch.randn(SHAPE)
        result = tape.play([x])
        twin[1:].mul_(2).add_(x)
        torch.testing.assert_close(parameter, twin)
        torch.testing.assert_close(result, twin[2] + 1)


def test_a_parameter_read_before_and_after_it_changes():
    parameter = torch.ones(5)

    def function(x):
        before = parameter * 1
        parameter.add_(x)
        return before + 0, parameter - before

    tape = taped(function, torch.ones(5))
    before, step = tape.play([torch.full([5], 2.0)])
    assert torch.equal(before, torch.full([5], 2.0))
    assert torch.equal(step, torch.full([5], 2.0))


def test_a_tape_is_good_until_a_parameter_moves():
    parameter = torch.ones(3)
    tape = taped(lambda x: (x + 1) * parameter[1:], torch.ones(2))
    parameter.mul_(2)
    tape.play([torch.zeros(2)])
    assert tape.is_good()
    before = parameter.data
    parameter.data = torch.zeros(3)
    assert not tape.is_good()
    parameter.data = before
    assert tape.is_good()


def test_a_tape_is_not_good_after_a_module_was_converted():
    with torch.inference_mode(mode=False), torch.no_grad():
        layer = nn.Linear(70, 5)
        tape = taped(lambda x: layer(x).relu_(), torch.randn(SHAPE))
        assert tape.is_good()
        layer.double()
        assert not tape.is_good()


def test_tensors_made_of_numbers_stay():
    tape = taped(lambda x: x * torch.tensor([1.0, 2.0, 3.0]) + torch.arange(3.0) + torch.ones(3), torch.randn(3))
    gc.collect()
    junk = [torch.full([3], 7.0) for _ in range(200)]
    for _ in range(3):
        x = torch.randn(3)
        torch.testing.assert_close(tape.play([x]), x * torch.tensor([1.0, 2.0, 3.0]) + torch.arange(3.0) + 1)
    assert junk


# Inputs.


def test_inputs_may_be_any_tensors_of_their_shape():
    tape = taped(lambda a, b: a - b * 2, torch.randn(SHAPE), torch.randn(70))
    big = torch.randn(6, 140)
    for a, b in (
        (torch.randn(SHAPE), torch.randn(70)),
        (torch.randn(70, 3).T, big[0, ::2]),
        (big[::2, 70:], torch.ones(()).expand(70)),
        (torch.randn(SHAPE, dtype=torch.float64), torch.arange(70)),
    ):
        torch.testing.assert_close(tape.play([a, b]), (a - b * 2).float())


def test_inputs_are_not_changed():
    def function(a, b):
        a.mul_(2).add_(b)
        b.sub_(a)
        return a, b, a * b

    tape = taped(function, torch.randn(SHAPE), torch.randn(SHAPE))
    a, b = torch.randn(SHAPE), torch.randn(SHAPE)
    before = a.clone(), b.clone()
    first = [x.clone() for x in tape.play([a, b])]
    assert torch.equal(a, before[0])
    assert torch.equal(b, before[1])
    assert all(torch.equal(x, y) for x, y in zip(first, tape.play([a, b]), strict=True))
    torch.testing.assert_close(first, list(function(*before)))


def test_the_tensors_of_the_recording_may_be_inputs_again():
    own = [torch.randn(SHAPE)]
    tape = Tape(lambda: own[0] * 2, own, tensors_in)
    own[0].fill_(3)
    assert torch.equal(tape.play(own), torch.full(SHAPE, 6.0))


def test_a_strided_tensor_may_be_the_input_of_the_recording():
    memory = torch.zeros(70, 6)
    own = [memory.T[::2]]
    tape = Tape(lambda: own[0] * 2 + 1, own, tensors_in)
    x = torch.randn(SHAPE)
    torch.testing.assert_close(tape.play([x]), x * 2 + 1)
    assert not memory[:, 1].any()


def test_there_may_be_no_inputs():
    parameter = torch.zeros(3)
    tape = Tape(lambda: parameter.add_(1), [], lambda _: [])
    tape.play([])
    assert torch.equal(parameter, torch.full([3], 2.0))


def test_there_must_be_as_many_inputs():
    tape = taped(lambda a, b: a + b, torch.ones(3), torch.ones(3))
    with pytest.raises(RuntimeError):
        tape.play([torch.ones(3)])


# Results.


def test_the_result_is_what_the_function_returned():
    tape = taped(lambda x: {"twice": x * 2, "name": "some", "list": [x + 1, 3]}, torch.ones(3))
    first = tape.result
    assert tape.play([torch.full([3], 4.0)]) is first
    assert first["name"] == "some"
    assert torch.equal(first["twice"], torch.full([3], 8.0))
    assert torch.equal(first["list"][0], torch.full([3], 5.0))


def test_kept_tensors_have_the_values_of_the_last_play():
    def function(x):
        early = x * 2
        part = (x + 1)[1:]
        y = early
        for _ in range(20):
            y = (y + 1) * 0.5
        return early, part, y

    tape = taped(function, torch.randn(SHAPE))
    for _ in range(3):
        x = torch.randn(SHAPE)
        torch.testing.assert_close(tape.play([x]), function(x))


def test_what_is_not_kept_is_overwritten():
    def function(x):
        early = x * 2
        y = early
        for _ in range(5):
            y = y + 1
        return early, y

    tape = taped(function, torch.zeros(SHAPE), kept=lambda result: result[1:])
    early, last = tape.play([torch.ones(SHAPE)])
    assert torch.equal(last, torch.full(SHAPE, 7.0))
    # It has the memory of the recording, which the tape does not write to.
    assert not early.any()


def test_kept_tensors_are_those_of_their_tape_only():
    tape = taped(lambda x: x * 2, torch.ones(SHAPE))
    result = tape.play([torch.ones(SHAPE)])
    other = taped(lambda x: x * 3, torch.ones(SHAPE))
    other.play([torch.full(SHAPE, 5.0)])
    assert torch.equal(result, torch.full(SHAPE, 2.0))


def test_a_result_of_a_view_of_an_intermediate_result():
    def function(x):
        y = x * 2
        parts = y.T[5:60:3], y[1], y.view(-1)[100:]
        y_again = x + 1
        return [part * 3 for part in parts], y_again * 2

    tape = taped(function, torch.randn(SHAPE))
    assert tape.calls == []
    for _ in range(2):
        x = torch.randn(SHAPE)
        torch.testing.assert_close(tape.play([x]), function(x))


def test_a_view_of_an_intermediate_result_is_written_to():
    def function(x):
        y = x * 2
        y[1:].add_(1)
        y.T[:30].mul_(-1)
        y[0].copy_(x[2])
        return y + 1

    tape = taped(function, torch.randn(SHAPE))
    for _ in range(2):
        x = torch.randn(SHAPE)
        torch.testing.assert_close(tape.play([x]), function(x))


def test_intermediate_results_of_other_types():
    def function(x):
        large = (x * 2) > 0.5
        index = x.argsort(1)
        double = x.double() * 3
        y = x + 1
        return y * large, x.gather(1, index) - y, (double + index).float(), large.sum(1)

    tape = taped(function, torch.randn(SHAPE))
    for _ in range(3):
        x = torch.randn(SHAPE)
        torch.testing.assert_close(tape.play([x]), function(x))


def test_empty_tensors():
    tape = taped(lambda x, e: (torch.cat([x[:0], x]) * 2, e + 1, e.sum(0), e.T @ e), torch.ones(3, 2), torch.ones(0, 4))
    results = tape.play([torch.full([3, 2], 2.0), torch.ones(0, 4)])
    assert torch.equal(results[0], torch.full([3, 2], 4.0))
    assert results[1].shape == (0, 4)
    assert torch.equal(results[2], torch.zeros(4))
    assert torch.equal(results[3], torch.zeros(4, 4))


def test_without_inference_mode():
    with torch.inference_mode(mode=False), torch.no_grad():
        parameter = nn.Linear(70, 5)
        tape = taped(lambda x: parameter(x).relu_().square().sum(dim=1), torch.randn(SHAPE))
        for _ in range(2):
            x = torch.randn(SHAPE)
            torch.testing.assert_close(tape.play([x]), parameter(x).relu_().square().sum(dim=1))


def test_plays_are_counted():
    tape = taped(lambda x: x * 2, torch.ones(3))
    assert tape.plays == 0
    for _ in range(3):
        tape.play([torch.ones(3)])
    assert tape.plays == 3


# What cannot be recorded.

READING = {
    "item": lambda x: x * x.sum().item(),
    "float": lambda x: x * float(x.sum()),
    "int": lambda x: x * int(x.sum()),
    "a condition": lambda x: x * 2 if x.sum() > 0 else x,
    "a loop": lambda x: [x for _ in range(x.sum().long())],
    "whether all": lambda x: x * 2 if (x > 0).all() else x,
}


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("name", READING)
def test_reading_a_number_is_not_recordable(name, inference):
    with torch.inference_mode(inference), torch.no_grad(), pytest.raises(NotRecordable):
        taped(READING[name], torch.ones(3))


@pytest.mark.parametrize(
    "function",
    [lambda x: x * 2 if torch.equal(x, x.abs()) else x, lambda x: x * 2 if torch.allclose(x, x.abs()) else x],
    ids=["equal", "allclose"],
)
def test_comparing_tensors_is_not_recordable(function):
    with pytest.raises(NotRecordable):
        taped(function, torch.ones(3))


def test_a_result_whose_size_depends_on_numbers_is_not_taken_for_another():
    try:
        tape = taped(lambda x: x[x > 0], torch.ones(3))
    except NotRecordable:
        return
    # The only number would be broadcast to the three of the recording.
    with pytest.raises(RuntimeError):
        tape.play([torch.tensor([-1.0, 2.0, -1.0])])


def test_a_shape_changed_in_place():
    with pytest.raises(NotRecordable):
        taped(lambda x: (x * 2).t_() + 1, torch.ones(3, 3))


def test_recording_can_go_on_after_a_function_that_is_not_recordable():
    with torch.inference_mode(mode=False), torch.no_grad(), pytest.raises(NotRecordable):
        taped(lambda x: x * x.sum().item(), torch.ones(3))
    assert torch.ones(3).sum().item() == 3
    tape = taped(lambda x: x * 2, torch.ones(3))
    assert torch.equal(tape.play([torch.full([3], 2.0)]), torch.full([3], 4.0))


def test_an_error_of_the_function_is_its_own():
    with pytest.raises(KeyError, match="some"):
        taped(lambda _: {}["some"], torch.ones(3))


def test_numbers_of_python_stay_those_of_the_recording():
    number = [2]
    tape = taped(lambda x: x * number[0], torch.ones(3))
    number[0] = 5
    assert torch.equal(tape.play([torch.ones(3)]), torch.full([3], 2.0))


# Memory.


def long_function(layers, x):
    y = network(layers, x)
    z = torch.cat([y, y.softmax(1)], dim=1)
    return z * 2, (z.T @ z).sum(0), y.tanh().sum(1)


def test_equal_inputs_give_equal_bits(layers):
    tape = taped(lambda x: long_function(layers, x), torch.randn(SHAPE))
    x = torch.randn(SHAPE)
    first = [result.clone() for result in tape.play([x])]
    for _ in range(200):
        tape.play([torch.randn(SHAPE)])
        assert all(torch.equal(a, b) for a, b in zip(first, tape.play([x]), strict=True))


def test_two_tapes_of_one_function_give_equal_bits(layers):
    tapes = [taped(lambda x: long_function(layers, x), torch.randn(SHAPE)) for _ in range(2)]
    x = torch.randn(SHAPE)
    assert all(torch.equal(a, b) for a, b in zip(*[tape.play([x]) for tape in tapes], strict=True))


def test_tapes_do_not_disturb_each_other(layers):
    def other(x):
        return (x.exp() + 1).sum(0), x.T @ x

    one, two = taped(lambda x: long_function(layers, x), torch.randn(SHAPE)), taped(other, torch.randn(SHAPE))
    for _ in range(5):
        x, y = torch.randn(SHAPE), torch.randn(SHAPE)
        mine, theirs = one.play([x]), two.play([y])
        torch.testing.assert_close(mine, long_function(layers, x))
        torch.testing.assert_close(theirs, other(y))


def test_memory_outlives_the_tensors_of_the_function(layers):
    tape = taped(lambda x: long_function(layers, x), torch.randn(SHAPE))
    lost = [taped(lambda x: long_function(layers, x), torch.randn(SHAPE)) for _ in range(3)]
    del lost
    for _ in range(3):
        gc.collect()
        junk = [torch.full([size], torch.nan) for size in (3, 15, 40, 100, 120, 210, 400, 2000) for _ in range(100)]
        x = torch.randn(SHAPE)
        torch.testing.assert_close(tape.play([x]), long_function(layers, x))
        # Nor does the tape write to memory that is not its own.
        assert all(tensor.isnan().all() for tensor in junk)


def test_memory_from_outside_is_held(layers):
    tape = taped(lambda x: network([(w * 1, b * 1) for w, b in layers], x), torch.randn(SHAPE))
    copies = [(w.clone(), b.clone()) for w, b in layers]
    layers.clear()
    gc.collect()
    junk = [torch.full([size], torch.nan) for size in (2800, 1600, 200, 40, 5) for _ in range(50)]
    x = torch.randn(SHAPE)
    torch.testing.assert_close(tape.play([x]), network(copies, x))
    assert junk
