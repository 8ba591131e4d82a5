"""What stands behind the figures: accuracy, invalid points, the contract, recipes and files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from generator.pareto.study import ParetoStudy
from generator.report.content import (
    Block,
    Cell,
    Commands,
    Paragraph,
    Section,
    TableBlock,
    table_block,
)
from generator.report.inputs import ReportInputs
from generator.report.runs import RunFile, RunList
from generator.results.contract import common_contract, contract_differences, differences_of
from generator.results.point import MeasuredPoint, Origin
from generator.wording import plural

_MOST_ROWS = 60
_MOST_RUNS = 100
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
        text = f"None of the {len(inputs.points):,} points is invalid."
        return Section(id="invalid", title="Invalid points", blocks=(Paragraph(text=text),))
    counts = Counter(each.code for point in invalid for each in point.invalid)
    counted = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
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
    return Section(
        id="invalid",
        title="Invalid points",
        blocks=(
            Paragraph(
                text=(
                    f"{len(invalid):,} of {len(inputs.points):,} points stand on no frontier:"
                    f" {counted}."
                )
            ),
            table_block(
                "Invalid points and why",
                (["configuration", "concurrency", "reason", "source"], rows),
                most_rows=_MOST_ROWS,
                rest_is_in=f"all are in {inputs.results_file}",
            ),
        ),
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
    if changed := _changed_recipes(inputs):
        first, *rest = sorted(changed)
        more = f" and {len(rest):,} more" if rest else ""
        yield (
            f"{plural(changed.total(), 'point')} of recipes that changed since, whose files have"
            f" other digests: {first}{more}."
        )


def _changed_recipes(inputs: ReportInputs) -> Counter[str]:
    """Points by the recipe whose name a file has, and whose digest none."""
    names = {each.name for each in inputs.recipes}
    digests = {each.digest for each in inputs.recipes}
    subjects = (point.subject for point in inputs.points)
    return Counter(
        each.recipe for each in subjects if each.recipe in names and each.digest not in digests
    )


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


def recipes_section(inputs: ReportInputs) -> Section:
    """Every recipe of the spec and of the results with its digest, by link where it is a file.

    Only those without a file are ever cut: their digests are in the results.
    """
    return Section(
        id="recipes",
        title="Recipes",
        blocks=(
            Paragraph(
                text=(
                    "A digest is of a recipe's meaning without its concurrencies. Results whose"
                    " digest no file has are of a recipe that was changed since, or of another"
                    " spec."
                )
            ),
            _recipes_table(inputs),
        ),
    )


def _recipes_table(inputs: ReportInputs) -> TableBlock:
    counts = Counter(point.subject.digest for point in inputs.points)
    names = {point.subject.digest: point.subject.recipe for point in inputs.points}
    on_disk = {each.digest for each in inputs.recipes}
    rows: list[list[str | Cell]] = [
        [
            Cell(text=each.name, href=each.link),
            each.layout,
            each.digest,
            _count(counts, each.digest),
        ]
        for each in inputs.recipes
    ]
    rows.sort(key=lambda row: row[-1] == "0")  # stable: those with results first
    most_rows = len(rows) + _MOST_ROWS
    rows += [
        [name, "no such file", digest, _count(counts, digest)]
        for digest, name in sorted(names.items(), key=lambda item: (item[1], item[0]))
        if digest not in on_disk
    ]
    return table_block(
        "Recipes of the spec and of the results",
        (["recipe", "layout", "digest", "points"], rows),
        most_rows=most_rows,
        rest_is_in=f"they have no file, and their digests are in {inputs.results_file}",
    )


def _count(counts: Counter[str], digest: str) -> str:
    return f"{counts[digest]:,}"


def reproduction_section(inputs: ReportInputs) -> Section:
    """The commands from the spec to this page."""
    spec, results = shlex.quote(inputs.spec_file), shlex.quote(inputs.results_file)
    page = shlex.quote(inputs.page_file)
    profiles = "".join(f" --profile {shlex.quote(each)}" for each in inputs.profile_files)
    mix = " --mix" if inputs.may_mix else ""
    return Section(
        id="reproduce",
        title="How to reproduce this",
        blocks=(
            Paragraph(text=f"With pdrecipe {inputs.version}, from the spec to this page:"),
            Commands(
                lines=(
                    f"pdrecipe generate {spec}",
                    f"pdrecipe capacity {spec}{profiles}",
                    "pdrecipe submit RECIPES... --site SITE   # or srtctl apply -f, one by one",
                    f"pdrecipe collect RUNS...{_collected_with(inputs)} --out {results}",
                    f"pdrecipe pareto {results}{mix} --out frontier.svg",
                    f"pdrecipe report {results} {spec}{profiles}{mix} --out {page}",
                )
            ),
        ),
    )


def _collected_with(inputs: ReportInputs) -> str:
    """The options without which collecting again would give other points, as the points tell."""
    origins = {point.origin for point in inputs.points}
    thresholds = {point.accuracy.threshold for point in inputs.points if point.accuracy}
    limits = {(each.ttft_ms, each.max_gap_ms) for p in inputs.points if (each := p.goodput)}
    options = []
    if len(origins) == 1 and origins != {Origin.MEASURED}:
        options.append(f" --origin {origins.pop()}")
    if len(thresholds) == 1 and None not in thresholds:
        options.append(f" --min-accuracy {thresholds.pop():g}")
    if len(limits) == 1:
        ttft_ms, max_gap_ms = limits.pop()
        options.append(f" --ttft-ms {ttft_ms:g} --max-gap-ms {max_gap_ms:g}")
    return "".join(options)


def files_section(inputs: ReportInputs, runs: RunList, answer: ParetoStudy | None) -> Section:
    """Every file that a figure of this page is from.

    Drawings show points that no table has room for: their runs come last, and are counted where
    there are too many.
    """
    for point in inputs.points:
        if point in runs or len(runs) < _MOST_RUNS:
            runs.name(point)
    missing = len({(point.folder, point.run) for point in inputs.points}) - len(runs)
    fewer = (
        f"{missing:,} runs whose points no table above shows are left out; {inputs.results_file}"
        " names the files of each."
    )
    return Section(
        id="files",
        title="Where every figure is from",
        blocks=(
            Paragraph(
                text=(
                    f"Results: {inputs.results_file}. Spec: {inputs.spec_file}. Model:"
                    f" {inputs.model_file}. Measured memory terms: {_profiles(inputs)}"
                    f"those that come with pdrecipe {inputs.version}."
                )
            ),
            runs_block(runs),
            *([Paragraph(text=fewer, is_note=True)] if missing else []),
            *unlinked_note(runs),
            *(
                [
                    Paragraph(
                        text="Figures leave out invalid points, and say how many.", is_note=True
                    )
                ]
                if answer is not None and answer.left_out
                else []
            ),
        ),
    )


def _profiles(inputs: ReportInputs) -> str:
    """The files of measured start-ups that were looked in, up to the package's own."""
    files = (*inputs.profile_files, *inputs.estimate.spec.profiles)
    return f"{', '.join(map(str, files))}, else " if files else ""


def unlinked_note(runs: RunList) -> Iterator[Paragraph]:
    """A word on names without a link, where there are any."""
    missing = sum(not file.link for _, _, files in runs.rows() for file in files)
    if missing:
        files = plural(missing, "name")
        text = f"{files} without a link: no such file was found when this page was written."
        yield Paragraph(text=text, is_note=True)


def runs_block(runs: RunList) -> TableBlock:
    """The runs that the page names so far, with the files of each."""
    return table_block("Runs", (["run", "folder", "file", "of"], list(_run_rows(runs))))


def _run_rows(runs: RunList) -> Iterator[list[str | Cell]]:
    """A row for each file of a run; the run is named in its first."""
    for number, run, files in runs.rows():
        name, folder = Cell(text=f"run {number}", id=f"run-{number}"), run
        if not files:
            yield [name, folder, "", ""]
        for each in files:
            yield [name, folder, Cell(text=each.name, href=each.link), _what_is_in(each)]
            name, folder = Cell(text=""), ""


def _what_is_in(file: RunFile) -> str:
    """The groups of figures in a file, and of which loads where it is not of all."""
    at = f" at {', '.join(map(str, file.concurrencies))}" if file.concurrencies else ""
    return f"{', '.join(file.groups)}{at}"
