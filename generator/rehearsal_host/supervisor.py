"""Runs named processes in a closed network, says which ended, and ends those it started."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from types import FrameType

from generator.cluster.launching import log_tail
from generator.errors import ClusterFailure, Problem
from generator.rehearsal_host.namespace import ClosedNetwork, HttpAnswer, closed_network

_GRACE_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_MOST_CHARACTERS = 200  # of what a log is quoted with


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process to run under a name: nothing of it passes through a shell.

    ``environment`` is all that it gets; ``log`` takes both of its output streams.
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """How a program ended: ``exit_code`` is negative for a signal."""

    program: Program
    exit_code: int

    @property
    def last_lines(self) -> str:
        return log_tail(self.program.log)

    @property
    def last_words(self) -> str:
        """The last line that says something, cut if long; empty where none does."""
        lines = (line for line in reversed(self.last_lines.splitlines()) if re.search(r"\w", line))
        return shorten(next(lines, ""), _MOST_CHARACTERS, placeholder=" ...")

    def __str__(self) -> str:
        if self.exit_code < 0:
            with suppress(ValueError):
                return f"{self.program.name} was killed by {signal.Signals(-self.exit_code).name}"
        return f"{self.program.name} ended with exit code {self.exit_code}"


class Interrupted(SystemExit):
    """A signal asked this process to end; uncaught it ends with 128 + ``number``."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(128 + number)
        self.number = number

    def __str__(self) -> str:
        return f"interrupted by {self.number.name}, everything that was started is ended"


class Supervisor:
    """The programs of one rehearsal: ``running`` by name, ``ends`` in the order they came."""

    def __init__(self, network: ClosedNetwork) -> None:
        self._network = network
        self.running: dict[str, Program] = {}
        self.ends: list[ProgramEnd] = []

    def start(self, program: Program) -> None:
        """Start a program; raises ClusterFailure where the system refuses, naming why."""
        program.log.parent.mkdir(parents=True, exist_ok=True)
        self.running[program.name] = program
        try:
            self._network.request(
                "start",
                name=program.name,
                argv=list(program.argv),
                environment=dict(program.environment),
                folder=str(program.folder),
                log=str(program.log),
            )
        except OSError as error:
            del self.running[program.name]
            message = f"{program.name} cannot be started: {program.argv[0]}: {error}"
            raise ClusterFailure(Problem(message=message)) from error

    def look(self, timeout_s: float = 0.0) -> tuple[ProgramEnd, ...]:
        """What ended since the last look; waits so long for the first end."""
        ended = tuple(
            ProgramEnd(program=self.running.pop(name), exit_code=code)
            for name, code in self._network.ended(timeout_s)
        )
        self.ends.extend(ended)
        return ended

    def get(self, port: int, path: str, timeout_s: float = 5.0) -> HttpAnswer:
        """An HTTP GET to a program; raises OSError where none answers in time."""
        return self._network.get(port, path, timeout_s)

    def end(self, *names: str, grace_s: float = _GRACE_SECONDS) -> None:
        """SIGTERM to these programs with their children, all by default, then SIGKILL."""
        chosen = [name for name in names or tuple(self.running) if name in self.running]
        for number, seconds in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _GRACE_SECONDS)):
            deadline = time.monotonic() + seconds
            for name in self._still(chosen):
                self._network.request("signal", name=name, number=int(number))
            while self._still(chosen) and time.monotonic() < deadline:
                self.look(_LOOK_SECONDS)

    def _still(self, names: list[str]) -> list[str]:
        return [name for name in names if name in self.running]


@contextmanager
def supervised() -> Iterator[Supervisor]:
    """A supervisor with a network of its own; after the block nothing of it is left.

    Programs get SIGTERM and a grace, also when a signal ends the block; another signal meanwhile
    ends them at once, and so does the death of this process. Raises Interrupted for a signal.
    """
    with _signals_interrupt(), closed_network() as network:
        supervisor = Supervisor(network)
        try:
            yield supervisor
        finally:
            with suppress(ClusterFailure):  # a holder that is gone took all of them along
                supervisor.end()


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(signal.Signals(number))

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # else it was started to outlive that
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
