"""What this machine runs, for tests that what they started is gone again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path


def networks() -> set[str]:
    """The network namespaces of this process's descendants, and of processes nobody is above.

    Those of other rehearsals on this machine are below a process that still lives elsewhere.
    """
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            own = network(int(process.name))
            above = [pid for pid in ancestors(int(process.name)) if network(pid) != own]
            if not above or os.getpid() in above:
                found.add(own)
    return found


def network(pid: int) -> str:
    return Path(f"/proc/{pid}/ns/net").readlink().name


def ancestors(pid: int) -> Iterator[int]:
    """The parents of a process up to the first one, which is left out."""
    while True:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        pid = int(fields[1])
        if pid <= 1:
            return
        yield pid


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
