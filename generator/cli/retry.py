"""pdrecipe retry: chosen points once more."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli.sweep_sending import send_again
from generator.cli.sweep_work import (
    dry_run_option,
    found_sweep,
    json_option,
    keep_others_out,
    preflight_option,
    sweep_option,
    yes_option,
)
from generator.files import pasted
from generator.sweep.history import History
from generator.sweep.naming import named_points
from generator.sweep.selection import Choice, failed, named


@click.command()
@click.argument("points", metavar="[POINT...]", nargs=-1)
@click.option("--failed", "all_failed", is_flag=True, help="Every point that failed.")
@sweep_option
@preflight_option
@dry_run_option
@yes_option
@json_option
def retry(
    *,
    points: tuple[str, ...],
    all_failed: bool,
    sweep: Path | None,
    look_first: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Send points again that failed, were lost or cancelled; both attempts are kept.

    A POINT is an id, the beginning of one, or a recipe's name for all of its points.
    """
    keep_others_out()
    folder, words = found_sweep(sweep, points)
    if bool(words) == all_failed:
        raise click.UsageError("name points, or give --failed")

    def choose(known: History) -> Choice:
        return failed if all_failed else named(named_points(words, known, pasted(folder.root)))

    send_again(
        "retry",
        folder,
        choose,
        yes=yes,
        dry_run=dry_run,
        look_first=look_first,
        as_json=as_json,
    )
