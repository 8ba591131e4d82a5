"""pdrecipe resume: a sweep goes on with what is missing, failed or lost."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli.sweep_sending import send_again
from generator.cli.sweep_work import (
    dry_run_option,
    json_option,
    keep_others_out,
    preflight_option,
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
@json_option
def resume(
    *,
    where: tuple[str, ...],
    sweep: Path | None,
    look_first: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Send again whatever of a sweep has no result and is not on its way.

    First it settles what a client that was killed left behind. What pdrecipe cancel took out stays
    out; pdrecipe retry sends it. A recipe whose file has changed goes out as it was submitted.
    """
    keep_others_out()
    folder = sweep_alone(sweep, where)
    send_again(
        "resume",
        folder,
        lambda _history: unfinished,
        yes=yes,
        dry_run=dry_run,
        look_first=look_first,
        as_json=as_json,
    )
