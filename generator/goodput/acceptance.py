"""The acceptance contract: which requests of a window pass, and why the others do not.

The contract is that of the B200 article. A response passes where it was sent inside the window,
completed before it closes, met the TTFT limit, and has no gap between two arrivals above the gap
limit. The time after the last token is no gap, and a single token passes that condition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from generator.goodput.trace import NS_PER_MS, NS_PER_S, Arrival, Outcome, Trace, TracedRequest
from generator.results.distribution import Distribution, distribution
from generator.results.point import Goodput


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a response may take at most; both are inputs, there is no default."""

    ttft_ns: int
    max_gap_ns: int

    @property
    def ttft_ms(self) -> float:
        return self.ttft_ns / NS_PER_MS

    @property
    def max_gap_ms(self) -> float:
        return self.max_gap_ns / NS_PER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The observed interval: its start belongs to it, its end does not."""

    start_ns: int
    end_ns: int

    @property
    def duration_s(self) -> float:
        return (self.end_ns - self.start_ns) / NS_PER_S

    def holds(self, time_ns: int) -> bool:
        """Whether a time lies in the window."""
        return self.start_ns <= time_ns < self.end_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one offered request at the end of the window.

    The three reasons against a completed response may hold together.
    """

    outcome: Outcome
    is_late: bool = False
    is_slow: bool = False
    is_empty: bool = False

    @property
    def passes(self) -> bool:
        reasons = self.is_late or self.is_slow or self.is_empty
        return self.outcome is Outcome.COMPLETED and not reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Goodput of a window beside everything that did not pass.

    ``outcomes`` counts the offered requests by how they stand when the window closes. Of those
    completed ``late`` missed the TTFT limit, ``slow`` the gap limit, ``empty`` sent no token; one
    response may count twice. ``outside`` were sent before or after the window. Latencies are those
    of completed responses; ``without_tpot`` of them came in one piece.
    """

    limits: Limits
    window: Window
    arrival: Arrival
    outcomes: dict[Outcome, int]
    passed: int
    passed_tokens: int
    completed_tokens: int
    late: int
    slow: int
    empty: int
    without_tpot: int
    outside: int
    warm_up: int
    ttft: Distribution | None
    tpot: Distribution | None

    @property
    def offered(self) -> int:
        return sum(self.outcomes.values())

    @property
    def requests_per_s(self) -> float:
        return self.passed / self.window.duration_s

    @property
    def tokens_per_s(self) -> float:
        return self.passed_tokens / self.window.duration_s

    @property
    def completed_tokens_per_s(self) -> float:
        """Throughput of completed responses, those that missed a limit included."""
        return self.completed_tokens / self.window.duration_s

    @property
    def goodput(self) -> Goodput:
        """What a measured point keeps of it, so that goodput can be the axis of a frontier."""
        return Goodput(
            ttft_ms=self.limits.ttft_ms,
            max_gap_ms=self.limits.max_gap_ms,
            requests_per_s=self.requests_per_s,
            tokens_per_s=self.tokens_per_s,
        )


def assess(trace: Trace, limits: Limits, window: Window) -> Assessment:
    """The goodput of a trace in a window."""
    offered = [each for each in trace.requests if window.holds(each.sent_ns)]
    verdicts = [judge(each, limits, window) for each in offered]
    completed = [
        each
        for each, verdict in zip(offered, verdicts, strict=True)
        if verdict.outcome is Outcome.COMPLETED
    ]
    passed = [each for each, verdict in zip(offered, verdicts, strict=True) if verdict.passes]
    counts = Counter(verdict.outcome for verdict in verdicts)
    tpots_ns = [each.tpot_ns for each in completed]
    return Assessment(
        limits=limits,
        window=window,
        arrival=trace.arrival,
        outcomes={outcome: counts[outcome] for outcome in Outcome},
        passed=len(passed),
        passed_tokens=sum(_tokens(passed)),
        completed_tokens=sum(_tokens(completed)),
        late=sum(verdict.is_late for verdict in verdicts),
        slow=sum(verdict.is_slow for verdict in verdicts),
        empty=sum(verdict.is_empty for verdict in verdicts),
        without_tpot=sum(
            each.received is not None and tpot is None
            for each, tpot in zip(completed, tpots_ns, strict=True)
        ),
        outside=len(trace.requests) - len(offered),
        warm_up=trace.warm_up,
        ttft=_distribution([each.ttft_ns for each in completed]),
        tpot=_distribution(tpots_ns),
    )


def judge(request: TracedRequest, limits: Limits, window: Window) -> Verdict:
    """What became of a request that was sent inside the window."""
    if request.ended_ns is None or request.ended_ns >= window.end_ns:
        return Verdict(outcome=Outcome.PENDING)
    if request.outcome is not Outcome.COMPLETED:
        return Verdict(outcome=request.outcome)
    received = request.received
    if received is None or request.ttft_ns is None or not received.output_tokens:
        return Verdict(outcome=Outcome.COMPLETED, is_empty=True)
    return Verdict(
        outcome=Outcome.COMPLETED,
        is_late=request.ttft_ns > limits.ttft_ns,
        is_slow=received.longest_gap_ns > limits.max_gap_ns,
    )


def whole_window(trace: Trace) -> Window | None:
    """From the first request sent to the end of the last, that instant included.

    None for a trace without requests, or whose requests end as soon as they start.
    """
    ends = [each.sent_ns if each.ended_ns is None else each.ended_ns for each in trace.requests]
    if not ends:
        return None
    start_ns, end_ns = min(each.sent_ns for each in trace.requests), max(ends)
    return Window(start_ns=start_ns, end_ns=end_ns + 1) if end_ns > start_ns else None


def _tokens(requests: list[TracedRequest]) -> Iterator[int]:
    return (each.received.output_tokens for each in requests if each.received)


def _distribution(times_ns: list[int | None] | list[float | None]) -> Distribution | None:
    """In milliseconds; None without a single value."""
    known = [time_ns / NS_PER_MS for time_ns in times_ns if time_ns is not None]
    return distribution(known) if known else None
