"""Taking entries of a document out of one section and making others of them, comments included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from generator.recipe.dialects import V1_ROLE_NAMES
from generator.yaml_text.entries import Entry


def taken(entry: Entry) -> list[Entry]:
    """The children of an opened entry, to be given elsewhere."""
    return list(entry.children or [])


def role_key(entry: Entry) -> tuple[str, str]:
    """The role and the part of it that a v1 key of resources sizes; empty for other keys."""
    for role in V1_ROLE_NAMES:
        for name, part in (
            (f"{role}_nodes", "nodes"),
            (f"{role}_workers", "workers"),
            (f"gpus_per_{role}", "gpus"),
        ):
            if entry.path[-1] == name:
                return role, part
    return "", ""


def as_comment(entry: Entry, inline: str | None = None) -> list[str]:
    """The comment on the line of a key that goes, as a line of its own."""
    comment = entry.comment if inline is None else trailing_comment(inline).strip()
    return [comment] if comment else []


def trailing_comment(inline: str) -> str:
    """The comment behind a plain scalar, with the blanks before it."""
    found = re.search(r"\s+#.*$", inline)
    return found[0] if found else ""


def without_first_blanks(children: list[Entry]) -> list[Entry]:
    """Blank lines that parted a key from others make no sense above the first."""
    if children:
        first = children[0]
        while first.above and not first.above[0].strip():
            first.above = first.above[1:]
    return children


def replaced(children: list[Entry], moved: list[Entry], by: Entry) -> list[Entry]:
    """Children with one in place of those that moved."""
    gone = {id(each) for each in moved}
    at = next(index for index, child in enumerate(children) if id(child) in gone)
    rest = [child for child in children if id(child) not in gone]
    return [*rest[:at], by, *rest[at:]]


def service(name: str, node: str | None, *parts: Entry | None, above: Iterable[str] = ()) -> Entry:
    """A service of a type that is its name, too, with its node where one is said."""
    children = [Entry(key="name", inline=f" {name}"), Entry(key="type", inline=f" {name}")]
    if node is not None:
        children.append(Entry(key="placement", children=[Entry(key="node", inline=f" {node}")]))
    children += (part for part in parts if part is not None)
    return Entry(key=name, above=list(above), children=children)


def as_item(service: Entry) -> Iterator[str]:
    """A service as an item of a list, below its key."""
    lines = [line for child in service.children or () for line in child.lines()]
    for index, line in enumerate(lines):
        yield f"  {'- ' if not index else '  '}{line}" if line else ""
