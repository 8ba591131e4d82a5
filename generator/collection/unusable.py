"""What keeps a file of a run from being used, and the checks that find it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from generator.files import MAX_FILE_BYTES, os_problem
from generator.results.figure_range import GREATEST, SHORTEST_S

_UNITS_APART = 30

DAMAGED = "it ends early or is damaged"


class Unusable(Exception):
    """One sentence about a file, or a part of one, that says nothing usable."""


def refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are Python's, not JSON's."""
    raise Unusable(f"{name} is no number")


_STRICT_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


def decode_json(text: str) -> Any:
    """The value that JSON text is; raises Unusable for NaN, and what json raises.

    msgspec is several times as fast; what it does not take, json does, or knows better why not.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return _STRICT_DECODER.decode(text)


def read_json_object(path: Path, most_bytes: int = MAX_FILE_BYTES) -> dict[str, Any]:
    """The object in a JSON file; raises Unusable for anything else, NaN included."""
    return json_object(read_bytes(path, most_bytes))


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The bytes of a file; raises Unusable where it cannot be read or is larger than that."""
    try:
        with path.open("rb") as stream:
            content = stream.read(most_bytes + 1)
    except OSError as error:
        raise Unusable(os_problem(error, "").message) from error
    if len(content) > most_bytes:
        raise Unusable(f"is over {most_bytes // 2**20} MiB")
    return content


def json_object(content: bytes | str) -> dict[str, Any]:
    """The object that JSON text is; raises Unusable for anything else, NaN included."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        document = decode_json(text)
    except UnicodeDecodeError as error:
        raise Unusable("is not UTF-8 text") from error
    except json.JSONDecodeError as error:
        reason = DAMAGED if text.strip() else "it is empty"
        raise Unusable(
            f"is not JSON: {reason} ({error.msg.lower()}, line {error.lineno})"
        ) from error
    except ValueError as error:  # Python reads no number of over 4,300 digits
        raise Unusable("has a number of thousands of digits") from error
    except RecursionError as error:
        raise Unusable("is nested too deep") from error
    if not isinstance(document, dict):
        raise Unusable("is not a JSON object")
    return document


class Figures:
    """The figures of a report by name, each demanded in the form it must have."""

    def __init__(self, report: Mapping[str, Any], what: str) -> None:
        self._report = report
        self._what = what

    def demand_keys(self, *names: str) -> None:
        """Refuse a report that lacks what every one of its kind has."""
        if missing := [name for name in names if self._report.get(name) is None]:
            raise Unusable(f"is no {self._what}: it lacks {', '.join(missing)}")

    def count(self, name: str) -> int:
        """A whole number of at least 0."""
        value = self.number(name)
        if value != int(value):
            raise Unusable(f"{name} is {value}, not a whole number")
        return int(value)

    def number(self, name: str) -> float:
        """A number of at least 0."""
        found = self.optional(name)
        if found is None:
            raise Unusable(f"is no {self._what}: it lacks {name}")
        return found

    def optional(self, name: str) -> float | None:
        """A number of at least 0, or None where the report has none."""
        value = self._report.get(name)
        return None if value is None else checked_number(value, name)


def checked_number(value: object, name: str) -> float:
    """A number from 0 to ``GREATEST``; raises Unusable for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unusable(f"{name} is {str(value)[:40]!r}, not a number")
    if not -math.inf < value < math.inf:
        raise Unusable(f"{name} is not a finite number")
    if value < 0:
        raise Unusable(f"{name} is negative: {value}")
    if value > GREATEST:
        raise Unusable(f"{name} is over {GREATEST:g}")
    return float(value)


def checked_duration(seconds: float, name: str) -> float:
    """Seconds that a run can have taken; raises Unusable for none."""
    if not SHORTEST_S <= seconds <= GREATEST:
        raise Unusable(f"{name} is {seconds:g} s: nothing can be measured in that")
    return seconds


def is_another_unit(one: float, other: float) -> bool:
    """Whether two figures above 0 that should agree are as far apart as seconds and minutes are.

    What is nearer is no matter of units: those figures may count different things.
    """
    return not 1 / _UNITS_APART < one / other < _UNITS_APART
