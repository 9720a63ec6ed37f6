"""Which method is ahead, in one sentence with its uncertainty: a function of scores alone.

A method is ahead of the reference if its interquartile mean is higher, and if its runs beat those of the reference more
often than they would by chance: by a permutation test, which holds from few seeds, where a bootstrap does not. Several
methods are compared with one reference, and one of many looks better by chance, so p is corrected for their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from a2ls._formatting import count_of, interval_text, number_text, p_value_text
from a2ls._statistics import (
    MANY_SEEDS,
    MIN_SEEDS,
    RESAMPLES,
    Estimate,
    Scores,
    aggregates,
    bootstrap,
    holm,
    improvement,
    permutation_p,
)

_EVEN = 0.5
_SIGNIFICANT = 0.05


class Contestant(NamedTuple):
    """A method, by the name that readers find it under, and its scores in each environment on a common scale."""

    name: str
    scores: Scores


class Rival(NamedTuple):
    """A method beside the reference."""

    name: str
    seeds: int
    """How many runs each of the two has at least in every environment."""
    iqm: float
    chance: Estimate
    """That a run beats one of the reference."""
    p: float
    """Of the permutation test, corrected for the number of methods."""
    is_ahead: bool
    """Whether it is shown to be better."""


@dataclass(frozen=True)
class ComparisonVerdict:
    """What a comparison comes to."""

    sentence: str
    notes: tuple[str, ...] = ()
    """What to know of it."""
    best: Rival | None = None
    """The method that the sentence names beside the reference, if there is one."""


def comparison_verdict(
    methods: Sequence[Contestant],
    reference: Contestant | None,
    environments: Sequence[str],
    *,
    digits: int = 3,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ComparisonVerdict:
    """Whether a method is ahead of the reference; without one, whether a method is apart from all others.

    Args:
        methods: All but the reference, each with a score in every environment.
        reference: Whom they are compared with.
        environments: The names of the environments.
        digits: Of interquartile means.
        resamples: Of the bootstrap and of the test.
        seed: Of both.
    """
    where = f"in {environments[0]}" if len(environments) == 1 else f"over {len(environments)} environments"
    every = [*methods, *([] if reference is None else [reference])]
    if not every:
        return ComparisonVerdict("Nothing is finished yet: there is nothing to compare.")
    work = _Work(tuple(methods), where, digits, resamples, seed)
    if len(every) == 1:
        alone = work.iqm(every[0])
        return ComparisonVerdict(
            f"{every[0].name} is the only method {where}, so there is nothing to compare it with: "
            f"IQM {work.estimate(alone)}."
        )
    if reference is None:
        return ComparisonVerdict(work.among_themselves())
    return work.against(reference)


@dataclass(frozen=True)
class _Work:
    methods: tuple[Contestant, ...]
    where: str
    digits: int
    resamples: int
    seed: int

    def number(self, value: float) -> str:
        return number_text(value, self.digits)

    def estimate(self, estimate: Estimate) -> str:
        """With its 95 % interval in brackets, if there is one."""
        interval = estimate.interval
        known = "" if interval is None else f" (95 % interval {interval_text(interval, self.digits)})"
        return f"{self.number(estimate.value)}{known}"

    def iqm(self, method: Contestant) -> Estimate:
        return bootstrap(aggregates, method.scores, resamples=self.resamples, seed=self.seed).estimate(0)

    # Against a reference

    def against(self, reference: Contestant) -> ComparisonVerdict:
        own = _iqm(reference)
        rivals = sorted(self._rivals(reference, own), key=lambda rival: -_known(rival.iqm))
        ahead = [rival for rival in rivals if rival.is_ahead]
        best = (ahead or rivals)[0]
        tells = (
            f"IQM {self.number(best.iqm)} against {self.number(own)}, and a run of it beats one of {reference.name} "
            f"with probability {number_text(best.chance.value, 2)}{_uncertainty(best, own)}"
        )
        than = f"better than {reference.name} {self.where}"
        several = len(rivals) > 1
        if ahead:
            who = f"{_caution(best.seeds)}{best.name} is ahead of {reference.name} {self.where}"
            sentence = f"{who}: {tells}{self._beside(ahead, rivals[0])}."
        elif best.chance.interval is None:
            who = f"{best.name}, the best of {len(rivals)} methods," if several else best.name
            sentence = f"{_too_few(best.seeds)} whether {who} is {than}: {tells}."
        elif several:
            sentence = f"No method is shown to be {than}: the best of {len(rivals)}, {best.name}, has {tells}."
        else:
            sentence = f"{best.name} is not shown to be {than}: {tells}."
        return ComparisonVerdict(sentence, self._notes(reference), best)

    def _rivals(self, reference: Contestant, own: float) -> Iterator[Rival]:
        count, seed = self.resamples, self.seed
        ps = holm([permutation_p(each.scores, reference.scores, resamples=count, seed=seed) for each in self.methods])
        chances = [
            bootstrap(improvement, each.scores, reference.scores, resamples=count, seed=seed).estimate(0)
            for each in self.methods
        ]
        for method, chance, known in zip(self.methods, chances, ps, strict=True):
            iqm, p = _iqm(method), 1.0 if known is None else known
            seeds = _fewest(method, reference)
            yield Rival(method.name, seeds, iqm, chance, p, iqm > own and _beats(chance, p))

    def _beside(self, ahead: Sequence[Rival], highest: Rival) -> str:
        """What must not be read out of naming one method alone."""
        if highest is not ahead[0]:
            return f"; {highest.name} has a higher IQM, {self.number(highest.iqm)}, but is not shown to be ahead"
        more = len(ahead) - 1
        return f"; {count_of(more, 'other')} {'is' if more == 1 else 'are'} ahead, too" if more else ""

    def _notes(self, reference: Contestant) -> tuple[str, ...]:
        if len(self.methods) == 1:
            return ()
        return (
            f"The p of the verdict is corrected (Holm), since {len(self.methods)} methods are compared with "
            f"{reference.name}, and one of many is ahead by chance more often.",
        )

    # Without a reference

    def among_themselves(self) -> str:
        ranked = sorted(((each, self.iqm(each)) for each in self.methods), key=lambda each: -_known(each[1].value))
        (best, iqm), others = ranked[0], ranked[1:]
        equal = [each.name for each, own in ranked if own.value == iqm.value]
        who = f"{' and '.join(equal)} share" if len(equal) > 1 else f"{best.name} has"
        leads = f"{who} the highest IQM, {self.estimate(iqm)}"
        fewest = _fewest(*self.methods)
        if fewest < MIN_SEEDS:
            return f"{_too_few(fewest)} which method is the best {self.where}: {leads}."
        if iqm.interval is None:
            return f"It is not known which method is the best {self.where}: {leads}."
        low = iqm.interval.low
        reaching = [each for each, own in others if own.interval is None or own.interval.high >= low]
        if not reaching:
            those = "that of the other" if len(others) == 1 else f"those of all {len(others)} others"
            return f"{_caution(fewest)}{best.name} is the best {self.where}: IQM {self.estimate(iqm)}, above {those}."
        more = f" and {count_of(len(reaching) - 1, 'other')}" if len(reaching) > 1 else ""
        reach = "reaches" if len(reaching) == 1 else "reach"
        return (
            f"These seeds do not tell which method is the best {self.where}: {leads}, into which "
            f"{reaching[0].name}{more} {reach}."
        )


def _beats(chance: Estimate, p: float) -> bool:
    return chance.interval is not None and chance.value > _EVEN and p < _SIGNIFICANT


def _uncertainty(rival: Rival, own: float) -> str:
    """Of the probability, and why it may not be enough."""
    interval = rival.chance.interval
    if interval is None:
        return ""
    but = ", but the IQM is not higher" if _beats(rival.chance, rival.p) and rival.iqm <= own else ""
    p = p_value_text(rival.p)
    known = f"p {p}" if p.startswith("<") else f"p = {p}"
    return f" (95 % interval {interval_text(interval, 2)}; {known} by permutation{but})"


def _iqm(method: Contestant) -> float:
    return float(aggregates([np.asarray(own, dtype=float)[None] for own in method.scores])[0, 0])


def _known(value: float) -> float:
    """To sort by: what is not a number comes last."""
    return float("-inf") if np.isnan(value) else value


def _fewest(*methods: Contestant) -> int:
    return min(len(own) for each in methods for own in each.scores)


def _too_few(seeds: int) -> str:
    return f"{count_of(seeds, 'seed')} {'is' if seeds == 1 else 'are'} too few to tell"


def _caution(seeds: int) -> str:
    return f"As far as {seeds} seeds tell, " if seeds < MANY_SEEDS else ""
