"""Which points stand on two axes, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.pareto.axes import Axis
from generator.results.point import MeasuredPoint, Subject
from generator.results.repeats import Repeated, repeated, runs_by_point

SERVING = ("disaggregated", "aggregated")
PHASES = (*SERVING, "prefill", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisPoint:
    """A recipe at one concurrency on two axes: the mean of its runs, never the best of them.

    The runs share one contract, so a mixed study has a point for each.
    """

    x: Repeated
    y: Repeated
    runs: tuple[MeasuredPoint, ...]

    @property
    def pair(self) -> tuple[float, float]:
        return self.x.mean, self.y.mean

    @property
    def subject(self) -> Subject:
        return self.runs[0].subject

    @property
    def concurrency(self) -> int:
        return self.subject.concurrency

    @property
    def point(self) -> MeasuredPoint:
        """The first run, for what all runs of one recipe have in common."""
        return self.runs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Points that do not stand on the axes for one reason, by its code."""

    code: str
    reason: str
    points: tuple[MeasuredPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The points on the axes, and all the others with reasons."""

    points: tuple[AxisPoint, ...]
    left_out: tuple[LeftOut, ...]


def select_phase(points: Sequence[MeasuredPoint], phase: str | None) -> tuple[MeasuredPoint, ...]:
    """The points of a phase; without one, of whole deployments, or of the only phase there is.

    Raises InvalidInput where that leaves none, or does not decide.
    """
    present = sorted({point.subject.phase for point in points})
    if phase is None:
        wanted = [each for each in present if each in SERVING] or present
        if len(wanted) > 1 and not set(wanted) <= set(SERVING):
            message = f"these are results of {' and '.join(wanted)}, which no curve can join"
            raise InvalidInput(Problem(message=message, hint="choose one with --phase"))
    else:
        wanted = [phase]
    chosen = tuple(point for point in points if point.subject.phase in wanted)
    if not chosen:
        message = f"no result is of phase {phase}" if phase else "there are no results"
        hint = f"there are results of {', '.join(present)}" if present else "run pdrecipe collect"
        raise InvalidInput(Problem(message=message, hint=hint))
    return chosen


def select(
    points: Iterable[MeasuredPoint], x: Axis, y: Axis, min_accuracy: float | None = None
) -> Selection:
    """The points that are valid, accurate enough and known on both axes."""
    standing: list[MeasuredPoint] = []
    left_out: dict[tuple[str, str], list[MeasuredPoint]] = {}
    for point in points:
        if reason := _why_not(point, (x, y), min_accuracy):
            left_out.setdefault(reason, []).append(point)
        else:
            standing.append(point)
    return Selection(
        points=tuple(_on_axes(runs, x, y) for runs in runs_by_point(standing)),
        left_out=tuple(
            LeftOut(code=code, reason=reason, points=tuple(without))
            for (code, reason), without in sorted(left_out.items())
        ),
    )


def _why_not(
    point: MeasuredPoint, axes: tuple[Axis, Axis], min_accuracy: float | None
) -> tuple[str, str] | None:
    """The code and reason why a point does not stand on the axes; None if it does."""
    if point.invalid:
        codes = sorted({each.code for each in point.invalid})
        return "invalid", f"invalid: {', '.join(codes)}"
    if min_accuracy is not None:
        if point.accuracy is None:
            return "accuracy", "no accuracy known"
        if point.accuracy.score < min_accuracy:
            return "accuracy", f"accuracy below {min_accuracy:g}"
    for axis in axes:
        if axis.value(point) is None:
            return "axis", f"{axis.lacks}, so no {axis.name}"
    return None


def _on_axes(runs: tuple[MeasuredPoint, ...], x: Axis, y: Axis) -> AxisPoint:
    return AxisPoint(x=_over(runs, x), y=_over(runs, y), runs=runs)


def _over(runs: tuple[MeasuredPoint, ...], axis: Axis) -> Repeated:
    return repeated([value for point in runs if (value := axis.value(point)) is not None])
