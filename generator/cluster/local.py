"""This machine as a cluster: ``local`` runs jobs as processes, ``debug`` in this process."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from submitit.local.local import LocalExecutor

from generator.cluster.job import run_job
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
    is_run,
    note_event,
    note_runner,
    read_events,
    read_queue,
    write_queue,
)
from generator.cluster.queue_runner import run_queue

_PREFIX = "local-"
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
        folder = self._write_queue(request)
        executor = LocalExecutor(folder)
        executor.update_parameters(timeout_min=_PATIENCE_MINUTES, stderr_to_stdout=True)
        with cleaned_environment(), detached(folder / RUNNER_LOG):
            self._started.append(executor.submit(run_queue, str(folder)))
        deadline = time.monotonic() + _STARTING_SECONDS
        while not (is_run(folder) or read_events(folder)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return self._submitted(request)

    def find(self, job_name: str) -> str | None:
        token = job_name.rpartition(".")[2]
        return f"{_PREFIX}{token}" if is_run(self._folder / token) else None

    def adopt(self, request: ArrayRequest, job_id: str) -> SubmittedArray:
        del job_id  # the token says as much
        return self._submitted(request)

    def states(self, job_ids: Sequence[str]) -> StateReport:
        states: dict[str, JobState] = {}
        for job_id in job_ids:
            folder = self._folder / job_id.removeprefix(_PREFIX)
            if (folder / QUEUE_FILE).exists():
                states |= {state.task_id: state for state in _states(job_id, folder)}
        return StateReport(states=states, queue_answered=True, accounting_answered=True)

    def cancel(self, task_ids: Sequence[str]) -> None:
        for folder, indices in self._tasks(task_ids):
            for index in indices:
                ask_to_cancel(folder, index)

    def release(self, task_ids: Sequence[str]) -> None:
        for folder, _ in self._tasks(task_ids):
            (folder / RELEASED_FILE).touch()

    def node_problems(self) -> tuple[NodeProblem, ...]:
        return ()

    def _tasks(self, task_ids: Sequence[str]) -> Iterator[tuple[Path, list[int]]]:
        for task_id in task_ids:
            token, _, index = task_id.removeprefix(_PREFIX).partition("_")
            folder = self._folder / token
            if (folder / QUEUE_FILE).exists():
                yield folder, [int(index)] if index else list(range(len(read_queue(folder).jobs)))

    def _write_queue(self, request: ArrayRequest) -> Path:
        folder = self._folder / request.token
        queue = Queue(
            jobs=request.jobs,
            max_parallel=request.max_parallel or 1,
            time_minutes=request.parameters.time_minutes,
            held=request.held,
            after=tuple(each.removeprefix(_PREFIX) for each in request.after),
        )
        write_queue(folder, queue)
        return folder

    def _submitted(self, request: ArrayRequest) -> SubmittedArray:
        job_id = f"{_PREFIX}{request.token}"
        ids = tuple(f"{job_id}_{index}" for index in range(len(request.jobs)))
        return SubmittedArray(token=request.token, job_id=job_id, task_ids=ids)


class DebugCluster(LocalCluster):
    """Runs every job before ``submit`` returns, in this process, where a debugger can follow.

    Nothing is held and no time limit is kept.
    """

    name = "debug"

    def features(self) -> ClusterFeatures:
        return replace(super().features(), holds=False)

    def submit(self, request: ArrayRequest) -> SubmittedArray:
        folder = self._write_queue(request)
        note_runner(folder)
        for index, job in enumerate(request.jobs):
            note_event(folder, QueueEvent(index=index))
            code = _exit_code(job, f"{_PREFIX}{request.token}_{index}")
            note_event(folder, QueueEvent(index=index, exit_code=code))
        return self._submitted(request)

    def find(self, job_name: str) -> str | None:
        """Never anything: what runs in this process has no life of its own."""
        del job_name
        return None


def _exit_code(job: Path, task_id: str) -> int:
    """Run a job here. submitit's own debug executor would start a debugger when it fails."""
    os.environ["PDRECIPE_LOCAL_JOB"] = task_id
    try:
        run_job(str(job))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        del os.environ["PDRECIPE_LOCAL_JOB"]
    return 0


def _states(job_id: str, folder: Path) -> Iterator[JobState]:
    events, alive = read_events(folder), is_run(folder)
    held = read_queue(folder).held and not (folder / RELEASED_FILE).exists()
    for index in range(len(read_queue(folder).jobs)):
        phase = _phase(events.get(index), alive=alive, held=held)
        event = events.get(index)
        code = event.exit_code if event is not None else None
        if phase is not None:
            yield JobState(
                task_id=f"{job_id}_{index}",
                phase=phase,
                state=phase.name,
                exit_code=None if code is None else max(code, 0),
                signal=None if code is None else max(-code, 0),
                nodes=("localhost",) if event is not None else (),
                asked="queue",
            )


def _phase(event: QueueEvent | None, *, alive: bool, held: bool) -> Phase | None:
    """Where a job stands; None for one that died with its runner, or never began before it."""
    if event is None:
        return (Phase.HELD if held else Phase.PENDING) if alive else None
    if event.exit_code is None:
        return Phase.RUNNING if alive else None
    if event.cancelled:
        return Phase.CANCELLED
    if event.time_limit:
        return Phase.TIME_LIMIT
    return Phase.FAILED if event.exit_code else Phase.COMPLETED
