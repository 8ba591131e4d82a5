"""Runs an array on this machine, a few jobs at once, as Slurm would run it on a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from generator.cluster.job_file import PROCESS_FILE
from generator.cluster.processes import dies_with, note_process
from generator.cluster.queue_files import (
    RELEASED_FILE,
    Queue,
    QueueEvent,
    is_cancelled,
    is_run,
    note_event,
    note_runner,
    read_queue,
)

_LOOK_SECONDS = 0.1
_KILL_SECONDS = 75  # longer than a job's own grace for its launcher


class _Job:
    """A job that runs: its process and when it must end."""

    def __init__(self, folder: Path, index: int, job: Path, minutes: int) -> None:
        self.index = index
        self.cancelled = False
        self.time_limit = False
        self._deadline = time.monotonic() + 60 * minutes
        name = f"{folder.name}_{index}"
        with (folder / f"{index}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "generator.cluster.job", str(job)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PDRECIPE_LOCAL_JOB": f"local-{name}"},
                start_new_session=True,
                # This process has one thread, so that its child may run Python.
                preexec_fn=dies_with(os.getpid(), signal.SIGTERM),  # noqa: PLW1509
            )
        note_process(job / PROCESS_FILE, self._process.pid)

    def ended(self) -> QueueEvent | None:
        """The end of the job, once it has come."""
        code = self._process.poll()
        if code is None:
            return None
        return QueueEvent(
            index=self.index,
            exit_code=code,
            cancelled=self.cancelled,
            time_limit=self.time_limit,
        )

    def look_after(self, *, cancel: bool) -> None:
        """Pass on a cancellation, and the time limit."""
        now = time.monotonic()
        if cancel and not self.cancelled:
            self.cancelled, self._deadline = True, now
            self._send(signal.SIGTERM)
        elif now > self._deadline and not (self.time_limit or self.cancelled):
            self.time_limit = True
            self._send(signal.SIGUSR2)
        if now > self._deadline + _KILL_SECONDS:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)


def run_queue(folder: str) -> None:
    """Run the array of a folder to its end."""
    here = Path(folder)
    note_runner(here)
    queue = read_queue(here)
    while not _may_start(here, queue):
        time.sleep(_LOOK_SECONDS)
    waiting = list(enumerate(queue.jobs))[::-1]
    running: list[_Job] = []
    while waiting or running:
        while waiting and len(running) < queue.max_parallel:
            index, job = waiting.pop()
            if is_cancelled(here, index):
                note_event(here, QueueEvent(index=index, exit_code=-signal.SIGTERM, cancelled=True))
            else:
                note_event(here, QueueEvent(index=index))
                running.append(_Job(here, index, job, queue.time_minutes))
        running = [each for each in running if not _is_over(here, each)]
        time.sleep(_LOOK_SECONDS)


def _may_start(folder: Path, queue: Queue) -> bool:
    """Whether nothing is to be waited for any more."""
    if all(is_cancelled(folder, index) for index in range(len(queue.jobs))):
        return True
    is_held = queue.held and not (folder / RELEASED_FILE).exists()
    return not is_held and not any(is_run(folder.parent / token) for token in queue.after)


def _is_over(folder: Path, job: _Job) -> bool:
    job.look_after(cancel=is_cancelled(folder, job.index))
    event = job.ended()
    if event is not None:
        note_event(folder, event)
    return event is not None
