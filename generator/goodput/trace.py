"""What a client saw of its requests, whichever program wrote it down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

NS_PER_MS = 10**6
NS_PER_S = 10**9


class Outcome(StrEnum):
    """How a request ended; one that had not ended when the trace did is pending."""

    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    PENDING = "pending"


class Arrival(StrEnum):
    """What arrives at one time stamp: a token, or a chunk that may hold several."""

    TOKEN = "token"  # noqa: S105 - a word of output
    CHUNK = "chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The output of one request: when the first and the last part arrived, and between them.

    Times are nanoseconds of the trace's clock. ``longest_gap_ns`` is 0 where one part came.
    """

    first_ns: int
    last_ns: int
    longest_gap_ns: int
    arrivals: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRequest:
    """One request: sent, ended (None while pending), how, and what was received of its output."""

    sent_ns: int
    ended_ns: int | None
    outcome: Outcome
    received: Received | None

    @property
    def ttft_ns(self) -> int | None:
        return self.received.first_ns - self.sent_ns if self.received else None

    @property
    def tpot_ns(self) -> float | None:
        """(Last - first) / (tokens - 1); None for one token, and for one chunk of several."""
        received = self.received
        if received is None or received.arrivals < 2 or received.output_tokens < 2:
            return None
        return (received.last_ns - received.first_ns) / (received.output_tokens - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The requests of a run; ``warm_up`` counts those of the warm-up, which are left out."""

    requests: tuple[TracedRequest, ...]
    arrival: Arrival
    warm_up: int = 0


def receive(times_ns: list[int], output_tokens: int) -> Received | None:
    """What the arrival times, in order, of so many tokens come to; None without any."""
    if not times_ns:
        return None
    gaps = (after - before for before, after in pairwise(times_ns))
    return Received(
        first_ns=times_ns[0],
        last_ns=times_ns[-1],
        longest_gap_ns=max(gaps, default=0),
        arrivals=len(times_ns),
        output_tokens=output_tokens,
    )
