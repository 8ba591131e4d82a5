"""Processes of this machine, told apart by start time: process ids are used again."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from generator.files import read_text, write_text_atomically

_PR_SET_PDEATHSIG = 1
_FIRST_OTHER = 3  # the descriptors before are the standard streams
# Loaded before any fork: a child may not.
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def start_time(pid: int) -> str | None:
    """When a process began, in clock ticks since boot; None for one that is gone or a zombie.

    Where there is no /proc, whether it exists is all that can be said.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return "running" if not Path("/proc/self").exists() and _exists(pid) else None
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else fields[19]


def note_process(path: Path, pid: int) -> None:
    """Write down a process so that ``noted_process`` and ``noted_session`` know it again."""
    document = {"pid": pid, "started": start_time(pid)}
    write_text_atomically(path, json.dumps(document) + "\n")


def noted_process(path: Path) -> int | None:
    """The id of the process of a note while it lives; raises InvalidInput for no such note."""
    if not path.exists():
        return None
    document: dict[str, Any] = json.loads(read_text(path, str(path)))
    alive = document["started"] is not None and start_time(document["pid"]) == document["started"]
    return int(document["pid"]) if alive else None


def noted_session(path: Path) -> int | None:
    """The id of the session that a noted process began, while any process of it lives.

    The id of a process is not used again while it names a session.
    """
    if not path.exists():
        return None
    document: dict[str, Any] = json.loads(read_text(path, str(path)))
    pid = int(document["pid"])
    leader = start_time(pid)
    if leader is not None and leader != document["started"]:
        return None
    return pid if leader is not None or any(session_members(pid)) else None


def session_members(session: int) -> Iterator[int]:
    """The processes of a session; none where there is no /proc."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] not in {"Z", "X"} and int(fields[3]) == session:
                yield int(folder.name)


def end_session(session: int, number: signal.Signals) -> None:
    """Send a signal to every process of a session; where there is no /proc, to its first group."""
    if not Path("/proc/self").exists():
        with suppress(ProcessLookupError):
            os.killpg(session, number)
    for pid in session_members(session):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def dies_with(parent: int, number: signal.Signals) -> Callable[[], None]:
    """For the child of a fork: from then on it gets the signal once its parent has died.

    Linux alone knows that; elsewhere nothing is done.
    """

    def tie() -> None:
        if _PRCTL is not None:
            _PRCTL(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
            if os.getppid() != parent:
                os.kill(os.getpid(), number)

    return tie


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def detached(output: Path) -> Iterator[None]:
    """Start processes that outlive Ctrl-C, the terminal and whoever reads this one's output.

    They inherit what is ignored, an empty input, and ``output``, to which they append. For a start
    that takes no streams of its own; meanwhile nothing else may be printed.
    """
    with ExitStack() as undo:
        for number in (signal.SIGINT, signal.SIGHUP):
            undo.callback(signal.signal, number, signal.signal(number, signal.SIG_IGN))
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        nothing = _opened(undo, Path(os.devnull), os.O_RDONLY)
        log = _opened(undo, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor, target in ((0, nothing), (1, log), (2, log)):
            _redirect(undo, descriptor, target)
        yield


def _opened(undo: ExitStack, path: Path, flags: int) -> int:
    """A file opened for a while, never in the place of a standard stream that is closed."""
    low = os.open(path, flags, 0o644)
    descriptor = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_OTHER)
    os.close(low)
    undo.callback(os.close, descriptor)
    return descriptor


def _redirect(undo: ExitStack, descriptor: int, target: int) -> None:
    """Let a standard stream be another file for a while, be it open or closed before."""
    try:
        before = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_OTHER)
    except OSError:
        undo.callback(os.close, descriptor)
    else:
        undo.callback(os.close, before)
        undo.callback(os.dup2, before, descriptor)
    os.dup2(target, descriptor)
