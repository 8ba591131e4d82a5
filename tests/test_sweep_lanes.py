"""--max-parallel: never more jobs at once than asked for, whether a client is there or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import ClusterFailure
from generator.sweep.lanes import Load, Slot, slots
from generator.sweep.plan_view import plan_rows, plan_summary
from generator.sweep.planning import plan
from generator.sweep.selection import never_sent, unfinished
from generator.sweep.statuses import PointState
from tests.fake_cluster import FakeCluster
from tests.small_sweeps import client, resume, states, submit, sweep_folder
from tests.swept_recipes import job, numbered

LOADS = st.lists(
    st.builds(Load, jobs=st.integers(1, 40), minutes=st.integers(1, 500)), min_size=1, max_size=12
)
MIXED = [numbered(number, nodes=4 + 2 * (number % 4)) for number in range(13)]
MORE = [numbered(number, nodes=4 + 2 * (number % 3)) for number in range(20, 26)]


def shares(found: list[Slot]) -> dict[int, int]:
    return {slot.lane: slot.share for slot in found}


@pytest.mark.parametrize(
    ("jobs", "limit", "expected"),
    [
        ((6, 2), 4, [(0, 3), (1, 1)]),
        ((200,), 16, [(0, 16)]),
        ((3,), 16, [(0, 3)]),
        ((100, 1, 1), 2, [(0, 1), (1, 1), (1, 1)]),
        ((1, 1, 1, 1, 1), 1, [(0, 1)] * 5),
        ((100, 1, 1), 3, [(0, 1), (1, 1), (2, 1)]),
    ],
    ids=str,
)
def test_slots(jobs: tuple[int, ...], limit: int, expected: list[tuple[int, int]]) -> None:
    found = slots([Load(jobs=each, minutes=60) for each in jobs], limit)
    assert [(slot.lane, slot.share) for slot in found] == expected


@given(loads=LOADS, limit=st.integers(1, 60))
def test_shares_keep_the_limit_and_waste_none_of_it(loads: list[Load], limit: int) -> None:
    found = slots(loads, limit)
    assert len(found) == len(loads)
    total = sum(shares(found).values())
    assert total <= limit
    widest = Counter[int]()
    for load, slot in zip(loads, found, strict=True):
        widest[slot.lane] = max(widest[slot.lane], load.jobs)
    assert all(1 <= share <= widest[lane] for lane, share in shares(found).items())
    assert total == min(limit, sum(widest.values()))


def test_plan_screen_tells_the_order() -> None:
    jobs = [job(each) for each in MIXED[:5]]
    planned = plan(jobs, max_array_tasks=100, max_parallel=2, canary=False)
    assert [row[-1] for row in plan_rows(planned)] == [
        "up to 1 at once",
        "up to 1 at once",
        "up to 1 after 2",
        "up to 1 after 1",
    ]
    assert planned.most_nodes == 10 + 8
    assert plan_summary(planned, 3)[1:] == [
        "At most 2 jobs at once; Slurm starts an array when those it comes after are over.",
        "All of it waits for 3 arrays sent before.",
    ]
    two = [job(each) for each in (MIXED[0], MIXED[4])]
    held = plan(two, max_array_tasks=9, max_parallel=1)
    assert [row[-1] for row in plan_rows(held)] == ["up to 1 at once", "held, up to 1 after 1"]
    one = plan(two, max_array_tasks=9, max_parallel=9, canary=False)
    assert plan_summary(one)[1:] == ["At most 2 jobs at once."]
    assert [row[-1] for row in plan_rows(plan(two, max_array_tasks=9))] == ["at once", "held"]


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
@pytest.mark.parametrize("canary", [False, True], ids=["plain", "canary"])
def test_no_more_jobs_at_once_whatever_is_sent_when(
    tmp_path: Path, limit: int, *, canary: bool
) -> None:
    """Slurm alone starts what may start; clients come by to send more and to release."""
    cluster = FakeCluster()
    folder = sweep_folder(tmp_path, canary=canary, max_parallel=limit)
    submit(folder, cluster, MIXED)
    cluster.run(1)
    submit(folder, cluster, MORE)
    for _ in range(3):
        cluster.run()
        resume(folder, cluster)
    assert states(resume(folder, cluster)) == {PointState.DONE: len(MIXED + MORE)}
    assert cluster.most_at_once == limit
    assert set(cluster.runs.values()) == {1}


def test_retry_waits_for_what_is_on_its_way(tmp_path: Path) -> None:
    cluster = FakeCluster()
    folder = sweep_folder(tmp_path, max_parallel=2)
    cluster.fails[MIXED[0].points[0].id] = "the launcher ended with 3"
    submit(folder, cluster, MIXED[:4])
    cluster.run(1)
    submit(folder, cluster, (), unfinished)
    assert [each.request.after for each in cluster.live()][-1] == ("2", "3", "4")
    cluster.run()
    assert cluster.most_at_once == 2


def test_sending_waits_until_it_is_known_what_runs(tmp_path: Path) -> None:
    cluster = FakeCluster()
    folder = sweep_folder(tmp_path, max_parallel=2)
    submit(folder, cluster, MIXED[:4])
    work = client(folder, cluster)
    work.add(MORE)
    cluster.queue_answers = False
    view = work.look()
    with pytest.raises(ClusterFailure, match="--max-parallel cannot be kept"):
        work.send(view, work.plan(view, never_sent), lambda _name: None)
