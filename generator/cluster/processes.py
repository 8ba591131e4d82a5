"""Processes of this machine, told apart by start time: process ids are used again."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


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
        nothing = os.open(os.devnull, os.O_RDONLY)
        undo.callback(os.close, nothing)
        log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        undo.callback(os.close, log)
        for descriptor, target in ((0, nothing), (1, log), (2, log)):
            _redirect(undo, descriptor, target)
        yield


def _redirect(undo: ExitStack, descriptor: int, target: int) -> None:
    """Let a standard stream be another file for a while, be it open or closed before."""
    try:
        before = os.dup(descriptor)
    except OSError:
        undo.callback(os.close, descriptor)
    else:
        undo.callback(os.close, before)
        undo.callback(os.dup2, before, descriptor)
    if target != descriptor:
        os.dup2(target, descriptor)
    else:
        os.set_inheritable(descriptor, 1)  # it was closed, and the new file took its place
