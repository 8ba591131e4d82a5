"""Block mappings as text entries: each key with its own lines and the comments that go with it.

For moving parts of a document about without touching how they are written. Comment and blank
lines above a key are the key's, those that are indented as its value is belong to the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from generator.wording import FieldPath

_COMMENT_IN_GAP = re.compile(r"(?:^|\s)(#.*)$", re.MULTILINE)
_AFTER_KEY = re.compile(r"\s*:(?=\s|$)")
_INDENT = "  "


class CannotSplit(ValueError):
    """A mapping written in a way that its entries cannot be taken apart; says which."""


@dataclass(slots=True)
class Entry:
    """A key and its value as written, every line relative to the entry's own indentation.

    ``inline`` is what follows the colon on the key's line, a comment included, ``below`` the
    value's other lines, ``above`` and ``after`` comment and blank lines around it. ``children``
    replace the value where it was opened.
    """

    key: str
    inline: str = ""
    path: FieldPath = ()
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    children: list[Entry] | None = None

    @property
    def comment(self) -> str:
        """The comment on the key's line where the value is on the lines below."""
        text = self.inline.strip()
        return text if text.startswith("#") else ""

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The entry's text at a depth of two spaces each."""
        yield from _indented(self.above, depth)
        yield from _indented(self.value_lines(), depth)
        if self.children:
            for child in self.children:
                yield from child.lines(depth + 1)
        yield from _indented(self.after, depth)

    def value_lines(self) -> list[str]:
        """The key's line and, of a value that was not opened, its other lines."""
        if self.children is None:
            return [f"{self.key}:{self.inline}", *self.below]
        return [f"{self.key}:{self.inline if self.children else ' {}'}"]

    def commented(self, note: str) -> list[str]:
        """The whole entry as comment lines, the first of which starts with a note."""
        first, *others = [line for line in self.lines() if line not in self.above]
        quoted = [f"# {note}{first}", *(f"# {line}".rstrip() for line in others)]
        return [*self.above, *quoted]


def _indented(lines: Iterable[str], depth: int) -> Iterator[str]:
    for line in lines:
        yield f"{_INDENT * depth}{line}" if line.strip() else ""


class TextEntries:
    """The entries of a document whose root is a block mapping.

    The text must be one that ``documents.parse_document`` takes. Raises CannotSplit.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._nodes: dict[FieldPath, tuple[Any, int, int]] = {}
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if not isinstance(root, yaml.MappingNode) or root.flow_style:
            raise CannotSplit("the document is no mapping in block style")
        self._root = root

    def entries(self) -> list[Entry]:
        """The entries of the root; lines before the first key are its own."""
        end = len(self._lines) - (not self._lines[-1])
        return list(self._block(self._root, (), 0, end))

    def open(self, entry: Entry) -> bool:
        """Take an entry's value apart into children; False where it is no mapping."""
        if entry.children is not None:
            return True
        node, start, end = self._nodes[entry.path]
        if not isinstance(node, yaml.MappingNode):
            return False
        if node.start_mark.line < start:
            raise CannotSplit(f"the value of '{entry.key}' is an alias")
        if entry.inline.strip().startswith("&"):
            raise CannotSplit(f"the value of '{entry.key}' has an anchor")
        if node.flow_style:
            entry.children = list(self._flow(node, entry))
            entry.inline, entry.below = "", []
        else:
            entry.children = list(self._block(node, entry.path, start + 1, end))
            entry.below = []
        return True

    def _block(self, node: Any, path: FieldPath, first: int, end: int) -> Iterator[Entry]:
        """Entries between two lines; each ends where its value does."""
        column = node.start_mark.column
        starts = [key.start_mark.line for key, _ in node.value]
        position = first
        for index, (key, value) in enumerate(node.value):
            start = starts[index]
            limit = starts[index + 1] if index + 1 < len(starts) else end
            stop = self._end_of_value(key, value, column, limit)
            match = _AFTER_KEY.match(self._lines[start], key.end_mark.column)
            if key.value == "<<" or match is None:
                raise CannotSplit(f"line {start + 1} is a merge key or a key of several lines")
            entry = Entry(
                key=self._lines[start][key.start_mark.column : key.end_mark.column],
                path=(*path, key.value),
                inline=self._lines[start][match.end() :],
                above=self._relative(position, start, column),
                below=self._relative(start + 1, stop, column),
            )
            self._nodes[entry.path] = (value, start, stop)
            position = stop
            if index + 1 == len(starts):
                entry.after = self._relative(position, end, column)
            yield entry

    def _end_of_value(self, key: Any, value: Any, column: int, limit: int) -> int:
        """The line after a value and the comments that are indented deeper than its key."""
        last: int = max(key.start_mark.line, _last_line(value, key.start_mark.line))
        while last > key.start_mark.line and not self._lines[last].strip():
            last -= 1
        stop = last + 1
        for line in range(stop, limit):
            text = self._lines[line]
            if text.strip() and len(text) - len(text.lstrip()) > column:
                stop = line + 1
            elif text.strip():
                break
        return stop

    def _relative(self, first: int, end: int, column: int) -> list[str]:
        lines = self._lines[first:end]
        return [line[min(column, len(line) - len(line.lstrip(" "))) :] for line in lines]

    def _flow(self, node: Any, entry: Entry) -> Iterator[Entry]:
        """The items of a flow mapping on lines of their own; its comments go above them."""
        position = node.start_mark.index
        text = self._text
        pieces = []
        for key, value in node.value:
            gap = text[position : key.start_mark.index]
            if value.start_mark.index < key.start_mark.index:
                raise CannotSplit(f"'{entry.key}' holds an alias in braces")
            written = text[value.start_mark.index : value.end_mark.index].split("\n")
            child = Entry(
                key=text[key.start_mark.index : key.end_mark.index],
                path=(*entry.path, key.value),
                inline=f" {written[0]}".rstrip(),
                above=_COMMENT_IN_GAP.findall(gap),
                below=[f"{_INDENT}{line.strip()}" for line in written[1:]],
            )
            self._nodes[child.path] = (value, key.start_mark.line, value.end_mark.line + 1)
            position = value.end_mark.index
            pieces.append(child)
        line_end = text.find("\n", node.end_mark.index)
        rest = text[position : line_end if line_end >= 0 else len(text)]
        if pieces:
            pieces[0].above = _COMMENT_IN_GAP.findall(rest) + pieces[0].above
        yield from pieces


def _last_line(node: Any, line: int) -> int:
    """The last line of a value; ``line`` for an alias, whose text stands elsewhere."""
    if node.start_mark.line < line:
        return line
    if isinstance(node, yaml.ScalarNode):
        is_block = node.style in ("|", ">") and node.end_mark.column == 0
        return int(node.end_mark.line) - is_block
    if node.flow_style:
        return int(node.end_mark.line)
    parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
    return max((_last_line(part, node.start_mark.line) for part in parts), default=line)
