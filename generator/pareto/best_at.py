"""The best that was measured at or above given values of x; nothing is interpolated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from generator.pareto.axes import Axis
from generator.pareto.selection import AxisPoint

INTERACTIVITIES = (10.0, 20.0, 50.0, 100.0, 150.0)
"""Generated tokens/s per user that articles and readers ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAt:
    """The point with the best y of those that reach an x; None where none does."""

    target: float
    best: AxisPoint | None


def best_at(
    frontier: Sequence[AxisPoint], targets: Iterable[float], x: Axis, y: Axis
) -> tuple[BestAt, ...]:
    """The best point for each target, of those at it or better; ties go to the better x."""

    def quality(each: AxisPoint) -> tuple[float, float]:
        return y.better(each.y.mean), x.better(each.x.mean)

    answers = []
    for target in targets:
        reaching = [each for each in frontier if x.better(each.x.mean) >= x.better(target)]
        answers.append(BestAt(target=target, best=max(reaching, key=quality, default=None)))
    return tuple(answers)
