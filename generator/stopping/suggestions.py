"""Points that nobody planned, between the rungs of a ladder and beyond the last one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

from generator.results.point import MeasuredPoint
from generator.results.wording import percent_change
from generator.stopping.ladders import Ladder
from generator.stopping.room import DOUBLING
from generator.stopping.rules import Rule, Rung, Stop, StopLimits, growth


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A concurrency worth adding to a recipe, and why."""

    file: str
    concurrency: int
    reason: str


def suggestions(
    ladder: Ladder,
    rungs: Sequence[Rung],
    found: Sequence[Stop],
    others: Sequence[MeasuredPoint],
    limits: StopLimits,
) -> Iterator[Suggestion]:
    """Points between and beyond the rungs of a ladder; ``others`` are all valid results.

    Between a rung that keeps a limit and the next that does not; between rungs more than a doubling
    apart whose goodput differs beyond variation; and beyond the last one where goodput still grows
    and no other recipe beats it. Points are whole geometric means, or the next doubling.
    """
    taken = {*ladder.concurrencies, *(rung.concurrency for rung in rungs)}
    for concurrency, reason in (
        *_between(rungs, found, limits),
        *_beyond(ladder, rungs, found, others, limits),
    ):
        if concurrency not in taken:
            taken.add(concurrency)
            yield Suggestion(file=ladder.file, concurrency=concurrency, reason=reason)


def _between(
    rungs: Sequence[Rung], found: Sequence[Stop], limits: StopLimits
) -> Iterator[tuple[int, str]]:
    at = {stop.concurrency: stop for stop in reversed(found)}
    for lower, higher in pairwise(rungs):
        if lower.concurrency in at:
            return
        middle = isqrt(lower.concurrency * higher.concurrency)
        if middle <= lower.concurrency:
            continue
        stop = at.get(higher.concurrency)
        if stop is not None and stop.rule is not Rule.NO_GOODPUT_GAIN:
            yield middle, f"the ladder ends above {lower.concurrency}: {stop.rule}, {stop.reason}"
        elif higher.concurrency > DOUBLING * lower.concurrency:
            grown = growth(lower, higher, limits)
            if grown is not None and abs(grown.share) > grown.chance:
                yield middle, str(grown)


def _beyond(
    ladder: Ladder,
    rungs: Sequence[Rung],
    found: Sequence[Stop],
    others: Sequence[MeasuredPoint],
    limits: StopLimits,
) -> Iterator[tuple[int, str]]:
    measured = [rung for rung in rungs if rung.valid]
    if found or len(measured) < 2 or measured[-1].concurrency < ladder.concurrencies[-1]:
        return
    last = measured[-1]
    room = min(DOUBLING * last.concurrency, ladder.room)
    grown = growth(measured[-2], last, limits)
    if room <= last.concurrency or grown is None or _is_beaten(last, others, limits):
        return
    resized = "" if room <= ladder.capacity.slots else "; its max-num-seqs must grow with it"
    yield room, f"goodput still grows, {percent_change(grown.share)} to {last.concurrency}{resized}"


def _is_beaten(rung: Rung, others: Sequence[MeasuredPoint], limits: StopLimits) -> bool:
    """Whether another recipe's point of that phase is better in both axes, beyond variation."""
    factor = 1 + limits.variation
    point = max(rung.valid, key=lambda each: each.total_tokens_per_s_per_gpu)
    return any(
        other.subject.phase == point.subject.phase
        and other.subject.digest != point.subject.digest
        and other.total_tokens_per_s_per_gpu > factor * point.total_tokens_per_s_per_gpu
        and _speed(other) > factor * _speed(point)
        for other in others
    )


def _speed(point: MeasuredPoint) -> float:
    """What a user sees: tokens per second, or how soon the first comes where that is all."""
    if point.subject.phase != "prefill" and point.tokens_per_s_per_user is not None:
        return point.tokens_per_s_per_user
    ttft = point.latencies.ttft.median if point.latencies.ttft else None
    return 1000 / ttft if ttft else 0.0
