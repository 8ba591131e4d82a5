"""A v1 recipe as layout v2: the same text rearranged, and the proof that both mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from generator.documents import Document, parse_document
from generator.errors import InvalidInput, Problem
from generator.migration.renames import RecipeValues
from generator.migration.sections import SectionMigration
from generator.normal_form import inexpressible, normal_form
from generator.normal_form.leaves import leaves
from generator.recipe.expansion import Variant, variants
from generator.recipe.inputs import is_recipe
from generator.recipe.override_files import is_override_key
from generator.recipe.recipe import Dialect
from generator.recipe_diff.difference import Change, compare
from generator.wording import FieldPath, dotted_path, shown
from generator.yaml_text.entries import CannotSplit, Entry, TextEntries

_NOTE = "not in schema 2: "
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*\S", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A recipe file in layout v2. ``compared`` are the values of all its ``jobs``, both sides.

    ``left_out`` are values, by their paths in the file, that v2 has no key for; they stay as
    comments.
    """

    text: str
    jobs: int
    compared: int
    left_out: tuple[tuple[str, Any], ...]


def migrate_document(document: Document) -> Migration:
    """The file in layout v2, comments and order kept.

    Raises InvalidInput for a file that is v2 already, that is written in a way that cannot be
    taken apart, or whose v2 form cannot be proved to mean the same: then with what differs.
    """
    if not is_recipe(document.data):
        raise InvalidInput(document.problem((), "is not an srt-slurm recipe"))
    before = list(variants(document))
    if "schema" in document.data or any("schema" in variant.data for variant in before):
        hint = "there is nothing to migrate"
        raise InvalidInput(document.problem(("schema",), "is a recipe of layout v2", hint))
    lost = dict(_lost(before))
    text = _rearranged(document, frozenset(lost))
    _require_comments(document, text)
    after = _read_back(document, text)
    compared = _proved(document, before, list(variants(after)))
    return Migration(
        text=text,
        jobs=len(before),
        compared=compared,
        left_out=tuple((dotted_path(path), value) for path, value in lost.items()),
    )


def _lost(jobs: Iterable[Variant]) -> Iterator[tuple[FieldPath, Any]]:
    """What v2 has no words for, by its place in the document."""
    for variant in jobs:
        form = normal_form(variant)
        for each in inexpressible(form, Dialect.V2):
            if each.is_known:
                yield variant.origin(form.values[each.path].written_at), each.value


def _require_comments(document: Document, text: str) -> None:
    """Raise InvalidInput where a comment is not in the text any more."""
    lost = [each for each in _COMMENT.findall(document.text) if each not in text]
    if lost:
        hint = "put it on a line of its own"
        message = f"the comment {shown(lost[0])} would be lost"
        raise InvalidInput(document.problem((), message, hint))


def _read_back(document: Document, text: str) -> Document:
    try:
        return parse_document(text, document.source)
    except InvalidInput as error:
        hint = "anchors and aliases that would change places? write the values out"
        raise InvalidInput(
            document.problem((), f"its v2 form cannot be read: {problem.message}", hint)
            for problem in error.problems
        ) from error


def _proved(document: Document, before: list[Variant], after: list[Variant]) -> int:
    """How many values were compared; raises InvalidInput with those that differ."""
    compared = 0
    problems: dict[str, Problem] = {}
    for old, new in zip_longest(before, after):
        if old is None or new is None:
            raise InvalidInput(document.problem((), "its v2 form makes another number of jobs"))
        form = normal_form(old)
        diff = compare(form, normal_form(new))
        compared += diff.compared
        for change in diff.changes:
            path = dotted_path(change.path)
            place = old.origin(form.written_at(change.path))
            problems.setdefault(path, document.problem(place, _refusal(path, change)))
    if problems:
        raise InvalidInput(problems.values())
    return compared


def _refusal(path: str, change: Change) -> str:
    before, after = shown(change.before), shown(change.after)
    return f"cannot be proved equal in v2: {path} would be {after} and not {before}"


def _rearranged(document: Document, lost: frozenset[FieldPath]) -> str:
    newline = "\r\n" if "\r\n" in document.text else "\n"
    text = document.text.replace("\r\n", "\n")
    try:
        entries = TextEntries(text)
        sections = _Pruning(document, entries, lost).pruned(entries.entries())
        result = _with_schema(_migrated(document, entries, sections))
    except CannotSplit as error:
        hint = "write this part out in block style"
        raise InvalidInput(document.problem((), f"cannot be rearranged: {error}", hint)) from error
    lines = [line for entry in result for line in entry.lines()]
    return newline.join([*lines, ""])


def _migrated(document: Document, entries: TextEntries, sections: list[Entry]) -> list[Entry]:
    data = document.data
    if "base" not in data:
        return SectionMigration(RecipeValues(entries, data, 0), data).migrated(sections)
    for entry in sections:
        key = str(entry.path[-1])
        if (key == "base" or is_override_key(key)) and entries.open(entry):
            values = RecipeValues(entries, data[key], 1)
            migration = SectionMigration(values, data["base"], is_partial=key != "base")
            entry.children = migration.migrated(entry.children or [])
    return sections


def _with_schema(sections: list[Entry]) -> list[Entry]:
    """The layout's mark before the first key, below the comments that head the file."""
    first = sections[0]
    mark = Entry(key="schema", inline=" 2", above=first.above)
    first.above = []
    return [mark, *sections]


@dataclass(frozen=True, slots=True)
class _Pruning:
    """Values that v2 has no key for, turned into comments above what follows them."""

    document: Document
    entries: TextEntries
    lost: frozenset[FieldPath]

    def pruned(self, siblings: list[Entry]) -> list[Entry]:
        kept: list[Entry] = []
        waiting: list[str] = []
        for entry in siblings:
            if self._is_lost(entry):
                waiting += [*entry.commented(_NOTE)]
                continue
            if self._holds_lost(entry) and self.entries.open(entry):
                entry.children = self.pruned(entry.children or [])
            entry.above = waiting + entry.above
            waiting = []
            kept.append(entry)
        if waiting and kept:
            kept[-1].after += waiting
        return kept

    def _is_lost(self, entry: Entry) -> bool:
        return bool(self.lost) and all(path in self.lost for path in self._leaves(entry))

    def _holds_lost(self, entry: Entry) -> bool:
        length = len(entry.path)
        return any(path[:length] == entry.path for path in self.lost)

    def _leaves(self, entry: Entry) -> Iterator[FieldPath]:
        here: Any = self.document.data
        for step in entry.path:
            here = here[step]
        if isinstance(here, Mapping):
            yield from (entry.path + path for path, _ in leaves(here))
        else:
            yield entry.path
