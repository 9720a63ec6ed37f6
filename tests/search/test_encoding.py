"""Losses as parameters of Optuna trials, and back."""

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.samplers import NSGAIISampler, RandomSampler, TPESampler
from optuna.trial import FixedTrial

from a2ls import BadInput
from a2ls.search import A2LSSampler, SearchSpace, suggest_loss
from a2ls.search._search_space import LONGEST_HORIZON, distributions, has_loss, loss_of, parameters_of
from a2ls.space import OPERATORS, Loss

quick = settings(deadline=None, max_examples=50)
encodings = st.sampled_from(["masks", "bits"])


@st.composite
def losses_of_spaces(draw):
    """A space, and any well-formed loss of its horizons and operators."""
    operators = tuple(draw(st.lists(st.sampled_from(OPERATORS), min_size=1, unique=True)))
    space = SearchSpace(draw(st.integers(1, LONGEST_HORIZON)), operators)
    horizon = draw(st.integers(1, space.max_horizon))
    bits = st.lists(st.booleans(), min_size=3 * horizon + 3, max_size=3 * horizon + 3).map(tuple)
    return space, Loss(horizon, draw(bits), draw(bits), draw(st.sampled_from(operators)))


@quick
@given(losses_of_spaces(), encodings)
def test_a_loss_is_read_back_from_its_parameters(space_and_loss, encoding):
    space, loss = space_and_loss
    parameters = parameters_of(loss, space, encoding)
    assert has_loss(parameters)
    assert loss_of(parameters) == loss
    assert loss_of({"lr": 0.1, **parameters}) == loss


@quick
@given(losses_of_spaces(), encodings)
def test_parameters_are_those_of_the_distributions_and_within_them(space_and_loss, encoding):
    space, loss = space_and_loss
    parameters, named = parameters_of(loss, space, encoding), distributions(space, encoding)
    assert set(parameters) == set(named)
    for name, value in parameters.items():
        internal = named[name].to_internal_repr(value)
        assert named[name]._contains(internal)
        # A storage keeps the parameter as a double.
        assert named[name].to_external_repr(float(internal)) == value


@quick
@given(losses_of_spaces(), encodings, st.data())
def test_bits_after_the_horizon_are_not_read(space_and_loss, encoding, data):
    space, loss = space_and_loss
    parameters, length = parameters_of(loss, space, encoding), 3 * loss.horizon + 3
    for side in ("source", "target"):
        if encoding == "masks":
            highest = distributions(space, encoding)[f"loss_{side}"].high
            parameters[f"loss_{side}"] |= highest - (2**length - 1)
        else:
            for step in range(loss.horizon + 1, space.max_horizon + 1):
                for kind in "sar":
                    parameters[f"loss_{side}_{kind}{step}"] = data.draw(st.integers(0, 1))
    assert loss_of(parameters) == loss


def test_masks_are_numbers_whose_lowest_bit_is_the_first_state():
    parameters = parameters_of(Loss.parse("s0 a0 -> s1 r1"), SearchSpace(), "masks")
    assert parameters == {"loss_horizon": 1, "loss_source": 0b11, "loss_target": 0b101000, "loss_operator": "mse"}


def test_bits_are_parameters_named_after_their_elements():
    parameters = parameters_of(Loss.parse("s0 a0 -> s1"), SearchSpace(2), "bits")
    assert len(parameters) == 2 + 2 * 9
    assert {name for name, value in parameters.items() if value == 1} == {
        "loss_horizon",
        "loss_source_s0",
        "loss_source_a0",
        "loss_target_s1",
    }
    assert parameters["loss_target_r2"] == 0


def test_distributions_follow_the_space():
    space = SearchSpace(4, OPERATORS[:2])
    assert distributions(space, "masks") == {
        "loss_horizon": IntDistribution(1, 4),
        "loss_source": IntDistribution(0, 2**15 - 1),
        "loss_target": IntDistribution(0, 2**15 - 1),
        "loss_operator": CategoricalDistribution([str(operator) for operator in OPERATORS[:2]]),
    }
    assert len(distributions(space, "bits")) == 2 + 2 * 15


@quick
@given(losses_of_spaces(), encodings, st.data())
def test_bits_that_the_released_layout_does_not_have_are_not_read(space_and_loss, encoding, data):
    paper, loss = space_and_loss
    space, length = SearchSpace(paper.max_horizon, paper.operators, "released"), 3 * loss.horizon + 1
    named = distributions(space, encoding)
    parameters = {name: value for name, value in parameters_of(loss, paper, encoding).items() if name in named}
    for side in ("source", "target"):
        if encoding == "masks":
            high = data.draw(st.integers(0, named[f"loss_{side}"].high)) >> length << length
            parameters[f"loss_{side}"] = high | parameters[f"loss_{side}"] & (2**length - 1)
        else:
            for kind in "ar":
                if f"loss_{side}_{kind}{loss.horizon}" in named:
                    parameters[f"loss_{side}_{kind}{loss.horizon}"] = data.draw(st.integers(0, 1))
    source, target = ((*mask[:length], False, False) for mask in (loss.source, loss.target))
    expected = Loss(loss.horizon, source, target, loss.operator)
    assert loss_of(parameters, "released") == expected
    assert suggest_loss(FixedTrial(parameters), space, encoding) == expected
    # And what fits is read back.
    assert loss_of(parameters_of(expected, space, encoding), "released") == expected
    assert set(parameters_of(expected, space, encoding)) == set(named)


