"""The rules that end a ladder of concurrencies, each with a name that stays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from generator.results.distribution import Distribution
from generator.results.point import MeasuredPoint
from generator.results.wording import percent_change


class Rule(StrEnum):
    """Why a point is not worth running."""

    CAPACITY_END = "capacity-end"
    NO_GOODPUT_GAIN = "no-goodput-gain"
    LATENCY_OBJECTIVE = "latency-objective"
    PERSISTENT_PREEMPTION = "persistent-preemption"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLimits:
    """What the rules compare with; every one is an input.

    ``variation`` is the share by which a repeated run differs where no rung was repeated. A
    latency limit is of ``percentile``, None for no limit. ``preemption_share`` and
    ``failure_share`` are of the completed and of the offered requests.
    """

    variation: float = 0.03
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    percentile: float = 50
    preemption_share: float = 0.01
    failure_share: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """All results of one recipe at one concurrency, repeats together."""

    concurrency: int
    repeats: tuple[MeasuredPoint, ...]

    @property
    def valid(self) -> tuple[MeasuredPoint, ...]:
        return tuple(point for point in self.repeats if point.is_valid)

    @property
    def goodput(self) -> float | None:
        """Median tokens per second that met the latency limits, or all where none were set."""
        rates = self._rates()
        return median(rates) if rates else None

    @property
    def spread(self) -> float | None:
        """The share of their mean that the goodput of repeats lies apart; None without repeats."""
        rates = self._rates()
        if len(rates) < 2:
            return None
        total = sum(rates)
        return (max(rates) - min(rates)) * len(rates) / total if total else 0.0

    def _rates(self) -> list[float]:
        return [
            point.goodput.tokens_per_s if point.goodput else point.total_tokens_per_s
            for point in self.valid
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A rung behind which a ladder need not go on, and why."""

    concurrency: int
    rule: Rule
    reason: str


def stops(rungs: Sequence[Rung], limits: StopLimits) -> Iterator[Stop]:
    """Every rung of a ladder, ascending, at which a rule says to stop.

    What a rule finds holds for all higher concurrencies: waiting, preemptions and failures grow
    with them, and goodput that no longer grows stays or falls. Where a higher rung was measured and
    the rule found nothing there, it was chance, and no stop.
    """
    findings = [*_findings(rungs, limits)]
    passed: dict[Rule, int] = {}
    for rung, rule, reason in findings:
        if reason == "":
            passed[rule] = rung.concurrency
    for rung, rule, reason in findings:
        if reason and rung.concurrency > passed.get(rule, 0):
            yield Stop(concurrency=rung.concurrency, rule=rule, reason=reason)


def _findings(rungs: Sequence[Rung], limits: StopLimits) -> Iterator[tuple[Rung, Rule, str | None]]:
    """What each rule says of each rung: why to stop, nothing, or None where it cannot tell."""
    best: Rung | None = None
    for rung in rungs:
        yield rung, Rule.FAILURES, _failures(rung, limits)
        yield rung, Rule.PERSISTENT_PREEMPTION, _preemption(rung, limits)
        yield rung, Rule.LATENCY_OBJECTIVE, _latency(rung, limits)
        yield rung, Rule.NO_GOODPUT_GAIN, _no_gain(best, rung, limits) if best else None
        if rung.goodput is not None and (best is None or rung.goodput > (best.goodput or 0)):
            best = rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The share by which goodput grows from one concurrency to another.

    ``chance`` is how far the two may lie apart without any cause, ``basis`` where that is from.
    """

    lower: int
    higher: int
    share: float
    chance: float
    basis: str

    def __str__(self) -> str:
        return (
            f"goodput {percent_change(self.share)} from {self.lower} to {self.higher},"
            f" variation {self.basis} {self.chance:.1%}"
        )


def growth(lower: Rung, higher: Rung, limits: StopLimits) -> Growth | None:
    """How goodput grows between two rungs; None where one has no valid result."""
    before, after = lower.goodput, higher.goodput
    if before is None or after is None:
        return None
    spreads = [spread for rung in (lower, higher) if (spread := rung.spread) is not None]
    return Growth(
        lower=lower.concurrency,
        higher=higher.concurrency,
        share=after / before - 1 if before else math.inf if after else 0.0,
        chance=max(spreads, default=limits.variation),
        basis="of its repeats" if spreads else "assumed",
    )


def _no_gain(best: Rung, rung: Rung, limits: StopLimits) -> str | None:
    """How goodput compares with that of the best rung below, where it is no more."""
    grown = growth(best, rung, limits)
    if grown is None:
        return None
    return "" if grown.share > grown.chance else str(grown)


def _failures(rung: Rung, limits: StopLimits) -> str | None:
    """What failed, where all repeats did; None of results that are invalid for other reasons."""
    shares = [_failed_share(point) for point in rung.repeats]
    least = min(shares)
    if least <= limits.failure_share:
        return "" if rung.valid else None
    return f"{least:.0%} of the requests at {rung.concurrency} failed"


def _failed_share(point: MeasuredPoint) -> float:
    """Failed requests of those offered; all where no token came out."""
    if not point.tokens.output:
        return 1.0
    requests = point.requests
    failed = requests.failed
    if failed is None:
        failed = max(0, (requests.offered or 0) - requests.completed)
    offered = requests.offered or requests.completed + failed
    return failed / offered if offered else 1.0


def _preemption(rung: Rung, limits: StopLimits) -> str | None:
    """How many preemptions, where every result that counts them has too many; None without any."""
    shares = [
        point.preemptions / max(1, point.requests.completed)
        for point in rung.valid
        if point.preemptions is not None
    ]
    if not shares:
        return None
    if min(shares) <= limits.preemption_share:
        return ""
    return f"{min(shares):.1%} of the requests at {rung.concurrency} were preempted"


def _latency(rung: Rung, limits: StopLimits) -> str | None:
    """The first limit that is exceeded; None where one that is set cannot be judged."""
    is_judged = True
    for label, limit, found in (
        ("TTFT", limits.ttft_ms, [point.latencies.ttft for point in rung.valid]),
        ("TPOT", limits.tpot_ms, [point.latencies.tpot for point in rung.valid]),
    ):
        if limit is None:
            continue
        values = [_percentile(each, limits.percentile) for each in found]
        known = [value for value in values if value is not None]
        is_judged = is_judged and bool(known)
        if known and median(known) > limit:
            return (
                f"p{limits.percentile:g} {label} {median(known):,.1f} ms at {rung.concurrency},"
                f" above {limit:g} ms"
            )
    return "" if is_judged else None


def _percentile(latency: Distribution | None, percent: float) -> float | None:
    """A percentile that its samples support."""
    if latency is None or not latency.supports(percent):
        return None
    return latency.percentile(percent)


def unsupported_percentiles(rungs: Sequence[Rung], limits: StopLimits) -> int:
    """Results with a latency limit on them but too few samples for its percentile."""
    asked = [name for name in ("ttft", "tpot") if getattr(limits, f"{name}_ms") is not None]
    return sum(
        any(
            (latency := getattr(point.latencies, name)) is not None
            and not latency.supports(limits.percentile)
            for name in asked
        )
        for rung in rungs
        for point in rung.valid
    )
