"""Repeated runs of one point, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from generator.errors import InvalidInput, Problem
from generator.results.contract import held_fixed
from generator.results.point import MeasuredPoint
from generator.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A figure over repeated runs: its mean, and how far the runs are apart.

    ``lowest`` and ``highest`` are of the runs, ``std`` is the standard deviation of a sample, which
    one run does not know.
    """

    mean: float
    count: int
    lowest: float
    highest: float
    std: float | None = None

    @property
    def half_range(self) -> float | None:
        """Half the distance from the lowest to the highest; None for one run."""
        return None if self.count == 1 else (self.highest - self.lowest) / 2


def repeated(values: Sequence[float]) -> Repeated:
    """The figure over the runs that measured it; raises ValueError for none."""
    if not values:
        raise ValueError("no values")
    count = len(values)
    if count == 1:
        return Repeated(mean=values[0], count=1, lowest=values[0], highest=values[0])
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Repeated(
        mean=mean,
        count=count,
        lowest=min(values),
        highest=max(values),
        std=math.sqrt(variance),
    )


def without_copies(points: Iterable[MeasuredPoint]) -> list[MeasuredPoint]:
    """The points, each once: a file that is given twice is no repeated run.

    Raises InvalidInput for runs that are there twice, collected with other limits or accuracies:
    they would count as runs that do not vary at all, and nobody knows which one is meant.
    """
    alike: dict[object, list[MeasuredPoint]] = {}
    doubled: dict[str, list[str]] = {}
    for point in points:
        subject = point.subject
        key = (subject.digest, subject.concurrency, point.run, point.duration_s)
        known = alike.setdefault(key, [])
        if point in known:
            continue
        other = next((each for each in known if _is_one_run(point, each)), None)
        if other is not None:
            place = f"{point.run} at concurrency {subject.concurrency}"
            doubled.setdefault(_collected_otherwise(point, other), []).append(place)
        known.append(point)
    if doubled:
        raise InvalidInput(
            Problem(
                message=f"{_named(places)} there twice, collected with other {what}",
                hint="give one of the files, or collect all runs at once",
            )
            for what, places in doubled.items()
        )
    return [point for known in alike.values() for point in known]


def _named(places: Sequence[str]) -> str:
    more = len(places) - 1
    return f"{places[0]} and {plural(more, 'more point')} are" if more else f"{places[0]} is"


def _collected_otherwise(one: MeasuredPoint, other: MeasuredPoint) -> str:
    """What two points of the same files do not share."""
    names = {"accuracy": one.accuracy != other.accuracy, "goodput": one.goodput != other.goodput}
    return " and ".join(name for name, is_other in names.items() if is_other) or "options"


def _is_one_run(one: MeasuredPoint, other: MeasuredPoint) -> bool:
    """Whether two points are of the same files, but for what depends on the options of collect."""
    shared = one.sources.keys() & other.sources.keys()
    if any(one.sources[name] != other.sources[name] for name in shared):
        return False
    first, second = (
        replace(each, goodput=None, accuracy=None, invalid=(), sources={}) for each in (one, other)
    )
    return first == second


def runs_by_point(points: Iterable[MeasuredPoint]) -> list[tuple[MeasuredPoint, ...]]:
    """The runs of each recipe at each concurrency, in an order of its own.

    Runs of other contracts or another origin repeat nothing: a rehearsal beside a measurement is a
    point of its own.
    """
    runs: dict[tuple[str, str, int], list[MeasuredPoint]] = {}
    for point in points:
        subject = point.subject
        # One recipe runs several phases only where its workload is an override.
        runs.setdefault((subject.digest, subject.phase, subject.concurrency), []).append(point)
    return [repeats for key in sorted(runs) for repeats in _of_one_contract(runs[key])]


def _of_one_contract(runs: Sequence[MeasuredPoint]) -> Iterator[tuple[MeasuredPoint, ...]]:
    alike: dict[frozenset[tuple[str, str]], list[MeasuredPoint]] = {}
    for point in sorted(runs, key=lambda point: point.run):
        alike.setdefault(frozenset(held_fixed(point).items()), []).append(point)
    yield from map(tuple, alike.values())
