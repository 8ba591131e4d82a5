"""Where the page is from: recipes, the commands to make it again, and the files of its runs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from generator.pareto.study import ParetoStudy
from generator.report.content import Cell, Commands, Paragraph, Section, TableBlock, table_block
from generator.report.inputs import ReportInputs
from generator.report.runs import RunFile, RunList
from generator.results.point import Origin
from generator.wording import plural

_MOST_UNKNOWN_RECIPES = 60
_MOST_RUNS = 100


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
    most_rows = len(rows) + _MOST_UNKNOWN_RECIPES
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
    text = (
        f"Results: {inputs.results_file}. Spec: {inputs.spec_file}. Model: {inputs.model_file}."
        f" Measured memory terms: {_profiles(inputs)}those that come with pdrecipe"
        f" {inputs.version}."
    )
    notes = [Paragraph(text=each, is_note=True) for each in _file_notes(inputs, runs, answer)]
    return Section(
        id="files",
        title="Where every figure is from",
        blocks=(Paragraph(text=text), runs_block(runs), *notes),
    )


def _file_notes(inputs: ReportInputs, runs: RunList, answer: ParetoStudy | None) -> Iterator[str]:
    missing = len({(point.folder, point.run) for point in inputs.points}) - len(runs)
    if missing:
        yield (
            f"Left out: {plural(missing, 'run')} whose points no table above shows;"
            f" {inputs.results_file} names the files of each."
        )
    yield from unlinked_notes(runs)
    if answer is not None and answer.left_out:
        yield "Figures leave out invalid points, and say how many."


def unlinked_notes(runs: RunList) -> Iterator[str]:
    """A word on names without a link, where there are any."""
    missing = sum(not file.link for _, _, files in runs.rows() for file in files)
    if missing:
        names = plural(missing, "name")
        yield f"{names} without a link: no such file was found when this page was written."


def _profiles(inputs: ReportInputs) -> str:
    """The files of measured start-ups that were looked in, up to the package's own."""
    files = (*inputs.profile_files, *inputs.estimate.spec.profiles)
    return f"{', '.join(map(str, files))}, else " if files else ""


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
