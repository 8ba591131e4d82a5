"""What the figures are worth: accuracy, invalid points, and what was held fixed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from generator.report.content import (
    Block,
    Cell,
    Paragraph,
    Section,
    TableBlock,
    table_block,
)
from generator.report.inputs import ReportInputs
from generator.report.runs import RunList
from generator.results.contract import common_contract, contract_differences, differences_of
from generator.results.point import MeasuredPoint
from generator.results.wording import changed_recipes
from generator.wording import plural

_MOST_ROWS = 60
_MOST_VALUES = 8


def accuracy_section(inputs: ReportInputs, runs: RunList) -> Section:
    """The accuracy of each configuration that has one."""
    scored: dict[tuple[str, str, float], MeasuredPoint] = {}
    for point in inputs.points:
        if point.accuracy is not None:
            key = (point.subject.configuration, point.accuracy.benchmark, point.accuracy.score)
            scored.setdefault(key, point)
    blocks: tuple[Block, ...] = (
        Paragraph(
            text="No accuracy run is among the results: no figure here is known to be right."
        ),
    )
    if scored:
        rows: list[list[str | Cell]] = [
            [configuration, benchmark, f"{score:.1%}", _threshold(point), runs.cell_of(point)]
            for (configuration, benchmark, score), point in sorted(scored.items(), key=_by_name)
        ]
        headers = ["configuration", "benchmark", "score", "threshold", "source"]
        blocks = (table_block("Accuracy of each configuration", (headers, rows)),)
    return Section(id="accuracy", title="Accuracy", blocks=blocks)


def _by_name(item: tuple[tuple[str, str, float], MeasuredPoint]) -> tuple[str, str, float]:
    return item[0]


def _threshold(point: MeasuredPoint) -> str:
    threshold = point.accuracy.threshold if point.accuracy else None
    return "-" if threshold is None else f"{threshold:.1%}"


def invalid_section(inputs: ReportInputs, runs: RunList) -> Section:
    """Points that stand on no frontier, with their reasons."""
    invalid = [point for point in inputs.points if not point.is_valid]
    if not invalid:
        text = f"{plural(len(inputs.points), 'point')}, none of them invalid."
        return Section(id="invalid", title="Invalid points", blocks=(Paragraph(text=text),))
    counts = Counter(each.code for point in invalid for each in point.invalid)
    counted = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
    text = f"{len(invalid):,} of {len(inputs.points):,} points stand on no frontier: {counted}."
    table = _invalid_table(invalid, inputs.results_file, runs)
    return Section(id="invalid", title="Invalid points", blocks=(Paragraph(text=text), table))


def _invalid_table(invalid: Sequence[MeasuredPoint], results: str, runs: RunList) -> TableBlock:
    rows: list[list[str | Cell]] = [
        [
            point.subject.configuration,
            str(point.subject.concurrency),
            "; ".join(each.message for each in point.invalid),
            runs.cell_of(point),
        ]
        for point in invalid[:_MOST_ROWS]
    ]
    rows += [["", "", "", ""]] * max(0, len(invalid) - _MOST_ROWS)  # counted, not shown
    return table_block(
        "Invalid points and why",
        (["configuration", "concurrency", "reason", "source"], rows),
        most_rows=_MOST_ROWS,
        rest_is_in=f"all are in {results}",
    )


def other_subjects(inputs: ReportInputs) -> Iterator[str]:
    """What results say they are of, where that is not what the spec and its files say."""
    spec = inputs.estimate.spec
    said = {"model.path": spec.model.get("path"), "gpu.type": spec.cluster.gpu}
    for key, of_spec in said.items():
        counts = Counter(point.contract.get(key, of_spec) for point in inputs.points)
        others = [
            f"{value} ({plural(counts[value], 'point')})" for value in counts if value != of_spec
        ]
        if others:
            yield f"The spec is of {key} {of_spec}, results are of {', '.join(sorted(others))}."
    if changed := _of_changed_recipes(inputs):
        yield f"{changed_recipes(changed)}; their files have other digests."


def _of_changed_recipes(inputs: ReportInputs) -> list[MeasuredPoint]:
    """Points whose recipe's name a file has, and whose digest none."""
    names = {each.name for each in inputs.recipes}
    digests = {each.digest for each in inputs.recipes}
    return [
        point
        for point in inputs.points
        if point.subject.recipe in names and point.subject.digest not in digests
    ]


def contract_section(inputs: ReportInputs) -> Section:
    """What was held fixed for all points, and what varies."""
    valid = [point for point in inputs.points if point.is_valid]
    held = [[key, value] for key, value in common_contract(valid).items()]
    # Phases have workloads of their own, so keys that differ between them are shown by value.
    varied = [*contract_differences(valid), *differences_of([point.factors for point in valid])]
    varied_rows = [[each.key, _values(each.values)] for each in varied]
    return Section(
        id="contract",
        title="What was held fixed, and what varied",
        blocks=(
            table_block(
                "Held fixed for every valid point",
                (["key", "value"], held),
                source=f"From {inputs.results_file}: recipes, locks and start-up logs of the runs.",
            ),
            table_block("Varied", (["key", "values"], varied_rows)),
        ),
    )


def _values(values: tuple[tuple[str, int], ...]) -> str:
    """The values of a key, the commonest first, each with its points."""
    shown = "; ".join(
        f"{value} ({plural(count, 'point')})" for value, count in values[:_MOST_VALUES]
    )
    more = len(values) - _MOST_VALUES
    return f"{shown}; and {more} more" if more > 0 else shown
