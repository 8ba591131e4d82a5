"""What runs on a job's first node: guards, the launcher, and one result for every point.

Slurm may start a job more than once, so a point that has a result is never run again. A job that
is cancelled writes no result for what it had not finished: the cluster says what became of it.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from generator.cluster.allocation import (
    Allocation,
    current_allocation,
    is_preempted,
    kills_for_memory,
    requeue,
    unreachable_nodes,
)
from generator.cluster.command import command_launch, runs_per_point
from generator.cluster.job_file import (
    DONE,
    FAILED,
    LAUNCHER_FILE,
    CommandLauncher,
    JobFile,
    JobPoint,
    PointResult,
    RehearseLauncher,
    SrtctlLauncher,
    is_claimed_by_another,
    read_job_file,
    read_result,
    write_result,
)
from generator.cluster.launching import Launch, LaunchEnd, Warnings, log_tail, run_launch
from generator.cluster.protocol import Phase
from generator.cluster.rehearse import as_rehearsed, missing_rehearsal, rehearse_launch
from generator.cluster.srtctl import has_result, missing_result, srtctl_launch
from generator.cluster.starts import Start, note_start
from generator.errors import InvalidInput
from generator.wording import plural

_TERMINATED = 128 + signal.SIGTERM
_SIGNAL_SECONDS = 2
_REQUEUE_SECONDS = 120  # Slurm ends a requeued job within its KillWait, 30 seconds by default


def run_job(folder: str, warnings: Warnings | None = None) -> None:
    """Run the job of a folder; the process exits with the launcher's code if a point failed.

    ``warnings`` are those that the caller hears already.
    """
    try:
        job = read_job_file(Path(folder))
        todo = [point for point in job.points if _is_missing(job, point)]
    except InvalidInput as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    if todo:
        with nullcontext(warnings) if warnings else Warnings().heard() as told:
            code = _Run(job, Path(folder), told).run(todo)
        if code:
            sys.exit(code)


def _is_missing(job: JobFile, point: JobPoint) -> bool:
    """A failure of an earlier submission is no reason not to run; one of this submission is."""
    if is_claimed_by_another(job, point):
        return False
    result = read_result(point.folder)
    return result is None or (result.status != DONE and result.token != job.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """How a launch went for the points it covered."""

    exit_code: int
    reason: str = ""


class _Run:
    """One run of a job in one allocation."""

    def __init__(self, job: JobFile, folder: Path, warnings: Warnings) -> None:
        self._job = job
        self._warnings = warnings
        self._here = current_allocation()
        self._note = None if self._here.in_slurm else folder / LAUNCHER_FILE
        self._output = folder / "runs" / f"{self._here.job_id}.{self._here.restarts}"
        self._number = note_start(folder, _start(job, self._here))

    def run(self, points: Sequence[JobPoint]) -> int:
        """Run the points that have no result; the code to exit with, 0 when all are done."""
        if self._number > self._job.max_runs:
            reason = f"started {plural(self._number - 1, 'time')} without a result"
            return self._settle(points, _Outcome(exit_code=1, reason=reason), began=time.time())
        launcher = self._job.launcher
        if not (isinstance(launcher, CommandLauncher) and runs_per_point(launcher)):
            return self._run_batch(points, points, self._output)
        codes: list[int] = []
        for at, point in enumerate(points):
            codes.append(self._run_batch([point], points[at:], self._output / point.point_id))
            if self._warnings.any():
                break
        return next((code for code in codes if code), 0)

    def _run_batch(self, points: Sequence[JobPoint], left: Sequence[JobPoint], output: Path) -> int:
        """Run the launcher once; an interruption concerns all points that are ``left``."""
        output.mkdir(parents=True, exist_ok=True)
        began = time.time()
        try:
            launch = self._launch(points, output)
        except InvalidInput as error:
            return self._settle(points, _Outcome(exit_code=3, reason=str(error)), began=began)
        killed_before = kills_for_memory()
        end = run_launch(launch, self._warnings, self._note)
        if isinstance(self._job.launcher, RehearseLauncher):
            end = as_rehearsed(end)
        if end.exit_code and self._here.in_slurm and not self._warnings.any():
            time.sleep(_SIGNAL_SECONDS)  # a step may die of what this process is about to be told
        if end.interrupted or (end.exit_code and self._warnings.any()):
            rest = self._unmeasured(points, left, launch, began)
            return self._interrupted(rest, launch, began) if rest else 0
        if end.exit_code == 0:
            return self._settle(points, _Outcome(exit_code=0), began=began, launch=launch)
        if kills_for_memory() > killed_before:
            outcome = replace(_failure(end), reason=Phase.OUT_OF_MEMORY.value)
            return self._settle(points, outcome, began=began, launch=launch)
        if end.exit_code and (lost := unreachable_nodes(self._here)):
            rest = self._unmeasured(points, left, launch, began)
            return self._without_nodes(rest, lost, launch, began) if rest else 0
        return self._settle(points, _failure(end), began=began, launch=launch)

    def _unmeasured(
        self, points: Sequence[JobPoint], left: Sequence[JobPoint], launch: Launch, began: float
    ) -> list[JobPoint]:
        """What is left to run after a launch was cut short; points it had finished are done."""
        measured = [point for point in points if self._is_measured(point, launch.output)]
        self._settle(measured, _Outcome(exit_code=0), began=began, launch=launch)
        return [point for point in left if point not in measured]

    def _is_measured(self, point: JobPoint, output: Path) -> bool:
        """Whether an interrupted launcher had finished a point."""
        if isinstance(self._job.launcher, RehearseLauncher):
            return not missing_rehearsal(output, point)
        return isinstance(self._job.launcher, SrtctlLauncher) and has_result(output, point)

    def _launch(self, points: Sequence[JobPoint], output: Path) -> Launch:
        launcher = self._job.launcher
        if isinstance(launcher, SrtctlLauncher):
            return srtctl_launch(launcher, self._job, points, self._here, output)
        if isinstance(launcher, RehearseLauncher):
            return rehearse_launch(launcher, self._job, points, output)
        return command_launch(launcher, self._job, points, self._here, output)

    def _interrupted(self, points: Sequence[JobPoint], launch: Launch, began: float) -> int:
        """After Slurm's signal: a time limit is a failure, a preemption goes back to the queue."""
        if self._is_preempted():
            if self._number < self._job.max_runs:
                if requeue(self._here):
                    time.sleep(_REQUEUE_SECONDS)
                return _TERMINATED
            reason = f"preempted in each of {plural(self._number, 'run')}"
            outcome = _Outcome(exit_code=_TERMINATED, reason=reason)
            return self._settle(points, outcome, began=began, launch=launch)
        if self._warnings.warned:
            reason = f"{Phase.TIME_LIMIT} of {plural(self._job.time_minutes, 'minute')}"
            outcome = _Outcome(exit_code=_TERMINATED, reason=reason)
            return self._settle(points, outcome, began=began, launch=launch)
        return _TERMINATED

    def _without_nodes(
        self, points: Sequence[JobPoint], lost: Sequence[str], launch: Launch, began: float
    ) -> int:
        """After the launcher failed over a lost node: another run elsewhere, or that reason."""
        if self._number < self._job.max_runs and requeue(self._here):
            time.sleep(_REQUEUE_SECONDS)
            return _TERMINATED
        reason = f"{Phase.NODE_FAILURE}: {', '.join(lost)} does not answer"
        return self._settle(
            points, _Outcome(exit_code=1, reason=reason), began=began, launch=launch
        )

    def _is_preempted(self) -> bool:
        known = is_preempted(self._here)
        if known is not None or not self._warnings.warned:
            return bool(known)
        left = self._here.began + 60 * self._job.time_minutes - time.time()
        return left > 2 * signal_seconds(self._job.time_minutes) + 60

    def _settle(
        self,
        points: Sequence[JobPoint],
        outcome: _Outcome,
        *,
        began: float,
        launch: Launch | None = None,
    ) -> int:
        """Write a result for every point; the code to exit with."""
        output = launch.output if launch else self._output
        tail = log_tail(launch.log) if launch else ""
        code = outcome.exit_code
        for point in points:
            reason = outcome.reason or self._missing(point, output)
            code = code or int(bool(reason))
            result = PointResult(
                token=self._job.token,
                point_id=point.point_id,
                concurrency=point.concurrency,
                status=FAILED if reason else DONE,
                reason=reason,
                exit_code=outcome.exit_code,
                started=began,
                ended=time.time(),
                job_id=self._here.task_id,
                run=self._number,
                nodes=self._here.nodes,
                output=str(output),
                log_tail=tail if reason else "",
            )
            write_result(point, result)
        return code

    def _missing(self, point: JobPoint, output: Path) -> str:
        """Why a point failed although the launcher ended well, or nothing."""
        if isinstance(self._job.launcher, RehearseLauncher):
            return missing_rehearsal(output, point)
        is_srtctl = isinstance(self._job.launcher, SrtctlLauncher)
        return missing_result(output, point) if is_srtctl else ""


def signal_seconds(time_minutes: int) -> int:
    """How long before the time limit a job is warned: 2 minutes, a quarter of a short limit.

    Slurm looks every 30 seconds and warns up to 30 seconds early, so that a job of one minute must
    not ask for much more: it would be warned as it starts.
    """
    return min(120, 15 * time_minutes)


def _start(job: JobFile, here: Allocation) -> Start:
    return Start(
        token=job.token,
        job_id=here.task_id,
        restarts=here.restarts,
        at=here.began,
        nodes=here.nodes,
    )


def _failure(end: LaunchEnd) -> _Outcome:
    if end.exit_code is None:
        return _Outcome(exit_code=127, reason=f"the launcher did not start: {end.error}")
    if end.exit_code < 0:
        name = signal.Signals(-end.exit_code).name
        return _Outcome(exit_code=128 - end.exit_code, reason=f"the launcher was killed by {name}")
    return _Outcome(exit_code=end.exit_code, reason=f"the launcher ended with {end.exit_code}")


if __name__ == "__main__":
    run_job(sys.argv[1])
