import re
from dataclasses import replace

import optuna
import pytest
from optuna.trial import TrialState

from a2ls import BadInput
from a2ls._errors import Failure
from a2ls.engine import Evaluated, Failed, LocalEngine
from a2ls.search import Budget, Search, SearchConfig, SearchFolder, search, search_command, search_preset
from a2ls.space import OPERATORS, Loss
from a2ls.training import loss_text, train
from helpers.engines import InstantEngine, made_up_score


def proposals(folder):
    return [(c.number, c.label, c.stage, c.origin, c.parents, c.seed) for c in folder.candidates()]


def scores(folder):
    return [c.score for c in folder.candidates()]


@pytest.fixture
def new_search(tmp_path, tiny_search):
    """Makes searches of the tiny configuration with some changes."""
    made = []

    def make(budget=None, storage="", **changes):
        made.append(
            SearchFolder.create(
                tmp_path / f"search{len(made)}", replace(tiny_search, **changes), budget, storage=storage
            )
        )
        return made[-1]

    return make


def test_the_trainings_of_a_search_are_those_of_train(new_search, tiny_training):
    folder = new_search(population_size=2, stages=1)
    folder.run(workers=2)
    records = [*folder.candidates(), *folder.baselines()]
    assert [record.state for record in records] == ["finished"] * 3
    for record in records:
        assert record.curve == train(tiny_training, record.loss, record.seed)
        assert record.score == record.curve.aulc
        assert record.seconds > 0
    assert folder.baselines()[0].label == "sac"
    assert folder.baselines()[0].loss is None
    assert folder.seconds_spent() > 0


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_the_number_of_workers_changes_nothing(workers, new_search):
    alone, together = new_search(population_size=5, stages=4), new_search(population_size=5, stages=4)
    alone.run(InstantEngine(1))
    together.run(InstantEngine(workers))
    assert proposals(alone) == proposals(together)
    assert scores(alone) == scores(together)


def test_another_seed_makes_another_search(new_search):
    one, other = new_search(seed=0), new_search(seed=1)
    one.run(InstantEngine())
    other.run(InstantEngine())
    assert [c.label for c in one.candidates()] != [c.label for c in other.candidates()]


@pytest.mark.parametrize("events", [0, 1, 7, 23, 60])
def test_an_interrupted_search_goes_on_as_if_nothing_had_happened(events, new_search):
    calm, interrupted = new_search(stages=3), new_search(stages=3)
    calm.run(InstantEngine(2))
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(InstantEngine(2, interrupt_after=events))
    told = [c for c in interrupted.candidates() if c.state == "finished"]
    again = SearchFolder.open(interrupted.path)
    again.run(InstantEngine(2))
    assert proposals(again) == proposals(calm)
    assert scores(again) == scores(calm)
    assert again.candidates()[: len(told)] == told


def test_a_trial_whose_process_died_while_it_began_is_taken_up(new_search):
    calm, killed = new_search(), new_search()
    calm.run(InstantEngine())
    killed.study().ask()  # Created, but nothing was suggested for it yet.
    killed.run(InstantEngine())
    assert proposals(killed) == proposals(calm)


def test_a_stage_is_bred_from_the_best_quarter_of_the_one_before(new_search):
    folder = new_search(population_size=8, stages=3)
    folder.run(InstantEngine(3))
    by_stage = {stage: [c for c in folder.candidates() if c.stage == stage] for stage in (1, 2, 3)}
    for stage in (2, 3):
        best = sorted(by_stage[stage - 1], key=lambda c: c.score, reverse=True)[:2]
        parents = {parent for candidate in by_stage[stage] for parent in candidate.parents}
        assert parents
        assert parents <= {candidate.number for candidate in best}


def failing(*numbers):
    """Scores of which those of some candidates are failures, each time."""

    def score(job):
        failed = job.key.number in numbers and not job.key.study.endswith("-baselines")
        return RuntimeError(f"candidate {job.key.number} is broken") if failed else made_up_score(job)

    return score


