"""Sweeps of small recipes on a cluster in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from generator.cluster.job_file import CommandLauncher
from generator.sweep.client import SweepClient
from generator.sweep.folder import SweepFolder, SweepSettings, create_sweep
from generator.sweep.looking import Look, Progress, unseen
from generator.sweep.selection import Choice, never_sent, unfinished
from generator.sweep.sending import Sender
from generator.sweep.site_use import ANY_SITE
from generator.sweep.statuses import PointState
from generator.sweep.swept_recipe import SweptRecipe
from tests.fake_cluster import FakeCluster
from tests.swept_recipes import numbered


def no_pause(_seconds: float) -> None:
    """Time does not pass."""


def sweep_folder(
    root: Path, *, canary: bool = False, stop_after: int = 5, max_parallel: int = 0
) -> SweepFolder:
    settings = SweepSettings(
        name="tiny",
        launcher="command",
        command=("true",),
        canary=canary,
        stop_after=stop_after,
        max_parallel=max_parallel,
    )
    folder = create_sweep(root / "sweep")
    folder.write_settings(settings)
    return folder


def client(folder: SweepFolder, cluster: FakeCluster, progress: Progress = unseen) -> SweepClient:
    settings = folder.read_settings()
    sender = Sender(
        folder=folder,
        name=settings.name,
        cluster=cluster,
        launcher=CommandLauncher(argv=settings.command),
        pause=no_pause,
    )
    return SweepClient(
        folder=folder,
        settings=settings,
        site=ANY_SITE,
        sender=sender,
        say=lambda _text: None,
        progress=progress,
    )


def recipes(count: int = 4, loads: str = "64x128") -> list[SweptRecipe]:
    """Recipes of 4 and 6 nodes by turns: two arrays."""
    return [numbered(number, nodes=4 + 2 * (number % 2), loads=loads) for number in range(count)]


def submit(
    folder: SweepFolder,
    cluster: FakeCluster,
    swept: Sequence[SweptRecipe] = (),
    choice: Choice = never_sent,
) -> Look:
    """What one client does from taking the lock to giving it back."""
    with folder.locked():
        work = client(folder, cluster)
        work.add(swept)
        view = work.keep_up(work.refresh())
        planned = work.plan(view, choice)
        work.send(view, planned, lambda _name: None)
        return view


def resume(folder: SweepFolder, cluster: FakeCluster, choice: Choice = unfinished) -> Look:
    submit(folder, cluster, (), choice)
    with folder.locked():
        work = client(folder, cluster)
        return work.keep_up(work.refresh())


def states(view: Look) -> Counter[PointState]:
    return Counter(status.state for status in view.statuses)
