"""Between submission and end: canaries, like failures, jobs that come back, points by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.cluster.protocol import Phase
from generator.errors import ClusterFailure, InvalidInput
from generator.sweep.events import CancelledBy
from generator.sweep.history import history
from generator.sweep.naming import named_points
from generator.sweep.selection import failed, flakes, named, never_sent, unfinished
from generator.sweep.statuses import PointState
from tests.fake_cluster import FakeCluster
from tests.small_sweeps import client, recipes, resume, states, submit, sweep_folder
from tests.swept_recipes import numbered

ALIKE = [numbered(number) for number in range(6)]


def points_of(*numbers: int) -> list[str]:
    return [ALIKE[number].points[0].id for number in numbers]


# --- a whole sweep ----------------------------------------------------------------------------


def test_sweep_of_two_arrays(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, recipes(4))
    assert cluster.submissions == 2
    assert states(resume(folder, cluster)) == {PointState.SUBMITTED: 8}
    cluster.run()
    assert states(resume(folder, cluster)) == {PointState.DONE: 8}
    assert cluster.submissions == 2


def test_what_is_done_is_left_out_and_new_loads_are_sent(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, [numbered(0, loads="64")])
    cluster.run()
    submit(folder, cluster, [numbered(0, loads="64x128")])
    (task,) = cluster.live()
    cluster.run()
    view = resume(folder, cluster)
    assert states(view) == {PointState.DONE: 2}
    assert set(cluster.runs.values()) == {1}
    assert task.request.comment.endswith(f"{numbered(0).digest}-c128")


def test_submission_of_200_points_is_quick(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    many = [numbered(number, nodes=4 + 2 * (number % 5)) for number in range(200)]
    submit(folder, cluster, many)
    assert (cluster.submissions, len(cluster.live())) == (5, 200)


def test_job_that_fails_is_sent_again_on_resumption_only(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:2])
    (bad,) = points_of(1)
    cluster.fails[bad] = "the launcher ended with 3"
    cluster.run()
    view = resume(folder, cluster, never_sent)
    assert states(view) == {PointState.DONE: 1, PointState.FAILED: 1}
    cluster.fails.clear()
    resume(folder, cluster, failed)
    cluster.run()
    view = resume(folder, cluster, never_sent)
    assert states(view) == {PointState.DONE: 2}
    assert [each.attempts for each in view.statuses] == [1, 2]
    assert len(list(folder.point(bad).glob("attempts/*.json"))) == 1


def test_flake_is_tried_once_more(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:1])
    (bad,) = points_of(0)
    cluster.fails[bad] = "pyxis: failed to import docker image"
    for _ in range(3):
        cluster.run()
        view = resume(folder, cluster, never_sent)
        submit(folder, cluster, (), flakes(view.history))
    assert cluster.runs[bad] == 2
    assert view.statuses[0].cause == "container start"


# --- canaries ---------------------------------------------------------------------------------


def test_canary_first_then_the_rest(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path, canary=True), FakeCluster()
    submit(folder, cluster, ALIKE)
    assert [each.phase for each in cluster.tasks.values()] == [Phase.PENDING] + [Phase.HELD] * 5
    assert [each.why for each in resume(folder, cluster).statuses[1:3]] == [
        "held until a job of its configuration is healthy"
    ] * 2
    cluster.run()
    view = resume(folder, cluster)
    assert states(view) == {PointState.DONE: 1, PointState.SUBMITTED: 5}
    cluster.run()
    assert states(resume(folder, cluster)) == {PointState.DONE: 6}


def test_canary_that_fails_takes_the_rest_along(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path, canary=True), FakeCluster()
    submit(folder, cluster, ALIKE)
    cluster.fails[points_of(0)[0]] = "the launcher ended with 3"
    cluster.run()
    view = resume(folder, cluster, never_sent)
    assert states(view) == {PointState.FAILED: 1, PointState.CANCELLED: 5}
    assert {each.by for each in view.statuses[1:]} == {CancelledBy.SWEEP}
    assert view.statuses[1].why == "the first job of its configuration gave no result"
    assert cluster.live() == []
    cluster.fails.clear()
    resume(folder, cluster)
    for _ in range(2):
        cluster.run()
        view = resume(folder, cluster)
    assert states(view) == {PointState.DONE: 6}


def test_released_jobs_of_a_killed_client_are_released_again(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path, canary=True), FakeCluster()
    submit(folder, cluster, ALIKE)
    cluster.run()
    cluster.deaf = True
    resume(folder, cluster)
    cluster.deaf = False
    resume(folder, cluster)
    cluster.run()
    assert states(resume(folder, cluster)) == {PointState.DONE: 6}


@pytest.mark.parametrize(
    ("reason", "released"), [("launch_failed_requeued_held", True), ("JobHeldUser", False)]
)
def test_jobs_held_by_slurm_are_released_and_those_of_people_are_not(
    tmp_path: Path, reason: str, *, released: bool
) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:2])
    for task in cluster.live():
        task.phase, task.reason = Phase.HELD, reason
    resume(folder, cluster)
    assert [each.phase is Phase.PENDING for each in cluster.live()] == [released] * 2


# --- stops ------------------------------------------------------------------------------------


def test_sweep_stops_itself_after_like_failures(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path, stop_after=3), FakeCluster()
    submit(folder, cluster, ALIKE)
    for number, point in enumerate(points_of(0, 1, 2)):
        cluster.fails[point] = f"no model under /scratch/{number}"
    cluster.run(2)
    assert states(resume(folder, cluster, never_sent))[PointState.CANCELLED] == 0
    cluster.run(1)
    view = resume(folder, cluster, never_sent)
    assert states(view) == {PointState.FAILED: 3, PointState.CANCELLED: 3}
    why = "the sweep stopped itself: 3 jobs failed alike: no model under *"
    assert {each.why for each in view.statuses[3:]} == {why}
    assert cluster.live() == []


def test_stop_is_forgotten_once_it_is_tried_again(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path, stop_after=2), FakeCluster()
    submit(folder, cluster, ALIKE)
    cluster.fails |= dict.fromkeys(points_of(0, 1, 2), "the launcher ended with 3")
    cluster.run(3)
    resume(folder, cluster, never_sent)
    cluster.fails.clear()
    submit(folder, cluster, (), named(points_of(0)))
    view = resume(folder, cluster, never_sent)
    assert view.statuses[0].state is PointState.SUBMITTED
    resume(folder, cluster)
    cluster.run()
    assert states(resume(folder, cluster)) == {PointState.DONE: 6}


# --- jobs that should be over -----------------------------------------------------------------


def test_cancelled_by_the_user_stays_out(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:2])
    view = resume(folder, cluster)
    latest = view.history.latest_attempts()
    with folder.locked():
        client(folder, cluster).cancel([latest[points_of(0)[0]]], "cancelled with pdrecipe cancel")
    view = resume(folder, cluster)
    assert states(view) == {PointState.CANCELLED: 1, PointState.SUBMITTED: 1}
    submit(folder, cluster, (), named(points_of(0)))
    cluster.run()
    assert states(resume(folder, cluster)) == {PointState.DONE: 2}


def test_cancellation_that_was_cut_off_is_done_by_the_next_client(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:2])
    view = resume(folder, cluster)
    cluster.deaf = True
    with folder.locked():
        client(folder, cluster).cancel(view.history.latest_attempts().values(), "x")
    cluster.deaf = False
    assert len(cluster.live()) == 2
    resume(folder, cluster)
    assert cluster.live() == []


def test_lost_job_that_comes_back_is_put_down_before_its_points_are_sent(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:1])
    (task,) = cluster.live()
    task.phase = Phase.NODE_FAILURE
    view = resume(folder, cluster, never_sent)
    assert view.statuses[0].why == "node failure"
    task.phase = Phase.PENDING  # Slurm requeues it after all
    submit(folder, cluster, (), unfinished)
    assert [each.task_id for each in cluster.live()] == ["2"]
    cluster.run()
    assert states(resume(folder, cluster)) == {PointState.DONE: 1}
    assert set(cluster.runs.values()) == {1}


def test_nothing_is_sent_again_while_the_queue_does_not_answer(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:1])
    cluster.queue_answers = False
    view = resume(folder, cluster)
    assert states(view) == {PointState.UNKNOWN: 1}
    assert view.notices == ("squeue: no answer",)
    assert cluster.submissions == 1


def test_lost_jobs_wait_for_a_queue_that_answers(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, ALIKE[:1])
    cluster.tasks.clear()
    view = resume(folder, cluster, never_sent)
    assert states(view) == {PointState.LOST: 1}
    cluster.queue_answers = False
    with pytest.raises(ClusterFailure, match="not surely gone: 1 job that"):
        submit(folder, cluster, (), unfinished)
    assert cluster.submissions == 1


# --- points by name ---------------------------------------------------------------------------


def test_points_by_id_beginning_recipe_and_file(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster()
    submit(folder, cluster, [numbered(0, loads="64x128"), numbered(1)])
    known = history(folder.ledger.read().events)
    first, second, third = known.points
    assert named_points([first], known, "s") == [first]
    assert named_points([first[:6]], known, "s") == [first, second]
    assert named_points(["tiny-1"], known, "s") == [third]
    assert named_points(["tiny.yaml"], known, "s") == [first, second, third]
    with pytest.raises(InvalidInput) as error:
        named_points(["tiny-9", first, "x"], known, "s")
    assert [str(each) for each in error.value.problems] == [
        "no point 'tiny-9' in this sweep (did you mean 'tiny-1'?)",
        "no point 'x' in this sweep (pdrecipe status --all s names them)",
    ]
