"""What the commands of a sweep share: their options, and how the sweep is found and opened."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from generator.cli.output import talk, warn
from generator.cli.progress import progress
from generator.cluster.registry import connect
from generator.errors import InvalidInput, Problem
from generator.files import pasted
from generator.site import Site
from generator.sweep.client import SweepClient
from generator.sweep.folder import SweepFolder, SweepSettings, is_sweep, open_sweep
from generator.sweep.looking import Look
from generator.sweep.sending import Sender
from generator.sweep.site_use import ANY_SITE, launcher_of

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


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, which makes the answer a document."""
    return click.option(
        "--json", "as_json", is_flag=True, help="A versioned JSON document on stdout."
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
        listed = ", ".join(map(pasted, candidates[:5])) or "none under sweeps/"
        problem = Problem(
            message="which sweep?" if candidates else "no sweep here",
            hint=f"name its folder with --sweep: {listed}",
        )
        raise InvalidInput(problem)
    return open_sweep(candidates[0]), others


def sweep_alone(sweep: Path | None, where: tuple[str, ...]) -> SweepFolder:
    """The sweep of a command that takes nothing else; errors as ``found_sweep``."""
    for word in where:
        open_sweep(Path(word))
    if sweep is not None and where:
        raise click.UsageError("name one sweep")
    folder, _ = found_sweep(sweep, where)
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
        warn(notice)
    return view
