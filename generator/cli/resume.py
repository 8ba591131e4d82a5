"""pdrecipe resume: a sweep goes on with what is missing, failed or lost."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli.sweep_work import (
    dry_run_option,
    found_sweep,
    keep_others_out,
    opened_client,
    send_again,
    sweep_option,
    yes_option,
)
from generator.sweep.selection import unfinished


@click.command()
@click.argument("where", metavar="[SWEEP]", nargs=-1)
@sweep_option
@dry_run_option
@yes_option
def resume(*, where: tuple[str, ...], sweep: Path | None, dry_run: bool, yes: bool) -> None:
    """Send again whatever of a sweep has no result and is not on its way.

    First it settles what a client that was killed left behind. What pdrecipe cancel took out stays
    out; pdrecipe retry sends it.
    """
    keep_others_out()
    folder, others = found_sweep(sweep, where)
    if others:
        raise click.UsageError(f"{others[0]} is not a sweep")
    with folder.locked():
        client = opened_client(folder)
        send_again(client, unfinished, yes=yes, dry_run=dry_run)
