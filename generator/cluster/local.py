"""This machine as a cluster: jobs are processes of it, started by a runner for each array."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from submitit.local.local import LocalExecutor

from generator.cluster.processes import detached
from generator.cluster.protocol import (
    ArrayRequest,
    ClusterFeatures,
    JobState,
    NodeProblem,
    Phase,
    StateReport,
    SubmittedArray,
)
from generator.cluster.questions import cleaned_environment
from generator.cluster.queue_files import (
    QUEUE_FILE,
    RELEASED_FILE,
    RUNNER_LOG,
    Queue,
    QueueEvent,
    ask_to_cancel,
    end_left_running,
    is_left_running,
    is_run,
    read_events,
    read_queue,
    write_queue,
)
from generator.cluster.queue_runner import run_queue

PREFIX = "local-"
_STARTING_SECONDS = 20
_PATIENCE_MINUTES = 60 * 24 * 365  # a runner may wait long; it keeps each job's limit itself


class LocalCluster:
    """Arrays run by a process of their own on this machine, one job at a time by default.

    ``folder`` holds the folders of the arrays, each named by its token: that is how a later client
    finds them. An array's id is ``local-<token>``. Nodes, GPUs and partitions mean nothing here.
    """

    name = "local"
    _started: ClassVar[list[Any]] = []  # submitit's handles, kept until this process ends

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def features(self) -> ClusterFeatures:
        return ClusterFeatures(
            version=f"Python {sys.version_info.major}.{sys.version_info.minor}",
            segment=True,
            max_array_tasks=100_000,
            accounting=True,
        )

    def script(self, request: ArrayRequest) -> str:
        jobs = [[sys.executable, "-m", "generator.cluster.job", str(job)] for job in request.jobs]
        return "".join(f"{json.dumps(job)}\n" for job in jobs)

    def submit(self, request: ArrayRequest) -> SubmittedArray:
        folder = self.write_queue_of(request)
        executor = LocalExecutor(folder)
        executor.update_parameters(timeout_min=_PATIENCE_MINUTES, stderr_to_stdout=True)
        with cleaned_environment(), detached(folder / RUNNER_LOG):
            self._started.append(executor.submit(run_queue, str(folder)))
        deadline = time.monotonic() + _STARTING_SECONDS
        while not (is_run(folder) or read_events(folder)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.submitted_array(request)

    def find(self, job_name: str) -> str | None:
        token = job_name.rpartition(".")[2]
        return f"{PREFIX}{token}" if _is_there(self._folder / token) else None

    def adopt(self, request: ArrayRequest, job_id: str) -> SubmittedArray:
        del job_id  # the token says as much
        return self.submitted_array(request)

    def states(self, job_ids: Sequence[str]) -> StateReport:
        states: dict[str, JobState] = {}
        for job_id in job_ids:
            folder = self._folder / job_id.removeprefix(PREFIX)
            if (folder / QUEUE_FILE).exists():
                states |= {state.task_id: state for state in _states(job_id, folder)}
        return StateReport(states=states, queue_answered=True, accounting_answered=True)

    def cancel(self, task_ids: Sequence[str]) -> None:
        for folder, indices in self._tasks(task_ids):
            jobs, alone = read_queue(folder).jobs, not is_run(folder)
            for index in indices:
                ask_to_cancel(folder, index)
                if alone:
                    end_left_running(jobs[index])

    def release(self, task_ids: Sequence[str]) -> None:
        for folder, _ in self._tasks(task_ids):
            (folder / RELEASED_FILE).touch()

    def node_problems(self) -> tuple[NodeProblem, ...]:
        return ()

    def _tasks(self, task_ids: Sequence[str]) -> Iterator[tuple[Path, list[int]]]:
        for task_id in task_ids:
            token, _, index = task_id.removeprefix(PREFIX).partition("_")
            folder = self._folder / token
            if (folder / QUEUE_FILE).exists():
                yield folder, [int(index)] if index else list(range(len(read_queue(folder).jobs)))

    def write_queue_of(self, request: ArrayRequest) -> Path:
        """Lay an array's queue down in its folder."""
        folder = self._folder / request.token
        queue = Queue(
            jobs=request.jobs,
            max_parallel=request.max_parallel or 1,
            time_minutes=request.parameters.time_minutes,
            held=request.held,
            after=tuple(each.removeprefix(PREFIX) for each in request.after),
        )
        write_queue(folder, queue)
        return folder

    def submitted_array(self, request: ArrayRequest) -> SubmittedArray:
        """The answer to a submission: ids follow from the token."""
        job_id = f"{PREFIX}{request.token}"
        ids = tuple(f"{job_id}_{index}" for index in range(len(request.jobs)))
        return SubmittedArray(token=request.token, job_id=job_id, task_ids=ids)


def _is_there(folder: Path) -> bool:
    """Whether an array's runner is alive, or a job that it left behind."""
    if is_run(folder):
        return True
    return (folder / QUEUE_FILE).exists() and any(map(is_left_running, read_queue(folder).jobs))


def _states(job_id: str, folder: Path) -> Iterator[JobState]:
    events, alive, queue = read_events(folder), is_run(folder), read_queue(folder)
    held = queue.held and not (folder / RELEASED_FILE).exists()
    for index, job in enumerate(queue.jobs):
        event = events.get(index)
        phase = _phase(
            event, alive=alive or (event is not None and is_left_running(job)), held=held
        )
        code = event.exit_code if event is not None else None
        if phase is not None:
            yield JobState(
                task_id=f"{job_id}_{index}",
                phase=phase,
                state=phase.name,
                exit_code=None if code is None else max(code, 0),
                signal=None if code is None else max(-code, 0),
                nodes=("localhost",) if event is not None else (),
                reason=event.why if event is not None else "",
                asked="queue",
            )


def _phase(event: QueueEvent | None, *, alive: bool, held: bool) -> Phase | None:
    """Where a job stands; None for one that is gone with its runner, or never began before it."""
    if event is None:
        return (Phase.HELD if held else Phase.PENDING) if alive else None
    if event.exit_code is None:
        return Phase.RUNNING if alive else None
    if event.cancelled:
        return Phase.CANCELLED
    if event.time_limit:
        return Phase.TIME_LIMIT
    return Phase.FAILED if event.exit_code else Phase.COMPLETED
