"""What srt-slurm casts when it reads a recipe, so that ``"4"`` and ``4`` mean one thing.

The types are those of the recipe schemas. Engine flags have none: they are passed through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from generator.recipe.recipe import Dialect
from generator.validation import schema
from generator.wording import FieldPath

ANY_STEP = "*"
"""Stands for any key or item in a path of a schema."""

_WHOLE = re.compile(r"\s*[+-]?[0-9]+(_[0-9]+)*\s*\Z")
_DECIMAL = re.compile(r"\s*[+-]?([0-9]+(_[0-9]+)*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*\Z")
_TRUE = frozenset({"t", "true", "on", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "off", "n", "no", "0"})


def as_consumed(value: Any, path: FieldPath, dialect: Dialect) -> Any:
    """A value of a recipe as srt-slurm holds it after reading; as written where it casts none."""
    if value is None:
        return None
    cast = _casts(dialect).get(path)
    if cast is None and len(path) > 1:
        cast = _casts(dialect).get((*path[:-1], ANY_STEP))
    return value if cast is None else cast(value)


def as_text(value: Any) -> Any:
    """A scalar as the text an environment variable gets; srt-slurm itself takes text only."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def as_concurrencies(value: Any) -> Any:
    """Concurrencies as sorted numbers, each once; as written where one is no whole number."""
    levels = value.split("x") if isinstance(value, str) else value
    if isinstance(levels, int) and not isinstance(levels, bool):
        levels = (levels,)
    if not isinstance(levels, list | tuple) or not levels:
        return value
    numbers = [_as_whole(each) for each in levels]
    if all(isinstance(each, int) and not isinstance(each, bool) for each in numbers):
        return tuple(sorted(set(numbers)))
    return value


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _WHOLE.match(value) else value


def _as_number(value: Any) -> Any:
    value = _as_whole(value)
    return float(value) if isinstance(value, str) and _DECIMAL.match(value) else value


def _as_switch(value: Any) -> Any:
    word = str(value).lower()
    if word in _TRUE:
        return True
    return False if word in _FALSE else value


@cache
def _casts(dialect: Dialect) -> Mapping[FieldPath, Callable[[Any], Any]]:
    casts: dict[FieldPath, Callable[[Any], Any]] = {}
    for path, part in schema_parts(dialect):
        types = part.get("type", ())
        if "string" not in types or isinstance(types, str):
            continue
        for kind, cast in (("integer", _as_whole), ("number", _as_number), ("boolean", _as_switch)):
            if kind in types:
                casts[path] = cast  # a boolean may be written 1 and so is an integer, too
    for path, part in schema_parts(dialect):
        below = part.get("additionalProperties")
        if isinstance(below, dict) and below.get("type") == "string":
            casts[*path, ANY_STEP] = as_text
    return casts


def schema_parts(dialect: Dialect) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """Every path a layout's schema knows with what it says there; a path may come repeatedly."""
    root = schema(f"recipe-{dialect.value}")
    yield from _parts(root, (), root)


def _parts(
    part: Mapping[str, Any], path: FieldPath, root: Mapping[str, Any]
) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    yield path, part
    if "$ref" in part:
        name = part["$ref"].removeprefix("#/$defs/")
        yield from _parts(root["$defs"][name], path, root)
    for key, below in part.get("properties", {}).items():
        yield from _parts(below, (*path, key), root)
    for same in (*part.get("allOf", ()), part.get("then"), part.get("else")):
        if same is not None:
            yield from _parts(same, path, root)
    if isinstance(part.get("items"), dict):
        yield from _parts(part["items"], (*path, ANY_STEP), root)
