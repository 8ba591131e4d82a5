"""What one look at the cluster and the results makes of a point, state by state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.cluster.job_file import PointResult
from generator.cluster.protocol import JobState, Phase, SbatchParameters, StateReport
from generator.cluster.starts import Start
from generator.sweep.events import (
    Asked,
    CancelledBy,
    End,
    Ended,
    Event,
    Intended,
    IntendedTask,
    Planned,
    PlannedRecipe,
    Requeued,
    Running,
    Submitted,
)
from generator.sweep.failures import Flake, cause_of, is_flake
from generator.sweep.history import history
from generator.sweep.observation import Observation, Unreadable
from generator.sweep.reconciliation import OVERTIME_S, reconcile
from generator.sweep.selection import chosen, failed, flakes, named, unfinished
from generator.sweep.statuses import PointState, PointStatus, point_statuses

POINTS = ("d-c1", "d-c2")
ASKED = Asked(name="tiny", parameters=SbatchParameters(nodes=4, time_minutes=60))
PLANNED = Planned(recipes=(PlannedRecipe(digest="d", name="r", file="r.yaml", points=POINTS),))
INTENDED = Intended(token="t", tasks=(IntendedTask(recipe="d", points=POINTS),), asked=ASKED)
SUBMITTED = Submitted(token="t", job_id="7", task_ids=("7",))
NO_ACCOUNTING = "gone from the queue, and accounting says nothing yet"
SENT: list[Event] = [PLANNED, INTENDED, SUBMITTED]
RAN: list[Event] = [*SENT, Running(token="t", index=0, nodes=("n1",))]


def job(phase: Phase, **more: object) -> JobState:
    state = JobState(task_id="7", phase=phase, state=phase.name, asked="squeue")
    return replace(state, **more)  # type: ignore[arg-type]


def report(*jobs: JobState, queue: bool = True, accounting: bool = True) -> StateReport:
    return StateReport(
        states={each.task_id: each for each in jobs},
        queue_answered=queue,
        accounting_answered=accounting,
    )


def result(
    point: str = "d-c1", status: str = "done", token: str = "t", why: str = ""
) -> PointResult:
    return PointResult(
        token=token,
        point_id=point,
        concurrency=1,
        status=status,
        reason=why,
        exit_code=0 if status == "done" else 3,
        started=0.0,
        ended=1.0,
        job_id="7",
        run=1,
        nodes=("n1",),
        output="",
    )


def after(
    events: list[Event], seen: Observation, *, twice: bool = False
) -> tuple[list[Event], tuple[PointStatus, ...]]:
    """What is recorded, and the statuses, after one look or after the one that settles it."""
    found = reconcile(history(events), seen)
    recorded = [*found.events]
    if twice:
        again = reconcile(history([*events, *recorded]), replace(seen, unsettled=found.unsettled))
        recorded += again.events
        found = again
    seen = replace(seen, unsettled=found.unsettled)
    return recorded, point_statuses(history([*events, *recorded]), seen)


def state_of(
    events: list[Event], seen: Observation, *, twice: bool = True
) -> tuple[PointState, str]:
    _, (first, _) = after(events, seen, twice=twice)
    return first.state, first.why


def look(answer: StateReport | None = None, *results: PointResult, **more: object) -> Observation:
    found = {each.point_id: each for each in results}
    return Observation(results=found, report=answer or report(), **more)  # type: ignore[arg-type]


def started(*restarts: int) -> dict[tuple[str, int], tuple[Start, ...]]:
    """What a job wrote down that began so often, each time on other nodes."""
    starts = (
        Start(token="t", job_id="7", restarts=count, at=0.0, nodes=(f"n{number}",))
        for number, count in enumerate(restarts, 1)
    )
    return {("t", 0): tuple(starts)}


# --- while a job is on its way ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "answer", "expected"),
    [
        ([PLANNED], report(), (PointState.PLANNED, "")),
        (
            [PLANNED, INTENDED],
            report(),
            (PointState.INTENDED, "a client was cut off while it sent this"),
        ),
        (
            SENT,
            report(job(Phase.PENDING, reason="Resources")),
            (PointState.SUBMITTED, "Resources"),
        ),
        (SENT, report(job(Phase.RUNNING, nodes=("n1",))), (PointState.RUNNING, "")),
        (RAN, report(job(Phase.REQUEUED, reason="BeginTime")), (PointState.REQUEUED, "BeginTime")),
        (RAN, report(job(Phase.PENDING, reason="Priority")), (PointState.REQUEUED, "Priority")),
        (SENT, report(job(Phase.UNKNOWN)), (PointState.UNKNOWN, NO_ACCOUNTING)),
        (
            RAN,
            report(queue=False),
            (PointState.UNKNOWN, "the cluster does not answer; last known: running"),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_live_job(
    events: list[Event], answer: StateReport, expected: tuple[PointState, str]
) -> None:
    assert state_of(events, look(answer)) == expected


def test_seeing_the_same_again_records_nothing() -> None:
    answer = report(job(Phase.RUNNING, nodes=("n1",)))
    recorded, _ = after(SENT, look(answer))
    assert recorded == [Running(token="t", index=0, nodes=("n1",))]
    assert after([*SENT, *recorded], look(answer))[0] == []


def test_job_that_is_ending_or_began_again_elsewhere_between_two_looks() -> None:
    assert after(RAN, look(report(job(Phase.RUNNING))))[0] == []  # COMPLETING: nodes are given back
    answer = report(job(Phase.RUNNING, nodes=("n2",)))
    assert after(RAN, look(answer))[0] == [
        Requeued(token="t", index=0, why="it began again on other nodes"),
        Running(token="t", index=0, nodes=("n2",)),
    ]


def test_preempted_job_runs_again_and_is_counted_once() -> None:
    events = list(RAN)
    for answer in (
        report(job(Phase.REQUEUED, reason="PREEMPTED")),
        report(job(Phase.PENDING, reason="BeginTime")),
        report(job(Phase.RUNNING, nodes=("n2",))),
    ):
        events += after(events, look(answer))[0]
    assert events[len(RAN) :] == [
        Requeued(token="t", index=0, why="PREEMPTED"),
        Running(token="t", index=0, nodes=("n2",)),
    ]
    (attempt,) = history(events).arrays["t"].attempts
    assert (attempt.runs, attempt.nodes) == (2, ("n2",))
    _, statuses = after(events, look(report(), result("d-c1"), result("d-c2")))
    assert [each.state for each in statuses] == [PointState.DONE, PointState.DONE]
    assert [each.attempts for each in statuses] == [1, 1]


AGAIN = Requeued(token="t", index=0, why="it began run 2 between two looks")
ON_N2 = Running(token="t", index=0, nodes=("n2",))


@pytest.mark.parametrize(
    "answer",
    [
        report(job(Phase.RUNNING, nodes=("n1",))),
        report(job(Phase.RUNNING)),
        report(job(Phase.PENDING, reason="BeginTime")),
        report(),
        report(queue=False, accounting=False),
    ],
    ids=["the run before", "its end", "between the runs", "already gone", "nothing"],
)
def test_requeue_is_known_of_the_job_itself_whatever_the_queue_told(answer: StateReport) -> None:
    """The queue was asked a moment before the job began again, or has shown neither end."""
    recorded, _ = after(RAN, look(answer, starts=started(0, 1)))
    assert recorded == [AGAIN, ON_N2]
    answer = report(job(Phase.RUNNING, nodes=("n2",)))
    assert after([*RAN, *recorded], look(answer, starts=started(0, 1)))[0] == []


@pytest.mark.parametrize(
    ("starts", "count"),
    [
        (started(0), 0),
        (started(1), 1),  # nothing of the first run began
        (started(0, 0), 1),  # a killed slurmctld forgot to count
        (started(0, 1, 3), 3),
        ({}, 0),
    ],
    ids=str,
)
def test_requeues_of_a_job_that_nobody_looked_at(
    starts: dict[tuple[str, int], tuple[Start, ...]], count: int
) -> None:
    recorded, _ = after(SENT, look(report(), result("d-c1"), result("d-c2"), starts=starts))
    assert [isinstance(each, Requeued) for each in recorded].count(True) == count
    assert [each.state for each in recorded if isinstance(each, Ended)] == [End.DONE] * 2
    assert after([*SENT, *recorded], look(report(), starts=starts))[0] == []


def test_requeue_that_was_seen_is_not_recorded_again() -> None:
    events = [*RAN, Requeued(token="t", index=0, why="PREEMPTED")]
    ending = report(job(Phase.RUNNING))  # COMPLETING: the nodes of the run before come back
    assert after(events, look(ending, starts=started(0)))[0] == []
    answer = report(job(Phase.RUNNING, nodes=("n2",)))
    assert after(events, look(answer, starts=started(0, 1)))[0] == [ON_N2]


# --- how a job ends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "expected", "exit_code"),
    [
        (
            job(Phase.FAILED, state="FAILED", exit_code=4),
            (PointState.FAILED, "exit code 4"),
            4,
        ),
        (job(Phase.FAILED, signal=11, exit_code=0), (PointState.FAILED, "signal 11"), 0),
        (
            job(Phase.FAILED, state="BOOT_FAIL", reason="x"),
            (PointState.FAILED, "BOOT_FAIL: x"),
            None,
        ),
        (job(Phase.TIME_LIMIT), (PointState.FAILED, "time limit"), None),
        (job(Phase.OUT_OF_MEMORY), (PointState.FAILED, "out of memory"), None),
        (job(Phase.NODE_FAILURE), (PointState.FAILED, "node failure"), None),
        (job(Phase.CANCELLED), (PointState.CANCELLED, "cancelled on the cluster"), None),
        (
            job(Phase.COMPLETED, exit_code=0),
            (PointState.LOST, "the job ended well but left no result"),
            None,
        ),
        (None, (PointState.LOST, "gone from the queue without a result"), None),
    ],
    ids=str,
)
def test_job_that_is_over_without_a_result(
    state: JobState | None, expected: tuple[PointState, str], exit_code: int | None
) -> None:
    """The first look never says so: results and accounting may lag behind the queue."""
    seen = look(report(*([state] if state else [])))
    assert state_of(RAN, seen, twice=False) == (
        PointState.UNKNOWN,
        "its job seems over, its result is not there yet",
    )
    _, (first, second) = after(RAN, seen, twice=True)
    assert (first.state, first.why) == (second.state, second.why) == expected
    assert first.exit_code == exit_code


def test_result_that_was_late_is_no_failure() -> None:
    first = reconcile(history(RAN), look(report(job(Phase.FAILED, exit_code=1))))
    assert (first.events, first.unsettled) == ((), frozenset({"7"}))
    late = replace(
        look(report(job(Phase.FAILED, exit_code=1)), result("d-c1")), unsettled=first.unsettled
    )
    second = reconcile(history(RAN), late)
    assert [(each.point, each.state) for each in second.events if isinstance(each, Ended)] == [
        ("d-c1", End.DONE),
        ("d-c2", End.FAILED),
    ]


def test_one_failed_point_of_a_job_leaves_the_others() -> None:
    seen = look(
        report(job(Phase.RUNNING, nodes=("n1",))),
        result("d-c1", "failed", why="the launcher ended with 3"),
    )
    _, (first, second) = after(RAN, seen)
    assert (first.state, first.why, first.exit_code) == (
        PointState.FAILED,
        "the launcher ended with 3",
        3,
    )
    assert second.state is PointState.RUNNING


# --- when something does not answer -----------------------------------------------------------


@pytest.mark.parametrize(
    "seen",
    [
        look(report(queue=False)),
        look(report(queue=False, accounting=False)),
        look(report(job(Phase.FAILED, exit_code=1), queue=False)),
        look(report(accounting=False)),
        look(report(job(Phase.RUNNING, asked="sacct"))),
        look(report(job(Phase.RUNNING, asked="sacct", elapsed_s=3600 + OVERTIME_S))),
        look(report(job(Phase.RUNNING, asked="sacct", elapsed_s=10**6), queue=False)),
        look(report(job(Phase.PENDING, asked="sacct"), accounting=False)),
        look(
            report(job(Phase.PENDING, asked="sacct")),
            starts=started(0),
            at=3600.0 + OVERTIME_S,
        ),
    ],
    ids=[
        "squeue",
        "both",
        "only accounting knows",
        "sacct",
        "sacct lags",
        "its time may not be over",
        "squeue, and sacct never heard the end",
        "sacct has it pending, and lags",
        "sacct has it pending, and its last run may not be over",
    ],
)
def test_silence_ends_nothing(seen: Observation) -> None:
    recorded, (first, _) = after(RAN, seen, twice=True)
    assert not [each for each in recorded if isinstance(each, Ended)]
    assert first.state is PointState.UNKNOWN
    assert chosen([first], unfinished) == {}


def test_job_that_accounting_runs_for_ever_is_lost_once_its_time_is_over() -> None:
    """Its node died while slurmdbd was down: nothing will ever write down its end."""
    seen = look(report(job(Phase.RUNNING, asked="sacct", elapsed_s=3601 + OVERTIME_S)))
    assert state_of(RAN, seen, twice=False)[0] is PointState.UNKNOWN
    state, why = state_of(RAN, seen)
    assert (state, why) == (
        PointState.LOST,
        "gone from the queue without a result; accounting has it RUNNING for 90 of its 60 minutes",
    )
    assert chosen([status(state, why=why)], unfinished) == {"p": f"lost: {why}"}


@pytest.mark.parametrize(
    ("starts", "at", "told"),
    [
        ({}, 0.0, "and it never began"),
        (started(0), 3660.0 + OVERTIME_S, "and its last run began 91 minutes ago"),
    ],
    ids=["never began", "began once"],
)
@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.HELD, Phase.REQUEUED])
def test_job_that_waits_in_accounting_alone_is_lost(
    phase: Phase, starts: dict[tuple[str, int], tuple[Start, ...]], at: float, told: str
) -> None:
    """Its controller lost it, as one that is killed loses its last seconds."""
    seen = look(report(job(phase, state="PENDING", asked="sacct")), starts=starts, at=at)
    assert state_of(RAN, seen, twice=False)[0] is PointState.UNKNOWN
    state, why = state_of(RAN, seen)
    gone = "gone from the queue without a result; accounting still calls it PENDING"
    assert (state, why) == (PointState.LOST, f"{gone}, {told}")


def test_job_over_its_time_that_the_queue_still_has_is_not_lost() -> None:
    seen = look(report(job(Phase.RUNNING, nodes=("n1",), elapsed_s=10**6)))
    assert state_of(RAN, seen) == (PointState.RUNNING, "")


def test_result_counts_while_nothing_answers() -> None:
    silent = report(queue=False, accounting=False)
    assert state_of(RAN, look(silent, result("d-c1"))) == (PointState.DONE, "")


def test_without_accounting_a_job_that_is_gone_is_lost() -> None:
    seen = look(report(accounting=False), has_accounting=False)
    assert state_of(RAN, seen) == (
        PointState.LOST,
        "gone from the queue without a result, and no accounting says why",
    )


def test_unreadable_result_is_neither_done_nor_lost() -> None:
    seen = Observation(
        results={"d-c1": Unreadable(why="result.json: is not JSON")}, report=report()
    )
    recorded, (first, second) = after(RAN, seen, twice=True)
    assert (first.state, first.why) == (PointState.UNKNOWN, "result.json: is not JSON")
    assert second.state is PointState.LOST
    assert [each.point for each in recorded if isinstance(each, Ended)] == ["d-c2"]


# --- results and attempts ---------------------------------------------------------------------

LOST = Ended(state=End.LOST, point="d-c1", token="t", index=0, why="gone")


def test_result_of_a_point_that_was_given_up_makes_it_done() -> None:
    recorded, (first, _) = after([*RAN, LOST], look(report(), result("d-c1")))
    assert recorded[0] == Ended(state=End.DONE, point="d-c1", token="t", index=0)
    assert first.state is PointState.DONE


def test_done_without_its_result_is_lost() -> None:
    done = Ended(state=End.DONE, point="d-c1", token="t", index=0)
    expected = (PointState.LOST, "it was done, but its result is gone")
    assert state_of([*RAN, done], look(report(job(Phase.RUNNING)))) == expected


def test_failure_of_an_earlier_attempt_does_not_end_a_later_one() -> None:
    failure = Ended(state=End.FAILED, point="d-c1", token="t", index=0, why="x", cause="x")
    again = Intended(token="u", tasks=(IntendedTask(recipe="d", points=("d-c1",)),), asked=ASKED)
    events = [*RAN, failure, again, Submitted(token="u", job_id="8", task_ids=("8",))]
    answer = report(replace(job(Phase.PENDING), task_id="8"))
    _, (first, _) = after(events, look(answer, result("d-c1", "failed", why="x")))
    assert (first.state, first.task_id, first.attempts) == (PointState.SUBMITTED, "8", 2)


# --- what is sent again -----------------------------------------------------------------------


def status(state: PointState, **more: object) -> PointStatus:
    return replace(PointStatus(point="p", recipe="d", state=state), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (status(PointState.PLANNED), "never submitted"),
        (status(PointState.LOST, why="gone"), "lost: gone"),
        (status(PointState.FAILED, why="time limit"), "failed: time limit"),
        (status(PointState.CANCELLED, why="x", by=CancelledBy.CLUSTER), "cancelled: x"),
        (status(PointState.CANCELLED, why="x", by=CancelledBy.SWEEP), "cancelled: x"),
        (status(PointState.CANCELLED, by=CancelledBy.USER), None),
        *((status(each), None) for each in PointState if each not in
          (PointState.PLANNED, PointState.LOST, PointState.FAILED, PointState.CANCELLED)),
    ],
    ids=lambda value: f"{value.state}-{value.by}" if isinstance(value, PointStatus) else "",
)  # fmt: skip
def test_resumption_takes(given: PointStatus, why: str | None) -> None:
    assert chosen([given], unfinished) == ({"p": why} if why else {})


def test_retry_takes_failures_or_what_is_named() -> None:
    listed = [
        status(PointState.FAILED, point="a", why="x"),
        status(PointState.CANCELLED, point="b", by=CancelledBy.USER),
        status(PointState.RUNNING, point="c"),
    ]
    assert chosen(listed, failed) == {"a": "failed: x"}
    assert chosen(listed, named(["b", "c"])) == {"b": "cancelled"}


@pytest.mark.parametrize(
    ("why", "tail", "cause"),
    [
        ("the launcher ended with 1", 'srun: error: Unable to resolve "n3"', Flake.NODE_ADDRESS),
        ("the launcher ended with 1", "pyxis: failed to import image", Flake.CONTAINER_START),
        ("node failure", "", Flake.NODE),
        ("NODE_FAIL", "", Flake.NODE),
        ("time limit of 60 minutes", "", "time limit"),
        ("the launcher ended with 3", "Traceback", "the launcher ended with 3"),
        ("no result in /out/123/logs of n7", "", "no result in * of *"),
    ],
)  # fmt: skip
def test_cause(why: str, tail: str, cause: str) -> None:
    assert cause_of(why, tail) == cause
    assert is_flake(cause) == isinstance(cause, Flake)


def test_flake_is_retried_once() -> None:
    failure = Ended(
        state=End.FAILED, point="d-c1", token="t", index=0, why="x", cause=Flake.NODE_ADDRESS
    )
    one = [*RAN, failure]
    flaky = status(PointState.FAILED, point="d-c1", cause="node address")
    assert chosen([flaky], flakes(history(one))) == {
        "d-c1": "failed: node address, one more attempt"
    }
    again = Intended(token="u", tasks=(IntendedTask(recipe="d", points=("d-c1",)),), asked=ASKED)
    two = [*one, again, replace(failure, token="u")]
    assert chosen([flaky], flakes(history(two))) == {}
