"""What `AuxiliaryLoss` takes for sequences, and what it refuses in words instead of computing a wrong number."""

import re

import pytest
import torch
from torch import nn

from a2ls._errors import BadInput
from a2ls.auxiliary import AuxiliaryLoss, Sequences
from a2ls.space import Loss, named_loss

BATCH, STEPS, STATE, ACTION, FEATURES = 9, 4, 3, 2, 5
WINNER = named_loss("a2-winner")


@pytest.fixture(autouse=True)
def _same_weights():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def time_first(steps=STEPS, batch=BATCH):
    shapes = (steps, batch, STATE), (steps, batch, ACTION), (steps, batch)
    return Sequences(*(torch.randn(shape) for shape in shapes))


def batch_first(sequences):
    return Sequences(*(values.transpose(0, 1).contiguous() for values in sequences))


def value(sequences, loss=WINNER, encoder=None, **settings):
    torch.manual_seed(1)
    encoder = encoder or nn.Linear(STATE, FEATURES)
    return AuxiliaryLoss(loss, FEATURES, ACTION, **settings)(sequences, encoder, encoder).item()


def test_both_layouts_have_one_value_if_it_is_said_which_it_is():
    given = time_first()
    expected = value(Sequences(*map(list, given)))
    assert value(given) == expected
    assert value(given, batch_first=False) == expected
    assert value(batch_first(given), batch_first=True) == expected
    assert value(given, observation_shape=(STATE,)) == expected


def test_a_last_axis_of_one_does_not_matter_to_rewards_and_numbers_of_actions():
    given = time_first()
    assert value(given._replace(rewards=given.rewards.unsqueeze(-1))) == value(given)
    numbers = torch.randint(ACTION, (STEPS, BATCH))
    expected = value(given._replace(actions=torch.eye(ACTION)[numbers]))
    flat, column = given._replace(actions=numbers), given._replace(actions=numbers.unsqueeze(-1))
    assert value(flat) == value(column) == expected
    assert value(batch_first(flat), batch_first=True) == value(batch_first(column), batch_first=True) == expected


@pytest.mark.parametrize(
    ("steps", "batch", "in_batches"),
    [(STEPS, 128, True), (STEPS, BATCH, True), (STEPS, STEPS, False), (6, BATCH, True), (6, BATCH, False)],
)
def test_where_sizes_do_not_tell_the_layout_it_must_be_said(steps, batch, in_batches):
    """Batches first; as many samples as steps; more steps than the loss needs, which might as well be samples."""
    given = time_first(steps, batch)
    with pytest.raises(BadInput, match=r"which size is the batch .* 4 transitions.* batch_first=True"):
        value(batch_first(given) if in_batches else given)
    laid_out = batch_first(given) if in_batches else given
    assert value(laid_out, batch_first=in_batches) == value(Sequences(*map(list, given)))


def test_fields_that_differ_in_length_tell_the_layout():
    """Four samples of four transitions, with the state after the last."""
    states, actions, rewards = torch.randn(5, 4, STATE), torch.randn(4, 4, ACTION), torch.randn(4, 4)
    assert value(Sequences(states, actions, rewards)) == value(Sequences(list(states), list(actions), list(rewards)))
    with pytest.raises(BadInput, match="which size is the batch"):
        value(Sequences(states.transpose(0, 1), actions, rewards))


@pytest.mark.parametrize("form", [lambda values: values, list, lambda values: dict(enumerate(values))])
def test_short_sequences_are_refused(form):
    given = Sequences(*map(form, time_first(3)))
    with pytest.raises(BadInput, match=r"has (3 steps|the steps \[0, 1, 2\]), but the loss .* needs [sa]3.* 4 trans"):
        value(given)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"actions": torch.randn(STEPS, BATCH, 3)}, "actions[1] has the shape (9, 3)"),
        ({"actions": torch.randn(STEPS, BATCH)}, "must have (9, 2) with a floating-point type, or (9,) or (9, 1)"),
        ({"actions": torch.zeros(STEPS, BATCH, ACTION, dtype=int)}, "the shape (9, 2) and the type torch.int64"),
        ({"rewards": torch.randn(STEPS, BATCH, 2)}, "rewards[0] has the shape (9, 2)"),
        ({"rewards": [torch.randn(8)] * STEPS}, "rewards[0] has the shape (8,)"),
        ({"states": torch.randn(STEPS, BATCH, 7)}, "must have the shape (9, 3)"),
        ({"rewards": torch.randn(STEPS)}, "rewards is a tensor of the shape (4,), but must have steps and a batch"),
    ],
)
def test_wrong_shapes_are_named(changed, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        value(time_first()._replace(**changed), observation_shape=(STATE,))


def test_features_must_be_as_many_as_was_said():
    with pytest.raises(BadInput, match=r"the encoder made features of the shape \(9, 6\), but feature_dim is 5"):
        value(time_first(2), Loss.parse("s0 a0 -> s1"), encoder=nn.Linear(STATE, 6))
