"""The rack as tests use it: one for the whole run, mended after every test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rack.layout import Layout, saved_layout

_REPOSITORY = Path(__file__).resolve().parents[2]
_PORTS = range(17_000, 32_000, 100)  # below the ports that the kernel hands out


def why_not() -> str:
    """Why no rack can run here; empty where one can."""
    if os.getuid() != 0:
        return "needs root: several slurmd on one machine"
    if shutil.which("apt-get") is None:
        return "needs Debian's Slurm"
    return ""


class RunningRack:
    """A rack that is up, for a test: its verbs, and questions to its Slurm."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.nodes = layout.node_names

    def verb(self, *words: str) -> None:
        """Run ``kill slurmctld``, ``lose NODE`` and the like."""
        _rack(self.layout.directory, *words)

    def ask(self, *command: str) -> str:
        """What a command of this Slurm prints; empty when it fails."""
        environment = {**os.environ, **self.layout.environment}
        answer = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False
        )
        return answer.stdout

    def mend(self) -> None:
        """Start what a test broke, end what it left running and wait until all nodes are free."""
        self.verb("up")
        deadline = time.monotonic() + 60
        while self.ask("squeue", "-h").strip() and time.monotonic() < deadline:
            self.ask("scancel", "--full", "--state=RUNNING", "--me", "--signal=KILL")
            self.ask("scancel", "--me")
            time.sleep(0.2)
        self.verb("resume")
        self.verb("up")


@contextmanager
def running_rack(*options: str) -> Iterator[RunningRack]:
    """A rack of its own directory, ports and names, deleted at the end whatever happens."""
    directory = Path(tempfile.mkdtemp(prefix="rack-"))
    port = next(port for port in _PORTS if _is_free(port))
    sizes = ["--port", str(port), "--name", f"gb{port}", *options]
    try:
        # Should this process be killed, the rack is deleted by its watch.
        _rack(directory, "up", "--owner", str(os.getpid()), *sizes)
        layout = saved_layout(directory)
        assert layout is not None
        yield RunningRack(layout)
    finally:
        _rack(directory, "clean")


def _is_free(port: int) -> bool:
    """Whether neither Slurm of a rack at this port answers: its controller or its first node."""
    for each in (port, port + 1, port + 10):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", each))
            except OSError:
                return False
    return True


def _rack(directory: Path, *words: str) -> None:
    command = [sys.executable, "-m", "tests.rack", "--directory", str(directory), *words]
    done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"rack {' '.join(words)}: {done.stderr.strip()}")
