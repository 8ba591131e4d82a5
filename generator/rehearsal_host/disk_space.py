"""Whether a disk has room for what is about to be written, told before anything is."""

from __future__ import annotations

import shutil
from pathlib import Path

from generator.errors import ClusterFailure, Problem


def demand_room(folder: Path, needed_bytes: int, option: str) -> None:
    """Raise ClusterFailure where the folder's disk has less; ``option`` names another one."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        message = f"{_size(needed_bytes)} are needed here and {_size(free)} are free"
        hint = f"free some space, or name another folder with {option}"
        raise ClusterFailure(Problem(message=message, hint=hint, source=str(folder)))


def _size(size_bytes: int) -> str:
    gigabytes = size_bytes / 10**9
    return f"{gigabytes:.1f} GB" if gigabytes >= 1 else f"{size_bytes / 10**6:,.0f} MB"
