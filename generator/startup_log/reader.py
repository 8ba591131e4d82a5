"""Reading a start-up log: the last start in it, rank by rank, each value with its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.files import os_problem
from generator.startup_log.lines import LogLine, LogLines
from generator.startup_log.patterns import (
    ARGUMENTS,
    CAPTURE_SIZES,
    ENGINE_START,
    MODEL,
    VERSION,
    arguments,
    engine_settings,
    front_settings,
    process_before,
    rank_values,
)
from generator.startup_log.readings import Process, RankReadings, Reading, StartupLog

# Starts of the engine as a whole are counted under no process.
_ENGINE = "engine"


def read_startup_log(
    path: Path, source: str | None = None, on_chunk: Callable[[], None] = lambda: None
) -> StartupLog:
    """Read the log of one vLLM worker as a stream, whatever its length.

    ``source`` is what messages and citations call it; ``on_chunk`` is told of every MiB, for
    progress. Raises InvalidInput for a file that cannot be read, is empty, is no text, is of
    another engine, or has no start-up line of vLLM.
    """
    name = str(path) if source is None else source
    try:
        with path.open("rb") as stream:
            lines = LogLines(stream, name, on_chunk)
            log = _LogReader(name).read(lines)
    except OSError as error:
        raise InvalidInput(os_problem(error, name)) from error
    if not log.ranks and not log.settings and log.engine_version is None:
        raise InvalidInput(_no_start_up(lines, name))
    return log


def _no_start_up(lines: LogLines, source: str) -> Problem:
    if not lines.count:
        return Problem(message="is empty", hint="name the log of a vLLM worker", source=source)
    if lines.other_engine:
        message = f"is a log of {lines.other_engine}, and only vLLM's can be read"
        return Problem(message=message, hint="name the log of a vLLM worker", source=source)
    return Problem(
        message=f"no start-up line of vLLM in its {lines.count:,} lines",
        hint="name a worker's log, with VLLM_LOGGING_LEVEL at INFO or below",
        source=source,
    )


class _LogReader:
    """Collects readings; in one start of a process the first of two lines that say the same."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._restarts: Counter[str] = Counter()
        self._has_arguments = False
        self._front: dict[str, Reading[Any]] = {}
        self._forget()

    def _forget(self) -> None:
        """Begin anew, as the engine does."""
        self._ranks: dict[str, dict[str, Any]] = {}
        self._pids: dict[str, str] = {}
        self._started: set[str] = set()
        self._settings: dict[str, Reading[Any]] = {}
        self._version: Reading[str] | None = None
        self._model: Reading[str] | None = None
        self._capture_sizes: Reading[tuple[int, ...]] | None = None

    def read(self, lines: LogLines) -> StartupLog:
        for line in lines:
            self._read_engine(line)
            for position, values in sorted(rank_values(line.text), key=lambda found: found[0]):
                self._record(line, position, values)
        return StartupLog(
            source=self._source,
            lines=lines.count,
            start_ups=1 + max(self._restarts.values(), default=0),
            engine_version=self._version,
            model=self._model,
            capture_sizes=self._capture_sizes,
            settings={**self._front, **self._settings},
            has_arguments=self._has_arguments,
            ranks=tuple(
                RankReadings(**readings) for _, readings in sorted(self._ranks.items(), key=_order)
            ),
        )

    def _read_engine(self, line: LogLine) -> None:
        """The lines that describe the engine as a whole."""
        text = line.text
        if match := ARGUMENTS.search(text):
            self._has_arguments = True
            self._front = {
                flag: self._reading(value, line) for flag, value in arguments(match["arguments"])
            }
            return
        if match := ENGINE_START.search(text):
            self._start(process_before(text, match.start())[0])
        if match := VERSION.search(text):
            self._version = self._reading(match["version"], line)
        if match := MODEL.search(text):
            self._model = self._reading(match["model"], line)
        if match := CAPTURE_SIZES.search(text):
            sizes = tuple(sorted(int(size) for size in match["sizes"].split(",") if size.strip()))
            self._capture_sizes = self._reading(sizes, line)
        for flag, value in front_settings(text):
            self._front[flag] = self._reading(value, line)
        for flag, value in engine_settings(text):
            self._settings[flag] = self._reading(value, line)

    def _start(self, process: Process) -> None:
        """A second start of the same process is the engine's: what came before is forgotten.

        What the front end said stays, since it speaks before the engine starts.
        """
        if process.tag in self._started:
            self._forget()
            self._restarts[_ENGINE] += 1
        self._started.add(process.tag)

    def _record(self, line: LogLine, position: int, values: Any) -> None:
        process, pid = process_before(line.text, position)
        readings = self._ranks.get(process.tag)
        is_new = readings is not None and (
            self._pids[process.tag] != pid or _begins_again(readings, values)
        )
        if is_new:
            self._restarts[process.tag] += 1
        if readings is None or is_new:
            readings = self._ranks[process.tag] = {"process": process}
            self._pids[process.tag] = pid
        for name, value in values.items():
            readings.setdefault(name, self._reading(value, line))

    def _reading(self, value: Any, line: LogLine) -> Reading[Any]:
        return Reading(value=value, source=self._source, line=line.number)


def _begins_again(readings: dict[str, Any], values: Any) -> bool:
    """Whether weights are loaded once more after memory was measured: another start."""
    return tuple(values) == ("weights_bytes",) and "kv_cache_bytes" in readings


def _order(item: tuple[str, dict[str, Any]]) -> tuple[bool, int, int, int, str]:
    """Workers before engines before the front end, then by rank."""
    tag, readings = item
    process: Process = readings["process"]
    ranks = (process.data or 0, process.pipeline or 0, process.tensor or 0)
    return (not tag.startswith(("Worker", "RayWorker")), *ranks, tag)