def test_a_failing_candidate_is_tried_once_more_and_costs_one_job(new_search):
    folder, engine = new_search(), InstantEngine(2, score=failing(1, 2))
    folder.run(engine)
    states = [c.state for c in folder.candidates()]
    assert states == ["finished", "failed", "failed", *["finished"] * 5]
    assert folder.candidates()[1].reasons == ("candidate 1 is broken",) * 2
    assert sum(job.key.number == 1 and job.key.study == folder.study().study_name for job in engine.jobs) == 2
    assert not {1, 2} & {parent for c in folder.candidates() for parent in c.parents}


def test_failed_candidates_can_be_tried_again(new_search):
    calm, folder = new_search(stages=1), new_search(stages=1)
    calm.run(InstantEngine())
    folder.run(InstantEngine(2, score=failing(1, 2)))
    assert folder.retry_failed() == 2
    assert [c.state for c in folder.candidates()] == ["finished", "running", "running", "finished"]
    again = SearchFolder.open(folder.path)
    again.run(InstantEngine(2))
    assert proposals(again) == proposals(calm)
    assert scores(again) == scores(calm)
    assert again.candidates()[1].reasons == ("candidate 1 is broken",) * 2
    assert again.retry_failed() == 0


class AFaultOfTheMachine(InstantEngine):
    """In the fourth job."""

    def _outcome(self, job, worker):
        if len(self.jobs) == 4:
            return [Failed(job, worker, "the disk is full", "machine")]
        return super()._outcome(job, worker)


def test_a_fault_of_the_machine_ends_a_search_and_costs_nothing(new_search):
    calm, folder = new_search(), new_search()
    calm.run(InstantEngine(2))
    with pytest.raises(Failure, match="the disk is full"):
        folder.run(AFaultOfTheMachine(2))
    again = SearchFolder.open(folder.path)
    assert not any(c.reasons for c in again.candidates())
    again.run(InstantEngine(2))
    assert proposals(again) == proposals(calm)
    assert scores(again) == scores(calm)


def test_failures_in_a_row_for_one_reason_end_a_search(new_search):
    def broken(job):
        return RuntimeError(f"no module at 0x{job.key.number}f: line {job.key.number}")

    folder, engine = new_search(population_size=20, baselines=()), InstantEngine(2, score=broken)
    with pytest.raises(Failure, match=r"5 trainings in a row .* no module at 0x.*workers\.log has .*--retry-failed"):
        folder.run(engine)
    assert [c.state for c in folder.candidates()].count("failed") == 5
    # Others do not count: their reasons differ, or there was a success in between.
    folder.retry_failed()
    folder.run(
        InstantEngine(2, score=lambda job: RuntimeError("ab"[job.key.number % 2]) if job.key.number % 5 else 1.0)
    )
    assert [c.state for c in folder.candidates()].count("failed") == 32


def test_a_worker_may_die_more_often_than_a_training_may_fail(new_search):
    class Dying(InstantEngine):
        def _outcome(self, job, worker):
            tries = sum(each.key == job.key for each in self.jobs)
            if job.key.number == 1 and tries < 3:
                return [Failed(job, worker, "killed", "killed")]
            return super()._outcome(job, worker)

    folder = new_search(baselines=())
    folder.run(Dying(2))
    assert [c.state for c in folder.candidates()] == ["finished"] * 8
    assert folder.candidates()[1].reasons == ("killed", "killed")


def test_a_candidate_that_fails_once_is_not_lost(new_search):
    failures = []

    def score(job):
        if job.key.number == 1 and not failures:
            failures.append(job)
            return RuntimeError("the worker was killed")
        return made_up_score(job)

    folder = new_search(baselines=())
    folder.run(InstantEngine(2, score=score))
    second = folder.candidates()[1]
    assert (second.state, second.reasons) == ("finished", ("the worker was killed",))


def test_a_failing_baseline_does_not_end_the_search(new_search):
    folder = new_search()
    folder.run(InstantEngine(1, score=lambda job: made_up_score(job) if job.training.loss else RuntimeError("no")))
    assert [record.state for record in folder.baselines()] == ["failed"]
    assert all(c.state == "finished" for c in folder.candidates())


