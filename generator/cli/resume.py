"""pdrecipe resume: a sweep goes on with what is missing, failed or lost."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli.sweep_work import (
    dry_run_option,
    keep_others_out,
    preflight_option,
    send_again,
    sweep_alone,
    sweep_option,
    yes_option,
)
from generator.sweep.selection import unfinished


@click.command()
@click.argument("where", metavar="[SWEEP]", nargs=-1)
@sweep_option
@preflight_option
@dry_run_option
@yes_option
def resume(
    *, where: tuple[str, ...], sweep: Path | None, look_first: bool, dry_run: bool, yes: bool
) -> None:
    """Send again whatever of a sweep has no result and is not on its way.

    First it settles what a client that was killed left behind. What pdrecipe cancel took out stays
    out; pdrecipe retry sends it.
    """
    keep_others_out()
    folder = sweep_alone(sweep, where)
    send_again(folder, lambda _history: unfinished, yes=yes, dry_run=dry_run, look_first=look_first)
