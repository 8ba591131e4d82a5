"""One look at a sweep: the ledger, the cluster, the result files, and what they say together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from generator.cluster.job_file import RESULT_FILE, PointResult, read_result
from generator.cluster.protocol import Cluster, StateReport
from generator.cluster.starts import Start, read_starts
from generator.errors import ClusterFailure, InvalidInput, Problem
from generator.files import pasted
from generator.sweep.events import End, Event
from generator.sweep.folder import SweepFolder
from generator.sweep.history import Array, History, history
from generator.sweep.observation import Observation, Unreadable
from generator.sweep.reconciliation import reconcile
from generator.sweep.statuses import PointStatus, point_statuses
from generator.wording import plural

# Accounting shows the end of an array's job up to 4 s after its result (measured, Slurm 22.05).
SETTLING_S = 5.0

Pause = Callable[[float], None]

Progress = Callable[[str, int], AbstractContextManager[Callable[[str], None]]]
"""Shows how far work of a label and so many items is; each item is told as it is done."""


@contextmanager
def unseen(_label: str, _items: int) -> Iterator[Callable[[str], None]]:
    """The progress that nobody watches."""
    yield lambda _item: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a sweep looks like. ``notices`` are worth telling: a torn line, a silent cluster."""

    history: History
    observation: Observation
    statuses: tuple[PointStatus, ...]
    notices: tuple[str, ...]


def look(folder: SweepFolder, cluster: Cluster, pause: Pause, progress: Progress = unseen) -> Look:
    """See how the sweep stands and record what is new; the caller holds the sweep's lock.

    Where jobs seem over without a result, a second look is taken after ``SETTLING_S``.
    """
    text = folder.ledger.read()
    first = observe(folder, history(text.events), cluster, progress)
    known, seen = _recorded(folder, history(text.events), text.events, first)
    if seen.unsettled:
        pause(SETTLING_S)
        events = folder.ledger.read().events
        again = observe(folder, known, cluster, progress)
        known, seen = _recorded(folder, known, events, replace(again, unsettled=seen.unsettled))
    return _look(known, seen, text.notice)


def glance(
    folder: SweepFolder,
    cluster: Cluster,
    planned: Iterable[Event] = (),
    progress: Progress = unseen,
) -> Look:
    """See how the sweep stands, and would with events that are only ``planned``.

    Nothing is recorded: another client may be at work on it.
    """
    text = folder.ledger.read()
    events = [*text.events, *planned]
    state = history(events)
    seen = observe(folder, state, cluster, progress)
    found = reconcile(state, seen)
    after = history([*events, *found.events])
    return _look(after, replace(seen, unsettled=found.unsettled), text.notice)


def observe(
    folder: SweepFolder, state: History, cluster: Cluster, progress: Progress
) -> Observation:
    """The cluster's answer about every job that may be alive, then the results, then the starts.

    In this order: a job that the cluster says is over has written its results before, and a result
    comes after the start of its run.
    """
    arrays = [each for each in state.arrays.values() if each.submitted and _may_matter(each)]
    at = time.time()
    report = cluster.states([each.submitted.job_id for each in arrays if each.submitted])
    with progress("reading results", len(state.points)) as tick:
        results = read_results(folder, state, tick)
    return Observation(
        results=results,
        report=report,
        starts=_starts(folder, arrays),
        at=at,
        has_accounting=not arrays or _has_accounting(cluster, report),
    )


def _has_accounting(cluster: Cluster, report: StateReport) -> bool:
    """Whether sacct can ever answer; a silent controller is not asked again, that takes 10 s."""
    try:
        return not report.queue_answered or cluster.features().accounting
    except ClusterFailure:
        return True


def read_results(
    folder: SweepFolder, state: History, tick: Callable[[str], None]
) -> dict[str, PointResult | Unreadable]:
    """What the points' folders hold; a point without a result is absent.

    A result counts only where the ledger has an attempt of its token at its point.
    """
    results: dict[str, PointResult | Unreadable] = {}
    tokens = state.tokens()
    for point in state.points:
        tick(point)
        try:
            result = read_result(folder.point(point))
        except InvalidInput as error:
            hint = f"delete it, then {_resumption(folder)}"
            told = InvalidInput(replace(each, hint=hint) for each in error.problems)
            results[point] = Unreadable(why=str(told))
            continue
        if result is not None:
            is_ours = result.token in tokens.get(point, ())
            results[point] = result if is_ours else _foreign(folder, point, result)
    return results


def _foreign(folder: SweepFolder, point: str, result: PointResult) -> Unreadable:
    """A result that no job of this sweep can have written."""
    message = f"is of a submission {result.token!r} that the ledger does not have for this point"
    hint = f"restore the ledger it belongs to, or delete the file, then {_resumption(folder)}"
    problem = Problem(message=message, hint=hint, source=str(folder.point(point) / RESULT_FILE))
    return Unreadable(why=str(InvalidInput(problem)))


def _resumption(folder: SweepFolder) -> str:
    """The command to paste."""
    return f"pdrecipe resume {pasted(folder.root)}"


def _starts(
    folder: SweepFolder, arrays: Iterable[Array]
) -> dict[tuple[str, int], tuple[Start, ...]]:
    return {
        (each.token, each.index): starts
        for array in arrays
        for each in array.attempts
        if (starts := read_starts(folder.job(each.token, each.index), each.token))
    }


def _may_matter(array: Array) -> bool:
    """Whether a job of an array may still be alive: one with a point that is not done."""
    return any(
        point not in attempt.ended or attempt.ended[point].state is not End.DONE
        for attempt in array.attempts
        for point in attempt.points
    )


def _recorded(
    folder: SweepFolder,
    state: History,
    events: tuple[Event, ...],
    seen: Observation,
) -> tuple[History, Observation]:
    """The history with what one look adds to it, and that look with the jobs still to settle."""
    found = reconcile(state, seen)
    folder.ledger.append(found.events)
    after = history([*events, *found.events]) if found.events else state
    return after, replace(seen, unsettled=found.unsettled)


def _look(state: History, seen: Observation, torn: str) -> Look:
    notices = [torn] if torn else []
    if state.foreign:
        passed = plural(state.foreign, "line")
        notices.append(f"passed over in the ledger: {passed} of a newer pdrecipe")
    if seen.report is not None:
        notices += seen.report.problems
    return Look(
        history=state,
        observation=seen,
        statuses=point_statuses(state, seen),
        notices=tuple(notices),
    )
