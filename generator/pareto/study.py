"""One question asked of results: curves, the frontier over them, and what it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.pareto.area import FrontierArea, area_under
from generator.pareto.axes import Axis
from generator.pareto.best_at import INTERACTIVITIES, BestAt, best_at
from generator.pareto.curves import CONFIGURATION, Curve, curves
from generator.pareto.frontier import best_of_each, frontier
from generator.pareto.selection import AxisPoint, LeftOut, select, select_phase
from generator.results.contract import (
    ContractDifference,
    common_contract,
    contract_differences,
    differences_of,
    refusals,
)
from generator.results.point import MeasuredPoint, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoQuestion:
    """What is asked.

    ``x_range`` is for the area; ``may_mix`` lets contracts differ, which the answer then says;
    without ``phase`` whole deployments are meant where there are any.
    """

    x: Axis
    y: Axis
    by: str = CONFIGURATION
    phase: str | None = None
    min_accuracy: float | None = None
    x_range: tuple[float, float] | None = None
    targets: tuple[float, ...] = INTERACTIVITIES
    may_mix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoStudy:
    """The answer. ``mixed`` are the contract keys that its points disagree on."""

    question: ParetoQuestion
    curves: tuple[Curve, ...]
    frontier: tuple[AxisPoint, ...]
    area: FrontierArea | None
    best_at: tuple[BestAt, ...]
    left_out: tuple[LeftOut, ...]
    origins: tuple[Origin, ...]
    contract: dict[str, str]
    mixed: tuple[ContractDifference, ...]

    @property
    def points(self) -> tuple[AxisPoint, ...]:
        return tuple(each for curve in self.curves for each in curve.points)

    @property
    def count_left_out(self) -> int:
        return sum(len(each.points) for each in self.left_out)


def study(points: Sequence[MeasuredPoint], question: ParetoQuestion) -> ParetoStudy:
    """The answer to a question over points.

    Raises InvalidInput where contracts differ and may not be mixed, where no point is left, or
    where the question names what the points do not have.
    """
    x, y = question.x, question.y
    selection = select(
        select_phase(points, question.phase), x, y, min_accuracy=question.min_accuracy
    )
    if not selection.points:
        reasons = "; ".join(f"{len(each.points)} {each.reason}" for each in selection.left_out)
        raise InvalidInput(Problem(message=f"no point stands on these axes: {reasons}"))
    runs = [run for each in selection.points for run in each.runs]
    mixed = contract_differences(runs) + _limit_differences(runs, (x, y))
    if mixed and not question.may_mix:
        raise InvalidInput(refusals(mixed))
    listed = selection.points
    pairs = [(x.better(each.x.mean), y.better(each.y.mean)) for each in listed]
    keep = best_of_each if x.is_setting else frontier
    kept = tuple(listed[index] for index in keep(pairs))
    kept = tuple(sorted(kept, key=lambda each: each.pair))  # by x as it is read
    return ParetoStudy(
        question=question,
        curves=curves(listed, question.by),
        frontier=kept,
        area=_area(kept, question),
        best_at=best_at(kept, question.targets, x, y),
        left_out=selection.left_out,
        origins=tuple(sorted({run.origin for run in runs})),
        contract=common_contract(runs),
        mixed=mixed,
    )


def _limit_differences(
    runs: Sequence[MeasuredPoint], axes: tuple[Axis, Axis]
) -> tuple[ContractDifference, ...]:
    """Figures that were taken under different limits, such as goodput."""
    return tuple(
        difference
        for axis in axes
        if axis.limits is not None
        for difference in differences_of(
            [{f"{axis.name} limits": axis.limits(run)} for run in runs]
        )
    )


def _area(kept: Sequence[AxisPoint], question: ParetoQuestion) -> FrontierArea | None:
    """The area; None where less y is better, for then an x that nothing reaches has no height.

    None over a setting, where what lies between two values is not reached by either.
    """
    start, stop = question.x_range or (kept[0].x.mean, kept[-1].x.mean)
    if question.x.is_setting or not question.y.more_is_better or not start < stop:
        return None
    pairs = [each.pair for each in kept]
    return area_under(pairs, start, stop, more_x_is_better=question.x.more_is_better)
