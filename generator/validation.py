"""Documents against the JSON Schemas in ``schemas/``: every error as one line with its place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from generator.assets import asset_root
from generator.documents import Document
from generator.errors import InvalidInput, Problem
from generator.schema_messages import SchemaError, explain, explain_alternatives, own_hint
from generator.wording import did_you_mean, shown

_CHOICES = ("anyOf", "oneOf")
_VALUE_KEYWORDS = frozenset({"type", "enum", "const"})
_DEMANDING = ("required", "dependentRequired")
_MOST_KEYS_LISTED = 8


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of that name, ``schemas/<name>.schema.json``; not to be changed."""
    path = asset_root() / "schemas" / f"{name}.schema.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def problems(document: Document, schema_name: str) -> list[Problem]:
    """Everything in a document that its schema refuses, by line.

    Stricter than JSON Schema in two points: 8.0 is no integer, and .nan and .inf are no numbers.
    """
    found: dict[tuple[str, str], Problem] = {}
    for error in _validator(schema_name).iter_errors(document.data):
        for problem in _explained(error, document, schema(schema_name)):
            found.setdefault((problem.path, problem.message), problem)
    return sorted(found.values(), key=lambda problem: (problem.line, problem.path))


def validate(document: Document, schema_name: str) -> None:
    """Raise InvalidInput with everything that the schema refuses in a document."""
    if found := problems(document, schema_name):
        raise InvalidInput(found)


@cache
def _validator(name: str) -> Any:
    # jsonschema takes 0.1 s to import, and not every command validates something.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import extend  # noqa: PLC0415

    types = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_finite_number}
    )
    keywords = {"pattern": _to_the_end(Draft202012Validator.VALIDATORS["pattern"])}
    strict = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, validators=keywords, type_checker=types
    )
    return strict(schema(name))


def _to_the_end(keyword: Callable[..., Any]) -> Callable[..., Any]:
    """The ``pattern`` keyword with ``$`` for the end alone: to Python a last newline may follow."""

    def pattern(validator: object, expected: str, instance: object, part: object) -> Any:
        exact = f"{expected[:-1]}\\Z" if expected.endswith("$") else expected
        return keyword(validator, exact, instance, part)

    return pattern


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite_number(checker: object, value: object) -> bool:
    return _is_integer(checker, value) or (isinstance(value, float) and math.isfinite(value))


def _explained(error: SchemaError, document: Document, root: dict[str, Any]) -> Iterator[Problem]:
    path = tuple(error.absolute_path)
    if error.validator in _CHOICES and error.context:
        yield from _explained_choice(error, document, root)
    elif unknown := _unknown_keys(error):
        allowed = _allowed_keys(error, root)
        for key in unknown:
            message = f"unknown key {shown(key)}"
            yield document.problem((*path, key), message, _key_hint(key, allowed, error))
    elif error.validator in _DEMANDING:
        for message in _missing_keys(error):
            yield document.problem(path, message)
    elif _is_about_a_key(error):
        yield document.problem((*path, error.instance), *explain(error))
    else:
        yield document.problem(path, *explain(error))


# --- choices: which of several schemas the writer meant ---------------------------------------


def _explained_choice(
    error: SchemaError, document: Document, root: dict[str, Any]
) -> Iterator[Problem]:
    """The errors of the branch that comes closest, or of all branches in one if none does."""
    path, errors = tuple(error.absolute_path), error.context
    if all(each.validator in _VALUE_KEYWORDS and not each.relative_path for each in errors):
        yield document.problem(path, *explain_alternatives(errors))
        return
    branches: dict[str | int, list[SchemaError]] = {}
    for each in errors:
        branches.setdefault(each.relative_schema_path[0], []).append(each)
    closest = min(branches.values(), key=_distance)
    if discriminator := next(filter(_names_a_branch, closest), None):
        where = discriminator.relative_path
        same = [each for each in errors if _names_a_branch(each) and each.relative_path == where]
        yield document.problem((*path, *where), *explain_alternatives(same))
        return
    for each in closest:
        yield from _explained(each, document, root)


def _distance(branch: list[SchemaError]) -> tuple[int, int, int, int]:
    """How far a value is from a branch: its type, then what names the branch, then its keys."""
    wrong_type = sum(each.validator == "type" and not each.relative_path for each in branch)
    wrong_name = sum(map(_names_a_branch, branch))
    missing = sum(each.validator in _DEMANDING for each in branch)
    wrong_keys = missing + sum(len(_unknown_keys(each)) for each in branch)
    return wrong_type, wrong_name, wrong_keys, len(branch)


def _names_a_branch(error: SchemaError) -> bool:
    """Whether a key with one fixed value, such as ``type: vllm``, tells the branches apart."""
    return error.validator == "const" and len(error.relative_path) == 1


# --- keys -------------------------------------------------------------------------------------


def _unknown_keys(error: SchemaError) -> list[str]:
    """The keys that a mapping does not allow: all of them, where jsonschema makes one error."""
    if error.validator == "additionalProperties" and error.validator_value is False:
        known, patterns = (
            error.schema.get("properties", {}),
            error.schema.get("patternProperties", {}),
        )
        unknown = (key for key in error.instance if key not in known)
        return [key for key in unknown if not any(re.search(each, key) for each in patterns)]
    if error.validator == "enum" and _is_about_a_key(error):
        return [error.instance]
    return []


def _is_about_a_key(error: SchemaError) -> bool:
    return "propertyNames" in error.relative_schema_path and isinstance(error.instance, str)


def _missing_keys(error: SchemaError) -> Iterator[str]:
    if error.validator == "required":
        yield from (f"{shown(key)} is required" for key in _absent(error.validator_value, error))
        return
    for key, needed in error.validator_value.items():
        if key in error.instance:
            for missing in _absent(needed, error):
                yield f"{shown(missing)} is required beside {shown(key)}"


def _absent(keys: list[str], error: SchemaError) -> list[str]:
    return [key for key in keys if key not in error.instance]


def _key_hint(key: str, allowed: list[str], error: SchemaError) -> str:
    if key in allowed:
        return own_hint(error) or "it does not go together with the other keys here"
    more = ", ..." if len(allowed) > _MOST_KEYS_LISTED else ""
    listed = f"allowed: {', '.join(allowed[:_MOST_KEYS_LISTED])}{more}" if allowed else ""
    return did_you_mean(key, allowed) or own_hint(error) or listed


def _allowed_keys(error: SchemaError, root: dict[str, Any]) -> list[str]:
    """The keys that the schema, or another branch of a choice at the same place, knows."""
    if error.validator == "enum":
        return [str(name) for name in error.validator_value]
    names = dict.fromkeys(_property_names(error.schema, root, frozenset()))
    while error.parent is not None and not error.relative_path:
        error = error.parent
        names |= dict.fromkeys(_property_names(error.schema, root, frozenset()))
    return list(names)


def _property_names(part: Any, root: dict[str, Any], seen: frozenset[str]) -> Iterator[str]:
    if not isinstance(part, dict):
        return
    yield from part.get("properties", {})
    below = [*part.get("allOf", []), *part.get("anyOf", []), *part.get("oneOf", [])]
    below += [part.get("then"), part.get("else")]
    reference = part.get("$ref", "")
    if reference.startswith("#/") and reference not in seen:
        seen |= {reference}
        below.append(_referenced(reference, root))
    for each in below:
        yield from _property_names(each, root, seen)


def _referenced(reference: str, root: dict[str, Any]) -> Any:
    part: Any = root
    for step in reference.removeprefix("#/").split("/"):
        part = part[step.replace("~1", "/").replace("~0", "~")]
    return part
