"""Points as curves: one for each configuration, or for each value of something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.pareto.selection import AxisPoint
from generator.results.contract import NOT_STATED
from generator.wording import did_you_mean, shown

CONFIGURATION = "configuration"
ORIGIN = "origin"
_GROUPINGS: dict[str, Callable[[AxisPoint], str]] = {
    CONFIGURATION: lambda each: each.subject.configuration,
    "recipe": lambda each: each.subject.recipe,
    "phase": lambda each: each.subject.phase,
    ORIGIN: lambda each: str(each.point.origin),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The points of one label, by concurrency."""

    label: str
    points: tuple[AxisPoint, ...]

    @property
    def is_one_ladder(self) -> bool:
        """Whether each concurrency is there once, so that a line from point to point means one."""
        return len({each.concurrency for each in self.points}) == len(self.points)


def curves(points: Sequence[AxisPoint], by: str = CONFIGURATION) -> tuple[Curve, ...]:
    """The points grouped by a property or a factor; the curve of the lowest concurrency first.

    Raises InvalidInput where the points have no property or factor of that name.
    """
    grouped: dict[str, list[AxisPoint]] = {}
    label_of = grouping(points, by)
    for each in points:
        grouped.setdefault(label_of(each), []).append(each)
    found = [
        Curve(label=label, points=tuple(sorted(grouped[label], key=_place))) for label in grouped
    ]
    return tuple(sorted(found, key=_curve_place))


def _curve_place(curve: Curve) -> tuple[int, list[tuple[int, str]]]:
    """By the lowest concurrency, then by label with its numbers in the order of numbers."""
    parts = re.findall(r"\d+|\D+", curve.label)
    return curve.points[0].concurrency, [
        (int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts
    ]


def _place(each: AxisPoint) -> tuple[int, tuple[float, float], str]:
    return each.concurrency, each.pair, each.subject.digest


def _varies(factor: str, points: Iterable[AxisPoint]) -> bool:
    return len({each.point.factors.get(factor) for each in points}) > 1


def grouping(points: Sequence[AxisPoint], by: str) -> Callable[[AxisPoint], str]:
    """The label of the curve that a point is on; errors as curves."""
    if by in _GROUPINGS:
        return _GROUPINGS[by]
    factors = {name for each in points for name in each.point.factors}
    if points and by not in factors:
        names = sorted(factors - _GROUPINGS.keys())
        varied = [*_GROUPINGS, *(name for name in names if _varies(name, points))]
        hint = did_you_mean(by, [*_GROUPINGS, *names]) or f"these vary: {', '.join(varied)}"
        raise InvalidInput(Problem(message=f"nothing to group by is called {shown(by)}", hint=hint))
    return lambda each: each.point.factors.get(by, NOT_STATED)
