"""A verdict on every point that a spec plans, and points that it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from generator.errors import InvalidInput
from generator.results.contract import (
    ContractDifference,
    by_phase,
    contract_differences,
    each_once,
    goodput_differences,
    mixed_note,
    refusals,
)
from generator.results.point import MeasuredPoint, Origin
from generator.results.wording import changed_recipes
from generator.stopping.ladders import Ladder
from generator.stopping.rules import Rule, Rung, Stop, StopLimits, stops, unsupported_percentiles
from generator.stopping.suggestions import Suggestion, suggestions
from generator.wording import plural


class Answer(StrEnum):
    """What to do about a planned point."""

    MEASURED = "measured"
    RUN = "run"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do about one planned point, and why; ``rule`` is None where none applies.

    A point that was measured has the rule that says to stop behind it.
    """

    concurrency: int
    answer: Answer
    rule: Rule | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderVerdicts:
    """The verdicts on one recipe's points, ascending."""

    ladder: Ladder
    verdicts: tuple[Verdict, ...]

    def concurrencies(self, answer: Answer) -> tuple[int, ...]:
        """The points with that answer."""
        return tuple(each.concurrency for each in self.verdicts if each.answer is answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRuns:
    """The answer for a whole spec."""

    limits: StopLimits
    origins: tuple[Origin, ...]
    ladders: tuple[LadderVerdicts, ...]
    suggestions: tuple[Suggestion, ...]
    notes: tuple[str, ...]

    def count(self, answer: Answer) -> int:
        """Planned points with that answer."""
        return sum(len(each.concurrencies(answer)) for each in self.ladders)


def next_runs(
    points: Iterable[MeasuredPoint],
    ladders: Iterable[Ladder],
    limits: StopLimits,
    *,
    may_mix: bool = False,
) -> NextRuns:
    """Which planned points are worth running, given what was measured.

    A point belongs to the ladder whose recipe has its digest: what ran under another recipe says
    nothing of this one. Raises InvalidInput where results of one phase differ in their contracts,
    unless ``may_mix``, which a note then says.
    """
    listed, planned = list(points), list(ladders)
    known = {digest for ladder in planned for digest in ladder.digests}
    valid = [point for point in listed if point.is_valid and point.subject.digest in known]
    mixed = _mixed(valid)
    if mixed and not may_mix:
        raise InvalidInput(refusals(mixed))
    answers: list[LadderVerdicts] = []
    suggested: list[Suggestion] = []
    unsupported = 0
    for ladder in planned:
        rungs = _rungs(ladder, listed)
        found = tuple(stops(rungs, limits))
        answers.append(
            LadderVerdicts(ladder=ladder, verdicts=tuple(_verdicts(ladder, rungs, found)))
        )
        suggested += suggestions(ladder, rungs, found, valid, limits)
        unsupported += unsupported_percentiles(rungs, limits)
    return NextRuns(
        limits=limits,
        origins=tuple(sorted({point.origin for point in listed})),
        ladders=tuple(answers),
        suggestions=tuple(suggested),
        notes=(
            *map(mixed_note, mixed),
            *_notes(listed, planned, known, unsupported, limits),
        ),
    )


def _mixed(points: Sequence[MeasuredPoint]) -> tuple[ContractDifference, ...]:
    """The contract keys, and the limits of goodput, that points of one phase disagree on."""
    return each_once(
        difference
        for of_phase in by_phase(points)
        for difference in (*contract_differences(of_phase), *goodput_differences(of_phase))
    )


def _rungs(ladder: Ladder, points: Iterable[MeasuredPoint]) -> tuple[Rung, ...]:
    repeats: dict[int, list[MeasuredPoint]] = {}
    for point in points:
        if point.subject.digest in ladder.digests:
            repeats.setdefault(point.subject.concurrency, []).append(point)
    return tuple(Rung(concurrency=each, repeats=tuple(repeats[each])) for each in sorted(repeats))


def _verdicts(ladder: Ladder, rungs: Sequence[Rung], found: Sequence[Stop]) -> Iterator[Verdict]:
    by_load = {rung.concurrency: rung for rung in rungs}
    for concurrency in ladder.concurrencies:
        rung = by_load.get(concurrency)
        here = next((stop for stop in found if stop.concurrency == concurrency), None)
        below = next((stop for stop in found if stop.concurrency < concurrency), None)
        if rung is not None and (rung.valid or here is not None):
            yield _verdict(concurrency, Answer.MEASURED, here)
        elif below is not None:
            yield _verdict(concurrency, Answer.SKIP, below)
        elif lack := ladder.capacity.lack(concurrency):
            yield Verdict(
                concurrency=concurrency, answer=Answer.SKIP, rule=Rule.CAPACITY_END, reason=lack
            )
        else:
            reason = "no result yet"
            if rung is not None:
                reasons = (why.message for each in rung.repeats for why in each.invalid)
                reason = f"its result is invalid: {next(reasons, 'no reason given')}"
            yield Verdict(concurrency=concurrency, answer=Answer.RUN, rule=None, reason=reason)


def _verdict(concurrency: int, answer: Answer, stop: Stop | None) -> Verdict:
    return Verdict(
        concurrency=concurrency,
        answer=answer,
        rule=stop.rule if stop else None,
        reason=stop.reason if stop else "",
    )


def _notes(
    points: Sequence[MeasuredPoint],
    ladders: Sequence[Ladder],
    known: set[str],
    unsupported: int,
    limits: StopLimits,
) -> Iterator[str]:
    strangers = [point for point in points if point.subject.digest not in known]
    names = {label for ladder in ladders for label in (ladder.name, ladder.file)}
    changed = [each for each in strangers if each.subject.recipe in names]
    if changed:
        yield f"Left out: {changed_recipes(changed)}."
    others = len(strangers) - len(changed)
    if others:
        yield f"Left out: {plural(others, 'result')} of recipes that are not in this spec."
    planned = {
        (digest, load) for each in ladders for digest in each.digests for load in each.concurrencies
    }
    measured = [(point.subject.digest, point.subject.concurrency) for point in points]
    beside = sum(digest in known for digest, load in measured if (digest, load) not in planned)
    if beside:
        yield f"{plural(beside, 'result')} at loads that the spec does not plan, which count too."
    if unsupported:
        yield (
            f"{plural(unsupported, 'result')} with too few samples for a p{limits.percentile:g}:"
            " no latency objective is judged by them."
        )
