"""Sends arrays so that a client killed at any moment loses no job and sends none twice.

The order of effects: job files, the intent in the ledger, the cluster, its answer in the ledger.
Between the last three a client may vanish; ``settle`` then finds out how far it came.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from generator.cluster.job_file import JobFile, JobPoint, Launcher, write_job_file
from generator.cluster.protocol import ArrayRequest, Cluster, SubmittedArray
from generator.errors import ClusterFailure, PdrecipeError, Problem
from generator.sweep.events import Asked, End, Ended, Intended, IntendedTask, Submitted
from generator.sweep.folder import SweepFolder
from generator.sweep.history import Array
from generator.sweep.looking import Pause
from generator.sweep.planning import Plan, PlannedArray
from generator.sweep.points import parse_point

_TOKEN_BYTES = 5
_POLL_S = 1.0
_NEVER_THERE = "it never reached the cluster, or ended without a result"
_MOST_POLLS = 90  # Slurm ends a cancelled job within its KillWait, 30 s by default


def new_token() -> str:
    """A name that no submission had before."""
    return secrets.token_hex(_TOKEN_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """What it takes to send arrays of one sweep; the caller holds its lock."""

    folder: SweepFolder
    name: str
    cluster: Cluster
    launcher: Launcher
    pause: Pause
    token: Callable[[], str] = new_token

    def send(self, plan: Plan, tick: Callable[[str], None], after: tuple[str, ...] = ()) -> None:
        """Send every array of a plan; ``tick`` hears of each job.

        ``after`` are ids of arrays that must be over first. Raises ClusterFailure where the cluster
        refuses one: those before it are on their way, and nothing of it or after it is.
        """
        sent: list[str] = []
        for place, array in enumerate(plan.arrays):
            before = (*after, *(sent[each] for each in plan.before(place)))
            sent.append(self._send_array(array, before))
            for job in array.jobs:
                tick(job.recipe.name)

    def request(self, token: str, array: PlannedArray, after: tuple[str, ...] = ()) -> ArrayRequest:
        """What the cluster is asked for one array."""
        return ArrayRequest(
            token=token,
            name=self.name,
            folder=self.folder.array(token),
            jobs=self.folder.jobs(token, len(array.jobs)),
            parameters=array.parameters,
            comment=self._comment(token, array),
            max_parallel=array.max_parallel,
            held=array.held,
            after=after,
        )

    def settle(self, array: Array) -> None:
        """Find out whether an array that was only intended is on the cluster, and record it.

        One that is there is taken over, or cancelled and waited for where that cannot be; the
        points of one that is not there are free again. Raises ClusterFailure where the cluster
        does not answer; then nothing is concluded.
        """
        where = {point: each.index for each in array.attempts for point in each.open_points}
        self._settle(self._intended_request(array), where)

    def clear(self, array: Array) -> None:
        """Cancel an array that was given up as never sent and came after all: it has no work."""
        self._cancel(self._intended_request(array))

    def _settle(
        self, request: ArrayRequest, open_points: Mapping[str, int], why: str = _NEVER_THERE
    ) -> None:
        job_id = self.cluster.find(request.job_name)
        if job_id is not None and (taken := self._adopted(request, job_id)):
            self._record(taken, adopted=True)
            return
        self.folder.withdraw(request.token)
        if self.cluster.find(request.job_name) is not None:
            self._cancel(request)
            why = "sent by a client that was cut off, and cancelled since it could not be adopted"
        self.folder.ledger.append(
            Ended(state=End.LOST, point=point, token=request.token, index=index, why=why)
            for point, index in open_points.items()
        )

    def _send_array(self, array: PlannedArray, after: tuple[str, ...]) -> str:
        """Send one array; its job id."""
        token = self.token()
        request = self.request(token, array, after)
        for folder, job in zip(request.jobs, self._job_files(token, array), strict=True):
            write_job_file(folder, job)
        self.folder.ledger.append([_intent(request, array)])
        try:
            submitted = self.cluster.submit(request)
        except PdrecipeError as error:
            # A refusal may hide a submission, as when the answer was lost: ask before believing
            # it. Where the cluster cannot be asked either, the intent stays for the next client.
            where = {point: at for at, job in enumerate(array.jobs) for point in job.points}
            with suppress(ClusterFailure):
                self._settle(request, where, why=_on_one_line(error))
            raise
        self._record(submitted, adopted=False)
        return submitted.job_id

    def _job_files(self, token: str, array: PlannedArray) -> list[JobFile]:
        return [
            JobFile(
                token=token,
                recipe=self.folder.recipe(job.recipe.digest),
                points=tuple(
                    JobPoint(
                        point_id=point,
                        concurrency=parse_point(point).concurrency,
                        folder=self.folder.point(point),
                    )
                    for point in job.points
                ),
                launcher=self.launcher,
                time_minutes=array.parameters.time_minutes,
            )
            for job in array.jobs
        ]

    def _comment(self, token: str, array: PlannedArray) -> str:
        """The sweep, the token and, for a job that is alone, its points."""
        what = f"{len(array.jobs)} jobs"
        if len(array.jobs) == 1:
            (job,) = array.jobs
            what = "+".join(job.points)
        return f"pdrecipe {self.name} {token} {what}"[:200]

    def _intended_request(self, array: Array) -> ArrayRequest:
        """The request as it was made, from the ledger."""
        asked = array.intended.asked
        return ArrayRequest(
            token=array.token,
            name=asked.name,
            folder=self.folder.array(array.token),
            jobs=self.folder.jobs(array.token, len(array.attempts)),
            parameters=asked.parameters,
            comment=asked.comment,
            max_parallel=asked.max_parallel,
            held=array.intended.held,
            after=asked.after,
        )

    def _adopted(self, request: ArrayRequest, job_id: str) -> SubmittedArray | None:
        try:
            return self.cluster.adopt(request, job_id)
        except ClusterFailure:
            return None

    def _cancel(self, request: ArrayRequest) -> None:
        """Cancel an array by its name and wait until it is gone."""
        for _ in range(_MOST_POLLS):
            job_id = self.cluster.find(request.job_name)
            if job_id is None:
                return
            self.cluster.cancel([job_id])
            self.pause(_POLL_S)
        raise ClusterFailure(
            Problem(
                message=f"array {request.job_name} was cancelled and is still there",
                hint="try again once squeue shows it no more",
            )
        )

    def _record(self, submitted: SubmittedArray, *, adopted: bool) -> None:
        event = Submitted(
            token=submitted.token,
            job_id=submitted.job_id,
            task_ids=submitted.task_ids,
            adopted=adopted,
        )
        self.folder.ledger.append([event])


def _on_one_line(error: PdrecipeError) -> str:
    """A refusal as a reason in the ledger."""
    return "; ".join(each.statement for each in error.problems)


def _intent(request: ArrayRequest, array: PlannedArray) -> Intended:
    return Intended(
        token=request.token,
        tasks=tuple(
            IntendedTask(
                recipe=job.recipe.digest, points=job.points, configuration=job.configuration
            )
            for job in array.jobs
        ),
        held=request.held,
        asked=Asked(
            name=request.name,
            parameters=request.parameters,
            comment=request.comment,
            max_parallel=request.max_parallel,
            after=request.after,
        ),
    )
