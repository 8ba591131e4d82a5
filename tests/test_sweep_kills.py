"""A client killed between any two effects: after a resumption nothing is lost or run twice."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.cluster.job_file import JobFile, write_job_file
from generator.files import write_text_atomically
from generator.sweep.events import Event
from generator.sweep.folder import SweepFolder
from generator.sweep.ledger import Ledger
from generator.sweep.selection import unfinished
from generator.sweep.statuses import PointState
from tests.fake_cluster import FakeCluster, Killed, KillSwitch
from tests.small_sweeps import recipes, resume, states, submit, sweep_folder

RECIPES = recipes(3)
POINTS = {point.id for recipe in RECIPES for point in recipe.points}


@pytest.fixture(autouse=True)
def kill_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every effect on the disk is a moment to die: before it, after it, and half-way."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    append, withdraw = Ledger.append, SweepFolder.withdraw

    def killable_append(self: Ledger, events: Iterable[Event]) -> None:
        SWITCH.kill.point()
        append(self, events)
        SWITCH.kill.point()

    def killable_write_all(descriptor: int, content: bytes) -> None:
        try:
            SWITCH.kill.point()
        except Killed:
            os.write(descriptor, content[: 2 * len(content) // 3])
            raise
        os.write(descriptor, content)

    def killable_job_file(folder: Path, job: JobFile) -> None:
        SWITCH.kill.point()
        write_job_file(folder, job)

    def killable_withdraw(self: SweepFolder, token: str) -> None:
        SWITCH.kill.point()
        withdraw(self, token)
        SWITCH.kill.point()

    def killable_write(path: Path, text: str) -> None:
        SWITCH.kill.point()
        write_text_atomically(path, text)

    monkeypatch.setattr(Ledger, "append", killable_append)
    monkeypatch.setattr("generator.sweep.ledger._write_all", killable_write_all)
    monkeypatch.setattr(SweepFolder, "withdraw", killable_withdraw)
    monkeypatch.setattr("generator.sweep.sending.write_job_file", killable_job_file)
    monkeypatch.setattr("generator.sweep.client.write_text_atomically", killable_write)


class _Current:
    """The switch of the client that is alive now."""

    kill = KillSwitch()


SWITCH = _Current()


def killed_at(cluster: FakeCluster, at: int) -> None:
    SWITCH.kill = cluster.kill = KillSwitch(at=at)


def life(cluster: FakeCluster, at: int, work: Any, *arguments: Any) -> bool:
    """One client that dies at its ``at``-th effect; whether it lived to its end."""
    killed_at(cluster, at)
    try:
        work(*arguments)
    except Killed:
        return False
    finally:
        killed_at(cluster, 0)
    return True


def assert_all_done_once(folder: SweepFolder, cluster: FakeCluster) -> None:
    for _ in range(4):  # a canary has to run before what waits for it
        cluster.run()
        if states(resume(folder, cluster)) == {PointState.DONE: len(POINTS)}:
            break
    sent = cluster.submissions
    view = resume(folder, cluster)
    assert states(view) == {PointState.DONE: len(POINTS)}
    assert dict(cluster.runs) == dict.fromkeys(POINTS, 1)
    assert cluster.collisions == []
    assert cluster.submissions == sent
    assert cluster.live() == []


def effects_of_a_submission(*, canary: bool) -> int:
    with TemporaryDirectory() as root:
        cluster = FakeCluster()
        folder = sweep_folder(Path(root), canary=canary)
        killed_at(cluster, 0)
        submit(folder, cluster, RECIPES)
        return cluster.kill.passed


@pytest.mark.parametrize("adopts", [True, False], ids=["adopts", "cannot adopt"])
@pytest.mark.parametrize("late", [None, 0, 2, 5], ids=lambda late: f"late {late}")
@pytest.mark.parametrize("canary", [False, True], ids=["plain", "canary"])
def test_killed_at_every_step_of_submission(
    tmp_path: Path, *, canary: bool, late: int | None, adopts: bool
) -> None:
    steps = effects_of_a_submission(canary=canary) + 2
    assert steps > 25
    for at in range(1, steps + 1):
        root = tmp_path / str(at)
        root.mkdir()
        cluster = FakeCluster(adopts=adopts, late=late)
        folder = sweep_folder(root, canary=canary)
        life(cluster, at, submit, folder, cluster, RECIPES)
        cluster.start(at % 3)
        life(cluster, 0, submit, folder, cluster, RECIPES, unfinished)
        assert_all_done_once(folder, cluster)


@given(
    kills=st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 3), st.booleans()), min_size=1, max_size=6
    ),
    adopts=st.booleans(),
    late=st.none() | st.integers(0, 12),
    canary=st.booleans(),
    limit=st.integers(0, 2),
)
def test_killed_again_and_again(
    kills: list[tuple[int, int, bool]], adopts: bool, late: int | None, canary: bool, limit: int
) -> None:
    """Clients die one after the other while some of the jobs run."""
    with TemporaryDirectory() as root:
        cluster = FakeCluster(adopts=adopts, late=late)
        folder = sweep_folder(Path(root), canary=canary, max_parallel=limit)
        for at, jobs, to_the_end in kills:
            life(cluster, at, submit, folder, cluster, RECIPES)
            cluster.start(jobs)
            if to_the_end:
                cluster.finish()
            life(cluster, at // 2, resume, folder, cluster)
        life(cluster, 0, submit, folder, cluster, RECIPES, unfinished)
        assert_all_done_once(folder, cluster)
        assert not limit or cluster.most_at_once <= limit
