"""pdrecipe cancel: jobs of a sweep, or all of them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.cli.output import echo
from generator.cli.sweep_sending import confirmed, speaker
from generator.cli.sweep_work import (
    found_sweep,
    json_option,
    keep_others_out,
    opened_client,
    refreshed,
    sweep_option,
    yes_option,
)
from generator.errors import ClusterFailure, Problem
from generator.files import pasted
from generator.sweep.cancellation_document import cancellation_document
from generator.sweep.client import SweepClient
from generator.sweep.history import Attempt, History
from generator.sweep.looking import Look
from generator.sweep.naming import named_points
from generator.wording import plural


@click.command()
@click.argument("points", metavar="[POINT...]", nargs=-1)
@sweep_option
@yes_option
@json_option
def cancel(*, points: tuple[str, ...], sweep: Path | None, yes: bool, as_json: bool) -> None:
    """Cancel the jobs of these points, or every job of the sweep.

    A job runs the points of one recipe one after the other and ends as a whole. Results that are
    there stay. What is cancelled is sent again by pdrecipe retry only.

    Where the cluster does not answer (exit code 5), the wish is recorded once the jobs are known,
    and the next pdrecipe status that gets an answer carries it out.
    """
    keep_others_out()
    say = speaker(as_json=as_json)
    folder, words = found_sweep(sweep, points)
    with folder.locked():
        client = opened_client(folder)
        view = _seen(client)
        wanted = list(view.history.points)
        if words:
            wanted = named_points(words, view.history, pasted(folder.root))
        attempts = _open_attempts(view.history, wanted)
        ended = [point for attempt in attempts for point in attempt.open_points]
        beside = [point for point in ended if point not in set(wanted)]
        if beside:
            say(f"In the same jobs, and cancelled with them: {', '.join(beside)}.")
        what = f"{plural(len(attempts), 'job')} with {plural(len(ended), 'point')}"
        if attempts:
            confirmed(f"Cancel {what}?", yes=yes)
            client.cancel(attempts, "cancelled with pdrecipe cancel")
    say(f"Cancelled {what}." if attempts else "Nothing to cancel.")
    if as_json:
        document = cancellation_document(folder, client.settings, view, attempts, beside)
        echo(json.dumps(document, indent=2))


def _seen(client: SweepClient) -> Look:
    """How the sweep stands; raises ClusterFailure where a job is not known to be there or not."""
    try:
        return refreshed(client)
    except ClusterFailure as failure:
        hint = "nothing is cancelled or recorded; try again when the cluster answers"
        raise ClusterFailure(
            Problem(message=each.message, hint=hint) for each in failure.problems
        ) from failure


def _open_attempts(history: History, wanted: list[str]) -> list[Attempt]:
    """The jobs that may still give these points a result, each once."""
    latest = history.latest_attempts()
    jobs = {
        (attempt.token, attempt.index): attempt
        for point in wanted
        if (attempt := latest.get(point)) is not None and point in attempt.open_points
    }
    return list(jobs.values())
