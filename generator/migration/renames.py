"""Sections of a v1 recipe whose keys have other places in v2: frontend, benchmark, dynamo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.migration.entry_moves import replaced, taken, trailing_comment, without_first_blanks
from generator.normal_form.consumer_types import as_consumed
from generator.normal_form.readings import DYNAMO_REPOSITORY
from generator.recipe.recipe import Dialect
from generator.wording import FieldPath
from generator.yaml_text.entries import Entry, TextEntries
from generator.yaml_text.scalars import dump_yaml_scalar

_DYNAMO_SOURCES = {"version": "pypi", "wheel": "wheel", "hash": "rev"}
_MOVING_KEYS = {
    "frontend": frozenset({"type", "dedicated_node", "orchestrator_placement"}),
    "benchmark": frozenset({"client_dedicated_node", "client_placement"}),
    "dynamo": frozenset({*_DYNAMO_SOURCES, "cargo_patches"}),
}


@dataclass(frozen=True, slots=True)
class RecipeValues:
    """What the entries of one recipe say. ``depth`` is how deep it lies in its document."""

    entries: TextEntries
    data: Mapping[str, Any]
    depth: int

    def opened(self, entry: Entry) -> bool:
        """Whether an entry is a mapping, which is taken apart then."""
        return self.entries.open(entry)

    def value(self, entry: Entry) -> Any:
        """The value of an entry as it is written; None where there is none."""
        here: Any = self.data
        for step in entry.path[self.depth :]:
            here = here.get(step) if isinstance(here, Mapping) else None
        return here

    def consumed(self, entry: Entry) -> Any:
        """The value of an entry as srt-slurm reads it."""
        return as_consumed(self.value(entry), self.path(entry), Dialect.V1)

    def path(self, entry: Entry) -> FieldPath:
        """The path of an entry inside its recipe."""
        return entry.path[self.depth :]


def renamed_section(key: str, entry: Entry, values: RecipeValues) -> Entry:
    """A section of a recipe with v2's keys; one that both layouts write alike stays as it is."""
    section = values.value(entry)
    moving = _MOVING_KEYS.get(key, frozenset())
    if not isinstance(section, Mapping) or moving.isdisjoint(section) or not values.opened(entry):
        return entry
    children = taken(entry)
    match key:
        case "frontend":
            children = _placed(children, "dedicated_node", "orchestrator_placement", values)
            children = [_router(child, values) for child in children]
        case "benchmark":
            children = _placed(children, "client_dedicated_node", "client_placement", values)
        case "dynamo":
            children = _sourced(children, values)
    entry.children = children
    return entry


def _router(child: Entry, values: RecipeValues) -> Entry:
    if child.path[-1:] == ("type",) and values.value(child) == "sglang":
        child.inline = child.inline.replace("sglang", "sglang-router", 1)
    return child


def _placed(
    children: list[Entry], switch: str, placement: str, values: RecipeValues
) -> list[Entry]:
    """A node of one's own and another placement are one key in v2."""
    found = {child.path[-1]: child for child in children if child.path}
    moved = [found[key] for key in (switch, placement) if key in found]
    if not moved:
        return children
    dedicated = values.consumed(found[switch]) is True if switch in found else False
    telling = found[placement] if not dedicated and placement in found else found[switch]
    inline = telling.inline
    if telling.path[-1] == switch:
        inline = f" {'dedicated' if dedicated else 'head'}{trailing_comment(inline)}"
    node = Entry(key="node", inline=inline)
    above = [line for each in moved for line in each.above]
    above += [line for each in moved if each is not telling for line in _own_comment(each)]
    after = [line for each in moved for line in each.after]
    nested = Entry(key="placement", above=above, after=after, children=[node])
    return replaced(children, moved, nested)


def _sourced(children: list[Entry], values: RecipeValues) -> list[Entry]:
    """Where Dynamo comes from is a section of its own in v2; a commit has its repository beside."""
    moved: list[Entry] = []
    parts: list[Entry] = []
    above: list[str] = []
    for child in children:
        name = str(child.path[-1])
        if name not in _MOVING_KEYS["dynamo"]:
            continue
        moved.append(child)
        if name == "hash" and values.value(child) is None:
            above += [*child.above, *_own_comment(child)]
            continue
        if name == "hash":
            git = dump_yaml_scalar(DYNAMO_REPOSITORY)
            parts.append(Entry(key="git", inline=f" {git}", above=child.above))
            child.above = []
        child.key = _DYNAMO_SOURCES.get(name, "patches")
        parts.append(child)
    source = Entry(key="source", above=above, children=without_first_blanks(parts))
    return replaced(children, moved, source)


def _own_comment(entry: Entry) -> list[str]:
    """The comment behind the value of an entry that goes, as a line of its own."""
    comment = trailing_comment(entry.inline).strip()
    return [comment] if comment else []
