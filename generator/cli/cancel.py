"""pdrecipe cancel: jobs of a sweep, or all of them."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli.output import echo
from generator.cli.sweep_work import (
    confirmed,
    found_sweep,
    keep_others_out,
    opened_client,
    refreshed,
    sweep_option,
    yes_option,
)
from generator.sweep.history import Attempt, History
from generator.sweep.naming import named_points
from generator.wording import plural


@click.command()
@click.argument("points", metavar="[POINT...]", nargs=-1)
@sweep_option
@yes_option
def cancel(*, points: tuple[str, ...], sweep: Path | None, yes: bool) -> None:
    """Cancel the jobs of these points, or every job of the sweep.

    A job runs the points of one recipe one after the other and ends as a whole. Results that are
    there stay. What is cancelled is sent again by pdrecipe retry only.
    """
    keep_others_out()
    folder, words = found_sweep(sweep, points)
    with folder.locked():
        client = opened_client(folder)
        view = refreshed(client)
        wanted = named_points(words, view.history) if words else list(view.history.points)
        attempts = _open_attempts(view.history, wanted)
        if not attempts:
            echo("Nothing to cancel.")
            return
        ended = [point for attempt in attempts for point in attempt.open_points]
        beside = [point for point in ended if point not in set(wanted)]
        if beside:
            echo(f"In the same jobs, and cancelled with them: {', '.join(beside)}.")
        confirmed(
            f"Cancel {plural(len(attempts), 'job')} with {plural(len(ended), 'point')}?", yes=yes
        )
        client.cancel(attempts, "cancelled with pdrecipe cancel")
    echo(f"Cancelled {plural(len(attempts), 'job')} with {plural(len(ended), 'point')}.")


def _open_attempts(history: History, wanted: list[str]) -> list[Attempt]:
    """The jobs that may still give these points a result, each once."""
    latest = history.latest_attempts()
    jobs = {
        (attempt.token, attempt.index): attempt
        for point in wanted
        if (attempt := latest.get(point)) is not None and point in attempt.open_points
    }
    return list(jobs.values())
