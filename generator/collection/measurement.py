"""What a load generator reports of one concurrency, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from generator.collection.request_times import ServedRequests
from generator.goodput.acceptance import Limits
from generator.results.point import Goodput, Latencies, Requests, Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Two ways to the mean end-to-end latency, in milliseconds.

    ``summed_ms`` is TTFT plus all gaps (or TPOT times the tokens after the first), ``reported_ms``
    what the client measured from end to end.
    """

    summed_ms: float
    reported_ms: float


def timing_of_means(latencies: Latencies, tokens: Tokens, completed: int) -> Timing | None:
    """The two ways where only means are known; None where one of them is not.

    Never mean gap times tokens: with speculative decoding a chunk holds several.
    """
    if not (latencies.ttft and latencies.tpot and latencies.end_to_end and completed):
        return None
    later_tokens = tokens.output / completed - 1
    return Timing(
        summed_ms=latencies.ttft.mean + latencies.tpot.mean * later_tokens,
        reported_ms=latencies.end_to_end.mean,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One concurrency of a run.

    ``rates_over_s`` is what the client's rates are over where that is not the duration. ``file`` is
    the report; ``latency_file`` another one that has more to say of latencies.
    ``started`` is by the client's clock. ``conditions`` are what the client says of its load, under
    the contract's names. ``served`` has the single requests where the client listed them, and
    ``goodput`` what of them met limits. ``remarks`` are worth telling. ``in_flight`` is what the
    client really ran where that stood for ``concurrency``; ``preemptions`` are those that the run
    itself counted.
    """

    client: str
    file: Path
    concurrency: int
    requests: Requests
    tokens: Tokens
    duration_s: float
    rates_over_s: float | None = None
    latency_file: Path | None = None
    started: datetime | None = None
    latencies: Latencies = field(default_factory=Latencies)
    timing: Timing | None = None
    tokens_per_s_per_user: float | None = None
    conditions: Mapping[str, str] = field(default_factory=dict)
    served: ServedRequests | None = field(default=None, compare=False)  # arrays have no one answer
    goodput: Goodput | None = None
    remarks: tuple[str, ...] = ()
    in_flight: int | None = None
    preemptions: int | None = None

    @property
    def interval_s(self) -> float:
        """The seconds that rates are over."""
        return self.duration_s if self.rates_over_s is None else self.rates_over_s

    def judged(self, limits: Limits | None) -> Measurement:
        """The measurement with its goodput, and without the requests, which take memory."""
        if self.served is None or limits is None:
            return replace(self, served=None)
        return replace(self, served=None, goodput=self.served.goodput(limits, self.interval_s))
