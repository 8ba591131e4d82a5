"""pdrecipe status: where every point of a sweep stands."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from generator.cli.number import FiniteRange
from generator.cli.output import echo, table, talk, warn
from generator.cli.progress import bar, is_watched, show_line
from generator.cli.sweep_work import (
    NOT_ALL_DONE,
    json_option,
    keep_others_out,
    opened_client,
    sweep_alone,
    sweep_option,
)
from generator.cluster.protocol import NodeProblem
from generator.errors import ClusterFailure, InvalidInput, PdrecipeError
from generator.files import pasted
from generator.sweep.client import SweepClient
from generator.sweep.looking import Look
from generator.sweep.recipe_changes import changed_files, changes_notice
from generator.sweep.selection import flakes
from generator.sweep.status_document import is_complete, status_document
from generator.sweep.status_view import (
    advice,
    moving_points,
    status_headers,
    status_rows,
    status_summary,
)
from generator.sweep.statuses import PointState
from generator.wording import plural


@click.command()
@click.argument("where", metavar="[SWEEP]", nargs=-1)
@sweep_option
@click.option("--watch", is_flag=True, help="Follow until nothing moves any more.")
@click.option(
    "--every",
    type=FiniteRange(1, 86_400),
    default=10,
    show_default=True,
    help="Seconds, for --watch.",
)
@click.option("--all", "all_points", is_flag=True, help="List done points too, each reason whole.")
@json_option
@click.pass_context
def status(
    ctx: click.Context,
    *,
    where: tuple[str, ...],
    sweep: Path | None,
    watch: bool,
    every: float,
    all_points: bool,
    as_json: bool,
) -> None:
    """Ask the cluster, read the results, and say where every point stands.

    What is due is done on the way: jobs held for a canary are released, and a sweep that fails
    alike too often is stopped. With --watch a failure of the infrastructure is tried once more.

    Exit codes: 0 all points are done, 10 they are not, 5 the cluster does not answer, 130 Ctrl-C,
    which ends the watching and no job.
    """
    keep_others_out()
    folder = sweep_alone(sweep, where)
    client = opened_client(folder)
    view = _watched(client, every) if watch else _looked(client, again=False)
    nodes = () if _is_silent(view) else _node_problems(client)
    changed = changed_files(folder, view.history)
    if as_json:
        document = status_document(folder, client.settings, view, nodes, changed)
        echo(json.dumps(document, indent=2))
    else:
        where_it_is = pasted(folder.root)
        _show(view, all_points=all_points)
        for text in advice(view, nodes, where_it_is):
            echo(text)
        for notice in filter(None, (changes_notice(changed, where_it_is), *view.notices)):
            warn(notice)
    ctx.exit(_exit_code(view))


def _looked(client: SweepClient, *, again: bool) -> Look:
    """One look, with what is due done; only a look where another client is at work.

    With ``again`` failures of the infrastructure are sent once more.
    """
    try:
        with client.folder.locked():
            view = client.keep_up(_settled(client))
            if again:
                planned = client.plan(view, flakes(view.history))
                if planned.arrays:
                    talk(f"trying {plural(planned.points, 'point')} again: {planned.jobs[0].why}")
                    client.send(view, planned, lambda _name: None)
                    view = client.look()
            return view
    except InvalidInput as error:
        # Another client, a full disk, a read-only folder: what can be read is told all the same.
        for problem in error.problems:
            warn(problem)
        return client.glance()


def _settled(client: SweepClient) -> Look:
    try:
        return client.refresh()
    except ClusterFailure:
        return client.look()


def _watched(client: SweepClient, every_s: float) -> Look:
    """Look again and again; each change is a line on stderr, or one line that changes."""
    told = ""
    while True:
        try:
            view = _looked(client, again=True)
        except ClusterFailure as failure:
            talk(str(failure))
            view = client.glance()
        summary = status_summary(view)
        if is_watched():
            done = sum(each.state is PointState.DONE for each in view.statuses)
            show_line(f"{bar(done, len(view.statuses))} {summary}")
        elif summary != told:
            talk(summary)
        told = summary
        if not moving_points(view):
            if is_watched():
                click.echo(err=True)
            return view
        time.sleep(every_s)


def _is_silent(view: Look) -> bool:
    """Whether the cluster gave no answer: another question would wait as long again."""
    report = view.observation.report
    return report is not None and not report.queue_answered


def _node_problems(client: SweepClient) -> tuple[NodeProblem, ...]:
    try:
        return client.sender.cluster.node_problems()
    except PdrecipeError:
        return ()


def _show(view: Look, *, all_points: bool) -> None:
    rows = status_rows(view, all_points=all_points)
    if rows:
        echo(table(status_headers(), rows, unbroken=1))
    listed = sum(each.state is not PointState.DONE for each in view.statuses)
    if not all_points and listed > len(rows):
        echo(f"... and {listed - len(rows)} more; --all lists them")
    echo(f"{status_summary(view)}.")


def _exit_code(view: Look) -> int:
    if is_complete(view):
        return 0
    return ClusterFailure.exit_code if _is_silent(view) else NOT_ALL_DONE