def test_distributions_have_the_bits_of_the_layout():
    space = SearchSpace(4, layout="released")
    assert distributions(space, "masks")["loss_source"] == IntDistribution(0, 2**13 - 1)
    named = distributions(space, "bits")
    assert len(named) == 2 + 2 * 13
    assert {"loss_source_s4", "loss_target_r3"} < set(named)
    assert not {"loss_source_a4", "loss_target_r4"} & set(named)


def test_a_loss_of_another_layout_is_not_in_the_space():
    winner = Loss.parse("s1 a1 a2 a3 -> r0 r1 s2 s3")
    assert winner in SearchSpace()
    assert winner not in SearchSpace(layout="released")
    assert Loss.parse(f"{winner} @4") in SearchSpace(layout="released")
    assert Loss.parse(f"{winner} @4") not in SearchSpace(3, layout="released")


def test_an_unknown_layout_is_refused_with_its_name():
    with pytest.raises(BadInput, match="layout is 'code', but must be one of paper, released"):
        SearchSpace(layout="code")


def test_an_unknown_encoding_is_refused_with_its_name():
    with pytest.raises(BadInput, match="encoding is 'text'"):
        distributions(SearchSpace(), "text")


def test_parameters_without_a_loss_have_none():
    assert not has_loss({})
    assert not has_loss({"x": 1.0})
    assert not has_loss({"loss_horizon": 1})


@pytest.mark.parametrize(
    ("sampler", "encoding"),
    [
        (RandomSampler(seed=0), "masks"),
        (RandomSampler(seed=0), "bits"),
        (TPESampler(seed=0, n_startup_trials=5), "bits"),
        (NSGAIISampler(seed=0, population_size=5), "bits"),
    ],
    ids=["random-masks", "random-bits", "tpe-bits", "nsga2-bits"],
)
def test_optunas_samplers_suggest_well_formed_losses(sampler, encoding):
    space, suggested = SearchSpace(3, OPERATORS[:2]), []

    def objective(trial):
        loss = suggest_loss(trial, space, encoding)
        assert suggest_loss(trial, space, encoding) == loss
        suggested.append(loss)
        return sum(loss.target) if loss in space else 0.0

    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=20)
    assert {loss.horizon for loss in suggested} == {1, 2, 3}
    assert {loss.operator for loss in suggested} == set(OPERATORS[:2])
    assert len(set(suggested)) > 10
    assert [loss_of(trial.params) for trial in study.trials] == suggested


def test_masks_are_the_default_for_samplers_that_do_not_say():
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    trial = study.ask()
    suggest_loss(trial)
    assert set(trial.params) == {"loss_horizon", "loss_source", "loss_target", "loss_operator"}
    assert trial.distributions["loss_horizon"] == IntDistribution(1, 10)


@pytest.mark.parametrize("encoding", ["masks", "bits"])
def test_space_and_encoding_are_those_of_the_sampler(encoding):
    space = SearchSpace(2, OPERATORS[:3])
    study = optuna.create_study(sampler=A2LSSampler(4, seed=0, space=space, encoding=encoding))
    for _ in range(12):
        trial = study.ask()
        loss = suggest_loss(trial)
        assert loss in space
        assert trial.distributions == distributions(space, encoding)
        assert loss_of(trial.params) == loss
        study.tell(trial, 0.0)


def test_the_encoding_does_not_change_what_is_proposed():
    proposed = []
    for encoding in ("masks", "bits"):
        study = optuna.create_study(sampler=A2LSSampler(4, seed=0, encoding=encoding))
        study.optimize(lambda trial: sum(suggest_loss(trial).source), n_trials=12)
        proposed.append([loss_of(trial.params) for trial in study.trials])
    assert proposed[0] == proposed[1]


@pytest.mark.parametrize("encoding", ["masks", "bits"])
def test_a_loss_can_be_had_again_from_a_finished_trial_and_from_fixed_parameters(encoding):
    space = SearchSpace()
    loss = Loss.parse("s1 a1 a2 a3 -> r0 r1 s2 s3")
    assert suggest_loss(FixedTrial(parameters_of(loss, space, encoding)), space, encoding) == loss
    study = optuna.create_study(sampler=A2LSSampler(seed=0, encoding=encoding))
    study.enqueue_trial(parameters_of(loss, space, encoding))
    study.optimize(lambda trial: float(suggest_loss(trial).horizon), n_trials=1)
    assert suggest_loss(study.best_trial, space, encoding) == loss
