"""What a check is: a rule with an id and a documentation, and what it says about a recipe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from generator.wording import FieldPath

if TYPE_CHECKING:
    from generator.checks.job import Job


class Severity(StrEnum):
    """How sure it is that a finding costs a run: it does, it likely does, it is good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def reaches(self, threshold: Severity) -> bool:
        """Whether this is at or above a threshold."""
        order = list(Severity)
        return order.index(self) <= order.index(threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValue:
    """A fix: another scalar at a path of the document. It holds only while ``old`` is there."""

    path: FieldPath
    old: Any
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteText:
    """A fix: the scalar at a path of the document in quotes, as it is written."""

    path: FieldPath


Edit: TypeAlias = SetValue | QuoteText


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One thing that a rule found in one job, where, and what to do about it.

    Of the hits of several jobs in one place, one of the greatest ``gravity`` is shown.
    """

    line: int
    path: str
    message: str
    hint: str = ""
    edit: Edit | None = None
    gravity: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule's id, which is never used twice, and its documentation.

    ``name`` reads as what a suppression allows: ``concurrency-beyond-slots``.
    """

    id: str
    name: str
    severity: Severity
    documentation: str

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.documentation.partition("\n")[0]

    @property
    def family(self) -> str:
        """The letters of the id."""
        return re.sub(r"[0-9]", "", self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRule(Rule):
    """A rule about one job of a recipe file."""

    check: Callable[[Job], Iterator[Hit]]


def rule(id: str, severity: Severity) -> Callable[[Callable[[Job], Iterator[Hit]]], JobRule]:  # noqa: A002
    """Make a rule of a function; its name and docstring are the rule's name and documentation."""

    def made(check: Callable[[Job], Iterator[Hit]]) -> JobRule:
        return JobRule(
            id=id,
            name=check.__name__.strip("_").replace("_", "-"),
            severity=severity,
            documentation=_dedented(check.__doc__ or ""),
            check=check,
        )

    return made


def _dedented(text: str) -> str:
    return re.sub(r"^ {4}", "", text.strip(), flags=re.MULTILINE)
