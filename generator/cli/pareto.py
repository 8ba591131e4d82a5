"""pdrecipe pareto: curves, the frontier over all points, and what it reaches."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click

from generator import __version__
from generator.cli.number import FiniteRange
from generator.cli.output import echo, paragraph, table, talk, warn
from generator.cli.result_files import read_results
from generator.files import keep_inputs, write_bytes_atomically, write_text_atomically
from generator.pareto.axes import AXIS_NAMES, CONCURRENCY, axis
from generator.pareto.best_at import INTERACTIVITIES
from generator.pareto.document import pareto_csv, pareto_document
from generator.pareto.selection import PHASES
from generator.pareto.study import ParetoQuestion, ParetoStudy, study
from generator.pareto.tables import area_sentence, best_at_table, frontier_table, heading

_PAGE = ".html"
_KINDS = ("curves", "frontier", "phase")
_USER_AXIS = "tokens_per_s_per_user"


def _range(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """Two numbers with a colon between, ascending."""
    if value is None:
        return None
    try:
        start, stop = (float(part) for part in value.split(":"))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a range such as 20:150") from None
    if not (start < stop and math.isfinite(stop - start)):
        raise click.BadParameter(f"{value!r} is not ascending")
    return start, stop


def _numbers(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """Numbers with commas between."""
    if value is None:
        return None
    try:
        numbers = tuple(float(part) for part in value.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 10,50")
    return numbers


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--x",
    "x_name",
    help=f"The x axis.  [default: {_USER_AXIS}; {CONCURRENCY} with --figure phase]",
)
@click.option("--y", "y_name", default="total_tokens_per_s_per_gpu", show_default=True)
@click.option(
    "--by",
    default="configuration",
    show_default=True,
    help="What makes a curve: configuration, recipe, phase, origin, or a factor of the sweep.",
)
@click.option("--phase", type=click.Choice(PHASES), help="Only points of this phase.")
@click.option("--min-accuracy", type=FiniteRange(0, 1), help="Least accuracy, as a share.")
@click.option("--gpu-hour-price", type=FiniteRange(0, min_open=True), help="For cost axes.")
@click.option("--x-range", callback=_range, metavar="A:B", help="Range of x for the area.")
@click.option(
    "--at",
    "targets",
    callback=_numbers,
    metavar="X,X,...",
    help="Print the best point at or above these x.  [default: 10,20,50,100,150 of tokens/s/user]",
)
@click.option("--mix", "may_mix", is_flag=True, help="Also where the contracts of runs differ.")
@click.option(
    "--figure",
    type=click.Choice(_KINDS),
    help="phase is throughput against concurrency.  [default: frontier]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write a file: .svg .png .html .csv .json."
)
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
def pareto(
    *,
    results: tuple[Path, ...],
    x_name: str | None,
    y_name: str,
    by: str,
    phase: str | None,
    min_accuracy: float | None,
    gpu_hour_price: float | None,
    x_range: tuple[float, float] | None,
    targets: tuple[float, ...] | None,
    may_mix: bool,
    figure: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the frontier over the points of RESULTS, files that collect wrote, or draw it.

    Invalid points never stand on it. A point that was run several times is the mean of its runs;
    nothing is interpolated. Over concurrency, which is set, the best of each is kept. Runs whose
    contracts differ are refused (exit code 3), unless --mix.

    Axes: {axes}; latencies at any percentile, as ttft_p90_ms.
    """
    suffixes = (*_WRITERS, _PAGE)
    if out is not None and out.suffix not in suffixes:
        raise click.UsageError(f"--out takes a name that ends in {', '.join(suffixes)}")
    if out is not None:
        keep_inputs(out, *results)
    if figure is not None and (out is None or out.suffix not in _FIGURES):
        raise click.UsageError("--figure goes with --out of a figure: .svg or .png")
    if figure == "phase" and x_name not in (None, CONCURRENCY):
        raise click.UsageError(f"--figure phase is against {CONCURRENCY}: leave --x out")
    x_name = x_name or (CONCURRENCY if figure == "phase" else _USER_AXIS)
    question = ParetoQuestion(
        x=axis(x_name, gpu_hour_price),
        y=axis(y_name, gpu_hour_price),
        by=by,
        phase=phase,
        min_accuracy=min_accuracy,
        x_range=x_range,
        targets=targets or (INTERACTIVITIES if x_name == _USER_AXIS else ()),
        may_mix=may_mix,
    )
    answer = study(read_results(*results), question)
    if out is not None:
        if out.suffix == _PAGE:
            _write_page(out, answer, results)
        else:
            _WRITERS[out.suffix](out, answer, figure or "frontier")
        talk(f"wrote {out}")
    if as_json:
        echo(json.dumps(pareto_document(answer), indent=2))
    elif out is None:
        _show(answer)


pareto.help = (pareto.help or "").replace("{axes}", ", ".join(AXIS_NAMES))


def _show(answer: ParetoStudy) -> None:
    """The frontier, what it reaches, and what was left out."""
    for line in heading(answer):
        paragraph(line)
    echo(f"\n{table(*frontier_table(answer))}\n")
    if answer.best_at:
        echo(f"{table(*best_at_table(answer))}\n")
    paragraph(area_sentence(answer))
    for each in answer.left_out:
        paragraph(f"left out: {len(each.points)} {each.reason}")


def _write_page(out: Path, answer: ParetoStudy, results: tuple[Path, ...]) -> None:
    from generator.report.frontier_page import frontier_page
    from generator.report.inputs import source_links, unlinked_sentence
    from generator.report.page import render_page

    names = ", ".join(map(str, results))
    # Where there are several folders, theirs is the page's: one folder cannot name two.
    folders = {each.resolve().parent for each in results}
    folder = folders.pop() if len(folders) == 1 else out.parent
    points = [run for each in answer.points for run in each.runs]
    links = source_links(points, folder, out.parent)
    write_text_atomically(out, render_page(frontier_page(answer, names, links, __version__)))
    if unlinked := unlinked_sentence(points, links, names):
        warn(unlinked)


def _write_svg(out: Path, answer: ParetoStudy, figure: str) -> None:
    from generator.figures.drawing import draw_svg
    from generator.pareto.charts import FigureKind, chart

    write_text_atomically(out, draw_svg(chart(answer, FigureKind(figure))))


def _write_png(out: Path, answer: ParetoStudy, figure: str) -> None:
    from generator.figures.drawing import draw_png
    from generator.pareto.charts import FigureKind, chart

    write_bytes_atomically(out, draw_png(chart(answer, FigureKind(figure))))


def _write_csv(out: Path, answer: ParetoStudy, _: str) -> None:
    write_text_atomically(out, pareto_csv(answer))


def _write_json(out: Path, answer: ParetoStudy, _: str) -> None:
    write_text_atomically(out, json.dumps(pareto_document(answer), indent=2) + "\n")


_FIGURES = {".svg": _write_svg, ".png": _write_png}
_WRITERS = {**_FIGURES, ".csv": _write_csv, ".json": _write_json}
