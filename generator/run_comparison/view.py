"""A comparison of runs as a versioned JSON document, and as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from generator.pareto.document import difference_document, repeated_document
from generator.results.point import MeasuredPoint
from generator.results.repeats import Repeated
from generator.results.wording import half_range_share, origins_label, percent_change, rounded
from generator.run_comparison.comparison import Change, ComparedPair, RunComparison
from generator.run_comparison.pairs import sides

VERSION = 1
_MOST_NAMED = 5
Table = tuple[list[str], list[list[str]]]


def comparison_document(comparison: RunComparison) -> dict[str, Any]:
    """The JSON document, as schemas/compare.schema.json has it."""
    unpaired = comparison.unpaired
    return {
        "version": VERSION,
        "origins": [str(origin) for origin in comparison.origins],
        "varied": [difference_document(each) for each in comparison.varied],
        "consequences": [difference_document(each) for each in comparison.consequences],
        "allowed": [difference_document(each) for each in comparison.allowed],
        "pairs": [_pair(each) for each in comparison.compared],
        "only_a": _ids(unpaired.only_before),
        "only_b": _ids(unpaired.only_after),
        "invalid_a": unpaired.invalid_before,
        "invalid_b": unpaired.invalid_after,
    }


def _pair(compared: ComparedPair) -> dict[str, Any]:
    pair = compared.pair
    return {
        "phase": pair.phase,
        "configuration_a": pair.before[0].subject.configuration,
        "configuration_b": pair.after[0].subject.configuration,
        "concurrency": pair.concurrency,
        "runs_a": [run.run for run in pair.before],
        "runs_b": [run.run for run in pair.after],
        "figures": [
            {
                "name": change.axis.name,
                "a": None if change.before is None else repeated_document(change.before),
                "b": None if change.after is None else repeated_document(change.after),
                "change": change.ratio,
                "verdict": None if change.verdict is None else str(change.verdict),
            }
            for change in compared.changes
        ],
    }


def _ids(points: Iterable[MeasuredPoint]) -> list[str]:
    return [point.subject.point_id for point in points]


def comparison_heading(comparison: RunComparison) -> Iterator[str]:
    """What kind of figures these are and what varies between the sides."""
    yield f"Figures: {origins_label(comparison.origins)}."
    if comparison.varied:
        yield f"Varied: {sides(comparison.varied[0])}. All else that is stated was held fixed."
    else:
        yield "Nothing that is stated differs: B repeats A."
    for each in comparison.consequences:
        yield f"Follows from it: {sides(each)}."
    for each in comparison.allowed:
        yield f"Allowed to differ: {sides(each)}."
    yield (
        "A figure is the mean of its runs, of A and of B, +- half their range. A change counts"
        " where the ranges of both sides do not overlap; a side that ran once is taken to vary as"
        " the other."
    )


def comparison_tables(comparison: RunComparison) -> Iterator[tuple[str, Table]]:
    """One table for each configuration, a row for each concurrency and figure."""
    grouped: dict[tuple[str, str], list[ComparedPair]] = {}
    for each in comparison.compared:
        pair = each.pair
        names = pair.before[0].subject.configuration, pair.after[0].subject.configuration
        grouped.setdefault((pair.phase, " against ".join(dict.fromkeys(names))), []).append(each)
    headers = ["conc.", "runs", "figure", "A", "B", "change", "verdict"]
    for (phase, title), compared in grouped.items():
        rows = [row for each in compared for row in _rows(each)]
        yield f"{phase}: {title}", (headers, rows)


def _rows(compared: ComparedPair) -> Iterator[list[str]]:
    pair = compared.pair
    concurrency, runs = str(pair.concurrency), f"{len(pair.before)}, {len(pair.after)}"
    for change in compared.changes:
        if change.before is None and change.after is None:
            continue
        ratio = change.ratio
        yield [
            concurrency,
            runs,
            change.axis.name,
            _cell(change.before),
            _cell(change.after),
            "-" if ratio is None else percent_change(ratio),
            change.verdict or "-",
        ]
        concurrency = runs = ""


def _cell(figure: Repeated | None) -> str:
    if figure is None:
        return "-"
    return f"{rounded(figure.mean)}{half_range_share(figure)}"


def comparison_notes(comparison: RunComparison) -> Iterator[str]:
    """What is not in the tables, and why."""
    for axis_changes in _by_axis(comparison):
        lacking = sum(each.before is None or each.after is None for each in axis_changes)
        if lacking:
            axis = axis_changes[0].axis
            yield f"{axis.name}: {lacking} of {len(axis_changes)} points lack it: {axis.lacks}."
    unpaired = comparison.unpaired
    both = (
        ("A", unpaired.only_before, unpaired.invalid_before),
        ("B", unpaired.only_after, unpaired.invalid_after),
    )
    for side, only, invalid in both:
        if only:
            names = ", ".join(
                f"{point.subject.configuration} at {point.subject.concurrency}"
                for point in only[:_MOST_NAMED]
            )
            more = f" and {len(only) - _MOST_NAMED} more" if len(only) > _MOST_NAMED else ""
            yield f"Only in {side}: {names}{more}."
        if invalid:
            yield f"Invalid in {side}, not compared: {invalid}."


def _by_axis(comparison: RunComparison) -> Iterator[list[Change]]:
    for index in range(len(comparison.axes)):
        yield [each.changes[index] for each in comparison.compared]
