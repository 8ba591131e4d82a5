"""pdrecipe compare: two sets of runs that differ in one thing, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.cli.number import FiniteRange
from generator.cli.output import echo, paragraph, table
from generator.cli.result_files import read_results
from generator.pareto.axes import axis
from generator.run_comparison.comparison import compare_runs
from generator.run_comparison.view import (
    comparison_document,
    comparison_heading,
    comparison_notes,
    comparison_tables,
)

_FIGURES = (
    "total_tokens_per_s_per_gpu",
    "tokens_per_s_per_user",
    "ttft_ms",
    "ttft_p99_ms",
    "end_to_end_ms",
)


def _names(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    if not names:
        raise click.BadParameter(f"{value!r} names no figure")
    return names


@click.command()
@click.argument("before", metavar="A", type=click.Path(path_type=Path))
@click.argument("after", metavar="B", type=click.Path(path_type=Path))
@click.option("--allow", multiple=True, metavar="KEY", help="May differ too; also decode.*")
@click.option(
    "--figures",
    callback=_names,
    default=",".join(_FIGURES),
    show_default=True,
    metavar="NAME,...",
    help="Figures to compare: the axes of pdrecipe pareto.",
)
@click.option("--gpu-hour-price", type=FiniteRange(0, min_open=True), help="For cost figures.")
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
def compare(
    *,
    before: Path,
    after: Path,
    allow: tuple[str, ...],
    figures: tuple[str, ...],
    gpu_hour_price: float | None,
    as_json: bool,
) -> None:
    """Print the points of results A beside those of B, and whether a change is one.

    Points pair by configuration and concurrency, or by concurrency alone where each file has one
    configuration. The runs may differ in one factor and in what follows from it, as the capture
    size from max-num-seqs. Where their contracts or factors differ in more, the differences are
    named and the exit code is 3, unless --allow lets them pass. A percentile is shown only where
    the samples support it.
    """
    axes = tuple(axis(name, gpu_hour_price) for name in figures)
    answer = compare_runs(read_results(before), read_results(after), axes, allow)
    if as_json:
        echo(json.dumps(comparison_document(answer), indent=2))
        return
    for line in comparison_heading(answer):
        paragraph(line)
    for title, content in comparison_tables(answer):
        echo()
        paragraph(title)
        echo(f"\n{table(*content)}")
    notes = list(comparison_notes(answer))
    if notes:
        echo()
    for line in notes:
        paragraph(line)
