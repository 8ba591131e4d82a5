"""A study as a versioned JSON document and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from generator.pareto.area import FrontierArea
from generator.pareto.axes import Axis
from generator.pareto.curves import grouping
from generator.pareto.selection import AxisPoint
from generator.pareto.study import ParetoStudy
from generator.results.contract import ContractDifference
from generator.results.repeats import Repeated

VERSION = 1
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def pareto_document(study: ParetoStudy) -> dict[str, Any]:
    """The JSON document of a study, as schemas/pareto.schema.json has it."""
    question = study.question
    label_of = grouping(study.points, question.by)
    return {
        "version": VERSION,
        "x": _axis(question.x, is_set=question.x.is_setting),
        "y": _axis(question.y),
        "by": question.by,
        "min_accuracy": question.min_accuracy,
        "origins": [str(origin) for origin in study.origins],
        "contract": study.contract,
        "mixed": [difference_document(each) for each in study.mixed],
        "points": [
            _point(each, label_of(each), on_frontier=is_kept)
            for each, is_kept in _on_frontier(study)
        ],
        "frontier": [each.subject.point_id for each in study.frontier],
        "area": None if study.area is None else _area(study.area),
        "best_at": [
            {"x": each.target, "point": each.best.subject.point_id if each.best else None}
            for each in study.best_at
        ],
        "left_out": [
            {
                "code": each.code,
                "reason": each.reason,
                "points": [
                    {"id": point.subject.point_id, "run": point.run} for point in each.points
                ],
            }
            for each in study.left_out
        ],
    }


def _axis(axis: Axis, *, is_set: bool = False) -> dict[str, Any]:
    return {
        "name": axis.name,
        "title": axis.title,
        "unit": axis.unit,
        "better": "set" if is_set else "more" if axis.more_is_better else "less",
    }


def _area(area: FrontierArea) -> dict[str, float]:
    return {
        "from": area.start,
        "to": area.stop,
        "area": area.area,
        "mean": area.mean,
        "unreached_share": area.unreached_share,
    }


def difference_document(difference: ContractDifference) -> dict[str, Any]:
    """A key that points disagree on, with how many points have each value."""
    return {
        "key": difference.key,
        "values": [{"value": value, "points": count} for value, count in difference.values],
    }


def _on_frontier(study: ParetoStudy) -> Iterator[tuple[AxisPoint, bool]]:
    """Every point, and whether it stands on the frontier."""
    kept = {id(each) for each in study.frontier}  # points take long to compare
    return ((each, id(each) in kept) for each in study.points)


def _point(each: AxisPoint, curve: str, *, on_frontier: bool) -> dict[str, Any]:
    """A point of a study: its figures, what ran, and the files they are from."""
    subject, point = each.subject, each.point
    return {
        "id": subject.point_id,
        "curve": curve,
        "on_frontier": on_frontier,
        "x": repeated_document(each.x),
        "y": repeated_document(each.y),
        "concurrency": subject.concurrency,
        "configuration": subject.configuration,
        "recipe": subject.recipe,
        "digest": subject.digest,
        "phase": subject.phase,
        "origin": str(point.origin),
        "gpus": point.gpus.total,
        "runs": [{"run": run.run, "sources": dict(run.sources)} for run in each.runs],
    }


def repeated_document(figure: Repeated) -> dict[str, float | int | None]:
    """A figure with how far its runs are apart."""
    return {
        "mean": figure.mean,
        "runs": figure.count,
        "half_range": figure.half_range,
        "std": figure.std,
    }


def pareto_csv(study: ParetoStudy) -> str:
    """One row for each point, with the names of the axes as headers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    question = study.question
    writer.writerow(
        [
            *("origin", "curve", "configuration", "recipe", "digest", "phase", "concurrency"),
            *("gpus", question.x.name, question.y.name, "on_frontier", "runs", "run"),
        ]
    )
    writer.writerows(_csv_rows(study))
    return out.getvalue()


def _csv_rows(study: ParetoStudy) -> Iterator[list[Any]]:
    label_of = grouping(study.points, study.question.by)
    for each, is_kept in _on_frontier(study):
        subject = each.subject
        yield [
            *map(_cell, (each.point.origin, label_of(each), subject.configuration, subject.recipe)),
            *map(_cell, (subject.digest, subject.phase)),
            *(subject.concurrency, each.point.gpus.total),
            *(each.x.mean, each.y.mean, "yes" if is_kept else "no"),
            *(len(each.runs), _cell(each.point.run)),
        ]


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula: names come from other people's recipes."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
