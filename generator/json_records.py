"""JSON values into the frozen dataclasses that records on disk are made of, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import cache
from itertools import chain
from types import UnionType
from typing import Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_Reader: TypeAlias = Callable[[Any], Any]


def from_json(kind: type[T], value: object) -> T:
    """The dataclass of a JSON object; its keys that are no field are left out.

    Fields may be text, numbers, booleans, enums of text, dataclasses, tuples, plain mappings, and
    any of these or None. Raises ValueError, naming the field, for a value of another
    type or a missing field without a default.
    """
    taken: T = _record_reader(kind)(value)  # type: ignore[arg-type]
    return taken


# Readers are made once for each type: files of results hold a hundred values a line.


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
def _record_reader(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    items = tuple((each.name, _reader(hints[each.name])) for each in fields(kind))
    required = tuple(
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    )

    def read(value: Any) -> Any:
        document = _demand(value, dict)
        taken = {}
        name = ""
        try:
            for name, read_field in items:
                if name in document:
                    taken[name] = read_field(document[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        if len(taken) < len(items) and (
            missing := [each for each in required if each not in taken]
        ):
            raise ValueError(f"lacks {', '.join(missing)}")
        return kind(**taken)

    return read


def _reader(expected: Any) -> _Reader:
    origin = get_origin(expected)
    if origin is UnionType:
        read_value = _reader(get_args(expected)[0])
        return lambda value: None if value is None else read_value(value)
    if origin is tuple:
        return _tuple_reader(get_args(expected))
    if origin is not None and issubclass(origin, Mapping):
        return lambda value: _demand(value, dict)
    if issubclass(expected, StrEnum):
        enum: _Reader = expected
        return enum
    if hasattr(expected, "__dataclass_fields__"):
        return _record_reader(expected)
    return lambda value: value if type(value) is expected else _demand(value, expected)


def _tuple_reader(expected: tuple[Any, ...]) -> _Reader:
    if expected[-1] is not Ellipsis:
        return _row_reader(expected)
    read_value = _reader(expected[0])
    row = get_args(expected[0]) if get_origin(expected[0]) is tuple else ()
    if len(set(row)) != 1:
        return lambda values: tuple([read_value(value) for value in _demand(values, list)])

    def read(values: Any) -> Any:
        listed = _demand(values, list)
        if _are_rows(listed, row):
            return tuple(map(tuple, listed))
        return tuple([read_value(value) for value in listed])

    return read


def _are_rows(values: list[Any], row: tuple[Any, ...]) -> bool:
    """Whether all values are lists of a row's length and one type, seen without a loop of ours."""
    return (
        set(map(type, values)) == {list}
        and set(map(len, values)) == {len(row)}
        and set(map(type, chain.from_iterable(values))) == {row[0]}
    )


def _row_reader(expected: tuple[Any, ...]) -> _Reader:
    readers = tuple(map(_reader, expected))

    def read(values: Any) -> Any:
        listed = _demand(values, list)
        if tuple(map(type, listed)) == expected:
            return tuple(listed)
        if len(readers) != len(listed):
            raise ValueError(f"{len(listed)} values where {len(readers)} belong")
        return tuple(each(value) for each, value in zip(readers, listed, strict=True))

    return read


def _demand(value: Any, expected: type) -> Any:
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ValueError(f"{str(value)[:60]!r} is not of type {expected.__name__}")
    return value
