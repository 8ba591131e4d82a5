"""pdrecipe collect: what runs left behind into one file of results."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import click

from generator.cli.number import FiniteRange, limit_ns
from generator.cli.output import echo, table, talk, warn
from generator.cli.progress import progress
from generator.collection.collect import Collection, CollectionOptions
from generator.collection.collect import collect as collect_runs
from generator.collection.collection_view import (
    collection_document,
    invalid_lines,
    missing_lines,
    points_table,
    summary,
)
from generator.errors import InvalidInput, Problem, one_line
from generator.files import keep_others
from generator.goodput.acceptance import Limits
from generator.results.point import Origin
from generator.results.point_file import A_RESULT, write_points
from generator.spec.reader import load_spec

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("folders", metavar="DIR...", type=_FOLDER, nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="results.jsonl",
    show_default=True,
    help="File of results, written anew.",
)
@click.option(
    "--spec", type=click.Path(path_type=Path), help="Spec with the accuracy that points must reach."
)
@click.option(
    "--min-accuracy", type=FiniteRange(0, 1), help="That accuracy, instead of the spec's."
)
@click.option(
    "--origin",
    type=click.Choice([str(each) for each in Origin]),
    default=str(Origin.MEASURED),
    show_default=True,
    help="What runs are that do not say so themselves; those of mockers are rehearsals.",
)
@click.option(
    "--ttft-ms", "ttft_ns", callback=limit_ns, help="Count goodput: limit of the first token."
)
@click.option(
    "--max-gap-ms", "max_gap_ns", callback=limit_ns, help="Count goodput: limit of every gap."
)
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
def collect(
    *,
    folders: tuple[Path, ...],
    out: Path,
    spec: Path | None,
    min_accuracy: float | None,
    origin: str,
    ttft_ns: int | None,
    max_gap_ns: int | None,
    as_json: bool,
) -> None:
    """Collect the results of srt-slurm runs and of sweeps below each DIR.

    Every recipe and concurrency becomes a line of the file. A point that its own figures speak
    against is kept and marked invalid. Files that cannot be used are named on stderr, one line
    each, and spoil nothing else.

    With --ttft-ms and --max-gap-ms a point whose client listed its requests gets its goodput, as
    pdrecipe goodput counts it, per second of the measured interval: an axis of pdrecipe pareto.

    Exit codes: 0 there are points, though files may have been left out; 3 there are none.
    """
    keep_others(out, A_RESULT, "a file of results")
    threshold = min_accuracy
    if threshold is None and spec is not None:
        threshold = load_spec(spec).accuracy_threshold
        if threshold is None:
            hint = "add accuracy.threshold to it, or give --min-accuracy"
            raise InvalidInput(
                Problem(message="has no accuracy threshold", hint=hint, source=str(spec))
            )
    options = CollectionOptions(
        origin=Origin(origin), threshold=threshold, limits=_limits(ttft_ns, max_gap_ns)
    )
    collection = _collected(folders, options)
    if not collection.points:
        message = "no point was collected"
        hint = "each run folder needs its config.yaml and the reports of its benchmark"
        raise InvalidInput([*collection.problems, Problem(message=message, hint=hint)])
    folder = _folder_from(collection.base, out)
    write_points(out, (replace(point, folder=folder) for point in collection.points))
    if as_json:
        echo(json.dumps(collection_document(collection, str(out)), indent=2))
    else:
        _show(collection)
    for problem in collection.problems:
        warn(problem)
    talk(f"{summary(collection)}: {out}")


def _folder_from(base: Path, out: Path) -> str:
    """Where the names of files begin, from the results: both may move together."""
    return Path(os.path.relpath(base, out.resolve().parent)).as_posix()


def _limits(ttft_ns: int | None, max_gap_ns: int | None) -> Limits | None:
    if ttft_ns is None and max_gap_ns is None:
        return None
    if ttft_ns is None or max_gap_ns is None:
        raise click.UsageError("goodput takes both limits: --ttft-ms and --max-gap-ms")
    return Limits(ttft_ns=ttft_ns, max_gap_ns=max_gap_ns)


def _collected(folders: tuple[Path, ...], options: CollectionOptions) -> Collection:
    """The collection, with a line on stderr that moves while runs and large files are read."""
    here = ""
    with progress("collecting:") as tick:

        def on_run(name: str) -> None:
            nonlocal here
            here = name
            tick(name)

        told = replace(options, on_run=on_run, on_chunk=lambda: tick(f"{here} (large)"))
        return collect_runs(folders, told)


def _show(collection: Collection) -> None:
    echo(table(*points_table(collection)))
    for line in (*invalid_lines(collection), *missing_lines(collection)):
        echo(one_line(line))
