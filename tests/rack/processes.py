"""Daemons started, found again and stopped by process id, never by name."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rack.layout import RackError


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """One daemon: its name in ``run/`` and ``log/``, and how it is started in the foreground."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]


def start(daemon: Daemon, run: Path, log: Path) -> None:
    """Start a daemon in a session of its own, unless it runs already."""
    if pid_of(run, daemon.name) is not None:
        return
    with (log / f"{daemon.name}.out").open("ab") as output:
        process = subprocess.Popen(
            daemon.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(daemon.environment),
            start_new_session=True,
            cwd=run,
        )
    note = f"{process.pid} {start_time(process.pid)}\n"
    (run / f"{daemon.name}.process").write_text(note)
    process.returncode = 0  # it is meant to outlive this process, which never waits for it


def pid_of(run: Path, name: str) -> int | None:
    """The process id of a daemon that runs. Its start time is compared: ids are reused."""
    try:
        pid, started = (run / f"{name}.process").read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if start_time(int(pid)) == started else None


def stop(run: Path, name: str, seconds: float = 20.0) -> None:
    """End a daemon with SIGTERM and, when that takes too long, SIGKILL."""
    pid = pid_of(run, name)
    if pid is not None:
        _signal([pid], signal.SIGTERM)
        if not waited(lambda: pid_of(run, name) is None, seconds):
            kill(run, name)
    (run / f"{name}.process").unlink(missing_ok=True)


def kill(run: Path, name: str) -> None:
    """End a daemon with SIGKILL, as a fault does."""
    pid = pid_of(run, name)
    if pid is None:
        raise RackError(f"{name} does not run")
    _signal([pid], signal.SIGKILL)
    waited(lambda: pid_of(run, name) is None, 5)
    (run / f"{name}.process").unlink(missing_ok=True)


def kill_all(pids: Iterable[int]) -> None:
    """End processes at once: stopped first, so that none reacts to the end of another."""
    pids = tuple(pids)
    _signal(pids, signal.SIGSTOP)
    _signal(pids, signal.SIGKILL)


def waited(is_so: Callable[[], bool], seconds: float, every: float = 0.03) -> bool:
    """Whether something came true within the time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def job_processes(slurm_conf: Path, node: str | None, freezers: Sequence[Path]) -> set[int]:
    """The step daemons and tasks of one node, or of all nodes of the rack.

    They are found in the freezer control groups where Slurm uses those, and by the environment
    that slurmd gives its tasks. A step daemon is the parent of a task, with a title of its own.
    """
    found = {int(pid) for freezer in freezers for pid in _in_group(freezer)}
    rack = f"SLURM_CONF={slurm_conf}".encode()
    here = f"SLURMD_NODENAME={node}".encode() if node else b"SLURMD_NODENAME="
    for folder in Path("/proc").glob("[0-9]*"):
        variables = _read(folder / "environ").split(b"\0")
        if rack not in variables:
            continue
        if any(v == here if node else v.startswith(here) for v in variables):
            found.add(int(folder.name))
            found |= _step_daemon_above(int(folder.name))
        elif node is None and _read(folder / "cmdline").startswith(b"slurmstepd:"):
            found.add(int(folder.name))
    return found - {os.getpid(), os.getppid()}


def _in_group(freezer: Path) -> list[str]:
    return [pid for file in freezer.rglob("cgroup.procs") for pid in _read(file).decode().split()]


def _step_daemon_above(pid: int) -> set[int]:
    parent = _stat(pid)[1:2]
    if parent and _read(Path("/proc") / parent[0] / "cmdline").startswith(b"slurmstepd:"):
        return {int(parent[0])}
    return set()


def start_time(pid: int) -> str | None:
    """The start time of a process in clock ticks, None for one that is gone or a zombie."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] not in {"Z", "X"} else None


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before it may hold anything."""
    return _read(Path(f"/proc/{pid}/stat")).decode(errors="replace").rpartition(")")[2].split()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has gone, or it is not ours
        return b""


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
