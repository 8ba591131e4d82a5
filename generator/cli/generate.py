"""pdrecipe generate: a spec to recipe files, or to what would change in them."""

from __future__ import annotations

import os
from itertools import zip_longest
from pathlib import Path

import click

from generator.cli.measured import profile_option
from generator.cli.output import echo, paragraph, warn
from generator.cli.progress import progress
from generator.errors import AnswerIsNo, Problem
from generator.facts import MeasuredProfile
from generator.generation.drift import FileDrift
from generator.generation.generation import Generation, plan_generation, write_generation
from generator.recipe.recipe import Dialect
from generator.wording import plural

_MOST_LINES = 400


def _folder_given(_: click.Context, __: click.Parameter, value: str | None) -> Path | None:
    """The folder of --out; an empty one, as of an unset variable, is not the current folder."""
    if value == "":
        raise click.BadParameter("is empty; name a folder, or leave it out")
    return None if value is None else Path(value)


@click.command()
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--out", callback=_folder_given, help="Folder for the recipes, not the spec's own.")
@click.option(
    "--dialect",
    type=click.Choice([dialect.value for dialect in Dialect]),
    default=Dialect.V2.value,
    show_default=True,
    help="srt-slurm layout: v1 for releases 1.0.x, v2 for `schema: 2`.",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 10 if files differ from what SPEC gives."
)
@profile_option
def generate(
    *,
    spec: Path,
    out: Path | None,
    dialect: str,
    check: bool,
    profiles: tuple[MeasuredProfile, ...],
) -> None:
    """Render the srt-slurm recipes of SPEC, every number derived and explained.

    Files that already are what the spec gives are left alone. Changed lines are shown.
    """
    with progress("rendering") as tick:
        generation = plan_generation(spec, Dialect(dialect), out, tick, profiles)
    for notice, files in generation.notices.items():
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        warn(f"{files[0]}{more}: {notice}")
    if not check:
        write_generation(generation)
    _show(generation)
    if check and (generation.changed or generation.stale):
        raise AnswerIsNo(
            Problem(
                source=str(spec),
                message=f"files differ from what the spec gives: {_counts(generation)}",
                hint="run pdrecipe generate without --check to write them",
            )
        )


def _show(generation: Generation) -> None:
    """Each changed file with its lines, files with an old header counted, then one summary."""
    header_only = 0
    shown = 0
    for drift in generation.changed:
        if drift.is_header_only:
            header_only += 1
            continue
        lines = list(_changed_lines(drift))
        shown += len(lines)
        echo(f"{'+' if drift.is_new else '~'} {_short(drift.path)}")
        if shown <= _MOST_LINES:
            for line in lines:
                echo(line)
    if shown > _MOST_LINES:
        echo(f"  (changed lines past the first {_MOST_LINES} are left out)")
    if header_only:
        echo(f"~ {header_only} more with only the header's digest or version changed")
    for path in generation.stale:
        echo(f"! {_short(path)} is of this spec but no longer in it; delete it by hand")
    for study in generation.refused:
        tokens = study.spec.engine.speculative_tokens
        mtp = f" MTP{tokens}" if tokens else ""
        layout = f"{study.spec.engine.pool.layout}{mtp}"
        paragraph(f"no {study.spec.phase} study of {layout}: {study.reason}")
    echo(f"{_counts(generation)}.")


def _changed_lines(drift: FileDrift) -> list[str]:
    if drift.is_new:
        return []
    lines = []
    for change in drift.line_changes():
        # Line by line where a line became another, so that each pair reads as one change.
        for offset, (before, after) in enumerate(zip_longest(change.removed, change.added)):
            if before is not None:
                number = change.before_line + offset
                lines.append(click.style(f"  {number:>4} - {before}", fg="red"))
            if after is not None:
                lines.append(click.style(f"       + {after}", fg="green"))
    return lines or ["       line ends only"]


def _counts(generation: Generation) -> str:
    new = sum(drift.is_new for drift in generation.files)
    changed = len(generation.changed) - new
    unchanged = len(generation.files) - len(generation.changed)
    stale = f", {len(generation.stale)} stale" if generation.stale else ""
    return (
        f"{plural(len(generation.files), 'recipe')}:"
        f" {new} new, {changed} changed,"
        f" {unchanged} unchanged{stale}"
    )


def _short(path: Path) -> str:
    """A path as the user would type it from here."""
    return os.path.relpath(path) if path.is_absolute() or ".." in path.parts else str(path)
