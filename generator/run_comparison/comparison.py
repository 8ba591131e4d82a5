"""Two sets of runs compared: each figure before and after, and whether the change is a change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from generator.errors import InvalidInput, Problem
from generator.pareto.axes import Axis
from generator.results.contract import ContractDifference
from generator.results.point import MeasuredPoint, Origin
from generator.results.repeats import Repeated, repeated
from generator.run_comparison.pairs import (
    Pair,
    Unpaired,
    mixed_within,
    pairs,
    sides,
    varied_between,
)


class Verdict(StrEnum):
    """What a change is worth."""

    BETTER = "better"
    WORSE = "worse"
    WITHIN = "within runs"
    UNKNOWN = "single runs"
    """Without a repeated run on either side nobody knows how far runs are apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One figure of a pair; a side is None where it lacks the figure or its samples are too few."""

    axis: Axis
    before: Repeated | None
    after: Repeated | None

    @property
    def ratio(self) -> float | None:
        """The change as a share of before."""
        if self.before is None or self.after is None or not self.before.mean:
            return None
        return self.after.mean / self.before.mean - 1

    @property
    def verdict(self) -> Verdict | None:
        """Whether the sides' runs overlap; a side that ran once is taken to vary as the other.

        None where there is no change to judge.
        """
        if self.before is None or self.after is None:
            return None
        before, after = self.before, self.after
        if before.half_range is None and after.half_range is None:
            return Verdict.UNKNOWN
        # A side that ran once is taken to vary as the other: by as much to each side of it.
        low, high = _range(before, after.half_range)
        other_low, other_high = _range(after, before.half_range)
        if low <= other_high and other_low <= high:
            return Verdict.WITHIN
        is_better = self.axis.better(after.mean) > self.axis.better(before.mean)
        return Verdict.BETTER if is_better else Verdict.WORSE


def _range(figure: Repeated, half_range_beside: float | None) -> tuple[float, float]:
    is_single = figure.half_range is None
    margin = half_range_beside if is_single and half_range_beside is not None else 0.0
    return figure.lowest - margin, figure.highest + margin


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair:
    """A pair with the change of every figure asked for."""

    pair: Pair
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """The answer. ``varied`` is what differs between the sides; ``allowed`` was let pass.

    ``consequences`` differ because what varied does.
    """

    axes: tuple[Axis, ...]
    compared: tuple[ComparedPair, ...]
    unpaired: Unpaired
    varied: tuple[ContractDifference, ...]
    allowed: tuple[ContractDifference, ...]
    consequences: tuple[ContractDifference, ...]
    origins: tuple[Origin, ...]


def compare_runs(
    before: Sequence[MeasuredPoint],
    after: Sequence[MeasuredPoint],
    axes: tuple[Axis, ...],
    allow: Collection[str] = (),
) -> RunComparison:
    """The comparison of two sets of runs; ``allow`` has keys, or patterns as ``decode.*``.

    Raises InvalidInput where a side mixes contracts, where the sides differ in more than one key
    that is neither allowed nor a consequence of another, and where they share no valid point.
    """
    found, unpaired = pairs(before, after)
    if not found:
        raise InvalidInput(_nothing_shared(before, after))
    varied = varied_between(found, axes)
    counted = tuple(each for each in varied.factors if not _allowed(each, allow))
    problems = [*_mixed_sides(found, axes, allow), *_several_factors(counted)]
    if problems:
        raise InvalidInput(problems)
    return RunComparison(
        axes=axes,
        compared=tuple(_compared(pair, axes) for pair in found),
        unpaired=unpaired,
        varied=counted,
        allowed=tuple(each for each in varied.factors if _allowed(each, allow)),
        consequences=varied.consequences,
        origins=tuple(
            sorted({run.origin for pair in found for run in (*pair.before, *pair.after)})
        ),
    )


def _mixed_sides(
    found: Sequence[Pair], axes: tuple[Axis, ...], allow: Collection[str]
) -> Iterator[Problem]:
    """What the runs of one side do not share, though they are to repeat each other."""
    sides_of_pairs = (("A", [pair.before for pair in found]), ("B", [pair.after for pair in found]))
    for side, runs in sides_of_pairs:
        for difference in mixed_within(runs, axes):
            if not _allowed(difference, allow):
                yield Problem(
                    message=f"{side} mixes runs that differ in {difference}",
                    hint=f"give fewer results, or --allow {difference.key}",
                )


def _several_factors(factors: Sequence[ContractDifference]) -> Iterator[Problem]:
    """What differs between the sides, where it is more than one factor."""
    for each in factors if len(factors) > 1 else ():
        yield Problem(
            message=f"A and B differ in {sides(each)}",
            hint=f"{len(factors)} vary where one may: --allow {each.key} lets this one pass",
        )


def _nothing_shared(
    before: Sequence[MeasuredPoint], after: Sequence[MeasuredPoint]
) -> Iterator[Problem]:
    """Why no pair was found: a side without a valid point, or sides that are of other points."""
    empty = [
        (name, len(side))
        for name, side in (("A", before), ("B", after))
        if not any(point.is_valid for point in side)
    ]
    for name, count in empty:
        yield Problem(
            message=f"{name} has no valid point, of {count} in all",
            hint="pdrecipe collect says why they are invalid",
        )
    if not empty:
        yield Problem(
            message="the two share no valid point of one configuration and concurrency",
            hint="compare runs of the same configurations, or of one configuration each",
        )


def _allowed(difference: ContractDifference, allow: Collection[str]) -> bool:
    return any(fnmatchcase(difference.key, pattern) for pattern in allow)


def _compared(pair: Pair, axes: tuple[Axis, ...]) -> ComparedPair:
    changes = tuple(
        Change(axis=axis, before=_over(pair.before, axis), after=_over(pair.after, axis))
        for axis in axes
    )
    return ComparedPair(pair=pair, changes=changes)


def _over(runs: tuple[MeasuredPoint, ...], axis: Axis) -> Repeated | None:
    values = [value for run in runs if (value := axis.value(run)) is not None]
    return repeated(values) if values else None
