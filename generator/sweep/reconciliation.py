"""The ledger against the cluster's answer and the result files: what is new to record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.cluster.job_file import DONE, PointResult
from generator.cluster.protocol import JobState, Phase
from generator.cluster.starts import Start, requeues
from generator.sweep.events import CancelledBy, End, Ended, Event, Requeued, Running
from generator.sweep.failures import cause_of
from generator.sweep.history import Attempt, History, Seen
from generator.sweep.observation import Observation, Unreadable
from generator.wording import plural

# Slurm ends a job within minutes of its limit; the rest is for clocks that disagree.
OVERTIME_S = 1800
_WAITING = (Phase.PENDING, Phase.HELD, Phase.REQUEUED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Events for the ledger, and the jobs that seem over while points of theirs lack a result.

    ``unsettled`` are task ids. Files and accounting lag behind the queue, so such a job is called
    ended only when a later look finds it so again.
    """

    events: tuple[Event, ...]
    unsettled: frozenset[str]


def reconcile(history: History, seen: Observation) -> Reconciliation:
    """What the ledger does not know yet; ``seen.unsettled`` comes from a look seconds before.

    Only a result makes a point done, and nothing makes it undone. Silence of the cluster ends
    nothing.
    """
    events: list[Event] = list(_late_results(history, seen))
    unsettled: set[str] = set()
    for attempt in history.all_attempts():
        job = seen.job(attempt.task_id, attempt.token)
        starts = seen.starts_of(attempt.token, attempt.index)
        missed = list(_missed_requeues(attempt, starts))
        events += missed
        if not attempt.open_points:
            continue
        events += _came_back(attempt, starts) if missed else _progress(attempt, job)
        given = [ended for point in attempt.open_points if (ended := _given(point, attempt, seen))]
        events += given
        waiting = _without_result(attempt, seen) - {ended.point for ended in given}
        verdict = _verdict(job, seen, starts, history.time_limit_s(attempt))
        if not waiting or verdict is None or attempt.task_id is None:
            continue
        if attempt.task_id in seen.unsettled:
            events += (
                _ended(attempt, point, verdict) for point in attempt.points if point in waiting
            )
        else:
            unsettled.add(attempt.task_id)
    return Reconciliation(events=tuple(events), unsettled=frozenset(unsettled))


def _without_result(attempt: Attempt, seen: Observation) -> set[str]:
    """The open points of which surely no result can be read."""
    return {
        point
        for point in attempt.open_points
        if not isinstance(seen.results.get(point), Unreadable)
    }


def _late_results(history: History, seen: Observation) -> Iterator[Ended]:
    """Results of points that had been given up."""
    for point, attempt in history.latest_attempts().items():
        result = seen.results.get(point)
        if point in attempt.open_points or not isinstance(result, PointResult):
            continue
        if result.status == DONE and attempt.ended[point].state is not End.DONE:
            yield _result_end(attempt, point, result)


def _given(point: str, attempt: Attempt, seen: Observation) -> Ended | None:
    """How the point's result ends this attempt; a failure counts for the attempt that wrote it."""
    result = seen.results.get(point)
    if not isinstance(result, PointResult):
        return None
    if result.status != DONE and result.token != attempt.token:
        return None
    return _result_end(attempt, point, result)


def _result_end(attempt: Attempt, point: str, result: PointResult) -> Ended:
    if result.status == DONE:
        return Ended(state=End.DONE, point=point, token=attempt.token, index=attempt.index)
    return Ended(
        state=End.FAILED,
        point=point,
        token=attempt.token,
        index=attempt.index,
        why=result.reason,
        cause=cause_of(result.reason, result.log_tail),
        exit_code=result.exit_code,
    )


def _missed_requeues(attempt: Attempt, starts: Sequence[Start]) -> Iterator[Requeued]:
    """Returns to the queue that nobody saw there: the job itself wrote down that it began again."""
    for number in range(attempt.requeues, requeues(starts)):
        why = f"it began run {number + 2} between two looks"
        yield Requeued(token=attempt.token, index=attempt.index, why=why)


def _came_back(attempt: Attempt, starts: Sequence[Start]) -> Iterator[Running]:
    """The run that followed. The queue was asked before, and may have told of an earlier one."""
    yield Running(token=attempt.token, index=attempt.index, nodes=starts[-1].nodes)


