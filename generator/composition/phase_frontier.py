"""Which engines of a phase are worth combining: each phase's own frontier at each concurrency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from generator.composition.phase_points import Curve, EngineKind, PhasePoint

PointAt = Callable[[Curve, int], PhasePoint | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """An engine with the most requests per GPU over neighbouring concurrencies."""

    kind: EngineKind
    lowest: int
    highest: int

    def __str__(self) -> str:
        span = str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"
        return f"{self.kind} ({span})"


def decode_at(curve: Curve, concurrency: int) -> PhasePoint | None:
    """What an engine does at a concurrency: its highest measured rung that is not above it.

    None above the last rung, where its KV cache or the measurements end, and below the first.
    Nothing is interpolated.
    """
    if concurrency > max(curve):
        return None
    return curve.get(max((rung for rung in curve if rung <= concurrency), default=0))


def prefill_at(curve: Curve, concurrency: int) -> PhasePoint | None:
    """What an engine does with as many requests at its door; None below the first rung.

    Above its last rung the surplus waits: the rate stays, and the wait grows with the requests
    (Little's law in a closed loop).
    """
    last = max(curve)
    wait_ms = curve[last].wait_ms
    if concurrency <= last or wait_ms is None:
        return decode_at(curve, min(concurrency, last))
    return replace(curve[last], wait_ms=wait_ms * concurrency / last)


def frontier(points: Iterable[PhasePoint]) -> tuple[PhasePoint, ...]:
    """Points that no other on as few GPUs beats in requests per GPU and waiting, best first.

    A larger engine beats no smaller one: where the smaller one is enough, its GPUs are fewer. Ties
    in all stay; a point without a wait competes by requests per GPU alone.
    """
    listed = list(points)
    kept = [point for point in listed if not any(_beats(other, point) for other in listed)]
    return tuple(sorted(kept, key=lambda point: (-point.requests_per_s_per_gpu, point.kind)))


def _beats(other: PhasePoint, point: PhasePoint) -> bool:
    values, others = _values(point), _values(other)
    return others != values and all(a <= b for a, b in zip(others, values, strict=True))


def _values(point: PhasePoint) -> tuple[float, float, int]:
    """What to have little of: GPUs for a request per second, waiting, GPUs of an engine."""
    wait = float("inf") if point.wait_ms is None else point.wait_ms
    return -point.requests_per_s_per_gpu, wait, point.kind.gpus


def leads(curves: Mapping[EngineKind, Curve], at: PointAt) -> Iterator[Lead]:
    """The engine with the most requests per GPU at each measured concurrency, runs joined.

    ``at`` says what an engine does at a concurrency: ``prefill_at`` or ``decode_at``.
    """
    run: Lead | None = None
    for concurrency in sorted({rung for curve in curves.values() for rung in curve}):
        points = [point for curve in curves.values() if (point := at(curve, concurrency))]
        kind = max(points, key=lambda point: point.requests_per_s_per_gpu).kind
        if run is not None and run.kind == kind:
            run = replace(run, highest=concurrency)
            continue
        if run is not None:
            yield run
        run = Lead(kind=kind, lowest=concurrency, highest=concurrency)
    if run is not None:
        yield run
