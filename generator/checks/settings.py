"""The configuration file ``.pdrecipe.yaml``: what it is found by and what it allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from generator.documents import Document, read_document
from generator.errors import InvalidInput, Problem
from generator.validation import problems

SETTINGS_FILE = ".pdrecipe.yaml"
_SCHEMA = "settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedFindings:
    """A rule that some files, below the configuration's folder, may break, and why."""

    rule: str
    files: tuple[str, ...]
    reason: str
    source: str
    line: int
    folder: Path

    def holds_for(self, file: Path) -> bool:
        """Whether a file is one of those; a pattern without a slash goes by the name alone."""
        try:
            path = file.resolve().relative_to(self.folder).as_posix()
        except ValueError:
            return False
        return any(
            fnmatchcase(path, pattern)
            or fnmatchcase(path, pattern.removeprefix("**/"))
            or ("/" not in pattern and fnmatchcase(file.name, pattern))
            for pattern in self.files
        )


def settings_for(file: Path, known_rules: frozenset[str]) -> tuple[AllowedFindings, ...]:
    """What the nearest configuration file above a file allows; nothing where there is none.

    Raises InvalidInput with everything that is wrong in it, rules that do not exist included.
    """
    return _nearest(file.resolve().parent, known_rules)


@cache
def _nearest(folder: Path, known_rules: frozenset[str]) -> tuple[AllowedFindings, ...]:
    path = folder / SETTINGS_FILE
    if path.is_file():
        return _read(path, known_rules)
    return () if folder.parent == folder else _nearest(folder.parent, known_rules)


def _read(path: Path, known_rules: frozenset[str]) -> tuple[AllowedFindings, ...]:
    document = read_document(path)
    found = problems(document, _SCHEMA) or list(_unknown_rules(document, known_rules))
    if found:
        raise InvalidInput(found)
    return tuple(
        AllowedFindings(
            rule=entry["rule"],
            files=tuple(entry["files"]),
            reason=entry["reason"],
            source=str(path),
            line=document.line(("check", "ignore", index)),
            folder=path.parent,
        )
        for index, entry in enumerate(document.data["check"]["ignore"])
    )


def _unknown_rules(document: Document, known_rules: frozenset[str]) -> Iterator[Problem]:
    for index, entry in enumerate(document.data["check"]["ignore"]):
        if entry["rule"] not in known_rules:
            path = ("check", "ignore", index, "rule")
            message = f"there is no rule {entry['rule']}"
            yield document.problem(path, message, "pdrecipe explain lists all")
