"""What a layout can say at all: the keys of its schema, by their paths in the normal form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from generator.normal_form.consumer_types import ANY_STEP, schema_parts
from generator.normal_form.form import NormalForm
from generator.normal_form.neutral_paths import ROLES, V1_ENGINES, neutral_path
from generator.recipe.recipe import Dialect
from generator.wording import FieldPath

_V1_SERVICES = ("etcd", "nats")
_V1_MOVED_BY_MEANING: tuple[FieldPath, ...] = (
    ("frontend", "placement", "node"),
    ("benchmark", "placement", "node"),
    ("dynamo", "git"),
    ("engine", "type"),
    ("services", "mooncake-master", "type"),
    *(("services", name, "type") for name in _V1_SERVICES),
    *(("services", name, "placement", "node") for name in _V1_SERVICES),
)
"""Paths that v1 fills from keys of another name and meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inexpressible:
    """A value that a layout has no words for; ``is_known`` says whether the recipe's own has."""

    path: FieldPath
    value: Any
    is_known: bool


def inexpressible(form: NormalForm, dialect: Dialect) -> tuple[Inexpressible, ...]:
    """Every value of a recipe that the other layout, or its own, cannot express."""
    return tuple(
        Inexpressible(
            path=path,
            value=found.value,
            is_known=_can_say(path, found.value, form.dialect),
        )
        for path, found in form.values.items()
        if not _can_say(path, found.value, dialect)
    )


def _can_say(path: FieldPath, value: Any, dialect: Dialect) -> bool:
    if dialect is Dialect.V2 and path[0] == "roles" and path[-1] == "nodes" and value == 0:
        return False  # v2 leaves out a role without nodes, or says colocate
    known, open_sections = _vocabulary(dialect)
    return any(
        each in known or any(each[:length] in open_sections for length in range(1, len(each) + 1))
        for each in _general_paths(path)
    )


def _general_paths(path: FieldPath) -> Iterator[FieldPath]:
    """A path as a schema has it: items without their numbers, services under any name."""
    general = tuple(ANY_STEP if isinstance(step, int) else step for step in path)
    yield general
    if general[0] == "services" and len(general) > 1:
        yield (general[0], ANY_STEP, *general[2:])


@cache
def _vocabulary(dialect: Dialect) -> tuple[frozenset[FieldPath], frozenset[FieldPath]]:
    """The paths a layout knows, and those below which it takes anything."""
    known: set[FieldPath] = set()
    open_sections: set[FieldPath] = set()
    closed: set[FieldPath] = set()
    for path, part in schema_parts(dialect):
        for neutral in _neutral_paths(path, dialect):
            known.add(neutral)
            if part.get("additionalProperties") is False or not path:
                closed.add(neutral)
            elif "object" in part.get("type", ()):
                open_sections.add(neutral)
    if dialect is Dialect.V1:
        known.update(_V1_MOVED_BY_MEANING)
        open_sections.update(("roles", role, "kv_events") for role in ROLES)
    return frozenset(known), frozenset(open_sections - closed)


def _neutral_paths(path: FieldPath, dialect: Dialect) -> set[FieldPath]:
    """Where a path of a layout may stand in the normal form: v1 has one place per engine."""
    engines = V1_ENGINES if dialect is Dialect.V1 else ("",)
    return {neutral_path(path, dialect, engine) for engine in engines}
