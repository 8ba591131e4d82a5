"""Typed reading of one JSON object that notes every wrong value, not only the first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.errors import InvalidInput, Problem

_MODELLED = (
    "modelled are full attention (GQA, MLA), gated delta net and Mamba2 layers; "
    "nothing else is counted in their place"
)
_SHOWN_ITEMS = 3
_LONGEST_LINE = 300


@dataclass(slots=True)
class Findings:
    """What is wrong with one file, and which of its layer types are not modelled."""

    model: str
    source: str
    problems: list[Problem] = field(default_factory=list)
    refusals: list[Problem] = field(default_factory=list)

    def add(self, path: str, message: str, hint: str = "") -> None:
        problem = self._problem(path, message, hint)
        if problem not in self.problems:  # a field may be read for more than one purpose
            self.problems.append(problem)

    def refuse(self, path: str, layer_type: str) -> None:
        """Note a layer type that must not be counted as something else."""
        message = f"layer type {layer_type} of model {self.model} is not modelled"
        problem = self._problem(path, message, _MODELLED)
        if all(problem.message != known.message for known in self.refusals):
            self.refusals.append(problem)

    def _problem(self, path: str, message: str, hint: str) -> Problem:
        return Problem(
            message=_one_line(message), hint=hint, source=self.source, path=_one_line(path)
        )

    def raise_any(self) -> None:
        """Raise InvalidInput if anything was noted.

        Refusals stand alone: the other fields of a model that is not modelled were read for
        something it is not.
        """
        if self.refusals or self.problems:
            raise InvalidInput(self.refusals or self.problems)


class Fields:
    """One JSON object of the file. A wrong value is noted once and read as a harmless stand-in."""

    def __init__(self, values: Mapping[str, Any], findings: Findings, path: str = "") -> None:
        self._values = values
        self._findings = findings
        self._path = path
        self._wrong: set[str] = set()

    def __contains__(self, name: str) -> bool:
        """Whether the field is there and not null: both mean "not set" in a config.json."""
        return self._values.get(name) is not None

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def names(self) -> list[str]:
        return list(self._values)

    def raw(self, name: str) -> Any:
        return self._values.get(name)

    def note(self, name: str, message: str, hint: str = "") -> None:
        self._wrong.add(name)
        self._findings.add(self.path(name), message, hint)

    def refuse(self, name: str, layer_type: str) -> None:
        self._findings.refuse(self.path(name), layer_type)

    def usable(self, *names: str) -> bool:
        """Whether none of the fields was found wrong, so that they can be compared."""
        return self._wrong.isdisjoint(names)

    def integer(
        self, name: str, *, least: int = 1, most: int | None = None, default: int | None = None
    ) -> int:
        """An integer of at least ``least``; required where there is no default."""
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        kind = {0: "an integer of at least 0", 1: "a positive integer"}[least]
        if type(value) is not int or value < least:
            self._note_type(name, kind)
            return max(least, default or least)
        if most is not None and value > most:
            self.note(name, f"must be at most {most}, not {value}")
            return most
        return value

    def boolean(self, name: str, *, default: bool = False) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        if type(value) is not bool:
            self._note_type(name, "true or false")
            return default
        return value

    def text(self, name: str, *, default: str | None = None) -> str:
        """A string that is not empty; required where there is no default."""
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value:
            self._note_type(name, "a string")
            return default or ""
        return value

    def choice(self, name: str, allowed: Sequence[str], *, default: str | None = None) -> str:
        """One of the ``allowed`` strings."""
        value = self.text(name, default=default)
        if self.usable(name) and value not in allowed:
            self.note(name, f"must be one of {', '.join(allowed)}, not '{value}'")
        return value if value in allowed else allowed[0]

    def child(self, name: str) -> Fields | None:
        """The object in the field, None where the field is not set."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._note_type(name, "an object")
            return None
        return Fields(value, self._findings, self.path(name))

    def items(self, name: str) -> list[Any] | None:
        """The list in the field, None where the field is not set."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self._note_type(name, "a list")
            return None
        return value

    def texts(self, name: str) -> list[str]:
        """The list of strings in the field, empty where the field is not set."""
        values = self.items(name) or []
        wrong = [index for index, value in enumerate(values) if not isinstance(value, str)]
        self._note_items(name, "a string", values, wrong)
        return [value for value in values if isinstance(value, str)]

    def integers(self, name: str) -> list[int]:
        """The list of integers in the field, empty where the field is not set."""
        values = self.items(name) or []
        wrong = [index for index, value in enumerate(values) if type(value) is not int]
        self._note_items(name, "an integer", values, wrong)
        return [value for value in values if type(value) is int]

    def _note_items(self, name: str, kind: str, values: list[Any], wrong: list[int]) -> None:
        for index in wrong[:_SHOWN_ITEMS]:
            self.note(f"{name}[{index}]", f"must be {kind}, not {_described(values[index])}")
        if wrong[_SHOWN_ITEMS:]:
            self.note(name, f"{len(wrong) - _SHOWN_ITEMS} further entries are not {kind}")
        if wrong:
            self._wrong.add(name)

    def _note_type(self, name: str, kind: str) -> None:
        if name not in self._values:
            self.note(name, "is missing", f"must be {kind}")
        else:
            self.note(name, f"must be {kind}, not {_described(self._values[name])}")


def _one_line(text: str) -> str:
    """Text from a file as it may be printed: one line, no control characters, not endless."""
    if len(text) > _LONGEST_LINE:
        text = text[: _LONGEST_LINE - 3] + "..."
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _described(value: object) -> str:
    """A wrong JSON value in a few words, never its whole text."""
    match value:
        case None | bool() | float():
            return json.dumps(value)
        case int():
            return str(value) if abs(value) < 10**20 else "a huge one"
        case str():
            return f"the string '{value}'" if len(value) <= 40 else "a long string"
        case list():
            return "a list"
        case _:
            return "an object"
