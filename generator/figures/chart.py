"""A chart as data: what is drawn and what it says to those who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Line(StrEnum):
    """How the marks of a series are joined."""

    NONE = "none"
    STRAIGHT = "straight"
    STEPS_TO_RIGHT = "steps-to-right"
    """From each mark level towards smaller x: what a frontier reaches where more x is better."""
    STEPS_TO_LEFT = "steps-to-left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One point, with the few characters that stand beside it."""

    x: float
    y: float
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Marks of one name, which the legend shows where there is one.

    ``style`` is a place in the palette; None is the grey of the rest.
    """

    name: str
    marks: tuple[Mark, ...]
    style: int | None
    line: Line = Line.STRAIGHT
    shows_marks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisText:
    """What an axis says and how it counts; ``ticks`` are the only ones where given."""

    label: str
    is_log: bool = False
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure. ``origin`` is shown in it, loudly unless the figures are ``measured``.

    ``description`` is the text alternative: what the figure shows, in sentences with figures.
    """

    title: str
    origin: str
    description: str
    x: AxisText
    y: AxisText
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
