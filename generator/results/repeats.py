"""Repeated runs of one point, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from generator.results.point import MeasuredPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A figure over repeated runs: its mean, and how far the runs are apart.

    ``half_range`` is half the distance from the lowest to the highest, ``std`` the standard
    deviation of a sample; one run knows neither.
    """

    mean: float
    count: int
    half_range: float | None = None
    std: float | None = None


def repeated(values: Sequence[float]) -> Repeated:
    """The figure over the runs that measured it; raises ValueError for none."""
    if not values:
        raise ValueError("no values")
    count = len(values)
    if count == 1:
        return Repeated(mean=values[0], count=1)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Repeated(
        mean=mean,
        count=count,
        half_range=(max(values) - min(values)) / 2,
        std=math.sqrt(variance),
    )


def without_copies(points: Iterable[MeasuredPoint]) -> list[MeasuredPoint]:
    """The points, each once: a file that is given twice is no repeated run."""
    alike: dict[object, list[MeasuredPoint]] = {}
    for point in points:
        subject = point.subject
        key = (subject.digest, subject.concurrency, point.run, point.duration_s)
        known = alike.setdefault(key, [])
        if point not in known:
            known.append(point)
    return [point for known in alike.values() for point in known]


def runs_by_point(points: Iterable[MeasuredPoint]) -> list[tuple[MeasuredPoint, ...]]:
    """The runs of each recipe at each concurrency, in an order of its own."""
    runs: dict[tuple[str, str, int], list[MeasuredPoint]] = {}
    for point in points:
        subject = point.subject
        # One recipe runs several phases only where its workload is an override.
        runs.setdefault((subject.digest, subject.phase, subject.concurrency), []).append(point)
    return [tuple(sorted(runs[key], key=lambda point: point.run)) for key in sorted(runs)]
