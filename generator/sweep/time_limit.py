"""Slurm's notations of a time limit."""

from __future__ import annotations

import re

_UNITS_S = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
# man sbatch, --time: with days the first figure after them is hours; without, see the second form.
_WITH_DAYS = re.compile(
    r"(?P<days>\d{1,4})-(?P<hours>\d{1,4})(:(?P<minutes>\d{1,4})(:(?P<seconds>\d{1,4}))?)?\Z"
)
_WITHOUT_DAYS = re.compile(
    r"((?P<hours>\d{1,6}):(?=\d+:))?(?P<minutes>\d{1,6})(:(?P<seconds>\d{1,6}))?\Z"
)


def parse_time_limit(text: str) -> int:
    """Seconds of a time limit as sbatch reads it.

    >>> [parse_time_limit(text) for text in ("90", "2:30", "2:00:00", "1-0", "1-2:30")]
    [5400, 150, 7200, 86400, 95400]

    Raises ValueError for anything else, for no time at all and for a limit without end.
    """
    match = _WITH_DAYS.match(text) or _WITHOUT_DAYS.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time such as '2:00:00' or '1-12:00:00'")
    parts = match.groupdict()
    limit_s = sum(int(parts.get(unit) or 0) * seconds for unit, seconds in _UNITS_S.items())
    if limit_s == 0:
        raise ValueError("a time limit of 0 would never end")
    return limit_s


def format_time_limit(limit_s: int) -> str:
    """The form that every Slurm reads the same way: ``hours:minutes:seconds``."""
    minutes, seconds = divmod(limit_s, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
