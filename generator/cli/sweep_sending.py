"""What submit, resume and retry share: a plan is shown, agreed to, sent, and told as data."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import click

from generator.cli.output import echo, table, talk, warn
from generator.cli.progress import progress
from generator.cli.sweep_work import NOT_ALL_DONE, opened_client, refreshed
from generator.errors import AnswerIsNo, Problem
from generator.files import pasted
from generator.sweep.client import SweepClient
from generator.sweep.folder import SweepFolder
from generator.sweep.history import History, history
from generator.sweep.looking import Look
from generator.sweep.plan_view import (
    left_out,
    plan_headers,
    plan_rows,
    plan_summary,
    reasons,
    sent_lines,
)
from generator.sweep.planning import Plan
from generator.sweep.preflight import preflight
from generator.sweep.recipe_changes import changed_files, changes_notice
from generator.sweep.selection import Choice
from generator.sweep.status_view import NO_POINTS
from generator.sweep.submission_document import Submission, submission_document
from generator.units import format_gpu_hours
from generator.wording import plural

Say = Callable[[str], None]
"""Where sentences of the answer go: stdout, or stderr where the answer is a document."""


def speaker(*, as_json: bool) -> Say:
    """Where the plan screen goes."""
    return talk if as_json else echo


def show_plan(client: SweepClient, view: Look, planned: Plan, say: Say) -> None:
    """The plan screen."""
    if planned.arrays:
        say(table(plan_headers(), plan_rows(planned)))
        for line in plan_summary(planned, len(client.waited_for(view))):
            say(line)
        for count, why in reasons(planned):
            say(f"  {count}: {why}")
    if rest := left_out(view.statuses, planned):
        say(f"Left out: {rest}.")
    if not planned.arrays:
        say("Nothing to send.")


def demand_budget(planned: Plan, max_gpu_hours: float | None) -> None:
    """Refuse a plan that may cost more than the user allows."""
    if max_gpu_hours is not None and planned.gpu_hours > max_gpu_hours:
        raise AnswerIsNo(
            Problem(
                message=f"the plan may cost {format_gpu_hours(planned.gpu_hours)} GPU-hours,"
                f" more than --max-gpu-hours {max_gpu_hours:g}",
                hint="nothing was sent; name fewer recipes, or allow more",
            )
        )


def scripts_of(client: SweepClient, view: Look, planned: Plan, say: Say) -> tuple[str, ...]:
    """What would be sent, word for word, by array; every submission has a token of its own.

    Ids that Slurm has yet to give out stand as ``ARRAY1``.
    """
    after = client.waited_for(view)
    scripts = []
    for place, array in enumerate(planned.arrays):
        before = (*after, *(f"ARRAY{each + 1}" for each in planned.before(place)))
        request = client.sender.request(client.sender.token(), array, before)
        there = [each for each in (request.folder, *request.folder.parents) if each.exists()]
        try:
            script = client.sender.cluster.script(request)
        finally:
            _remove_empty(request.folder, set(there))
        say(f"# {request.job_name}: {plural(len(array.jobs), 'job')}")
        say(script)
        scripts.append(script)
    return tuple(scripts)


def _remove_empty(folder: Path, before: set[Path]) -> None:
    """Remove what describing a script made on the way."""
    for each in (folder, *folder.parents):
        if each in before or not each.is_dir() or any(each.iterdir()):
            return
        each.rmdir()


def confirmed(question: str, *, yes: bool) -> None:
    """Ask, unless told not to; raises AnswerIsNo for a no, KeyboardInterrupt for Ctrl-C."""
    if yes:
        return
    try:
        agreed = sys.stdin is not None and click.confirm(question, err=True)
    except click.Abort as abort:
        talk("")  # ends the line of the question
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from abort
        agreed = False
    if not agreed:
        hint = "--yes answers without asking"
        raise AnswerIsNo(Problem(message="not confirmed, nothing was done", hint=hint))


def demand_paths(client: SweepClient, planned: Plan) -> None:
    """Refuse to send to nodes without the site's paths; errors as ``preflight``."""
    if planned.arrays and (paths := client.site.paths()):
        talk("looking for the site's paths on a compute node")
        if unchecked := preflight(client.sender, planned.arrays[0].parameters, paths):
            warn(unchecked)


def sent(client: SweepClient, view: Look, planned: Plan, say: Say) -> History:
    """Send a plan, counting as it goes; the history with what was sent."""
    folder = client.folder
    try:
        with progress("submitting", len(planned.jobs)) as tick:
            client.send(view, planned, tick)
    except KeyboardInterrupt:
        talk(f"cut off while sending; the rest: pdrecipe resume {pasted(folder.root)}")
        raise
    for line in sent_lines(planned, pasted(folder.root)):
        say(line)
    return history(folder.ledger.read().events)


def answered(client: SweepClient, submission: Submission, *, as_json: bool) -> None:
    """The answer in JSON where that was asked for; sentences were said on the way."""
    if as_json:
        document = submission_document(client.folder, client.settings, submission)
        echo(json.dumps(document, indent=2))


def send_again(
    command: Literal["resume", "retry"],
    folder: SweepFolder,
    choose: Callable[[History], Choice],
    *,
    yes: bool,
    dry_run: bool,
    look_first: bool,
    as_json: bool,
) -> None:
    """Plan what is chosen of a sweep by its history, show it, and send it, alone."""
    say = speaker(as_json=as_json)
    with folder.locked():
        client = opened_client(folder)
        choice = choose(history(folder.ledger.read().events))
        view = refreshed(client)
        planned = client.plan(view, choice)
        submission = Submission(
            command=command,
            plan=planned,
            look=view,
            waits_for=client.waited_for(view) if planned.arrays else (),
        )
        if not view.statuses:
            say(f"{NO_POINTS}.")
            answered(client, submission, as_json=as_json)
            click.get_current_context().exit(NOT_ALL_DONE)
        if notice := changes_notice(changed_files(folder, view.history), pasted(folder.root)):
            warn(notice)
        show_plan(client, view, planned, say)
        if dry_run:
            submission = submission.dry(scripts_of(client, view, planned, say))
        elif planned.arrays:
            confirmed(f"Send {plural(len(planned.jobs), 'job')}?", yes=yes)
            if look_first:
                demand_paths(client, planned)
            submission = submission.after(sent(client, view, planned, say))
        answered(client, submission, as_json=as_json)
