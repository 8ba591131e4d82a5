"""How many prefill workers keep one decode worker fed."""

from __future__ import annotations

from dataclasses import dataclass

from generator.composition.phase_frontier import prefill_at
from generator.composition.phase_points import Curve, PhasePoint
from generator.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class RateMatch:
    """Prefill workers for a decode worker: ``workers x rate x (1 - margin) >= needed``.

    Rates are requests per second; ``prefill`` is what one worker does at its share of the load.
    """

    workers: int
    prefill: PhasePoint
    needed: float
    margin: float

    @property
    def supplied(self) -> float:
        """Requests per second of all workers, the margin taken off."""
        return supplied_by(self.workers, self.prefill, self.margin)

    @property
    def utilization(self) -> float:
        """The share of what the workers could read that the decode worker asks for."""
        return self.needed / (self.workers * self.prefill.requests_per_s)


def supplied_by(workers: int, prefill: PhasePoint, margin: float) -> float:
    """Requests per second of as many prefill workers, the margin taken off."""
    return workers * prefill.requests_per_s * (1 - margin)


def match_rates(
    prefill: Curve, needed: float, concurrency: int, margin: float, most_workers: int
) -> RateMatch | None:
    """The least workers that supply a decode worker which completes ``needed`` requests a second.

    Each worker is taken at its share of the concurrency, for all requests wait at prefill when a
    load starts. ``margin`` is the share of the prefill rate kept for the transfer of KV cache and
    for queueing. None where ``most_workers`` do not suffice or the share was not measured.
    """
    for workers in range(1, most_workers + 1):
        point = prefill_at(prefill, ceil_div(concurrency, workers))
        if point is None:
            return None
        match = RateMatch(workers=workers, prefill=point, needed=needed, margin=margin)
        if match.supplied >= needed:
            return match
    return None
