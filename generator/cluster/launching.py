"""Runs a launcher inside the job and passes on what Slurm has to say to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_GRACE_SECONDS = 60  # to end after SIGTERM; srtctl stops its servers in that time
_LOOK_SECONDS = 0.2
_TAIL_BYTES = 4000
_TAIL_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One process to run: nothing of it passes through a shell.

    ``folder`` is where it runs, ``output`` where its results lie.
    ``signals_group``: SIGTERM goes to all its processes, for wrappers that do not forward it. An
    orchestrator that stops its own workers in order must get it alone.
    """

    argv: tuple[str, ...]
    folder: Path
    output: Path
    log: Path
    environment: Mapping[str, str]
    signals_group: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchEnd:
    """How it ended: ``exit_code`` is negative for a signal, None when it never started.

    ``interrupted``: it was told to end, so that its exit code says nothing about its work.
    """

    exit_code: int | None
    error: str = ""
    interrupted: bool = False


class Warnings:
    """The signals that Slurm sent to this process since ``heard`` began.

    ``warned`` is the signal before the time limit or a preemption, ``terminated`` SIGTERM.
    """

    def __init__(self) -> None:
        self.warned = False
        self.terminated = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self.terminated = True
        else:
            self.warned = True

    def any(self) -> bool:
        """Whether the launcher should end."""
        return self.warned or self.terminated

    @contextmanager
    def heard(self) -> Iterator[Warnings]:
        """Take the signals over from submitit, whose answer to USR2 suits other jobs."""
        numbers = (signal.SIGTERM, signal.SIGUSR2)
        before = {number: signal.signal(number, self._note) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run_launch(launch: Launch, warnings: Warnings) -> LaunchEnd:
    """Run to the end; after a warning, SIGTERM, a minute's grace, then SIGKILL."""
    launch.log.parent.mkdir(parents=True, exist_ok=True)
    with launch.log.open("ab") as log:
        try:
            process = subprocess.Popen(
                launch.argv,
                cwd=launch.folder,
                env=dict(launch.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return LaunchEnd(exit_code=None, error=f"{launch.argv[0]}: {error.strerror}")
        with process:
            return _end_of(process, launch, warnings)


def _end_of(process: subprocess.Popen[bytes], launch: Launch, warnings: Warnings) -> LaunchEnd:
    deadline: float | None = None
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout=_LOOK_SECONDS)
            return LaunchEnd(exit_code=code, interrupted=deadline is not None)
        if deadline is None and warnings.any():
            deadline = time.monotonic() + _GRACE_SECONDS
            _send(process, signal.SIGTERM, group=launch.signals_group)
        if deadline is not None and time.monotonic() > deadline:
            _send(process, signal.SIGKILL, group=True)


def _send(process: subprocess.Popen[bytes], number: signal.Signals, *, group: bool) -> None:
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(process.pid, number)


def log_tail(log: Path) -> str:
    """The last lines of a log, for a failure that is read far from the log itself."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = stream.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-_TAIL_LINES:])
