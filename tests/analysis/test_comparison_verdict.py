"""The one sentence that a comparison comes to, from scores of which the answer is known."""

import re

import numpy as np
import pytest

from a2ls._statistics import aggregates, bootstrap, holm, permutation_p
from a2ls.analysis import comparison_mapping, comparison_page, judge
from a2ls.analysis.compare._verdict import Contestant, comparison_verdict
from helpers.comparisons import FEW, LONG, benchmark, by_label, quick, random_scores

LOW, HIGH = [100, 110, 120, 130, 140], [500, 510, 520, 530, 540]
WIDE, BETWEEN = [90, 100, 320, 900, 900], [150, 160, 170, 180, 190]


def contestant(name, *scores):
    return Contestant(name, [np.array(own, dtype=float) for own in scores])


def said(methods, reference="sac", envs=("walker-run",), **options):
    every = [contestant(name, *(own if isinstance(own[0], list) else [own])) for name, own in methods.items()]
    known = next((each for each in every if each.name == reference), None)
    return comparison_verdict([each for each in every if each is not known], known, envs, digits=0, **options).sentence


def test_a_method_that_is_ahead():
    assert said({"sac": LOW, "spr": HIGH}) == (
        "As far as 5 seeds tell, spr is ahead of sac in walker-run: IQM 520 against 120, and a run of it beats one of "
        "sac with probability 1.00 (95 % interval 1.00 to 1.00; p = 0.009 by permutation)."
    )
    both = {"sac": [LOW * 2] * 2, "spr": [HIGH * 2] * 2}
    assert said(both, envs=("a", "b")).startswith("spr is ahead of sac over 2 environments: IQM 520 against 120, and")


def test_no_method_that_is_shown_to_be_better():
    assert said({"sac": HIGH, "spr": LOW}) == (
        "spr is not shown to be better than sac in walker-run: IQM 120 against 520, and a run of it beats one of sac "
        "with probability 0.00 (95 % interval 0.00 to 0.00; p = 0.009 by permutation)."
    )
    same = said({"sac": WIDE, "spr": WIDE, "curl": LOW})
    assert same.startswith("No method is shown to be better than sac in walker-run: the best of 2, spr, has IQM 440 ag")
    assert "against 440, and a run of it beats one of sac with probability 0.50 (95 % interval " in same
    assert same.endswith("; p = 1.000 by permutation).")


def test_three_seeds_in_one_environment_can_never_show_it():
    sentence = said({"sac": LOW[:3], "spr": HIGH[:3]})
    assert sentence.startswith("spr is not shown to be better than sac in walker-run: IQM 510 against 110, and")
    assert re.search(r"\(95 % interval 1.00 to 1.00; p = 0.1\d\d by permutation\)\.$", sentence)
    assert "spr is ahead of sac over 2 environments" in said({"sac": [LOW[:3]] * 2, "spr": [HIGH[:3]] * 2}, envs="ab")


def test_more_often_better_but_not_by_the_middle_half_is_not_ahead():
    sac = [[99, 99, 99, 99], [900, 900, 900, 900], [900, 900, 900, 900]]
    spr = [[100, 100, 100, 100], [901, 901, 901, 901], [0, 0, 950, 950]]
    assert said({"sac": sac, "spr": spr}, envs="abc").endswith("by permutation, but the IQM is not higher).")


def test_one_that_is_ahead_is_named_before_one_that_looks_better_but_may_be_lucky():
    sentence = said({"sac": LOW, "lucky": WIDE, "sure": BETWEEN})
    assert sentence.startswith("As far as 5 seeds tell, sure is ahead of sac in walker-run: IQM 170 against 120")
    assert sentence.endswith("; lucky has a higher IQM, 440, but is not shown to be ahead.")
    more = said({"sac": LOW, "spr": HIGH, "atc": BETWEEN, "curl": BETWEEN})
    assert more.endswith(" by permutation); 2 others are ahead, too.")


@pytest.mark.parametrize(("seeds", "words"), [(2, "2 seeds are too few"), (1, "1 seed is too few")])
def test_few_seeds_tell_nothing(seeds, words):
    few = {"sac": LOW[:seeds], "spr": HIGH[:seeds]}
    start = f"{words} to tell whether spr is better than sac in walker-run: IQM"
    assert said(few).startswith(start)
    assert said(few).endswith("and a run of it beats one of sac with probability 1.00.")
    assert said({**few, "curl": LOW}).startswith(f"{words} to tell whether spr, the best of 2 methods, is better")
    assert said(few, None).startswith(
        f"{words} to tell which method is the best in walker-run: spr has the highest IQM"
    )


