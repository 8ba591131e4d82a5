"""Processes of this machine, told apart by start time: process ids are used again."""

from __future__ import annotations

import os
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
