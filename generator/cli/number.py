"""Numbers and times on the command line."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from generator.goodput.trace import NS_PER_MS

_LONGEST_TIME = Decimal(10**11)


class FiniteRange(click.FloatRange):
    """A number in a range; NaN and infinity, which no bound keeps out, are none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class Count(click.IntRange):
    """How many of something: at least 1, and no more than a float can tell apart."""

    _MOST = 10**15

    def __init__(self) -> None:
        super().__init__(1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = super().convert(value, param, ctx)
        if number > self._MOST:
            self.fail(f"a number of {len(str(number))} digits is too large", param, ctx)
        return number


def nanoseconds(text: str, unit_ns: int) -> int:
    """A time written as a decimal number; raises BadParameter for anything else."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise click.BadParameter(f"{text!r} is not a number") from None
    if not value.is_finite() or not 0 <= value <= _LONGEST_TIME:
        raise click.BadParameter(f"{text!r} is not a time")
    return round(value * unit_ns)


def limit_ns(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """A limit in milliseconds as whole nanoseconds; None where the option is absent."""
    if value is None:
        return None
    limit = nanoseconds(value, NS_PER_MS)
    if not limit:
        raise click.BadParameter("a limit must be above 0 ms")
    return limit
