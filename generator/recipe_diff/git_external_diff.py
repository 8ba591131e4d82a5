"""Being called by git as a diff driver, ``git config diff.pdrecipe.command 'pdrecipe diff'``.

Git gives path, old file, old object, old mode, new file, new object and new mode, and of a renamed
file its new path and a summary; of an unmerged one the path alone.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.errors import InvalidInput
from generator.files import read_text
from generator.recipe.inputs import RecipeInputs, read_recipes
from generator.recipe.sources import CollectedSources, RecipeSource
from generator.recipe_diff.review import ReviewSide
from generator.recipe_diff.sides import Sides

_COUNTS_OF_ARGUMENTS = (7, 9)
_MARK_OF_GIT = "GIT_DIFF_PATH_TOTAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCall:
    """One file of a ``git diff``; a side that is None has no such file."""

    path: str
    new_path: str
    before: Path | None
    after: Path | None


def git_call(arguments: Sequence[str], environment: Mapping[str, str]) -> GitCall | None:
    """The call if it is git's, told by its number of arguments or git's environment."""
    if len(arguments) == 1 and _MARK_OF_GIT in environment:
        return GitCall(path=arguments[0], new_path=arguments[0], before=None, after=None)
    if len(arguments) not in _COUNTS_OF_ARGUMENTS:
        return None
    return GitCall(
        path=arguments[0],
        new_path=arguments[7] if len(arguments) > 7 else arguments[0],
        before=_file(arguments[1]),
        after=_file(arguments[4]),
    )


def _file(name: str) -> Path | None:
    return None if name == os.devnull else Path(name)


def external_diff_sides(call: GitCall) -> Sides:
    """The two versions of the file; raises InvalidInput where one is no text or no recipe."""
    return Sides(
        before=_side(f"a/{call.path}", call.path, call.before),
        after=_side(f"b/{call.new_path}", call.new_path, call.after),
    )


def _side(label: str, path: str, file: Path | None) -> ReviewSide:
    sources = []
    if file is not None:
        text = read_text(file, label)
        sources = [RecipeSource(name=label, relative_path=path, text=text, is_named=True)]
    inputs: RecipeInputs = read_recipes(CollectedSources(sources=tuple(sources)))
    if inputs.problems:
        raise InvalidInput(inputs.problems)
    return ReviewSide(label=label, inputs=inputs)


def plain_diff(call: GitCall) -> Iterator[str]:
    """A line-by-line diff of a file that is no recipe; one line where it is no text or unmerged."""
    if call.before is None and call.after is None:
        yield f"* Unmerged path {call.path}"
        return
    names = (f"a/{call.path}", f"b/{call.new_path}")
    try:
        before, after = (
            read_text(file, name).splitlines() if file else []
            for file, name in zip((call.before, call.after), names, strict=True)
        )
    except InvalidInput:
        yield f"Binary files {names[0]} and {names[1]} differ"
        return
    yield from difflib.unified_diff(before, after, *names, lineterm="")
