"""JSON values into the frozen dataclasses that records on disk are made of, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def from_json(kind: type[T], value: object) -> T:
    """The dataclass of a JSON object; its keys that are no field are left out.

    Fields may be text, numbers, booleans, enums of text, dataclasses, tuples, plain mappings, and
    any of these or None. Raises ValueError, naming the field, for a value of another
    type or a missing field without a default.
    """
    document = _demand(value, dict)
    types, required = _shape(kind)  # type: ignore[arg-type]
    if missing := [name for name in required if name not in document]:
        raise ValueError(f"lacks {', '.join(missing)}")
    taken = {}
    for name in types.keys() & document.keys():
        try:
            taken[name] = _converted(types[name], document[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return kind(**taken)


def as_json(value: Any) -> Any:
    """What ``from_json`` reads: dataclasses as objects, tuples as lists, the rest as it is.

    ``dataclasses.asdict`` does the same but copies every value deeply, which takes four times as
    long.
    """
    if hasattr(value, "__dataclass_fields__"):
        return {name: as_json(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple):
        return [as_json(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


@cache
def _shape(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The type of each field of a dataclass, and the fields that have no default."""
    hints = get_type_hints(kind)
    required = (
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    )
    return {each.name: hints[each.name] for each in fields(kind)}, tuple(required)


def _converted(expected: Any, value: Any) -> Any:
    origin = get_origin(expected)
    if origin is UnionType:
        return None if value is None else _converted(get_args(expected)[0], value)
    if origin is tuple:
        return _tuple(get_args(expected), _demand(value, list))
    if origin is not None and issubclass(origin, Mapping):
        return _demand(value, dict)
    if issubclass(expected, StrEnum):
        return expected(value)
    if hasattr(expected, "__dataclass_fields__"):
        return from_json(expected, value)
    return _demand(value, expected)


def _tuple(expected: tuple[Any, ...], values: list[Any]) -> tuple[Any, ...]:
    kinds = [expected[0]] * len(values) if expected[-1] is Ellipsis else list(expected)
    if len(kinds) != len(values):
        raise ValueError(f"{len(values)} values where {len(kinds)} belong")
    return tuple(_converted(kind, value) for kind, value in zip(kinds, values, strict=True))


def _demand(value: Any, expected: type) -> Any:
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ValueError(f"{str(value)[:60]!r} is not of type {expected.__name__}")
    return value