def test_the_best_is_the_first_of_the_ranking_also_where_returns_are_negative(new_search):
    folder = new_search(baselines=())
    with pytest.raises(Failure, match=r"search0 has no best loss: of 0 candidates none has a score yet$"):
        folder.best()
    folder.run(InstantEngine(score=lambda job: failing(1, 2)(job) if job.key.number in (1, 2) else -made_up_score(job)))
    best = folder.best()
    assert best == folder.ranking().losses[0]
    assert best.score == max(c.curve.aulc for c in folder.candidates() if c.state == "finished")


def test_a_search_without_a_best_says_why_its_candidates_failed(new_search):
    folder = new_search(baselines=(), stages=1)
    with pytest.raises(Failure, match="all 4 candidates failed, the last because: candidate 3 is broken"):
        folder.run(InstantEngine(score=failing(*range(4))))
    with pytest.raises(Failure, match=r"of 4 candidates none has a score yet, and 4 failed, the last because: .* 3 is"):
        folder.best()


def test_a_whole_stage_of_failures_is_followed_by_a_fresh_one(new_search):
    folder = new_search()
    folder.run(InstantEngine(2, score=failing(*range(4))))
    assert all(c.parents == () for c in folder.candidates())
    assert [c.state for c in folder.candidates()] == ["failed"] * 4 + ["finished"] * 4


@pytest.mark.parametrize(
    ("budget", "count"),
    [(Budget(max_trials=6), 6), (Budget(max_env_steps=4000), 5), (Budget(max_trials=3, max_env_steps=4000), 3)],
)
def test_a_budget_cuts_a_search_short_and_can_be_raised(budget, count, new_search):
    folder, whole = new_search(budget), new_search()
    folder.run(InstantEngine(2))
    assert len(folder.candidates()) == count
    assert all(c.state == "finished" for c in folder.candidates())
    folder.change(budget=Budget())
    SearchFolder.open(folder.path).run(InstantEngine(2))
    whole.run(InstantEngine(2))
    assert proposals(folder) == proposals(whole)


def test_a_budget_of_hours_drops_what_is_running_and_keeps_it_for_later(new_search):
    folder = new_search(Budget(max_hours=1e-9))
    folder.run(LocalEngine(1))
    assert all(c.state == "running" for c in folder.candidates())
    folder.change(budget=Budget())
    folder.run(InstantEngine())
    assert [c.state for c in folder.candidates()] == ["finished"] * 8


def test_more_stages_prolong_a_search(new_search):
    short, long = new_search(stages=2), new_search(stages=4)
    short.run(InstantEngine())
    long.run(InstantEngine())
    short.change(stages=4)
    SearchFolder.open(short.path).run(InstantEngine())
    assert proposals(short) == proposals(long)


def test_a_pruned_candidate_counts_and_ranks_below_the_finished_ones(new_search):
    def score(job):
        return 1000.0 if job.key.number == 0 else made_up_score(job)

    folder = new_search(pruner="threshold:upper=400", baselines=(), population_size=4)
    folder.run(InstantEngine(1, score=score))
    first, *others = folder.candidates()
    assert first.state == "pruned"
    assert len(first.curve.points) == 1
    assert all(c.state == "finished" for c in others)
    assert all(0 not in c.parents for c in others)
    assert folder.study().trials[0].state == TrialState.PRUNED


@pytest.mark.parametrize("pruner", ["median", "hyperband", "successive-halving", "percentile:percentile=50.0"])
def test_every_pruner_works_by_its_name(pruner, new_search):
    folder = new_search(pruner=pruner, population_size=6)
    folder.run(InstantEngine(2))
    assert len(folder.candidates()) == 12


@pytest.mark.parametrize("sampler", ["random", "tpe", "nsga2"])
def test_other_samplers_search_the_same_space(sampler, new_search):
    folder = new_search(sampler=sampler, population_size=4, stages=3, baselines=())
    folder.run(InstantEngine(2))
    candidates = folder.candidates()
    assert len(candidates) == 12
    assert [c.stage for c in candidates] == [1] * 4 + [2] * 4 + [3] * 4
    assert all(c.loss.is_valid() for c in candidates)


class NoStates(optuna.samplers.RandomSampler):
    """Proposes losses without a state, which are never valid; after some others, if it is told so."""

    def __init__(self, valid_first):
        super().__init__(seed=0)
        self.valid_first = valid_first

    def sample_independent(self, study, trial, param_name, param_distribution):
        if trial.number >= self.valid_first and param_name.startswith("loss_source_s"):
            return 0
        return super().sample_independent(study, trial, param_name, param_distribution)


