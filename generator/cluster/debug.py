"""This process as a cluster: every job runs before ``submit`` returns."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

from generator.cluster.job import run_job
from generator.cluster.launching import Warnings
from generator.cluster.local import PREFIX, LocalCluster
from generator.cluster.protocol import ArrayRequest, ClusterFeatures, SubmittedArray
from generator.cluster.queue_files import (
    QUEUE_FILE,
    QueueEvent,
    is_left_running,
    note_event,
    note_runner,
    read_queue,
)
from generator.errors import ClusterFailure, Problem
from generator.files import pasted


class DebugCluster(LocalCluster):
    """Runs every job in this process, where a debugger can follow.

    Nothing is held and no time limit is kept. Ctrl-C, SIGTERM and SIGHUP end the launcher and
    cancel the rest of the array.
    """

    name = "debug"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._interrupted: set[str] = set()

    def features(self) -> ClusterFeatures:
        return replace(super().features(), holds=False)

    def submit(self, request: ArrayRequest) -> SubmittedArray:
        folder = self.write_queue_of(request)
        note_runner(folder)
        with Warnings().heard(signal.SIGINT, signal.SIGHUP) as warnings:
            for index, job in enumerate(request.jobs):
                if not warnings.terminated:
                    note_event(folder, QueueEvent(index=index))
                    code = _exit_code(job, f"{PREFIX}{request.token}_{index}", warnings)
                    event = QueueEvent(index=index, exit_code=code)
                if warnings.terminated:
                    event = _interruption(index, warnings)
                note_event(folder, event)
        if warnings.terminated:
            # The caller asks whether the array is there after a failure: it is, and is over.
            self._interrupted.add(request.token)
            raise _stopped(warnings, self._folder.parent)
        return self.submitted_array(request)

    def find(self, job_name: str) -> str | None:
        """Only what was interrupted here, or left behind by a client that was killed."""
        token = job_name.rpartition(".")[2]
        folder = self._folder / token
        if token in self._interrupted or _is_left_behind(folder):
            return f"{PREFIX}{token}"
        return None


def _is_left_behind(folder: Path) -> bool:
    return (folder / QUEUE_FILE).exists() and any(map(is_left_running, read_queue(folder).jobs))


def _interruption(index: int, warnings: Warnings) -> QueueEvent:
    number = warnings.last or signal.SIGTERM
    why = f"interrupted: its client got {number.name}"
    return QueueEvent(index=index, exit_code=-number, cancelled=True, why=why)


def _stopped(warnings: Warnings, sweep: Path) -> ClusterFailure:
    name = (warnings.last or signal.SIGTERM).name
    hint = f"the launcher was ended; pdrecipe resume {pasted(sweep)} takes up what has no result"
    return ClusterFailure(Problem(message=f"interrupted by {name}", hint=hint))


def _exit_code(job: Path, task_id: str, warnings: Warnings) -> int:
    """Run a job here. submitit's own debug executor would start a debugger when it fails."""
    os.environ["PDRECIPE_LOCAL_JOB"] = task_id
    try:
        run_job(str(job), warnings)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        del os.environ["PDRECIPE_LOCAL_JOB"]
    return 0
