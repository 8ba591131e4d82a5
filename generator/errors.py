"""Every error a user can cause: what is wrong, where, what to do, and the exit code it earns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in one place.

    ``source`` is a file name as the user gave it, ``line`` counts from 1 (0: unknown), ``path`` is
    the dotted field path inside the document, ``hint`` says what to do about it.
    """

    message: str
    hint: str = ""
    source: str = ""
    line: int = 0
    path: str = ""

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.source and self.line else self.source
        text = ": ".join([*([place] if place else []), self.statement])
        return one_line(f"{text} ({self.hint})" if self.hint else text)

    @property
    def statement(self) -> str:
        """The field and what is wrong with it, on one line, without the file and the hint."""
        return one_line(f"{self.path}: {self.message}" if self.path else self.message)


def one_line(text: str) -> str:
    """The text with what a terminal would not print as itself escaped: it may quote the user."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


class PdrecipeError(Exception):
    """Base of every error that is the user's to fix; carries all problems found, never just one."""

    exit_code: ClassVar[int]
    kind: ClassVar[str]

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InvalidInput(PdrecipeError):
    """A file, model or value cannot be used as it is written."""

    exit_code = 3
    kind = "invalid-input"


class NothingFits(PdrecipeError):
    """The request is well formed, but the hardware cannot hold it."""

    exit_code = 4
    kind = "nothing-fits"


class ClusterFailure(PdrecipeError):
    """The cluster, or this machine in its place, did not answer or take what it was to run."""

    exit_code = 5
    kind = "cluster-failure"


class AnswerIsNo(PdrecipeError):
    """A check ran and found what it looks for: drift, findings, differences."""

    exit_code = 10
    kind = "answer-is-no"
