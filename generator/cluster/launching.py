"""Runs a launcher inside the job and passes on what Slurm has to say to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from generator.cluster.processes import (
    dies_with,
    end_session,
    note_process,
    session_members,
)
from generator.errors import InvalidInput, Problem

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

    ``warned`` is the signal before the time limit or a preemption, ``terminated`` SIGTERM, or what
    a user sends. ``hurried``: Ctrl-C once more, so that there is no grace. ``last`` came last.
    """

    def __init__(self) -> None:
        self.warned = False
        self.terminated = False
        self.hurried = False
        self.last: signal.Signals | None = None

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGUSR2:
            self.warned = True
        else:
            self.hurried |= self.terminated and number == signal.SIGINT
            self.terminated = True
        self.last = signal.Signals(number)

    def any(self) -> bool:
        """Whether the launcher should end."""
        return self.warned or self.terminated

    @contextmanager
    def heard(self, *more: signal.Signals) -> Iterator[Warnings]:
        """Take the signals over from submitit, whose answer to USR2 suits other jobs.

        ``more`` are further ones that are to end the launcher.
        """
        numbers = (signal.SIGTERM, signal.SIGUSR2, *more)
        before = {number: signal.signal(number, self._note) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run_launch(launch: Launch, warnings: Warnings, note: Path | None = None) -> LaunchEnd:
    """Run to the end; after a warning, SIGTERM, a minute's grace, then SIGKILL.

    ``note`` is for a machine where nobody else ends what a job leaves behind: the launcher is noted
    there while it runs, dies with this process, and none of its processes outlives a warning.
    """
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
                # This process has one thread, so that its child may run Python.
                preexec_fn=_tied_to_this_process(note) if note else None,  # noqa: PLW1509
            )
        except OSError as error:
            return LaunchEnd(exit_code=None, error=f"{launch.argv[0]}: {error.strerror}")
        except subprocess.SubprocessError as error:
            raise InvalidInput(_unnoted(note)) from error
        with process:
            if note is None:
                return _end_of(process, launch, warnings)
            return _noted_end_of(process, launch, warnings, note)


def _tied_to_this_process(note: Path) -> Callable[[], None]:
    """For the child before it becomes the launcher, which is so never there without its note."""
    tie = dies_with(os.getpid(), signal.SIGKILL)

    def begin() -> None:
        tie()
        note_process(note, os.getpid())

    return begin


def _unnoted(note: Path | None) -> Problem:
    hint = "the launcher was not started: make room or give write access, then pdrecipe resume"
    return Problem(message="cannot be written", hint=hint, source=str(note))


def _noted_end_of(
    process: subprocess.Popen[bytes], launch: Launch, warnings: Warnings, note: Path
) -> LaunchEnd:
    try:
        end = _end_of(process, launch, warnings)
    except BaseException:
        end_session(process.pid, signal.SIGKILL)
        raise
    if end.interrupted:
        _end_rest(process.pid, warnings)
    note.unlink(missing_ok=True)
    return end


def _end_of(process: subprocess.Popen[bytes], launch: Launch, warnings: Warnings) -> LaunchEnd:
    deadline: float | None = None
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout=_LOOK_SECONDS)
            return LaunchEnd(exit_code=code, interrupted=deadline is not None)
        if deadline is None and warnings.any():
            deadline = time.monotonic() + _GRACE_SECONDS
            _send(process, signal.SIGTERM, group=launch.signals_group)
        if deadline is not None and (warnings.hurried or time.monotonic() > deadline):
            _send(process, signal.SIGKILL, group=True)


def _end_rest(session: int, warnings: Warnings) -> None:
    """End what a launcher that was told to end has left, in the same way."""
    deadline = time.monotonic() + _GRACE_SECONDS
    end_session(session, signal.SIGTERM)
    while any(session_members(session)):
        if warnings.hurried or time.monotonic() > deadline:
            end_session(session, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


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