@pytest.mark.parametrize("valid_first", [0, 3])
def test_a_sampler_that_proposes_nothing_valid_ends_the_search_and_what_it_had_stays(valid_first, tiny_search):
    config = replace(tiny_search, population_size=4, stages=2, baselines=())
    found = Search(config, optuna.storages.InMemoryStorage(), sampler=NoStates(valid_first))
    with pytest.raises(Failure, match="the sampler proposed 1000 losses in a row that are not valid, the last: "):
        found.run(InstantEngine(1))
    assert [candidate.state for candidate in found.candidates()].count("finished") == valid_first


def ends_with_a_state(loss):
    return not {f"a{loss.horizon}", f"r{loss.horizon}"} & {str(e) for e in loss.source_elements + loss.target_elements}


@pytest.mark.parametrize("mode", ["generational", "steady"])
def test_a_search_of_the_released_layout_stays_in_it(mode, new_search):
    folder = new_search(layout="released", mode=mode, max_horizon=3, population_size=8, stages=4, baselines=())
    folder.run(InstantEngine(2))
    candidates = folder.candidates()
    assert len(candidates) == 32
    assert all(ends_with_a_state(c.loss) for c in candidates)
    assert {c.loss.horizon for c in candidates} == {1, 2, 3}


@pytest.mark.parametrize("sampler", ["random", "tpe", "nsga2"])
def test_other_samplers_do_not_waste_trials_on_what_the_layout_does_not_have(sampler, new_search):
    folder = new_search(layout="released", sampler=sampler, population_size=5, stages=4, baselines=())
    folder.run(InstantEngine(2))
    candidates = folder.candidates()
    assert len(candidates) == 20
    assert all(ends_with_a_state(c.loss) for c in candidates)
    # One in twenty has no state in its source; 15 of 16 have an action or a reward at the last step of the paper's.
    assert len(folder.study().trials) < 30


@pytest.mark.parametrize("layout", ["paper", "released"])
def test_the_layout_is_kept_in_the_folder_and_in_the_command(layout, new_search):
    folder = new_search(layout=layout)
    again = SearchFolder.open(folder.path)
    assert again.config == folder.config
    assert again.config.layout == again.config.space().layout == layout
    assert ("--layout released" in search_command(again.config)) == (layout == "released")


def test_what_an_older_folder_lacks_is_as_by_default_and_noted_and_a_new_one_lacks_nothing(new_search):
    folder = new_search()
    config = folder.path / "config.toml"
    lines = config.read_text().splitlines(keepends=True)
    assert 'layout = "paper"\n' in lines
    config.write_text("".join(line for line in lines if not line.startswith("layout")))
    with pytest.raises(BadInput, match="lacks layout"):
        SearchFolder.open(folder.path)
    config.write_text(re.sub("schema_version = .", "schema_version = 2", config.read_text()))
    older = SearchFolder.open(folder.path)
    assert older.config == folder.config
    assert older.files.taken_by_default == ("layout",)


def test_the_whole_space_has_all_operators(new_search):
    folder = new_search(operators=("all",), population_size=30, stages=2)
    folder.run(InstantEngine(4))
    assert {c.loss.operator for c in folder.candidates()} == set(OPERATORS)


def test_repeated_losses_are_not_trained_twice(new_search, monkeypatch):
    # As if no other child could be drawn: more than a third of all replacements change nothing.
    monkeypatch.setattr("a2ls.search._population.REDRAWS", 0)
    folder, alone = (new_search(population_size=12, stages=4, baselines=()) for _ in range(2))
    engine = InstantEngine(4)
    folder.run(engine)
    candidates = folder.candidates()
    repeats = [c for c in candidates if c.repeat_of is not None]
    assert repeats
    trained = [job.training.loss.canonical() for job in engine.jobs]
    assert len(set(trained)) == len(trained) == len(candidates) - len(repeats)
    for repeat in repeats:
        original = candidates[repeat.repeat_of]
        assert repeat.loss.canonical() == original.loss.canonical()
        assert (repeat.score, repeat.state, repeat.curve) == (original.score, original.state, original.curve)
    alone.run(InstantEngine(1))
    assert proposals(alone) == proposals(folder)


