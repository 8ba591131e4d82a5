"""YAML documents with the line of every field, so that whatever is wrong can be pointed at.

What is read is what PyYAML's safe loader gives, save for what ``generator.yaml_text.scalars``
lists. Writing, one scalar or one file at a time, is offered here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.files import read_text, write_text_atomically
from generator.wording import FieldPath, dotted_path
from generator.yaml_text.nodes import MAX_VALUES, Child, Node, compose, too_deep, too_large
from generator.yaml_text.scalars import dump_yaml_scalar
from generator.yaml_text.syntax import MAX_DEPTH

__all__ = [
    "Document",
    "FieldPath",
    "dotted_path",
    "dump_yaml_scalar",
    "parse_document",
    "read_document",
    "write_text_atomically",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One YAML document and where each of its fields is written.

    ``source`` is the file name as the user gave it. ``lines`` holds the line, from 1, of every
    mapping key and sequence item and, under ``()``, of the root; what an alias or merge key
    brings in has the line of its own text.
    """

    source: str
    text: str = field(repr=False)
    data: Any
    lines: Mapping[FieldPath, int] = field(repr=False)

    def line(self, path: FieldPath) -> int:
        """The line of a field, or of its nearest ancestor that is written down."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)

    def problem(self, path: FieldPath, message: str, hint: str = "") -> Problem:
        """A Problem of the field at ``path``, with its file, line and dotted path filled in."""
        return Problem(
            message=message,
            hint=hint,
            source=self.source,
            line=self.line(path),
            path=dotted_path(path),
        )


def read_document(path: Path, source: str | None = None) -> Document:
    """The YAML document in a file; ``source`` is what messages call it, ``str(path)`` by default.

    Raises InvalidInput for a file that cannot be read, is over 8 MiB or is not UTF-8, and for
    whatever ``parse_document`` refuses.
    """
    name = str(path) if source is None else source
    return parse_document(read_text(path, name), name)


def parse_document(text: str, source: str) -> Document:
    """The YAML document in ``text``.

    Raises InvalidInput, with every problem found, for a syntax error, duplicate or non-text keys,
    tags, ambiguous octal integers, several documents or none, unknown or recursive aliases, more
    than 64 levels, or more than 100,000 values once aliases are written out.
    """
    text = text.removeprefix("\ufeff")
    root = compose(text, source)
    expander = _Expander(source, root)
    data = expander.expand(root, (), root.line)
    return Document(source=source, text=text, data=data, lines=expander.lines)


class _Expander:
    """Turns nodes into plain data, aliases written out, noting the line of every path."""

    def __init__(self, source: str, root: Node) -> None:
        self.lines: dict[FieldPath, int] = {(): root.line}
        self._source = source
        self._values = 0

    def expand(self, node: Node, path: FieldPath, line: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise InvalidInput(too_large(self._source, line))
        if len(path) > MAX_DEPTH:
            raise InvalidInput(too_deep(self._source, line))
        if isinstance(node.content, dict):
            return dict(self._children(node.content.items(), path))
        if isinstance(node.content, list):
            return [value for _, value in self._children(enumerate(node.content), path)]
        return node.content

    def _children(
        self, children: Iterable[tuple[str | int, Child]], path: FieldPath
    ) -> Iterator[tuple[str | int, Any]]:
        for step, (line, child) in children:
            here = (*path, step)
            self.lines[here] = line
            yield step, self.expand(child, here, line)
