"""pdrecipe report: one page from results and the spec they are of."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from generator import __version__
from generator.cli.measured import profile_option
from generator.cli.output import talk, warn
from generator.cli.progress import progress
from generator.cli.result_files import read_results
from generator.errors import InvalidInput, Problem
from generator.estimation import estimate_spec
from generator.facts import MeasuredProfile
from generator.files import keep_others, write_text_atomically
from generator.report.build import report as report_page
from generator.report.inputs import (
    ReportInputs,
    recipes_below,
    source_links,
    summary_of,
    unlinked_sentence,
)
from generator.report.page import render_page

_PAGE = re.compile(rb"\A<!doctype html>")


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("spec", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Where the page goes.",
)
@click.option("--mix", "may_mix", is_flag=True, help="Also where the contracts of runs differ.")
@profile_option
def report(
    *,
    results: Path,
    spec: Path,
    out: Path,
    may_mix: bool,
    profiles: tuple[MeasuredProfile, ...],
) -> None:
    """Write one page about RESULTS, a file that collect wrote, and the SPEC they are of.

    The page needs no network and no other file: model, memory, capacity, the phases alone, every
    deployment's curve, the frontier, accuracy, invalid points, what was held fixed, recipes, how to
    reproduce it, and for each figure the file it is from.
    """
    keep_others(out, _PAGE, "a page")
    with progress("writing the page") as tick:
        tick("reading results")
        points = read_results(results)
        if not points:
            message = "there are no results in it"
            raise InvalidInput(
                Problem(message=message, hint="run pdrecipe collect", source=str(results))
            )
        tick("evaluating the spec")
        estimate = estimate_spec(spec, profiles)
        found = estimate.spec
        inputs = ReportInputs(
            points=tuple(points),
            estimate=estimate,
            summary=summary_of(estimate),
            recipes=tuple(recipes_below(found.output, out.parent)) if found.output else (),
            results_file=str(results),
            spec_file=str(spec),
            model_file=os.path.normpath(found.model_config),
            page_file=str(out),
            profile_files=tuple(dict.fromkeys(each.file for each in profiles)),
            links=source_links(points, results.resolve().parent, out.parent),
            version=__version__,
            may_mix=may_mix,
        )
        tick("drawing figures")
        text = render_page(report_page(inputs))
    write_text_atomically(out, text)
    if unlinked := unlinked_sentence(points, inputs.links, str(results)):
        warn(unlinked)
    talk(f"wrote {out}")
