"""A collection in a table and a document: what there is, what is invalid, what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.collection.collect import Collection
from generator.results.point import MeasuredPoint, Origin
from generator.wording import plural

_MOST_LISTED = 20
Row = tuple[str, ...]


def points_table(collection: Collection) -> tuple[Row, list[Row]]:
    """Headers and rows: the points by configuration, phase and GPUs."""
    groups: dict[tuple[str, str, int], list[MeasuredPoint]] = {}
    for point in collection.points:
        subject = point.subject
        key = (subject.configuration, subject.phase, point.gpus.total)
        groups.setdefault(key, []).append(point)
    headers = ("configuration", "phase", "GPUs", "concurrency", "valid", "invalid")
    rows: list[Row] = []
    for (configuration, phase, gpus), points in sorted(groups.items()):
        valid = sum(point.is_valid for point in points)
        loads = sorted({point.subject.concurrency for point in points})
        row = (configuration, phase, f"{gpus}", _loads(loads), f"{valid}", f"{len(points) - valid}")
        rows.append(row)
    return headers, rows


def _loads(loads: list[int]) -> str:
    if len(loads) <= 4:
        return " ".join(map(str, loads))
    return f"{loads[0]} to {loads[-1]} ({len(loads)} levels)"


def invalid_lines(collection: Collection) -> Iterator[str]:
    """The invalid points with their reasons."""
    lines = [
        f"invalid: {point.subject.recipe} at {point.subject.concurrency}, run {point.run}:"
        f" {each.code}: {each.message}"
        for point in collection.points
        for each in point.invalid
    ]
    yield from _first(lines)


def missing_lines(collection: Collection) -> Iterator[str]:
    """The planned points without a record."""
    lines = [
        f"not collected: {each.recipe}{_load(each.concurrency)}: {each.state}: {each.why}"
        for each in collection.missing
    ]
    yield from _first(lines)


def _load(concurrency: int | None) -> str:
    return "" if concurrency is None else f" at {concurrency}"


def _first(lines: list[str]) -> Iterator[str]:
    yield from lines[:_MOST_LISTED]
    if len(lines) > _MOST_LISTED:
        kind = lines[0].partition(":")[0]
        yield f"... and {len(lines) - _MOST_LISTED} more {kind}; --json lists them"


def summary(collection: Collection) -> str:
    """One sentence: points, runs and what is in the way."""
    points = collection.points
    invalid = sum(not point.is_valid for point in points)
    unmeasured = [str(point.origin) for point in points if point.origin is not Origin.MEASURED]
    share = "all" if len(unmeasured) == len(points) else "some"
    origins = sorted(set(unmeasured))
    parts = [
        f"{plural(len(points), 'point')} from {plural(collection.runs, 'run')}",
        f"{invalid} invalid",
        *([f"{len(collection.missing)} not collected"] if collection.missing else []),
        *([f"{share} {' and '.join(origins)}, not measured"] if origins else []),
    ]
    return ", ".join(parts)


def collection_document(collection: Collection, results: str) -> dict[str, Any]:
    """The document that ``schemas/collection.schema.json`` describes."""
    return {
        "version": 1,
        "results": results,
        "runs": collection.runs,
        "points": len(collection.points),
        "invalid": [
            {
                "id": point.subject.point_id,
                "recipe": point.subject.recipe,
                "concurrency": point.subject.concurrency,
                "run": point.run,
                "code": each.code,
                "message": each.message,
            }
            for point in collection.points
            for each in point.invalid
        ],
        "missing": [
            {
                "id": each.point,
                "recipe": each.recipe,
                "concurrency": each.concurrency,
                "state": each.state,
                "why": each.why,
            }
            for each in collection.missing
        ],
        "problems": [
            {"file": problem.source, "message": problem.statement}
            for problem in collection.problems
        ],
    }
