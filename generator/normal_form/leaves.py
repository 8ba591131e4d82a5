"""A tree of mappings and lists as its leaves with their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generator.wording import FieldPath


def leaves(node: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Every value below a node: scalars, empty mappings, and lists of scalars as tuples.

    A list that holds mappings is opened, its items by number. A not-a-number becomes the text
    ``nan``, since it would not even equal itself.
    """
    if isinstance(node, Mapping):
        if not node:
            yield path, {}
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif not isinstance(node, list):
        yield path, "nan" if node != node else node  # noqa: PLR0124
    elif any(isinstance(item, Mapping) for item in node):
        for index, item in enumerate(node):
            yield from leaves(item, (*path, index))
    else:
        yield path, tuple(map(_frozen, node))


def _frozen(item: Any) -> Any:
    if isinstance(item, list):
        return tuple(map(_frozen, item))
    return item
