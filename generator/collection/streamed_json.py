"""The members of a large JSON object, arrays item by item, in a few MiB of memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from generator.collection.unusable import DAMAGED, Unusable, decode_json
from generator.files import os_problem

_CHUNK_BYTES = 4 * 2**20
_MOST_VALUE_BYTES = 256 * 2**20
_SPACE = re.compile(rb"[ \t\n\r]*")
# A whole string, one that the buffer cuts off, or a bracket outside of strings.
_PART = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|"|[\[\]{}]', re.DOTALL)
_SCALAR_END = re.compile(rb"[\],}\s]")
_OPENERS = b"[{"


class StreamedObject:
    """A JSON object read from front to back.

    ``members()`` gives its keys; ``value()`` or ``items()`` then reads what belongs to the key,
    and what nobody reads is passed over. ``on_chunk`` is told of every 4 MiB. All of them raise
    Unusable where the text is damaged, is no object, or holds NaN.
    """

    def __init__(self, stream: BinaryIO, on_chunk: Callable[[], None] = lambda: None) -> None:
        self._stream = stream
        self._on_chunk = on_chunk
        self._buffer = b""
        self._at = 0
        self._is_over = False
        self._is_pending = False

    def members(self) -> Iterator[str]:
        """The keys in their order."""
        self._demand(b"{")
        while self._next() != b"}":
            key = self._decode(self._span())
            if not isinstance(key, str):
                raise Unusable(f"is not JSON: {DAMAGED}")
            self._demand(b":")
            self._is_pending = True
            yield key
            if self._is_pending:
                self._pass_over()
            if not self._is_followed(b"}"):
                raise Unusable(f"is not JSON: {DAMAGED} after {key[:40]!r}")
        self._demand_end()

    def value(self) -> Any:
        """The whole value of the key."""
        self._is_pending = False
        return self._decode(self._span())

    def items(self) -> Iterator[Any]:
        """The items of an array, one after the other; raises Unusable for another value."""
        self._is_pending = False
        for _ in self._items():
            yield self._decode(self._span())

    def _pass_over(self) -> None:
        """Skip a value; a large array, too, costs no memory."""
        self._is_pending = False
        if self._next() == b"[":
            for _ in self._items():
                self._at = self._span()[1]
        else:
            self._at = self._span()[1]

    def _items(self) -> Iterator[None]:
        self._demand(b"[")
        while self._next() != b"]":
            yield
            if not self._is_followed(b"]"):
                raise Unusable(f"is not JSON: {DAMAGED} in a list")
        self._at += 1

    def _is_followed(self, closer: bytes) -> bool:
        """Whether a comma and something more follows, or the closing bracket."""
        if self._next() == b",":
            self._at += 1
            return self._next() != closer
        return self._next() == closer

    def _demand_end(self) -> None:
        """Refuse text after the object: two reports in one file, or the rest of an older one."""
        self._at += 1
        rest = self._buffer[self._at :] or self._stream.read(_CHUNK_BYTES)
        while rest:
            if rest.strip():
                raise Unusable("is not JSON: there is more after its end")
            rest = self._stream.read(_CHUNK_BYTES)

    def _demand(self, character: bytes) -> None:
        if self._next() != character:
            raise Unusable(f"is not JSON: {DAMAGED}, no {character.decode()!r} where one belongs")
        self._at += 1

    def _next(self) -> bytes:
        """The next character that is no space, which is not consumed."""
        while True:
            match = _SPACE.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            self._read_on()

    def _span(self) -> tuple[int, int]:
        """Where the next value begins and ends in the buffer."""
        first = self._next()
        while True:
            end = self._end(first)
            if end is not None:
                return self._at, end
            self._read_on()

    def _end(self, first: bytes) -> int | None:
        """The end of the value that begins here; None where the buffer ends before it."""
        if first not in (b'"', b"[", b"{"):
            match = _SCALAR_END.search(self._buffer, self._at)
            return match.start() if match else None
        depth = 0
        for part in _PART.finditer(self._buffer, self._at):
            text = part.group()
            if text == b'"':
                return None
            if text[:1] == b'"':
                if not depth:
                    return part.end() if part.start() == self._at else None
            elif text in _OPENERS:
                depth += 1
            else:
                depth -= 1
                if not depth:
                    return part.end()
        return None

    def _decode(self, span: tuple[int, int]) -> Any:
        start, self._at = span
        try:
            return decode_json(self._buffer[start : span[1]].decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise Unusable(f"is not JSON: {DAMAGED}") from error

    def _read_on(self) -> None:
        """Drop what is consumed and read one chunk more."""
        chunk = b"" if self._is_over else self._stream.read(_CHUNK_BYTES)
        if not chunk:
            self._is_over = True
            raise Unusable(f"is not JSON: {DAMAGED}")
        self._on_chunk()
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
        if len(self._buffer) > _MOST_VALUE_BYTES:
            raise Unusable(f"has a single value of over {_MOST_VALUE_BYTES // 2**20} MiB")


def open_binary(path: Path) -> BinaryIO:
    """A file to stream; raises Unusable where it cannot be opened."""
    try:
        return path.open("rb")
    except OSError as error:
        raise Unusable(os_problem(error, "").message) from error
