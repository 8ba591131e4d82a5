"""What a client finds out that looks rarely, late, or at files that are not the sweep's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.cluster.protocol import ClusterFeatures, Phase, StateReport
from generator.cluster.starts import STARTS_FILE, Start, note_start, read_starts
from generator.sweep.events import Event
from generator.sweep.folder import SweepFolder
from generator.sweep.looking import Look, glance
from generator.sweep.selection import never_sent
from generator.sweep.statuses import PointState
from tests.fake_cluster import FakeCluster
from tests.small_sweeps import client, resume, states, submit, sweep_folder
from tests.swept_recipes import numbered

ONE = [numbered(0, loads="64")]


class FastCluster(FakeCluster):
    """One that goes on while it is asked: ``meanwhile`` comes between its answer and the files."""

    meanwhile: Callable[[], None] | None = None

    def states(self, job_ids: Sequence[str]) -> StateReport:
        answer = super().states(job_ids)
        if self.meanwhile is not None:
            self.meanwhile()
        return answer


def looked(folder: SweepFolder, cluster: FakeCluster) -> Look:
    with folder.locked():
        return client(folder, cluster).look()


def kinds(folder: SweepFolder) -> list[str]:
    def kind(event: Event) -> str:
        return str(getattr(event, "state", event.kind))

    return [kind(each) for each in folder.ledger.read().events][3:]


# --- requeues ---------------------------------------------------------------------------------


def runs_again(cluster: FakeCluster) -> None:
    """A preemption, the wait in the queue and a second run that ends at once."""
    cluster.preempt()
    cluster.start()
    cluster.finish()


def starts(cluster: FakeCluster) -> None:
    assert cluster.start() == 1


def test_requeue_between_two_looks_is_recorded(tmp_path: Path) -> None:
    """The first look sees run 1, the second a job that is over: neither saw it in the queue."""
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ONE)
    cluster.start()
    assert states(looked(folder, cluster)) == {PointState.RUNNING: 1}
    runs_again(cluster)
    view = looked(folder, cluster)
    assert states(view) == {PointState.DONE: 1}
    assert kinds(folder) == ["running", "requeued", "running", "done"]
    assert view.statuses[0].attempts == 1


def test_requeues_of_a_sweep_that_is_looked_at_once_at_its_end_are_recorded(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ONE)
    cluster.start()
    cluster.preempt()
    cluster.start()
    runs_again(cluster)
    looked(folder, cluster)
    assert kinds(folder) == ["requeued", "requeued", "running", "done"]


def test_requeue_after_the_queue_answered_is_recorded_once(tmp_path: Path) -> None:
    """The answer is of run 1, the result of run 2: the point ends at this very look."""
    folder, cluster = sweep_folder(tmp_path), FastCluster()
    submit(folder, cluster, ONE)
    cluster.start()
    looked(folder, cluster)
    cluster.meanwhile = lambda: runs_again(cluster)
    assert states(looked(folder, cluster)) == {PointState.DONE: 1}
    assert kinds(folder) == ["running", "requeued", "running", "done"]


def test_requeue_that_the_queue_shows_while_the_job_begins_again_is_one(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FastCluster()
    submit(folder, cluster, ONE)
    cluster.start()
    looked(folder, cluster)
    cluster.preempt()
    cluster.meanwhile = lambda: starts(cluster)
    looked(folder, cluster)
    cluster.meanwhile = None
    assert states(looked(folder, cluster)) == {PointState.RUNNING: 1}
    assert kinds(folder) == ["running", "requeued", "running"]


def test_starts_survive_a_torn_line_and_are_those_of_one_submission(tmp_path: Path) -> None:
    def note(token: str) -> int:
        start = Start(token=token, job_id="7", restarts=0, at=1.0, nodes=("n1",))
        return note_start(tmp_path, start)

    assert [note("a"), note("b"), note("a")] == [1, 1, 2]
    path = tmp_path / STARTS_FILE
    path.write_bytes(path.read_bytes()[:-9])
    assert len(read_starts(tmp_path, "a")) == 1
    assert note("a") == 2
    assert [each.nodes for each in read_starts(tmp_path, "a")] == [("n1",), ("n1",)]
    assert read_starts(tmp_path / "elsewhere", "a") == ()


def test_id_that_slurm_gave_to_another_job_is_not_the_sweeps(tmp_path: Path) -> None:
    """A Slurm that lost its state counts from 1 again; that job is never cancelled for ours."""
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ONE)
    cluster.start()
    assert states(looked(folder, cluster)) == {PointState.RUNNING: 1}
    (task,) = cluster.live()
    task.request, ours = replace(task.request, token="0ther"), task.request
    assert states(looked(folder, cluster)) == {PointState.LOST: 1}
    resume(folder, cluster)
    assert task.phase is Phase.RUNNING
    assert {each.request.token == ours.token for each in cluster.live()} == {False}
    assert cluster.submissions == 2


def test_id_that_slurm_gave_to_a_later_job_of_the_sweep(tmp_path: Path) -> None:
    """The attempt that was lost with the old id is no reason to cancel the new one."""
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ONE)
    (before,) = cluster.tasks
    cluster.tasks.clear()
    cluster._numbers = 0
    assert states(looked(folder, cluster)) == {PointState.LOST: 1}
    resume(folder, cluster)
    assert list(cluster.tasks) == [before]
    cluster.start()
    assert states(resume(folder, cluster)) == {PointState.RUNNING: 1}
    cluster.finish()
    assert states(resume(folder, cluster)) == {PointState.DONE: 1}


# --- results of others ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"token": "beef"}, "is of a submission 'beef' that the ledger does not have"),
        ({"point_id": "0123456789abcdef-c64"}, "is the result of point '0123456789abcdef-c64'"),
    ],
    ids=["token", "point"],
)
def test_result_that_is_not_this_points_own_is_named_and_nothing_is_sent(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ONE)
    cluster.run()
    path = folder.point(ONE[0].points[0].id) / "result.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, **change}), encoding="utf-8")
    view = resume(folder, cluster)
    assert states(view) == {PointState.UNKNOWN: 1}
    assert said in view.statuses[0].why
    assert str(path) in view.statuses[0].why
    assert cluster.submissions == 1
    path.unlink()
    resume(folder, cluster)
    cluster.run()
    assert states(resume(folder, cluster)) == {PointState.DONE: 1}


def test_result_in_place_before_anything_was_sent_is_named(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    other = sweep_folder(tmp_path / "other")
    submit(other, cluster, ONE)
    cluster.run()
    point = ONE[0].points[0].id
    folder.point(point).mkdir()
    (folder.point(point) / "result.json").write_bytes(
        (other.point(point) / "result.json").read_bytes()
    )
    view = submit(folder, cluster, ONE, never_sent)
    assert states(view) == {PointState.UNKNOWN: 1}
    assert "that the ledger does not have" in view.statuses[0].why
    assert glance(folder, cluster).history.arrays == {}


# --- a controller that does not answer --------------------------------------------------------


class CountedCluster(FakeCluster):
    """One that counts how often it was asked what it can do."""

    asked = 0

    def features(self) -> ClusterFeatures:
        self.asked += 1
        return super().features()


def test_sweep_that_is_done_does_not_ask_what_the_cluster_can_do(tmp_path: Path) -> None:
    """Each question to a controller that is gone takes ten seconds."""
    folder, cluster = sweep_folder(tmp_path), CountedCluster()
    submit(folder, cluster, ONE)
    asked = cluster.asked
    looked(folder, cluster)
    assert cluster.asked == asked + 1
    cluster.run()
    looked(folder, cluster)
    asked = cluster.asked
    assert states(looked(folder, cluster)) == {PointState.DONE: 1}
    assert cluster.asked == asked
