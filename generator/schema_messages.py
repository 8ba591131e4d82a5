"""What a broken JSON Schema keyword means to the person who wrote the document."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from generator.wording import did_you_mean, kind_of, shown
from generator.yaml_text.scalars import dump_yaml_scalar


class SchemaError(Protocol):
    """What is used here of jsonschema's ValidationError, which is slow to import."""

    validator: str | None
    validator_value: Any
    instance: Any
    schema: Any
    message: str
    context: list[SchemaError]
    parent: SchemaError | None
    absolute_path: Iterable[str | int]
    absolute_schema_path: Iterable[str | int]
    relative_path: Sequence[str | int]
    relative_schema_path: Sequence[str | int]


_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "a string",
}
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
    "multipleOf": "a multiple of",
}
_SIZES = {
    "minItems": ("at least", "item"),
    "maxItems": ("at most", "item"),
    "minLength": ("at least", "character"),
    "maxLength": ("at most", "character"),
    "minProperties": ("at least", "key"),
    "maxProperties": ("at most", "key"),
}
_MOST_VALUES_LISTED = 12


def explain(error: SchemaError) -> tuple[str, str]:
    """The message and hint of an error that concerns one value as a whole."""
    keyword = str(error.validator)
    if keyword in _BOUNDS:
        return _explain_bound(keyword, error)
    if keyword in _SIZES:
        return _explain_size(keyword, error)
    return _EXPLAINERS.get(keyword, _explain_otherwise)(error)


def explain_alternatives(errors: Sequence[SchemaError]) -> tuple[str, str]:
    """The message and hint of a value that is of no type and none of the values allowed.

    ``errors`` are of the same value: broken ``type``, ``enum`` and ``const`` keywords.
    """
    types: list[str] = []
    values: list[Any] = []
    for error in errors:
        expected = error.validator_value
        if error.validator == "type":
            types += [expected] if isinstance(expected, str) else expected
        else:
            values += expected if error.validator == "enum" else [expected]
    value = errors[0].instance
    names = [*(_TYPES[name] for name in dict.fromkeys(types)), *map(shown, values)]
    advice = next(filter(None, map(own_hint, errors)), "")
    hint = _nearest(value, values) or advice or _type_hint(value, types)
    return f"expected {_any_of(names)}, got {_found(value)}", hint


def _explain_type(error: SchemaError) -> tuple[str, str]:
    return explain_alternatives([error])


def _explain_enum(error: SchemaError) -> tuple[str, str]:
    values = error.validator_value
    message = f"{_found_value(error.instance)} is not one of {_some_of(map(shown, values))}"
    return message, _nearest(error.instance, values) or own_hint(error)


def _explain_bound(keyword: str, error: SchemaError) -> tuple[str, str]:
    bound, value = shown(error.validator_value), shown(error.instance)
    return f"must be {_BOUNDS[keyword]} {bound}, got {value}", own_hint(error)


def _explain_size(keyword: str, error: SchemaError) -> tuple[str, str]:
    relation, unit = _SIZES[keyword]
    limit = error.validator_value
    if relation == "at least" and limit == 1:
        return "must not be empty", own_hint(error)
    plural = "" if limit == 1 else "s"
    message = f"must have {relation} {limit} {unit}{plural}, has {len(error.instance)}"
    return message, own_hint(error)


def _explain_pattern(error: SchemaError) -> tuple[str, str]:
    value, hint = shown(error.instance), own_hint(error)
    if hint:
        return f"{value} is not valid here", hint
    return f"{value} does not match {error.validator_value}", ""


def _explain_unique_items(error: SchemaError) -> tuple[str, str]:
    items = error.instance
    pairs = ((at, items.index(item)) for at, item in enumerate(items))
    at, first = next(((at, first) for at, first in pairs if at != first), (0, 0))
    return f"item {at} repeats item {first}, {shown(items[at])}", own_hint(error)


def _explain_not_allowed(error: SchemaError) -> tuple[str, str]:
    return f"{_found_value(error.instance)} is not allowed here", own_hint(error)


def _explain_otherwise(error: SchemaError) -> tuple[str, str]:
    message = re.sub(r"\s+", " ", error.message)
    return (message if len(message) <= 160 else f"{message[:157]}..."), own_hint(error)


_EXPLAINERS: dict[str, Callable[[SchemaError], tuple[str, str]]] = {
    "const": _explain_type,
    "enum": _explain_enum,
    "not": _explain_not_allowed,
    "pattern": _explain_pattern,
    "type": _explain_type,
    "uniqueItems": _explain_unique_items,
}


def own_hint(error: SchemaError) -> str:
    """The advice the schema itself carries for a refused value, in ``x-hint``."""
    return str(error.schema.get("x-hint", "")) if isinstance(error.schema, dict) else ""


def _type_hint(value: object, types: list[str]) -> str:
    if value is None:
        return "give it a value, or remove the key"
    if "string" in types and isinstance(value, bool | int | float):
        return "put it in quotes"
    if "array" in types and isinstance(value, str | int | float):
        return f"write [{dump_yaml_scalar(value)}]"
    if isinstance(value, str | float) and not {"integer", "number"}.isdisjoint(types):
        return _number_hint(value, whole="number" not in types)
    return ""


def _number_hint(value: str | float, *, whole: bool) -> str:
    """How to write what is nearly a number: ``8.0`` for 8, or a number in quotes."""
    try:
        number = float(value)
    except ValueError:
        return ""
    if not math.isfinite(number) or (whole and not number.is_integer()):
        return ""
    return f"write {dump_yaml_scalar(int(number) if whole else number)}"


def _nearest(value: object, choices: list[Any]) -> str:
    words = {choice.lower() for choice in choices if isinstance(choice, str)}
    if isinstance(value, bool) and words & (
        {"yes", "on", "true"} if value else {"no", "off", "false"}
    ):
        return "put it in quotes"
    if isinstance(value, list | dict):
        return ""
    return did_you_mean(str(value), [str(choice) for choice in choices])


def _found(value: object) -> str:
    if isinstance(value, list | dict):
        return kind_of(value)
    if value is None:
        return "null"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{shown(value)} (not a finite number)"
    return f"{shown(value)} ({kind_of(value)})"


def _found_value(value: object) -> str:
    return kind_of(value) if isinstance(value, list | dict) else shown(value)


def _any_of(words: list[str]) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _some_of(words: Iterable[str]) -> str:
    every = list(words)
    more = len(every) - _MOST_VALUES_LISTED
    listed = ", ".join(every[:_MOST_VALUES_LISTED])
    return f"{listed} and {more} more" if more > 0 else listed
