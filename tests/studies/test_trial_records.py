"""Trainings in the storage: what is written, and that what version 0.1 wrote is read."""

from dataclasses import replace

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from a2ls.search import SearchFolder
from a2ls.search._population import PROPOSAL_KEY, Proposal
from a2ls.space import Loss
from a2ls.studies import GridSource, Run, baseline, loss_method, method, read_candidate, read_record, read_records
from a2ls.training import Curve, CurvePoint, NotARun
from helpers.engines import InstantEngine

TEXT = "s0 a0 -> s1"
CURVE = Curve((CurvePoint(400, (1.0, 3.0)), CurvePoint(800, (5.0, 7.0))))
# All attributes of a trial that had ended, as version 0.1 wrote them.
FORMER = {
    "label": TEXT,
    "loss": TEXT,
    "seed": 3,
    "stage": 2,
    "origin": "crossover",
    "parents": [4, 1],
    "env": "Pendulum-v1",
    "curve": [[400, [1.0, 3.0]], [800, [5.0, 7.0]]],
    "seconds": 1.5,
}


def former_trial(**attributes):
    return create_trial(value=4.0, user_attrs=FORMER | attributes, intermediate_values={400: 2.0, 800: 6.0})


def test_a_candidate_of_version_0_1_is_read():
    candidate = read_candidate(former_trial())
    assert (candidate.label, candidate.loss) == (TEXT, Loss.parse(TEXT))
    assert (candidate.env, candidate.seed, candidate.seconds) == ("Pendulum-v1", 3, 1.5)
    assert (candidate.state, candidate.curve, candidate.reasons) == ("finished", CURVE, ())
    assert (candidate.stage, candidate.origin, candidate.parents, candidate.repeat_of) == (2, "crossover", (4, 1), None)


@pytest.mark.parametrize("damaged", [{"env": []}, {"seed": "three"}])
def test_what_tells_records_apart_is_checked(damaged):
    study = optuna.create_study(direction="maximize")
    study.add_trial(former_trial(**damaged))
    with pytest.raises(NotARun, match=r"cannot be read: ValueError: \w+ of training 0 is"):
        read_records(study, read_record, {})


@pytest.mark.parametrize(
    ("former", "name"),
    [
        ("forward-dynamics-prior", "dynamics-prior"),
        ("reward-prediction-prior", "reward-prior"),
        ("horizon-change", "horizon-change"),
        ("sampler", "sampler"),
    ],
)
def test_former_names_of_origins_are_read(former, name):
    assert read_candidate(former_trial(origin=former)).origin == name
    stored = Proposal(Loss.parse(TEXT), former).to_attribute()
    trial = create_trial(value=4.0, system_attrs={PROPOSAL_KEY: stored})
    assert Proposal.of(trial, 10).origin == name


def test_a_grid_of_version_0_1_goes_on_with_what_is_missing(tiny_training):
    study = optuna.create_study(direction="maximize")
    study.add_trial(former_trial(seed=0))
    study.add_trial(former_trial(seed=0, label="sac", loss="none"))
    methods = loss_method(Loss.parse(TEXT)), baseline("sac")
    source = GridSource(study, [Run(method, tiny_training, seed) for seed in (0, 1) for method in methods])
    assert source.missing == 2
    jobs = [source.next_job(), source.next_job()]
    assert [(job.label, job.training.seed) for job in jobs] == [("forward-dynamics", 1), ("sac", 1)]
    assert source.next_job() is None
    records = [read_record(trial) for trial in study.get_trials()]
    assert [(record.label, record.loss, record.seed) for record in records] == [
        (TEXT, Loss.parse(TEXT), 0),
        ("sac", None, 0),
        (TEXT, Loss.parse(TEXT), 1),
        ("sac", None, 1),
    ]


def test_trainings_of_curl_from_when_it_had_a_predictor_are_those_of_the_loss_they_had(tiny_training):
    former = "s0 -> s0 | bilinear +neg"
    study = optuna.create_study(direction="maximize")
    study.add_trial(former_trial(seed=0, label="curl", loss=former))
    record = read_record(study.trials[0])
    assert (record.label, record.is_baseline) == (former, False)
    source = GridSource(study, [Run(baseline("curl"), tiny_training, 0), Run(method(former), tiny_training, 0)])
    assert source.missing == 1
    assert (source.next_job().label, read_record(study.trials[1]).label) == ("curl", "curl")


def test_a_candidate_says_in_attributes_of_its_trial_what_people_ask_for(tiny_search, tmp_path):
    folder = SearchFolder.create(tmp_path / "search", replace(tiny_search, baselines=()))
    folder.run(InstantEngine())
    trials = folder.study().trials
    assert len(trials) == len(folder.candidates()) == 8
    for trial, candidate in zip(trials, folder.candidates(), strict=True):
        own = trial.user_attrs
        assert (own["loss"], own["stage"], own["origin"]) == (str(candidate.loss), candidate.stage, candidate.origin)
        assert own["parents"] == list(candidate.parents)
        assert candidate.label == own["loss"]
        assert "label" not in own  # It would be the loss again.
        assert trial.state == TrialState.COMPLETE
        assert trial.intermediate_values == {point.step: point.score for point in candidate.curve.points}