def _progress(attempt: Attempt, job: JobState | None) -> Iterator[Event]:
    """A job that has come further than the ledger knows, or fell back into the queue."""
    where = {"token": attempt.token, "index": attempt.index}
    if job is None:
        return
    if job.phase is Phase.RUNNING:
        if attempt.seen is Seen.REQUEUED and not job.nodes:
            return  # the end of the run before
        moved = attempt.seen is Seen.RUNNING and job.nodes and job.nodes != attempt.nodes
        if moved and attempt.nodes:
            yield Requeued(**where, why="it began again on other nodes")  # type: ignore[arg-type]
        if moved or attempt.seen is not Seen.RUNNING:
            yield Running(**where, nodes=job.nodes)  # type: ignore[arg-type]
    elif _is_back_in_the_queue(attempt, job):
        yield Requeued(**where, why=job.reason or job.state)  # type: ignore[arg-type]


def _is_back_in_the_queue(attempt: Attempt, job: JobState) -> bool:
    if job.phase is Phase.REQUEUED:
        return attempt.seen is not Seen.REQUEUED
    return job.phase in (Phase.PENDING, Phase.HELD) and attempt.seen is Seen.RUNNING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """What is to be said of the points that a job left without a result."""

    state: End
    why: str
    cause: str = ""
    exit_code: int | None = None


def _verdict(
    job: JobState | None, seen: Observation, starts: Sequence[Start], limit_s: int
) -> _Verdict | None:
    """How a job ended, if it surely did; None for a live one and wherever an answer is missing."""
    report = seen.report
    if report is None or not report.queue_answered:
        return None
    if job is not None and job.phase in _WAITING and job.asked == "sacct":
        return _never_to_run(job, seen, starts, limit_s) if report.accounting_answered else None
    if job is not None:
        return _forgotten(job, limit_s) or _verdict_of(job)
    if not seen.has_accounting:
        return _lost("gone from the queue without a result, and no accounting says why")
    if not report.accounting_answered:
        return None
    return _lost("gone from the queue without a result")


def _forgotten(job: JobState, limit_s: int) -> _Verdict | None:
    """A job of which accounting never heard the end: it would run for ever there.

    The queue has lost it, and it would be over by now whatever had become of it.
    """
    if job.phase is not Phase.RUNNING or job.asked != "sacct" or job.elapsed_s is None:
        return None
    if job.elapsed_s <= limit_s + OVERTIME_S:
        return None
    minutes = f"{job.elapsed_s // 60:,} of its {plural(limit_s // 60, 'minute')}"
    return _lost(
        f"gone from the queue without a result; accounting has it {job.state} for {minutes}"
    )


def _never_to_run(
    job: JobState, seen: Observation, starts: Sequence[Start], limit_s: int
) -> _Verdict | None:
    """A job that waits in accounting alone: Slurm's controller has lost it and will not start it.

    One that never began is lost at once. A run that did begin may go on where the controller does
    not see it, until its time is over.
    """
    gone = f"gone from the queue without a result; accounting still calls it {job.state}"
    if not starts:
        return _lost(f"{gone}, and it never began")
    since_s = seen.at - starts[-1].at
    if since_s <= limit_s + OVERTIME_S:
        return None
    return _lost(f"{gone}, and its last run began {since_s // 60:,.0f} minutes ago")


def _verdict_of(job: JobState) -> _Verdict | None:
    if job.phase.is_live:
        return None
    match job.phase:
        case Phase.COMPLETED:
            return _lost("the job ended well but left no result")
        case Phase.CANCELLED:
            told = job.reason if job.asked == "queue" else ""  # Slurm's words are for its users
            return _Verdict(state=End.CANCELLED, why=told or "cancelled on the cluster")
        case Phase.TIME_LIMIT | Phase.OUT_OF_MEMORY | Phase.NODE_FAILURE:
            why = job.phase.value
        case _:
            why = _failure(job)
    return _Verdict(state=End.FAILED, why=why, cause=cause_of(why), exit_code=job.exit_code)


def _failure(job: JobState) -> str:
    if job.signal:
        return f"signal {job.signal}"
    if job.exit_code:
        return f"exit code {job.exit_code}"
    return f"{job.state}: {job.reason}" if job.reason else job.state


def _lost(why: str) -> _Verdict:
    return _Verdict(state=End.LOST, why=why)


def _ended(attempt: Attempt, point: str, verdict: _Verdict) -> Ended:
    return Ended(
        state=verdict.state,
        point=point,
        token=attempt.token,
        index=attempt.index,
        why=verdict.why,
        cause=verdict.cause,
        exit_code=verdict.exit_code,
        by=CancelledBy.CLUSTER if verdict.state is End.CANCELLED else None,
    )
