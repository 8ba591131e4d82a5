"""What Slurm's commands print and what it is taken to mean."""

from __future__ import annotations

import pytest

from generator.cluster.answers import parse_sacct, parse_sinfo, parse_squeue
from generator.cluster.protocol import NodeProblem, Phase

QUEUE = {
    "7_1|RUNNING|None|n[01-02]|s.t": (Phase.RUNNING, "", ("n01", "n02")),
    "7_2|PENDING|Resources||s.t": (Phase.PENDING, "Resources", ()),
    "7_3|PENDING|JobHeldUser||s.t": (Phase.HELD, "JobHeldUser", ()),
    "7_4|PENDING|launch failed requeued held||s.t": (Phase.HELD, "launch failed requeued held", ()),
    "7_5|PREEMPTED|None|n01|s.t": (Phase.REQUEUED, "", ("n01",)),
    "7_6|NODE_FAIL|NodeDown|n01|s.t": (Phase.REQUEUED, "NodeDown", ("n01",)),
    "7_7|COMPLETING|None|n01|s.t": (Phase.RUNNING, "", ()),
    "7_8|TIMEOUT|TimeLimit|n01|a|b": (Phase.TIME_LIMIT, "TimeLimit", ("n01",)),
    "7_9|NEW_IN_30|None||s.t": (Phase.UNKNOWN, "", ()),
}


@pytest.mark.parametrize(("row", "expected"), QUEUE.items())
def test_the_queue(row: str, expected: tuple[Phase, str, tuple[str, ...]]) -> None:
    (state,) = parse_squeue(f"{row}\n")
    assert (state.phase, state.reason, state.nodes) == expected
    assert state.exit_code is None
    assert state.job_name == row.split("|", 4)[4]


ACCOUNTS = {
    "7_1|COMPLETED|0:0|n01|61|s.t": (Phase.COMPLETED, 0, 0),
    "7_2|FAILED|4:0|n01|61|s.t": (Phase.FAILED, 4, 0),
    "7|OUT_OF_MEMORY|0:125|n01|61|s.t": (Phase.OUT_OF_MEMORY, 0, 125),
    "7_3|CANCELLED by 0|0:15|n01|61|s.t": (Phase.CANCELLED, 0, 15),
    "7_4|CANCELLED+|0:0|None assigned|61|s.t": (Phase.CANCELLED, 0, 0),
    "7_5|NODE_FAIL|1:0|n01|61|s.t": (Phase.NODE_FAILURE, 1, 0),
    "7_6|PREEMPTED|0:0|n01|61|s.t": (Phase.CANCELLED, 0, 0),
    "7_7|REQUEUED|0:0|n01|61|s.t": (Phase.REQUEUED, None, None),
    "7_8|RUNNING|0:0|n01|61|s.t": (Phase.RUNNING, None, None),
    "7_9||0:0|n01|61|s.t": (Phase.UNKNOWN, None, None),
}


@pytest.mark.parametrize(("row", "expected"), ACCOUNTS.items())
def test_accounting(row: str, expected: tuple[Phase, int | None, int | None]) -> None:
    (state,) = parse_sacct(f"{row}\n")
    assert (state.phase, state.exit_code, state.signal) == expected
    assert (state.elapsed_s, state.job_name) == (61, "s.t")


def test_tasks_that_never_began_share_a_row_of_accounting() -> None:
    found = list(parse_sacct("7_[3-5,9]|CANCELLED by 0|0:0|None assigned|0|s.t\n"))
    assert [each.task_id for each in found] == ["7_3", "7_4", "7_5", "7_9"]
    assert {each.phase for each in found} == {Phase.CANCELLED}
    waiting = list(parse_sacct("7_[0-1%4]|PENDING|0:0|None assigned|0|s.t\n"))
    assert [(each.task_id, each.phase) for each in waiting] == [
        ("7_0", Phase.PENDING),
        ("7_1", Phase.PENDING),
    ]
    cut_off = list(parse_sacct("7_[1,3,...]|PENDING|0:0|None assigned|0|s.t\n"))
    assert [each.task_id for each in cut_off] == ["7_1", "7_3"]


def test_other_lines_are_no_jobs() -> None:
    assert not list(parse_sacct("\nwarning\n"))
    assert not list(parse_squeue("\nslurm_load_jobs error\n"))


def test_nodes_in_trouble() -> None:
    rows = "n1|idle|none\nn2|drained|Duplicate jobid\nn2|drained|Duplicate jobid\nn3|idle*|none\n"
    assert list(parse_sinfo(rows)) == [
        NodeProblem(node="n2", state="drained", reason="Duplicate jobid"),
        NodeProblem(node="n3", state="idle*", reason=""),
    ]
