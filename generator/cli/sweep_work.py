"""What the commands of a sweep share: finding and opening it, showing and sending a plan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from generator.cli.output import echo, table, talk
from generator.cli.progress import progress
from generator.cluster.registry import connect
from generator.errors import AnswerIsNo, InvalidInput, Problem
from generator.site import Site
from generator.sweep.client import SweepClient
from generator.sweep.folder import SweepFolder, SweepSettings, is_sweep, open_sweep
from generator.sweep.history import History, history
from generator.sweep.looking import Look
from generator.sweep.plan_view import (
    left_out,
    plan_headers,
    plan_rows,
    plan_summary,
    reasons,
)
from generator.sweep.planning import Plan
from generator.sweep.preflight import preflight
from generator.sweep.selection import Choice
from generator.sweep.sending import Sender
from generator.sweep.site_use import ANY_SITE, launcher_of
from generator.sweep.status_view import NO_POINTS
from generator.wording import plural

SWEEPS = Path("sweeps")
NOT_ALL_DONE = 10
"""The exit code for a sweep with points that are not done."""


class NamedPath(click.Path):
    """A path that is not the empty text, which would stand for this folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


def sweep_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --sweep, the sweep folder that a command works on."""
    return click.option(
        "--sweep",
        "sweep",
        type=NamedPath(),
        help="Sweep folder; where absent the one here, or the only one under sweeps/.",
    )(command)


def yes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --yes, which answers what a command would ask."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(command)


def preflight_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --preflight, which is on unless told otherwise."""
    return click.option(
        "--preflight/--no-preflight",
        "look_first",
        default=True,
        help="Look for the site file's paths on a compute node first.",
    )(command)


