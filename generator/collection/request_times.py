"""Latency distributions from the times of single requests, thousands or millions of gaps alike."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from generator.collection.unusable import Unusable
from generator.goodput.acceptance import Limits
from generator.goodput.trace import NS_PER_MS
from generator.results.distribution import PERCENTILES, Distribution
from generator.results.figure_range import GREATEST
from generator.results.point import Goodput, Latencies

Milliseconds: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GapLists:
    """The gaps between chunks of all requests one after the other.

    For each request ``counts`` has how many, ``sums`` how long, ``longest`` the longest or 0.
    """

    values: Milliseconds
    counts: NDArray[np.int64]
    sums: Milliseconds
    longest: Milliseconds

    def of(self, requests: NDArray[np.bool_]) -> Milliseconds:
        """The gaps of the requests that a mask picks."""
        if requests.all():
            return self.values
        return self.values[np.repeat(requests, self.counts)]


class GapCollector:
    """Collects lists of gaps without keeping them as Python numbers: 8 bytes a gap."""

    def __init__(self, to_ms: float) -> None:
        self._to_ms = to_ms
        self._values = array("d")
        self._counts: list[int] = []
        self._sums: list[float] = []
        self._longest: list[float] = []

    def add(self, gaps: object) -> None:
        """The gaps of the next request; raises Unusable for what is no list of numbers."""
        place = f"the gaps of request {len(self._counts)}"
        if not isinstance(gaps, list):
            raise Unusable(f"{place} are no list")
        try:
            self._values.extend(gaps)
        except (TypeError, OverflowError) as error:
            raise Unusable(f"{place} are not all numbers") from error
        if gaps and min(gaps) < 0:
            raise Unusable(f"{place} have a negative one: its clock ran backwards")
        self._counts.append(len(gaps))
        self._sums.append(sum(gaps))
        self._longest.append(max(gaps, default=0.0))

    def collected(self) -> GapLists:
        """All gaps in milliseconds."""
        values = np.frombuffer(self._values, dtype=np.float64)
        if values.size and not values.max() <= GREATEST:
            raise Unusable(f"a gap is over {GREATEST:g}")
        values *= self._to_ms
        return GapLists(
            values=values,
            counts=np.array(self._counts, dtype=np.int64),
            sums=np.array(self._sums, dtype=np.float64) * self._to_ms,
            longest=np.array(self._longest, dtype=np.float64) * self._to_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequests:
    """What latency limits are judged by, for each request that completed."""

    ttft_ms: Milliseconds
    longest_gap_ms: Milliseconds
    output_tokens: Milliseconds

    def goodput(self, limits: Limits, duration_s: float) -> Goodput:
        """What met the limits, per second of the measured interval; a limit itself is still met.

        Times are compared in whole nanoseconds, and an answer of no token is none, as ``pdrecipe
        goodput`` has it.
        """
        passed = (
            (_nanoseconds(self.ttft_ms) <= limits.ttft_ns)
            & (_nanoseconds(self.longest_gap_ms) <= limits.max_gap_ns)
            & (self.output_tokens > 0)
        )
        return Goodput(
            ttft_ms=limits.ttft_ms,
            max_gap_ms=limits.max_gap_ms,
            requests_per_s=float(passed.sum()) / duration_s,
            tokens_per_s=float(self.output_tokens[passed].sum()) / duration_s,
        )


def _nanoseconds(times_ms: Milliseconds) -> Milliseconds:
    return np.rint(times_ms * NS_PER_MS)


def numbers(values: Sequence[object], name: str) -> Milliseconds:
    """Numbers from 0 to ``GREATEST`` as an array; raises Unusable for others, naming the first."""
    if not set(map(type, values)) <= {int, float}:  # numpy takes text and None, too
        raise Unusable(f"{name} are not all numbers")
    try:
        found = np.fromiter(values, dtype=np.float64, count=len(values))
    except OverflowError as error:
        raise Unusable(f"{name} are not all numbers") from error
    wrong = np.flatnonzero(~((found >= 0) & (found <= GREATEST)))
    if wrong.size:
        value = f"{found[wrong[0]]:g}"
        raise Unusable(f"{name}[{wrong[0]}] is {value}, not a number from 0 to {GREATEST:g}")
    return found


def request_latencies(
    ttft_ms: Milliseconds, end_to_end_ms: Milliseconds, output_tokens: Milliseconds
) -> tuple[Distribution | None, Distribution | None, Distribution | None]:
    """TTFT, TPOT and end to end of requests.

    TPOT is (end to end - TTFT) / (output tokens - 1), so requests of one token have none.
    """
    several = output_tokens > 1
    tpot_ms = (end_to_end_ms - ttft_ms)[several] / (output_tokens[several] - 1)
    return (spread(ttft_ms), spread(tpot_ms), spread(end_to_end_ms))


def latencies_of(
    ttft_ms: Milliseconds,
    end_to_end_ms: Milliseconds,
    output_tokens: Milliseconds,
    gaps_ms: Milliseconds,
) -> Latencies:
    """The distributions of requests and of the gaps between their chunks."""
    ttft, tpot, end_to_end = request_latencies(ttft_ms, end_to_end_ms, output_tokens)
    return Latencies(ttft=ttft, tpot=tpot, inter_chunk=spread(gaps_ms), end_to_end=end_to_end)


def spread(values: Milliseconds) -> Distribution | None:
    """The distribution of values in milliseconds as ``results.distribution`` has it; None of none.

    This one is for millions of values: it sorts them as an array.
    """
    if not values.size:
        return None
    ordered = np.sort(values)
    last = ordered.size - 1
    percentiles = []
    for percent in PERCENTILES:
        position = last * percent / 100
        low = int(position)
        below, above = float(ordered[low]), float(ordered[min(low + 1, last)])
        percentiles.append((float(percent), below + (above - below) * (position - low)))
    return Distribution(
        mean=float(ordered.mean()),
        minimum=float(ordered[0]),
        maximum=float(ordered[-1]),
        std=float(ordered.std()),
        samples=int(ordered.size),
        percentiles=tuple(percentiles),
        is_recomputed=True,
    )
