"""Where every point of a sweep stands, and since when nothing more is known of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from generator.cluster.job_file import DONE, PointResult
from generator.cluster.protocol import JobState, Phase
from generator.sweep.events import CancelledBy, End, Ended
from generator.sweep.history import Attempt, History, Seen
from generator.sweep.observation import Observation, Unreadable


class PointState(StrEnum):
    """What is known of a point; all but ``planned`` and ``unknown`` are words of the ledger."""

    PLANNED = "planned"  # never sent
    INTENDED = "intended"  # sent or not: a client was killed, or is at it
    SUBMITTED = "submitted"
    RUNNING = "running"
    REQUEUED = "requeued"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointStatus:
    """One point. ``why`` explains its state, ``attempts`` counts submissions.

    ``task_id``, ``token`` and ``index`` name the job of the latest attempt, where there is one.
    """

    point: str
    recipe: str
    state: PointState
    why: str = ""
    cause: str = ""
    attempts: int = 0
    token: str = ""
    index: int = 0
    task_id: str = ""
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    by: CancelledBy | None = None


_FROM_SEEN = {
    Seen.INTENDED: PointState.INTENDED,
    Seen.SUBMITTED: PointState.SUBMITTED,
    Seen.RUNNING: PointState.RUNNING,
    Seen.REQUEUED: PointState.REQUEUED,
}
_FROM_END = {
    End.DONE: PointState.DONE,
    End.FAILED: PointState.FAILED,
    End.CANCELLED: PointState.CANCELLED,
    End.LOST: PointState.LOST,
}


def point_statuses(history: History, seen: Observation) -> tuple[PointStatus, ...]:
    """Every point in the order of the plan."""
    attempts = Counter(point for each in history.all_attempts() for point in each.points)
    latest = history.latest_attempts()
    return tuple(
        _status(point, latest[point], attempts[point], seen)
        if point in latest
        else _never_sent(point, recipe, seen)
        for point, recipe in history.points.items()
    )


def _never_sent(point: str, recipe: str, seen: Observation) -> PointStatus:
    """A point without an attempt; what lies in the place of its result is not its own."""
    state, why = _by_result(point, seen) or (PointState.PLANNED, "")
    return PointStatus(point=point, recipe=recipe, state=state, why=why)


def _status(point: str, attempt: Attempt, attempts: int, seen: Observation) -> PointStatus:
    ended = attempt.ended.get(point)
    job = seen.job(attempt.task_id, attempt.token)
    state, why = _by_result(point, seen) or (
        _by_ledger(ended, job) if ended else _by_cluster(attempt, job, seen)
    )
    failure = ended if ended is not None and state is not PointState.DONE else None
    return PointStatus(
        point=point,
        recipe=attempt.recipe,
        state=state,
        why=why,
        cause=failure.cause if failure else "",
        attempts=attempts,
        token=attempt.token,
        index=attempt.index,
        task_id=attempt.task_id or "",
        nodes=job.nodes if job and job.nodes else attempt.nodes,
        exit_code=failure.exit_code if failure else None,
        by=failure.by if failure else None,
    )


def _by_result(point: str, seen: Observation) -> tuple[PointState, str] | None:
    """A point is done when there is a result, and only then."""
    result = seen.results.get(point)
    if isinstance(result, PointResult) and result.status == DONE:
        return PointState.DONE, ""
    if isinstance(result, Unreadable):
        return PointState.UNKNOWN, result.why
    return None


def _by_ledger(ended: Ended, job: JobState | None) -> tuple[PointState, str]:
    if ended.state is End.CANCELLED and job and job.phase.is_live and job.asked != "sacct":
        return PointState.CANCELLED, f"{ended.why}; its job is not gone yet"
    if ended.state is End.DONE:
        return PointState.LOST, "it was done, but its result is gone"
    return _FROM_END[ended.state], ended.why


def _by_cluster(
    attempt: Attempt, job: JobState | None, seen: Observation
) -> tuple[PointState, str]:
    """The state of a point whose job may still run, by what the cluster answered."""
    state = _FROM_SEEN[attempt.seen]
    if state is PointState.INTENDED:
        return state, "a client was cut off while it sent this"
    if silence := _silence(state, attempt, job, seen):
        return PointState.UNKNOWN, silence
    if attempt.is_held:
        return state, "held until a job of its configuration is healthy"
    return state, job.reason if job and state is not PointState.RUNNING else ""


def _silence(state: PointState, attempt: Attempt, job: JobState | None, seen: Observation) -> str:
    """Why nothing can be said of a job that was submitted; empty where something can."""
    report = seen.report
    if report is None:
        return ""
    if not report.queue_answered:
        return f"the cluster does not answer; last known: {state}"
    if attempt.task_id in seen.unsettled:
        return "its job seems over, its result is not there yet"
    if job is None or job.phase is Phase.UNKNOWN:
        return "gone from the queue, and accounting says nothing yet"
    if job.phase.is_live and job.asked == "sacct":
        return f"gone from the queue, and accounting still calls it {job.state}"
    return ""