def dry_run_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dry-run, which shows what would be sent."""
    return click.option(
        "--dry-run", is_flag=True, help="Send nothing; print the exact sbatch scripts."
    )(command)


def keep_others_out() -> None:
    """What this process makes, jobs included, is for its user alone to write."""
    os.umask(os.umask(0o077) | 0o022)


def found_sweep(sweep: Path | None, words: tuple[str, ...] = ()) -> tuple[SweepFolder, list[str]]:
    """The sweep a command is about, and its other words: a folder may stand among them.

    Raises InvalidInput where no sweep is named and none, or several, could be meant.
    """
    folders = [Path(word) for word in words if is_sweep(Path(word))]
    others = [word for word in words if not is_sweep(Path(word))]
    candidates = [sweep] if sweep is not None else folders or _nearby()
    if len(candidates) != 1:
        listed = ", ".join(map(str, candidates[:5])) or "none under sweeps/"
        problem = Problem(
            message="which sweep?" if candidates else "no sweep here",
            hint=f"name its folder with --sweep: {listed}",
        )
        raise InvalidInput(problem)
    return open_sweep(candidates[0]), others


def sweep_alone(sweep: Path | None, where: tuple[str, ...]) -> SweepFolder:
    """The sweep of a command that takes nothing else; errors as ``found_sweep``."""
    folder, others = found_sweep(sweep, where)
    if others:
        raise click.UsageError(f"{others[0]} is not a sweep")
    return folder


def _nearby() -> list[Path]:
    here = Path.cwd()
    around = [each for each in (here, *here.parents) if is_sweep(each)]
    if around:
        return around[:1]
    return sorted(path.parent for path in SWEEPS.glob("*/sweep.json"))


def opened_client(folder: SweepFolder) -> SweepClient:
    """The client of a sweep that is there, as it was submitted."""
    return new_client(folder, folder.read_settings(), folder.read_site() or ANY_SITE)


def new_client(folder: SweepFolder, settings: SweepSettings, site: Site) -> SweepClient:
    """The client of a sweep, whether its folder is there yet or not."""
    cluster = connect(settings.cluster, folder.root / "arrays")
    sender = Sender(
        folder=folder,
        name=settings.name,
        cluster=cluster,
        launcher=launcher_of(settings, site),
        pause=time.sleep,
    )
    return SweepClient(
        folder=folder,
        settings=settings,
        site=site,
        sender=sender,
        say=talk,
        progress=progress,
    )


def refreshed(client: SweepClient) -> Look:
    """How the sweep stands after everything that was due was done."""
    view = client.keep_up(client.refresh())
    for notice in view.notices:
        talk(f"{click.style('warning', fg='yellow')}: {notice}")
    return view


def show_plan(client: SweepClient, view: Look, planned: Plan) -> None:
    """The plan screen."""
    if planned.arrays:
        echo(table(plan_headers(), plan_rows(planned)))
        for line in plan_summary(planned, len(client.waited_for(view))):
            echo(line)
        for count, why in reasons(planned):
            echo(f"  {count}: {why}")
    if rest := left_out(view.statuses, planned):
        echo(f"Left out: {rest}.")
    if not planned.arrays:
        echo("Nothing to send.")


def demand_budget(planned: Plan, max_gpu_hours: float | None) -> None:
    """Refuse a plan that may cost more than the user allows."""
    if max_gpu_hours is not None and planned.gpu_hours > max_gpu_hours:
        raise AnswerIsNo(
            Problem(
                message=f"the plan may cost {planned.gpu_hours:,.0f} GPU-hours,"
                f" more than --max-gpu-hours {max_gpu_hours:g}",
                hint="nothing was sent; name fewer recipes, or allow more",
            )
        )


def show_scripts(client: SweepClient, view: Look, planned: Plan) -> None:
    """What would be sent, word for word; every submission has a token of its own.

    Ids that Slurm has yet to give out stand as ``ARRAY1``.
    """
    after = client.waited_for(view)
    for place, array in enumerate(planned.arrays):
        before = (*after, *(f"ARRAY{each + 1}" for each in planned.before(place)))
        request = client.sender.request(client.sender.token(), array, before)
        there = [each for each in (request.folder, *request.folder.parents) if each.exists()]
        echo(f"# {request.job_name}: {plural(len(array.jobs), 'job')}")
        echo(client.sender.cluster.script(request))
        _remove_empty(request.folder, set(there))


def _remove_empty(folder: Path, before: set[Path]) -> None:
    """Remove what describing a script made on the way."""
    for each in (folder, *folder.parents):
        if each in before or not each.is_dir() or any(each.iterdir()):
            return
        each.rmdir()


def confirmed(question: str, *, yes: bool) -> None:
    """Ask, unless told not to; raises AnswerIsNo for a no."""
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        hint = "--yes answers without asking"
        raise AnswerIsNo(Problem(message="not confirmed, nothing was done", hint=hint))


def demand_paths(client: SweepClient, planned: Plan) -> None:
    """Refuse to send to nodes without the site's paths; errors as ``preflight``."""
    if planned.arrays and (paths := client.site.paths()):
        talk("looking for the site's paths on a compute node")
        if unchecked := preflight(client.sender, planned.arrays[0].parameters, paths):
            talk(f"{click.style('warning', fg='yellow')}: {unchecked}")


def sent(client: SweepClient, view: Look, planned: Plan) -> None:
    """Send a plan, counting as it goes."""
    with progress("submitting", len(planned.jobs)) as tick:
        client.send(view, planned, tick)
    echo(
        f"Sent {plural(len(planned.jobs), 'job')} in {plural(len(planned.arrays), 'array')};"
        f" pdrecipe status --sweep {os.path.relpath(client.folder.root)} follows them."
    )


def send_again(
    folder: SweepFolder,
    choose: Callable[[History], Choice],
    *,
    yes: bool,
    dry_run: bool,
    look_first: bool,
) -> None:
    """Plan what is chosen of a sweep by its history, show it, and send it, alone."""
    with folder.locked():
        client = opened_client(folder)
        choice = choose(history(folder.ledger.read().events))
        view = refreshed(client)
        if not view.statuses:
            echo(f"{NO_POINTS}.")
            click.get_current_context().exit(NOT_ALL_DONE)
        planned = client.plan(view, choice)
        show_plan(client, view, planned)
        if dry_run:
            show_scripts(client, view, planned)
        elif planned.arrays:
            confirmed(f"Send {plural(len(planned.jobs), 'job')}?", yes=yes)
            if look_first:
                demand_paths(client, planned)
            sent(client, view, planned)
