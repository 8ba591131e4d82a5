"""How a message names a place in a document and a value found there, always on one line."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

FieldPath: TypeAlias = tuple[str | int, ...]
"""Keys, and item numbers from 0, from the root of a document to one of its values."""

_BARE_KEY = re.compile(r"[\w-]+\Z")
_LONGEST_VALUE_CHARACTERS = 60


def dotted_path(path: FieldPath) -> str:
    """A path as people write it: ``deployments[3].prefill``; odd keys are quoted in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _BARE_KEY.match(step):
            text += f".{step}" if text else step
        else:
            text += f"[{shown(step)}]"
    return text


def shown(value: object) -> str:
    """A value as YAML writers know it: ``'text'``, ``8``, ``true``, ``null``; cut if long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    if isinstance(value, float) and not math.isfinite(value):
        text = text.replace("nan", ".nan").replace("inf", ".inf")
    if len(text) <= _LONGEST_VALUE_CHARACTERS:
        return text
    return f"{text[: _LONGEST_VALUE_CHARACTERS - 4]}...{text[-1]}"


def kind_of(value: object) -> str:
    """What a value is, with its article: ``a string``, ``an integer``, ``a mapping``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    kinds = {str: "a string", int: "an integer", float: "a number", list: "a list"}
    return kinds.get(type(value), "a mapping")


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A hint that names the choice nearest to a misspelt word; empty if none is near."""
    by_letters = {_letters(choice): choice for choice in choices}
    near = difflib.get_close_matches(_letters(word), by_letters, n=1)
    return f"did you mean {shown(by_letters[near[0]])}?" if near else ""


def _letters(word: str) -> str:
    return word.lower().replace("_", "-")


def first_of(names: Iterable[str]) -> str:
    """The first name in order, and how many more there are: ``a and 2 more``."""
    first, *rest = sorted(names)
    return f"{first} and {len(rest)} more" if rest else first


def as_below(lines: Sequence[int]) -> str:
    """How many more lines have the fault of the first: ``, as 2 more below it``; empty for none."""
    return f", as {len(lines) - 1:,} more below it" if len(lines) > 1 else ""


def plural(count: int, noun: str) -> str:
    """A number with its noun: ``1 recipe``, ``2 recipes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
