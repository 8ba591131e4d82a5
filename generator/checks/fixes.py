"""Fixes in the text of a recipe: one scalar at a time, everything around it left as it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from generator.checks.rule import Edit, QuoteText, SetValue
from generator.documents import dump_yaml_scalar, parse_document
from generator.wording import FieldPath

_LOADER = yaml.SafeLoader


def apply_edits(text: str, edits: Iterable[Edit], source: str) -> tuple[str, int]:
    """The text with the edits made, and how many were.

    An edit is left out where its value stands in another place as well, by an alias or a merge
    key, is no longer what it was, or spans lines. The outcome is read back: the text comes back
    unchanged if anything but the edited values differs.
    """
    root = yaml.compose(text, Loader=_LOADER)
    expected = parse_document(text, source).data
    replacements: dict[tuple[int, int], str] = {}
    for edit in dict.fromkeys(edits):
        node = _own_scalar(root, edit.path)
        if node is None or node.start_mark.line != node.end_mark.line:
            continue
        start, end = node.start_mark.index, node.end_mark.index
        written = text[start:end]
        value = _new_value(edit, expected, written)
        if value is None or (start, end) in replacements:
            continue
        _set(expected, edit.path, value)
        replacements[start, end] = (
            _in_quotes(value) if _is_quoted(edit) else dump_yaml_scalar(value)
        )
    fixed = text
    for (start, end), scalar in sorted(replacements.items(), reverse=True):
        fixed = fixed[:start] + scalar + fixed[end:]
    if parse_document(fixed, source).data != expected:
        return text, 0
    return fixed, len(replacements)


def _is_quoted(edit: Edit) -> bool:
    return isinstance(edit, QuoteText)


def _new_value(edit: Edit, data: Any, written: str) -> Any:
    """What an edit writes; None where it no longer applies."""
    if isinstance(edit, SetValue):
        return edit.value if _at(data, edit.path) == edit.old else None
    return written if written[:1] not in "'\"|>&*!" else None


def _in_quotes(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _own_scalar(root: yaml.Node | None, path: FieldPath) -> yaml.ScalarNode | None:
    """The scalar at a path if it is written there and means nothing elsewhere."""
    here, shared = root, _shared(root)
    for step in path:
        here = None if here is None else _child(here, step)
        if id(here) in shared:
            return None
    return here if isinstance(here, yaml.ScalarNode) else None


def _shared(root: yaml.Node | None) -> set[int]:
    """The ids of nodes that aliases and merge keys bring to a second place."""
    seen: set[int] = set()
    shared: set[int] = set()
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            shared.add(id(node))
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            waiting += (value for _, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
    return shared


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def _at(data: Any, path: FieldPath) -> Any:
    for step in path:
        data = data[step]
    return data


def _set(data: Any, path: FieldPath, value: Any) -> None:
    _at(data, path[:-1])[path[-1]] = value
