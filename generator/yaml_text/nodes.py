"""YAML text to nodes that know their lines; everything wrong with the text itself is found here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from generator.errors import InvalidInput, Problem
from generator.wording import FieldPath, dotted_path, kind_of, shown
from generator.yaml_text.scalars import AmbiguousNumber, Scalar, plain_value
from generator.yaml_text.syntax import MAX_DEPTH, NO_KEY, TOO_DEEP, syntax_problem

MAX_VALUES = 100_000
"""Values of one document, merge keys and aliases written out; a recipe has some hundreds."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD_TAG = "tag:yaml.org,2002:"
_KINDS = {type(None): "null", bool: "bool", int: "int", float: "float"}
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # reachable through escapes; no file name may hold them


@dataclass(slots=True)
class Node:
    """A value as written: a scalar, a list of children, or children by key.

    ``plain`` is the unquoted text of a scalar that has one.
    """

    line: int
    content: Any
    plain: str | None = None


Child: TypeAlias = tuple[int, Node]
"""The line of a key or item, and its value."""


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet; in a mapping keys and values alternate."""

    line: int
    is_mapping: bool
    anchor: str | None
    children: list[Child] = field(default_factory=list)


def compose(text: str, source: str) -> Node:
    """The root node of the one document in ``text``, merge keys resolved and aliases shared.

    Raises InvalidInput with every problem found up to the first that stops the parser.
    """
    if odd := _NOT_TEXT.search(text):
        message = f"control character U+{ord(odd.group()):04X}: not a text file"
        line = text.count("\n", 0, odd.start()) + 1
        hint = "remove it"
        raise InvalidInput(Problem(message=message, hint=hint, source=source, line=line))
    return _Composer(text, source).compose()


class _Composer:
    """Turns parser events into nodes without recursion and collects the problems met."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._problems: list[Problem] = []
        self._anchors: dict[str, Node | None] = {}  # None: inside the value it names
        self._stack: list[_Open] = []
        self._root: Node | None = None
        self._values = 0

    def compose(self) -> Node:
        for event in self._events():
            self._take(event, event.start_mark.line + 1)
        if self._root is None or self._root.plain == "":
            raise self._stopped(Problem(message="is empty", source=self._source))
        if self._problems:
            raise self._stopped()
        return self._root

    def _events(self) -> Iterator[Any]:
        try:
            yield from yaml.parse(self._text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            raise self._stopped(syntax_problem(error, self._text, self._source)) from error
        except (ValueError, OverflowError) as error:  # only PyYAML's pure parser, on "\UFFFFFFFF"
            message = "an escape in double quotes is not a Unicode character"
            raise self._stopped(Problem(message=message, source=self._source)) from error

    def _take(self, event: Any, line: int) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(line, self._scalar(event, line), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._add(line, self._aliased(str(event.anchor), line), None)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent) and self._root is not None:
            message, hint = "a second document starts here", "one document per file: remove '---'"
            raise self._stopped(self._problem(line, message, hint))

    def _begin(self, event: Any, line: int) -> None:
        if len(self._stack) == MAX_DEPTH:
            raise self._stopped(too_deep(self._source, line))
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _STANDARD_TAG + ("map" if is_mapping else "seq")):
            self._refuse_tag(event.tag, line)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(line, is_mapping, event.anchor))

    def _end(self) -> None:
        done = self._stack.pop()
        content = self._entries(done.children) if done.is_mapping else done.children
        self._add(done.line, Node(done.line, content), done.anchor)

    def _add(self, line: int, node: Node, anchor: str | None) -> None:
        self._count(1, line)
        if anchor:
            self._anchors[anchor] = node
        if self._stack:
            self._stack[-1].children.append((line, node))
        else:
            self._root = node

    def _scalar(self, event: Any, line: int) -> Node:
        text: str = event.value
        is_plain = event.implicit[0] and event.tag is None
        kind = (event.tag or "").removeprefix(_STANDARD_TAG)
        if odd := _UNUSABLE.search(text):
            message = f"character U+{ord(odd.group()):04X} cannot be used"
            self._refuse(line, message, "remove the escape")
        if kind == "!":
            # libyaml and PyYAML's own parser read ``! 8`` differently.
            self._refuse_tag("!", line)
            return Node(line, text)
        if kind == "str" or not (is_plain or kind):
            return Node(line, text)
        value = self._plain_value(text, line)
        if is_plain:
            return Node(line, value, text)
        if kind == "float" and type(value) is int:
            value = float(value)
        if kind != _KINDS.get(type(value)):
            self._refuse_tag(event.tag, line)
        return Node(line, value)

    def _plain_value(self, text: str, line: int) -> Scalar:
        try:
            return plain_value(text)
        except AmbiguousNumber as error:
            self._refuse(line, error.message, error.hint)
            return text

    def _aliased(self, name: str, line: int) -> Node:
        node = self._anchors.get(name)
        if node is not None:
            return node
        if name in self._anchors:
            message, hint = f"alias *{name} stands inside what it names", "write the value out"
        else:
            message = f"alias *{name} has no anchor &{name} above it"
            hint = "quote text that starts with '*'"
        self._refuse(line, message, hint)
        return Node(line, f"*{name}")

    def _entries(self, children: list[Child]) -> dict[str, Child]:
        merged: dict[str, Child] = {}
        own: dict[str, Child] = {}
        first_lines: dict[str, int] = {}
        for (line, key), (_, value) in zip(children[::2], children[1::2], strict=True):
            name = key.content
            if not isinstance(name, str):
                self._refuse(line, *_bad_key(key))
            elif name in first_lines:
                message = f"duplicate key {shown(name)}, first on line {first_lines[name]}"
                self._refuse(line, message, "keep one of them", name)
            else:
                first_lines[name] = line
                if key.plain == "<<":
                    merged = self._merged(value, line)
                else:
                    own[name] = (line, value)
        return {**merged, **own}

    def _merged(self, value: Node, line: int) -> dict[str, Child]:
        """The entries behind a merge key; the first of several mappings wins, as YAML has it."""
        parts = [node for _, node in value.content] if isinstance(value.content, list) else [value]
        entries: dict[str, Child] = {}
        for part in reversed(parts):
            if isinstance(part.content, dict):
                self._count(len(part.content), line)
                entries.update(part.content)
            else:
                message = f"'<<' takes mappings, not {kind_of(part.content)}"
                self._refuse(line, message, "give it an alias such as *defaults")
        return entries

    def _count(self, values: int, line: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise self._stopped(too_large(self._source, line))

    def _path(self) -> FieldPath:
        steps: list[str | int] = []
        for collection in self._stack:
            if not collection.is_mapping:
                steps.append(len(collection.children))
            elif len(collection.children) % 2:
                steps.append(str(collection.children[-1][1].content))
        return tuple(steps)

    def _problem(self, line: int, message: str, hint: str, *key: str) -> Problem:
        path = dotted_path((*self._path(), *key))
        return Problem(message=message, hint=hint, source=self._source, line=line, path=path)

    def _refuse(self, line: int, message: str, hint: str, *key: str) -> None:
        self._problems.append(self._problem(line, message, hint, *key))

    def _refuse_tag(self, tag: str, line: int) -> None:
        name = tag.replace(_STANDARD_TAG, "!!")
        self._refuse(line, f"tag {name} cannot be used here", "remove the tag")

    def _stopped(self, *last: Problem) -> InvalidInput:
        every = dict.fromkeys([*self._problems, *last])
        return InvalidInput(sorted(every, key=lambda problem: problem.line))


def _bad_key(key: Node) -> tuple[str, str]:
    if key.plain == "":
        return NO_KEY
    if key.plain is not None:
        message = f"key '{key.plain}' is read as {kind_of(key.content)}, not as text"
        return message, "put it in quotes"
    return f"a key must be text, not {kind_of(key.content)}", "put it in quotes"


def too_large(source: str, line: int) -> Problem:
    """The refusal of a document whose aliases (or mere length) explode."""
    message = f"more than {MAX_VALUES:,} values once aliases are written out"
    return Problem(message=message, hint="use fewer aliases", source=source, line=line)


def too_deep(source: str, line: int) -> Problem:
    """The refusal of a document nested beyond what any recipe needs."""
    message, hint = TOO_DEEP
    return Problem(message=message, hint=hint, source=source, line=line)