def test_the_faithful_search_trains_repeated_losses_with_another_seed(new_search):
    folder = new_search(repeats="retrain", population_size=10, stages=4, baselines=())
    folder.run(InstantEngine(3))
    seen = {}
    repeated = False
    for candidate in folder.candidates():
        earlier = seen.setdefault(candidate.loss.canonical(), [])
        assert candidate.seed == folder.config.seed + len(earlier)
        repeated |= bool(earlier)
        earlier.append(candidate)
    assert repeated, "half of all replacements change nothing: some loss should have been tried twice"


def test_steady_mode_never_waits(new_search):
    """With as many workers as candidates, every worker has a job at once."""
    folder = new_search(mode="steady", population_size=4, stages=4, baselines=())
    engine = InstantEngine(16)
    folder.run(engine)
    assert len(folder.candidates()) == 16
    busiest = InstantEngine(16)
    generational = new_search(population_size=4, stages=4, baselines=())
    generational.run(busiest)
    assert engine.most_at_once == 16
    assert busiest.most_at_once == 4


def test_curves_appear_while_they_grow(new_search):
    folder = new_search(baselines=())
    seen = []

    def on_event(event):
        if isinstance(event, Evaluated) and event.job.key.number == 0:
            seen.append(len(folder.candidates()[0].curve.points))

    folder.run(InstantEngine(), on_event=on_event)
    assert seen == [1, 2]


def test_a_storage_of_ones_own_holds_several_searches(new_search, tmp_path):
    url = f"sqlite:///{tmp_path}/shared.db"
    folder = new_search(storage=url)
    folder.run(InstantEngine())
    assert len(optuna.load_study(study_name=folder.path.name, storage=url).trials) == 8
    assert not folder.files.database.exists()
    with pytest.raises(BadInput, match="has a study"):
        SearchFolder.create(tmp_path / "elsewhere", folder.config, storage=url, name=folder.path.name)


def test_two_processes_do_not_work_in_one_folder(new_search):
    folder = new_search()
    with folder.files.acquire(), pytest.raises(BadInput, match="another process is at work"):
        SearchFolder.open(folder.path).run(InstantEngine())


def test_search_returns_the_study_and_goes_on_with_its_own_folder_only(tmp_path, tiny_search):
    config = replace(tiny_search, population_size=1, stages=1, baselines=())
    study = search(config, tmp_path / "search")
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE]
    assert search(config, tmp_path / "search").trials == study.trials
    with pytest.raises(BadInput, match="other settings"):
        search(replace(config, seed=9), tmp_path / "search")


def test_the_presets_are_those_of_the_paper_and_smaller_ones():
    paper = search_preset("paper-vector", "hopper-hop")
    assert (paper.population_size, paper.repeats, paper.survivors, paper.operators) == (100, "retrain", 0.25, ("mse",))
    assert (paper.training.steps, paper.training.evaluations, paper.training.agent.hidden) == (1_500_000, 5, 1024)
    assert search_preset("paper-vector", "cheetah-run").training.steps == 500_000
    assert search_preset("quick").candidates < search_preset("laptop").candidates < paper.candidates


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population_size": 0}, "population_size is 0"),
        ({"survivors": 0.0}, "survivors is 0.0"),
        ({"baselines": ("sca",)}, "did you mean sac"),
        ({"operators": ("mze",)}, "did you mean"),
        ({"operators": ()}, "operators is empty"),
        ({"max_horizon": 17}, "max_horizon is 17"),
        ({"layout": "code"}, "layout is 'code'"),
        ({"pruner": "meridian"}, "did you mean median"),
        ({"pruner": "median:patience=3"}, "cannot be made"),
        ({"pruner": "median:3"}, "name=value"),
    ],
)
def test_bad_settings_are_refused_with_their_value(changes, message):
    with pytest.raises(BadInput, match=message):
        SearchConfig(**changes)


def test_labels_are_the_text_form_that_parses_back(new_search):
    folder = new_search()
    folder.run(InstantEngine())
    for candidate in folder.candidates():
        assert Loss.parse(candidate.label) == candidate.loss
        assert loss_text(candidate.loss) == candidate.label
