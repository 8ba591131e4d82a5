"""Times of JSON rows as whole nanoseconds, so that a limit of 50 ms means 50 ms."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any


class BadRow(ValueError):
    """Why a row of a trace cannot be used, without saying which row it is."""


_LONGEST = 10**20
_NS_OF = {"s": 10**9, "ms": 10**6}


def parse_row(line: bytes, *, number: type[Decimal | float] = Decimal) -> dict[str, Any]:
    """The JSON object of a row; raises BadRow for anything else.

    ``number`` is what its fractions become: exact, or floats where they stand for whole
    nanoseconds anyway, which is quicker.
    """
    try:
        row = json.loads(line, parse_float=number, parse_constant=refuse_constant)
    except UnicodeDecodeError:
        raise BadRow("it is not UTF-8 text") from None
    except json.JSONDecodeError:
        raise BadRow("it is not JSON") from None
    except RecursionError:
        raise BadRow("it is nested too deeply") from None
    except BadRow:
        raise
    except (ValueError, InvalidOperation):  # too many digits for an int, or for an exponent
        raise BadRow("a number of it has too many digits") from None
    return as_row(row)


def as_row(value: Any) -> dict[str, Any]:
    """The value, if it is a JSON object; raises BadRow."""
    if not isinstance(value, dict):
        raise BadRow("it is not a JSON object")
    return value


def time_ns(name: str, value: Any, unit: str) -> int:
    """A time that is not negative, rounded to a nanosecond; raises BadRow with its name."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise BadRow(f"{name} must be a number of {unit}, got {str(value)[:40]!r}")
    if value < 0:
        raise BadRow(f"{name} is negative: {value}")
    if value > _LONGEST:
        raise BadRow(f"{name} is not a time in {unit}: {str(value)[:40]}")
    return round(value * _NS_OF[unit])


def whole_number(name: str, value: Any) -> int:
    """A count; raises BadRow with its name for a negative one or no whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRow(f"{name} must be a whole number, got {str(value)[:40]!r}")
    if value < 0:
        raise BadRow(f"{name} is negative: {value}")
    if value > _LONGEST:
        raise BadRow(f"{name} is too large: {str(value)[:40]}")
    return value


def require_order(moments: list[tuple[str, int]]) -> None:
    """Raise BadRow, with both names, where a later moment has the earlier time."""
    for (before, before_ns), (after, after_ns) in pairwise(moments):
        if after_ns < before_ns:
            late_ms = (before_ns - after_ns) / 10**6
            raise BadRow(f"the clock runs backwards: {after} is {late_ms:g} ms before {before}")


def refuse_constant(name: str) -> float:
    """What NaN and the infinities are to a JSON reader: raises BadRow."""
    raise BadRow(f"{name} is no number")
