"""``starts.jsonl`` in a job's folder: each start of the job, written down by the job itself.

Slurm starts a job anew after a preemption or a lost node. Whoever looks at its queue now and then
may see neither the end of one run nor the beginning of the next; these lines say so all the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

STARTS_FILE = "starts.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of a job.

    ``job_id`` is the task id that squeue prints, ``restarts`` Slurm's own count of earlier runs of
    it. ``at`` is in seconds since the epoch, by the clock of the job's first node.
    """

    token: str
    job_id: str
    restarts: int
    at: float
    nodes: tuple[str, ...]


def note_start(folder: Path, start: Start) -> int:
    """Append a start, on disk on return; how many starts its submission now has."""
    path = folder / STARTS_FILE
    line = f"{json.dumps(msgspec.to_builtins(start))}\n".encode()
    with path.open("a+b") as stream:
        if _is_torn(path.read_bytes()):
            line = b"\n" + line
        stream.write(line)
        stream.flush()
        os.fsync(stream.fileno())
    return len(read_starts(folder, start.token))


def read_starts(folder: Path, token: str) -> tuple[Start, ...]:
    """The starts of a submission's job, in their order; none where nothing can be read.

    A line that a dying node left torn is passed over: its start is counted by Slurm, too.
    """
    path = folder / STARTS_FILE
    try:
        content = path.read_bytes() if path.is_file() else b""  # opening a pipe would wait for ever
    except OSError:
        return ()
    listed = (_start(line) for line in content.splitlines())
    return tuple(each for each in listed if each is not None and each.token == token)


def requeues(starts: Sequence[Start]) -> int:
    """How often a job was put back into the queue before its last start, at least.

    Slurm's count misses what a killed slurmctld forgot, the lines those runs in which no job
    function began.
    """
    return max(len(starts) - 1, *(each.restarts for each in starts), 0)


def _start(line: bytes) -> Start | None:
    try:
        return msgspec.convert(json.loads(line), Start)
    except (ValueError, RecursionError):
        return None


def _is_torn(content: bytes) -> bool:
    return bool(content) and not content.endswith(b"\n")
