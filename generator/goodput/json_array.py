"""A JSON array element by element, each with the line it starts on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from generator.goodput.clocks import BadRow, refuse_constant


class BrokenArray(ValueError):
    """Why a text is no JSON array, and on which line that shows."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def elements(text: str) -> Iterator[tuple[int, Any]]:
    """The elements of an array with their lines; raises BrokenArray. Fractions stay exact."""
    reader = _Reader(text, text.index("["))
    reader.pass_over("[")
    while not reader.pass_over("]"):
        yield reader.line, reader.value()
        if not reader.pass_over(","):
            if not reader.pass_over("]"):
                raise reader.broken()
            break
        if reader.is_at("]"):
            raise reader.broken()
    reader.demand_end()


class _Reader:
    """A place in a text, always at something that is no space, and its line."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at
        self._counted = 0
        self._decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=refuse_constant)
        self.line = 1
        self._move_to(at)

    def is_at(self, character: str) -> bool:
        return self._text.startswith(character, self._at)

    def pass_over(self, character: str) -> bool:
        """Whether this character was here; what comes behind it then is."""
        is_here = self.is_at(character)
        if is_here:
            self._move_to(self._at + 1)
        return is_here

    def value(self) -> Any:
        try:
            value, end = self._decoder.raw_decode(self._text, self._at)
        except BadRow as error:  # NaN and the like, which JSON does not have
            raise BrokenArray(str(error), self.line) from None
        except (ValueError, RecursionError, InvalidOperation):
            raise self.broken() from None
        self._move_to(end)
        return value

    def demand_end(self) -> None:
        if self._at < len(self._text):
            raise self.broken()

    def broken(self) -> BrokenArray:
        if self._at < len(self._text):
            return BrokenArray("the array is not JSON from here on", self.line)
        last = self._text.rstrip().count("\n") + 1
        return BrokenArray("the array does not end: the file is cut short", last)

    def _move_to(self, at: int) -> None:
        while self._text[at : at + 1].isspace():
            at += 1
        self.line += self._text.count("\n", self._counted, at)
        self._at = self._counted = at
