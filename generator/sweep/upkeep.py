"""What a sweep needs between submission and end: releases, stops, and jobs put down for good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from generator.cluster.protocol import Cluster, JobState, Phase, StateReport
from generator.errors import ClusterFailure, Problem
from generator.sweep.events import CancelledBy, End, Ended, Event, Released
from generator.sweep.failures import Flake
from generator.sweep.folder import SweepFolder
from generator.sweep.history import Attempt, History
from generator.sweep.looking import Look, Pause
from generator.sweep.observation import Observation
from generator.wording import plural

_POLL_S = 1.0
_MOST_POLLS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Duties:
    """What is to be done: events for the ledger first, then releases and cancellations by id.

    ``said`` tells the user what happens and why.
    """

    events: tuple[Event, ...] = ()
    release: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def duties(look: Look, stop_after: int) -> Duties:
    """What the sweep needs now; nothing where the cluster did not answer."""
    report = look.observation.report
    if report is None or not report.queue_answered:
        return Duties()
    stop = _stop(look, stop_after)
    ended = {(event.token, event.index) for event in stop.events if isinstance(event, Ended)}
    release = _releases(look, ended)
    return Duties(
        events=(*stop.events, *release.events),
        release=release.release,
        cancel=(*stop.cancel, *_undead(look.history, look.observation)),
        said=(*stop.said, *release.said),
    )


def perform(folder: SweepFolder, cluster: Cluster, due: Duties) -> None:
    """Do it: recorded first, so that a client killed here is followed by one that goes on."""
    folder.ledger.append(due.events)
    if due.cancel:
        cluster.cancel(due.cancel)
    if due.release:
        cluster.release(due.release)


def healthy_configurations(history: History) -> frozenset[str]:
    """Configurations of which a job gave a result."""
    return frozenset(
        attempt.configuration
        for attempt in history.all_attempts()
        if any(ended.state is End.DONE for ended in attempt.ended.values())
    )


def like_failures(history: History, since: int = 0) -> Counter[str]:
    """In how many jobs each cause of failure was met, after that place in the ledger.

    Only the latest attempt at a point counts: what was tried again is forgotten.
    """
    met = {
        (attempt.token, attempt.index, ended.cause)
        for point, attempt in history.latest_attempts().items()
        if (ended := attempt.ended.get(point)) is not None
        and ended.state is End.FAILED
        and ended.cause
        and attempt.ended_at[point] > since
    }
    return Counter(cause for _, _, cause in met)


def put_down(cluster: Cluster, history: History, points: Iterable[str], pause: Pause) -> None:
    """Make sure that the last jobs of points to be sent anew are over: Slurm may bring them back.

    Raises ClusterFailure where that cannot be seen.
    """
    latest = history.latest_attempts()
    attempts = [latest[point] for point in points if point in latest]
    wanted = {each.task_id: each.token for each in attempts if each.task_id and _may_return(each)}
    if not wanted:
        return
    submitted = {token: history.arrays[token].submitted for token in wanted.values()}
    job_ids = sorted(each.job_id for each in submitted.values() if each is not None)
    for _ in range(_MOST_POLLS):
        report = cluster.states(job_ids)
        alive = [
            task_id
            for task_id, token in sorted(wanted.items())
            if is_alive(report.job(task_id, token))
        ]
        if report.queue_answered and not alive:
            return
        if alive:
            cluster.cancel(alive)
        pause(_POLL_S)
    message = f"not surely gone: {plural(len(wanted), 'job')} that the sweep gave up"
    raise ClusterFailure(Problem(message=message, hint="try again when the cluster answers"))


def live_arrays(history: History, report: StateReport) -> tuple[str, ...]:
    """The job ids of arrays of which a job may still run."""
    return tuple(
        array.submitted.job_id
        for array in history.arrays.values()
        if array.submitted is not None
        and any(
            each.open_points or is_alive(report.job(each.task_id, each.token))
            for each in array.attempts
        )
    )


def is_alive(job: JobState | None) -> bool:
    """Whether the queue has a job; accounting may still name one that is long gone."""
    return job is not None and job.phase.is_live and job.asked != "sacct"


def _may_return(attempt: Attempt) -> bool:
    return not attempt.open_points and any(
        ended.state is End.LOST or ended.cause == Flake.NODE for ended in attempt.ended.values()
    )


# --- canaries ---------------------------------------------------------------------------------


def _releases(look: Look, ended: set[tuple[str, int]]) -> Duties:
    """Held jobs whose canary is healthy, and jobs that Slurm held after a failed launch."""
    healthy = healthy_configurations(look.history)
    events: list[Event] = []
    release: list[str] = []
    for attempt in look.history.all_attempts():
        job = look.observation.job(attempt.task_id, attempt.token)
        if job is None or job.phase is not Phase.HELD or not attempt.open_points:
            continue
        if (attempt.token, attempt.index) in ended or attempt.task_id is None:
            continue
        if attempt.is_held and attempt.configuration in healthy:
            events.append(Released(token=attempt.token, index=attempt.index))
            release.append(attempt.task_id)
        elif not attempt.is_held and (_was_held(look.history, attempt) or _is_stuck(job)):
            release.append(attempt.task_id)
    said = (f"{plural(len(release), 'held job')} released",) if release else ()
    return Duties(events=tuple(events), release=tuple(release), said=said)


def _was_held(history: History, attempt: Attempt) -> bool:
    """Whether it waited for a canary: a client may have been killed before it released it."""
    return history.arrays[attempt.token].intended.held


def _is_stuck(job: JobState) -> bool:
    return "launch failed" in job.reason.replace("_", " ").lower()


# --- stops ------------------------------------------------------------------------------------


def _stop(look: Look, stop_after: int) -> Duties:
    """Cancel what waits once jobs fail alike too often, or once a canary failed."""
    waiting = _waiting(look)
    for attempt in waiting if stop_after else ():
        since = look.history.arrays[attempt.token].intended_at
        for cause, count in like_failures(look.history, since).most_common(1):
            if count >= stop_after:
                why = f"the sweep stopped itself: {plural(count, 'job')} failed alike: {cause}"
                return _cancelled(waiting, why)
    failed = _failed_canaries(look.history)
    held = [each for each in waiting if each.is_held and each.configuration in failed]
    return _cancelled(held, "the first job of its configuration gave no result")


def _waiting(look: Look) -> list[Attempt]:
    """Jobs in the queue that never ran."""
    phases = (Phase.PENDING, Phase.HELD)
    return [
        attempt
        for attempt in look.history.all_attempts()
        if attempt.open_points
        and (job := look.observation.job(attempt.task_id, attempt.token)) is not None
        and job.phase in phases
        and not attempt.runs
    ]


def _failed_canaries(history: History) -> frozenset[str]:
    """Configurations with no healthy job and none on its way that would tell."""
    told = {attempt.configuration for attempt in history.all_attempts() if not attempt.is_held}
    on_the_way = {
        attempt.configuration
        for attempt in history.all_attempts()
        if not attempt.is_held and attempt.open_points
    }
    return frozenset(told - on_the_way - healthy_configurations(history))


def _cancelled(attempts: list[Attempt], why: str) -> Duties:
    if not attempts:
        return Duties()
    return Duties(
        events=tuple(
            event for attempt in attempts for event in attempt.cancelled(why, CancelledBy.SWEEP)
        ),
        cancel=tuple(attempt.task_id for attempt in attempts if attempt.task_id),
        said=(f"{plural(len(attempts), 'waiting job')} cancelled: {why}",),
    )


def _undead(history: History, seen: Observation) -> tuple[str, ...]:
    """Jobs in the queue that are over by the ledger, or replaced by later ones."""
    latest = history.latest_attempts()
    return tuple(
        attempt.task_id
        for attempt in history.all_attempts()
        if attempt.task_id is not None
        and is_alive(seen.job(attempt.task_id, attempt.token))
        and (_is_cancelled(attempt) or all(latest[each] is not attempt for each in attempt.points))
    )


def _is_cancelled(attempt: Attempt) -> bool:
    return not attempt.open_points and any(
        ended.state is End.CANCELLED for ended in attempt.ended.values()
    )