def test_without_a_reference_the_highest_is_named_and_whether_it_is_apart():
    def interval(scores):
        band = bootstrap(aggregates, [np.array(scores, dtype=float)])
        return f"(95 % interval {band.low[0]:.0f} to {band.high[0]:.0f})"

    assert said({"spr": LOW, "atc": HIGH, "curl": BETWEEN}, None) == (
        f"As far as 5 seeds tell, atc is the best in walker-run: IQM 520 {interval(HIGH)}, above those of all 2 others."
    )
    assert said({"spr": LOW, "atc": WIDE, "curl": BETWEEN}, None) == (
        f"These seeds do not tell which method is the best in walker-run: atc has the highest IQM, 440 {interval(WIDE)}"
        ", into which curl and 1 other reach."
    )
    assert "spr and atc share the highest IQM, 120 (" in said({"spr": LOW, "atc": LOW}, None)


@pytest.mark.parametrize("reference", ["sac", None])
def test_a_method_alone_has_nothing_to_be_compared_with(reference):
    sentence = said({"sac": LOW}, reference)
    assert sentence.startswith(
        "sac is the only method in walker-run, so there is nothing to compare it with: IQM 120 ("
    )
    assert comparison_verdict([], None, ()).sentence == "Nothing is finished yet: there is nothing to compare."


def test_what_is_not_a_number_is_never_the_best():
    assert said({"sac": LOW, "bad": [np.nan] * 5, "spr": HIGH}).startswith(
        "As far as 5 seeds tell, spr is ahead of sac"
    )
    assert "spr has the highest IQM" in said({"bad": [np.nan] * 5, "spr": HIGH}, None)


def test_p_is_corrected_for_the_number_of_methods():
    scores = random_scores(["sac", "curl", "spr"], ["cheetah-run", "walker-run"], 5)
    comparison = quick(benchmark(scores))
    best = max(("curl", "spr"), key=lambda name: by_label(comparison)[name].iqm.value)
    samples = {name: [np.array(own) for own in scores[name].values()] for name in scores}
    ps = {name: permutation_p(samples[name], samples["sac"], resamples=FEW) for name in ("curl", "spr")}
    corrected = dict(zip(ps, holm(list(ps.values())), strict=True))
    low, high = by_label(comparison)[best].improvement.interval
    assert f"(95 % interval {low:.2f} to {high:.2f}; p = {corrected[best]:.3f} by perm" in comparison.verdict.sentence
    (note,) = comparison.verdict.notes
    assert note.startswith("The p of the verdict is corrected (Holm), since 2 methods are compared with sac")


@pytest.mark.parametrize(("seeds", "environments"), [(3, 1), (3, 3), (5, 1), (10, 2)])
def test_a_method_that_is_no_better_is_rarely_ahead(seeds, environments):
    """One of five that are as good as the reference; by bootstrap it would be 14 % of cases with three seeds."""
    generator = np.random.default_rng(seeds)
    tries = 200
    ahead = 0
    for _ in range(tries):
        every = generator.normal(100, 20, (6, environments, seeds))
        reference, *methods = (contestant(str(i), *own) for i, own in enumerate(every))
        sentence = comparison_verdict(methods, reference, "abc"[:environments], resamples=200).sentence
        ahead += " is ahead of " in sentence
    assert ahead / tries < 0.05


def test_the_page_and_the_mapping_begin_with_it():
    comparison = quick(benchmark({"sac": {"walker-run": LOW}, LONG: {"walker-run": HIGH}}))
    sentence = comparison.verdict.sentence
    assert sentence.startswith("As far as 5 seeds tell, #1 is ahead of sac in walker-run: IQM 0.520 against 0.120, and")
    assert next(iter(comparison_mapping(comparison).items())) == ("verdict", sentence)
    header = comparison_page(comparison).partition("<main>")[0]
    assert f"<p>{sentence}</p>" in header


def test_a_benchmark_is_judged_as_a_comparison_of_it():
    dataset = benchmark(random_scores(["sac", "spr", "curl"], ["cheetah-run", "walker-run"], 4))
    verdict = judge([dataset])
    assert verdict.sentence == quick(dataset, resamples=2_000).verdict.sentence
    long = benchmark({"sac": {"walker-run": LOW}, LONG: {"walker-run": HIGH}, "spr": {"cheetah-run": LOW}})
    other = judge([long], reference="sac")
    assert f"{LONG} is ahead of sac in walker-run" in other.sentence
    assert any(note.startswith("Left out: spr") or "Left out: cheetah-run" in note for note in other.notes)


def test_what_cannot_be_judged_is_said_too():
    running = judge([benchmark({"sac": {"walker-run": LOW}}, state="running")])
    assert running.sentence == (
        "There is no verdict over all environments: no method has a seed that is finished in each of walker-run."
    )
    scores = {"spr": {"Pendulum-v1": LOW, "MountainCarContinuous-v0": LOW}}
    assert "scores are normalised by those of a baseline, but there is none" in judge([benchmark(scores)]).sentence
