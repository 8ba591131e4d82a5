"""What this machine runs, for tests that what they started is gone again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

HOLDER = Path(__file__).resolve().parents[1] / "generator/rehearsal_host/holder.py"
"""The first process of every network that a rehearsal of this checkout has."""


def networks() -> set[str]:
    """The network namespaces that have a process."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found.add((process / "ns/net").readlink().name)
    return found


def networks_of(folder: Path) -> set[str]:
    """The network namespaces of processes that name the folder, but for this one's."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.add((process / "ns/net").readlink().name)
    return found - {Path("/proc/self/ns/net").readlink().name}


def processes_in(folder: Path) -> list[str]:
    """Command lines of living processes that name the folder, but for this one's."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(str(folder) in word for word in words) and int(process.name) != os.getpid():
                found.append(" ".join(words))
    return found


def until(holds: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
