"""A study as figures: its curves, its frontier, and a phase against concurrency."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from generator.figures.chart import AxisText, Chart, Line, Mark, Series
from generator.pareto.axes import CONCURRENCY, Axis
from generator.pareto.curves import CONFIGURATION, grouping
from generator.pareto.selection import AxisPoint
from generator.pareto.study import ParetoStudy
from generator.results.wording import origins_label, rounded
from generator.wording import plural

_MOST_NAMED = 12
_MOST_TICKS = 12
_MANY = 200
_AXIS_STEPS, _OCTAVE_STEPS = 150, 8
_WIDE_RATIO = 50
_STUDY_OF = {
    "prefill": "Prefill alone",
    "decode": "Decode alone",
    "aggregated": "Aggregated serving",
    "disaggregated": "Disaggregated serving",
}


class FigureKind(StrEnum):
    """Which figure of a study."""

    CURVES = "curves"
    FRONTIER = "frontier"
    PHASE = "phase"


def chart(study: ParetoStudy, kind: FigureKind) -> Chart:
    """The figure of a kind: every curve, the points no other beats, or y against concurrency."""
    drawing = {
        FigureKind.CURVES: curves_chart,
        FigureKind.FRONTIER: frontier_chart,
        FigureKind.PHASE: phase_chart,
    }
    return drawing[kind](study)


# --- curves -----------------------------------------------------------------------------------


def curves_chart(study: ParetoStudy) -> Chart:
    """Each curve on the axes of the study, with the concurrency at every point."""
    x, y = study.question.x, study.question.y
    return _curves(study, x, [each.x.mean for each in study.points], _by_name(study), y)


def phase_chart(study: ParetoStudy) -> Chart:
    """Each curve against concurrency, whatever the x axis of the study."""
    concurrencies = [float(each.concurrency) for each in study.points]
    return _curves(study, None, concurrencies, _by_name(study), study.question.y)


def _by_name(study: ParetoStudy) -> dict[str, int]:
    """The curves that get a colour and a name: those most on the frontier, then with most points.

    More than a dozen cannot be told apart; the rest is grey.
    """
    on_frontier = Counter(map(grouping(study.points, study.question.by), study.frontier))
    ranked = sorted(
        study.curves,
        key=lambda curve: (-on_frontier[curve.label], -len(curve.points), curve.label),
    )
    named = {curve.label for curve in ranked[:_MOST_NAMED]}
    in_order = [curve.label for curve in study.curves if curve.label in named]
    return {label: index for index, label in enumerate(in_order)}


def _curves(
    study: ParetoStudy, x: Axis | None, xs: Sequence[float], styles: dict[str, int], y: Axis
) -> Chart:
    """The curves over an axis, or over concurrency where there is none."""
    series = [*_rest(study, x, styles)]
    for curve in study.curves:
        if curve.label in styles:
            marks = tuple(_mark(each, x) for each in curve.points)
            series.append(
                Series(
                    name=curve.label,
                    marks=marks if curve.is_one_ladder else _apart(marks),
                    style=styles[curve.label],
                    line=Line.STRAIGHT if curve.is_one_ladder else Line.NONE,
                )
            )
    over = "concurrency" if x is None else x.title.lower()
    what = _what(study)
    by = study.question.by
    title = f"{what}: {y.title.lower()} against {over}"
    if by != CONFIGURATION:
        title = f"{title}, by {by}"
    return Chart(
        title=title,
        origin=origins_label(study.origins),
        description=_curves_description(study, title),
        x=_concurrency_text(xs) if x is None else _axis_text(x, xs),
        y=_axis_text(y, [each.y.mean for each in study.points]),
        series=tuple(series),
        notes=(*_notes(study, styles), *(() if x is None else (_AT_MARKS,))),
    )


_AT_MARKS = "The number at a point is its concurrency."


def _mark(each: AxisPoint, x: Axis | None) -> Mark:
    if x is None:  # concurrency is on the axis already
        return Mark(x=float(each.concurrency), y=each.y.mean)
    return Mark(x=each.x.mean, y=each.y.mean, label=str(each.concurrency))


def _rest(study: ParetoStudy, x: Axis | None, styles: dict[str, int]) -> Iterator[Series]:
    """The points of curves without a name, in grey."""
    others = [curve for curve in study.curves if curve.label not in styles]
    if others:
        marks = _unlabelled([_mark(each, x) for curve in others for each in curve.points])
        name = plural(len(others), "other")
        yield Series(name=name, marks=marks, style=None, line=Line.NONE)


def _apart(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """The marks in an order of their own, those that would cover each other once."""
    xs, ys = _steps([mark.x for mark in marks]), _steps([mark.y for mark in marks])
    places: dict[object, Mark] = {}
    for place, mark in zip(zip(xs, ys, strict=True), marks, strict=True):
        places.setdefault(place, mark)
    return tuple(sorted(places.values(), key=lambda mark: (mark.x, mark.y)))


def _steps(values: Sequence[float]) -> list[tuple[int, int]]:
    """Where values are on an axis, in steps of less than a mark, linear and by ratio.

    Both, since low values are apart on a log axis that are one on a linear axis.
    """
    high = max(map(abs, values), default=0.0) or 1.0
    return [
        (round(value / high * _AXIS_STEPS), round(math.log2(value / high) * _OCTAVE_STEPS))
        if value > 0
        else (0, 0)
        for value in values
    ]


def _unlabelled(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    return tuple(Mark(x=mark.x, y=mark.y) for mark in _apart(marks))


# --- the frontier -----------------------------------------------------------------------------


def frontier_chart(study: ParetoStudy) -> Chart:
    """The points no other beats as steps, coloured by curve, the others behind them in grey."""
    x, y = study.question.x, study.question.y
    styles = _by_name(study)
    title = f"{_what(study)}: Pareto frontier of {y.title.lower()} and {x.title.lower()}"
    if x.is_setting:
        title = f"{_what(study)}: best {y.title.lower()} at each {x.title.lower()}"
    return Chart(
        title=title,
        origin=origins_label(study.origins),
        description=_frontier_description(study, title),
        x=_axis_text(x, [each.x.mean for each in study.points]),
        y=_axis_text(y, [each.y.mean for each in study.points]),
        series=(
            *_beaten(study),
            _frontier_line(study),
            *_frontier_marks(study, styles),
        ),
        notes=(*_notes(study, styles, is_about_curves=False), _AT_MARKS),
    )


def _beaten(study: ParetoStudy) -> Iterator[Series]:
    """The points that others beat, in grey, where there are any."""
    on_frontier = {id(each) for each in study.frontier}
    beaten = [each for each in study.points if id(each) not in on_frontier]
    if beaten:
        marks = _unlabelled([_mark(each, study.question.x) for each in beaten])
        yield Series(name="not on the frontier", marks=marks, style=None, line=Line.NONE)


def _frontier_line(study: ParetoStudy) -> Series:
    """Steps, since between two points nothing was run; a line over a setting."""
    x = study.question.x
    steps = Line.STEPS_TO_RIGHT if x.more_is_better else Line.STEPS_TO_LEFT
    return Series(
        name="frontier",
        marks=tuple(Mark(x=each.x.mean, y=each.y.mean) for each in study.frontier),
        style=0,
        line=Line.STRAIGHT if x.is_setting else steps,
        shows_marks=False,
    )


def _frontier_marks(study: ParetoStudy, styles: dict[str, int]) -> Iterator[Series]:
    label_of = grouping(study.points, study.question.by)
    by_label: dict[str, list[Mark]] = {}
    for each in study.frontier:
        by_label.setdefault(label_of(each), []).append(_mark(each, study.question.x))
    unnamed = [mark for label, marks in by_label.items() if label not in styles for mark in marks]
    for label, style in styles.items():
        if label in by_label:
            yield Series(name=label, marks=tuple(by_label[label]), style=style, line=Line.NONE)
    if unnamed:
        yield Series(name="others on it", marks=tuple(unnamed), style=None, line=Line.NONE)


# --- words ------------------------------------------------------------------------------------


def _what(study: ParetoStudy) -> str:
    phases = sorted({each.subject.phase for each in study.points})
    return _STUDY_OF.get(phases[0], phases[0]) if len(phases) == 1 else "Serving"


def _axis_text(axis: Axis, values: Iterable[float]) -> AxisText:
    if axis.name == CONCURRENCY:
        return _concurrency_text(values)
    listed = list(values)
    is_wide = min(listed) > 0 and max(listed) / min(listed) > _WIDE_RATIO
    return AxisText(label=axis.label, is_log=is_wide and not axis.more_is_better)


def _concurrency_text(values: Iterable[float]) -> AxisText:
    """A log axis whose ticks are concurrencies that were run."""
    run = sorted(set(values))
    every = math.ceil(len(run) / _MOST_TICKS)
    return AxisText(
        label="Concurrency (requests at once)", is_log=True, ticks=tuple(run[::-every][::-1])
    )


def _notes(
    study: ParetoStudy, styles: dict[str, int], *, is_about_curves: bool = True
) -> Iterator[str]:
    if study.mixed:
        differences = "; ".join(map(str, study.mixed))
        yield f"MIXED: these runs do not share one contract ({differences})."
    if study.count_left_out:
        reasons = ", ".join(f"{len(each.points)} {each.reason}" for each in study.left_out)
        yield f"Not drawn: {reasons}."
    if is_about_curves and len(study.curves) > len(styles):
        yield f"{len(styles)} of {len(study.curves)} curves are named, those most on the frontier."
    if len(study.points) > _MANY:
        yield "Points that would cover each other are drawn once."
    repeated = max(each.y.count for each in study.points)
    if repeated > 1:
        yield f"A point is the mean of its runs, up to {repeated}."


def _curves_description(study: ParetoStudy, title: str) -> str:
    """The figure in words: every curve with its ends, as many as are named."""
    y = study.question.y
    counted = f"{plural(len(study.curves), 'curve')}, {plural(len(study.points), 'point')}"
    sentences = [f"{title}. {counted}."]
    for curve in study.curves[:_MOST_NAMED]:
        first, last = curve.points[0], curve.points[-1]
        sentences.append(
            f"{curve.label}: {rounded(first.y.mean)} at concurrency {first.concurrency} to"
            f" {rounded(last.y.mean)} at {last.concurrency}."
        )
    return " ".join([*sentences, f"Figures are {y.label}. {origins_label(study.origins)}."])


def _frontier_description(study: ParetoStudy, title: str) -> str:
    first, last = study.frontier[0], study.frontier[-1]
    x, y = study.question.x, study.question.y
    return (
        f"{title}. {len(study.frontier)} of {len(study.points)} points are on it, from"
        f" {_place(first)} to {_place(last)}; x is {x.label}, y is {y.label}."
        f" {origins_label(study.origins)}."
    )


def _place(each: AxisPoint) -> str:
    return (
        f"x {rounded(each.x.mean)}, y {rounded(each.y.mean)} ({each.subject.configuration} at"
        f" concurrency {each.concurrency})"
    )
