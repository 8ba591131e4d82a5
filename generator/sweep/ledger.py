"""The append-only file that records a sweep: one JSON object a line, each on disk before use."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from generator.errors import InvalidInput, Problem
from generator.files import os_problem
from generator.sweep.events import Event, Record, parse_record, record_line

_MODE = stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerText:
    """What a ledger holds.

    ``notice`` names a last line that was torn: its writer was cut off before it relied on it.
    """

    records: tuple[Record, ...]
    notice: str = ""

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(record.event for record in self.records)


def read_ledger(path: Path) -> LedgerText:
    """All records of a ledger, in the order they were written; none where there is no file.

    Raises InvalidInput for a file that cannot be read, or with a broken line before its last.
    """
    return parse_ledger(_content(path), str(path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error


def parse_ledger(content: bytes, source: str) -> LedgerText:
    """The records of a ledger's bytes; errors as read_ledger."""
    whole_bytes = _whole_bytes(content)
    records: list[Record] = []
    for number, line in enumerate(content[:whole_bytes].splitlines(), 1):
        try:
            records.append(parse_record(line))
        except (ValueError, RecursionError) as error:
            reason = "not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
            raise InvalidInput(_broken(source, number, reason)) from error
    notice = ""
    if whole_bytes < len(content):
        notice = f"{source}:{len(records) + 1}: the last line is torn and ignored"
    return LedgerText(records=tuple(records), notice=notice)


def _whole_bytes(content: bytes) -> int:
    """The length of a ledger without its last line where that one was not written whole.

    A power cut may leave a line of the right length and of other bytes.
    """
    end = content.rfind(b"\n") + 1
    if end < len(content):
        return end
    start = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
    try:
        json.loads(content[start:end] or b"{}")
    except (ValueError, RecursionError):
        return start
    return end


def _broken(source: str, number: int, reason: str) -> Problem:
    return Problem(
        message=f"not a line of a ledger: {reason}",
        hint="a ledger is never edited; restore it from a copy, or start a new sweep folder",
        source=source,
        line=number,
    )


def utc_now() -> str:
    """The time for a record, to the second."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A ledger to append to, by the one client that holds the sweep's lock."""

    path: Path
    clock: Callable[[], str] = utc_now

    def read(self) -> LedgerText:
        """As read_ledger."""
        return read_ledger(self.path)

    def append(self, events: Iterable[Event]) -> None:
        """Write events and return once they are on disk.

        A torn last line of a client that was killed is cut off first. Raises InvalidInput where
        the disk is full or the folder read-only; the ledger is then as it was.
        """
        at = self.clock()
        lines = b"".join(record_line(Record(at=at, event=event)) for event in events)
        if not lines:
            return
        whole_bytes = _whole_bytes(_content(self.path))
        try:
            self._write(lines, whole_bytes)
        except OSError as error:
            raise InvalidInput(os_problem(error, str(self.path))) from error

    def _write(self, lines: bytes, whole_bytes: int) -> None:
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            os.ftruncate(descriptor, whole_bytes)
            os.lseek(descriptor, whole_bytes, os.SEEK_SET)
            try:
                _write_all(descriptor, lines)
                os.fsync(descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, whole_bytes)
                raise
        finally:
            os.close(descriptor)
        if is_new:
            _sync_folder(self.path.parent)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _sync_folder(folder: Path) -> None:
    """Make a new file's name as durable as its content."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
