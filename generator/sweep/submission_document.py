"""``pdrecipe submit --json``, and ``resume`` and ``retry``: a plan and what became of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from generator.sweep.folder import SweepFolder, SweepSettings
from generator.sweep.history import Attempt, History
from generator.sweep.looking import Look
from generator.sweep.planning import Plan, PlannedArray, PlannedJob
from generator.sweep.statuses import PointState


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A plan made of a look at the sweep.

    ``waits_for`` are job ids of arrays that come first. ``scripts`` has, by array, what would be
    sent, and is empty unless nothing was to be; ``history`` is the one after sending, None where
    nothing was sent.
    """

    command: str
    plan: Plan
    look: Look
    waits_for: tuple[str, ...] = ()
    is_dry: bool = False
    scripts: tuple[str, ...] = ()
    history: History | None = None

    def dry(self, scripts: tuple[str, ...]) -> Submission:
        """The same, only described."""
        return replace(self, is_dry=True, scripts=scripts)

    def after(self, history: History) -> Submission:
        """The same, sent."""
        return replace(self, history=history)


def submission_document(
    folder: SweepFolder, settings: SweepSettings, submission: Submission
) -> dict[str, Any]:
    """The document that ``schemas/submission.schema.json`` describes."""
    plan = submission.plan
    going = {point for job in plan.jobs for point in job.points}
    left = Counter(each.state for each in submission.look.statuses if each.point not in going)
    return {
        "version": 1,
        "command": submission.command,
        "sweep": settings.name,
        "folder": str(folder.root),
        "cluster": settings.cluster,
        "dry_run": submission.is_dry,
        "sent": submission.history is not None,
        "jobs": len(plan.jobs),
        "points": plan.points,
        "gpu_hours": plan.gpu_hours,
        "most_nodes": plan.most_nodes,
        "held_jobs": plan.held_jobs,
        "max_parallel": plan.max_parallel or None,
        "waits_for": list(submission.waits_for),
        "arrays": [_array(submission, place) for place in range(len(plan.arrays))],
        "left_out": {state.value: left[state] for state in PointState},
        "notices": list(submission.look.notices),
    }


def _array(submission: Submission, place: int) -> dict[str, Any]:
    array = submission.plan.arrays[place]
    attempts = _attempts(array, submission.history)
    token = attempts[0].token if attempts else None
    known = submission.history.arrays[token] if submission.history and token else None
    return {
        "nodes": array.parameters.nodes,
        "time_limit_minutes": array.parameters.time_minutes,
        "segment": array.parameters.segment,
        "gpu_hours": sum(job.gpu_hours for job in array.jobs),
        "held": array.held,
        "max_parallel": array.max_parallel or None,
        "after": list(submission.plan.before(place)),
        "token": token,
        "job": known.submitted.job_id if known and known.submitted else None,
        "script": submission.scripts[place] if submission.scripts else None,
        "jobs": [
            _job(job, attempts[index].task_id if attempts else None)
            for index, job in enumerate(array.jobs)
        ],
    }


def _attempts(array: PlannedArray, known: History | None) -> list[Attempt]:
    """The jobs of an array by index, once it was sent."""
    if known is None:
        return []
    latest = known.latest_attempts()
    return [latest[job.points[0]] for job in array.jobs]


def _job(job: PlannedJob, task_id: str | None) -> dict[str, Any]:
    return {
        "recipe": job.recipe.name,
        "file": job.recipe.file,
        "configuration": job.configuration,
        "points": list(job.points),
        "why": job.why,
        "gpu_hours": job.gpu_hours,
        "job": task_id,
    }
