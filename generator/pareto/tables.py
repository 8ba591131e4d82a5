"""A study as tables and sentences, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generator.pareto.axes import CONCURRENCY, Axis
from generator.pareto.curves import CONFIGURATION, ORIGIN, grouping
from generator.pareto.selection import AxisPoint
from generator.pareto.study import ParetoStudy
from generator.results.contract import mixed_note
from generator.results.repeats import Repeated
from generator.results.wording import half_range_share, origins_label, rounded
from generator.wording import plural

Table = tuple[list[str], list[list[str]]]


def heading(study: ParetoStudy) -> Iterator[str]:
    """What kind of figures these are, which axes, and how many points stand on them."""
    yield f"Figures: {origins_label(study.origins)}."
    x, y = study.question.x, study.question.y
    yield f"x: {_axis(study, x)}. y: {_axis(study, y)}."
    yield counted(study)
    for difference in study.mixed:
        yield mixed_note(difference)


def counted(study: ParetoStudy) -> str:
    """How many points and curves there are, and how many points stand on the frontier."""
    points, curves = plural(len(study.points), "point"), plural(len(study.curves), "curve")
    left_out = f", {study.count_left_out} left out" if study.count_left_out else ""
    return f"{points} of {curves}{left_out}; {len(study.frontier)} on the frontier."


def _axis(study: ParetoStudy, axis: Axis) -> str:
    if axis.is_setting and axis is study.question.x:
        return f"{axis.label}, the best y of each"
    return f"{axis.label}, {'more' if axis.more_is_better else 'less'} is better"


def frontier_table(study: ParetoStudy) -> Table:
    """The points of the frontier by x, each with what ran; which origin, where there are two."""
    return points_table(study, study.frontier)


def points_table(study: ParetoStudy, points: Sequence[AxisPoint]) -> Table:
    """Points on the axes of a study; concurrency has a column, whether it is an axis or not."""
    label_of = grouping(study.points, study.question.by)
    shows_label = study.question.by != CONFIGURATION
    shows_origin = len(study.origins) > 1 and study.question.by != ORIGIN
    shows_runs = any(each.y.count > 1 for each in points)
    axes = [axis for axis in (study.question.x, study.question.y) if axis.name != CONCURRENCY]
    headers = [*(axis.short for axis in axes), "conc.", "GPUs", "configuration"]
    headers += [study.question.by] * shows_label + ["origin"] * shows_origin
    headers += ["runs"] * shows_runs
    rows = []
    for each in points:
        figures = {study.question.x.name: each.x, study.question.y.name: each.y}
        row = [rounded(figures[axis.name].mean) for axis in axes]
        row += [str(each.concurrency), str(each.point.gpus.total), each.subject.configuration]
        row += [label_of(each)] * shows_label + [str(each.point.origin)] * shows_origin
        row += [_runs(each.y)] * shows_runs
        rows.append(row)
    return headers, rows


def _runs(figure: Repeated) -> str:
    return f"{figure.count}{half_range_share(figure)}"


def best_at_table(study: ParetoStudy) -> Table:
    """The best measured point at or better than each asked x; its origin, where there are two."""
    x = study.question.x
    sign = ">=" if x.more_is_better else "<="
    shows_origin = len(study.origins) > 1
    headers = [x.short, f"best {study.question.y.short}", "reached at", "conc.", "configuration"]
    headers += ["origin"] * shows_origin
    rows = []
    for each in study.best_at:
        row = [f"{sign} {each.target:g}"]
        if each.best is None:
            row += ["-", "-", "-", "no point reaches it"] + ["-"] * shows_origin
        else:
            best = each.best
            row += [rounded(best.y.mean), rounded(best.x.mean), str(best.concurrency)]
            row += [best.subject.configuration] + [str(best.point.origin)] * shows_origin
        rows.append(row)
    return headers, rows


def area_sentence(study: ParetoStudy) -> str:
    """The area under the frontier with its range, or why there is none."""
    if study.area is None:
        if study.question.x.is_setting:
            return f"No area under the frontier: {study.question.x.short} is set, not reached."
        if not study.question.y.more_is_better:
            return "No area under the frontier: y is a figure of which less is better."
        return "No area under the frontier: its points span no range of x."
    area = study.area
    share = f"{area.unreached_share:.1%}"
    missing = "" if share == "0.0%" else f"; no point reaches {share} of it, which counts as 0"
    return (
        f"Area under the frontier, in steps, for x from {rounded(area.start)} to"
        f" {rounded(area.stop)}: {rounded(area.area)}, a mean y of {rounded(area.mean)}{missing}."
    )
