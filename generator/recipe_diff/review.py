"""Two sets of recipes as a reviewer reads them: what differs, in how many, and what follows."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from generator.errors import InvalidInput, Problem
from generator.facts import MeasuredProfile
from generator.normal_form import NormalForm, same_value
from generator.recipe.inputs import RecipeInputs
from generator.recipe_diff.consequences import Consequences, ModelOf, consequences
from generator.recipe_diff.difference import Action, Change, meant_values
from generator.recipe_diff.effects import Effect
from generator.recipe_diff.pairs import ExpandedRecipe, FileDiff, expand, pair_files


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSide:
    """Recipes of one side and what a message calls the side."""

    label: str
    inputs: RecipeInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsequencesOfJobs:
    """What follows for some jobs of a recipe file, the same for each of them."""

    suffixes: tuple[str, ...]
    found: Consequences


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFinding:
    """What a check says of a recipe file; rule and path make it the same finding on both sides."""

    rule: str
    severity: str
    path: str
    line: int
    message: str
    hint: str

    @property
    def key(self) -> tuple[str, str]:
        return self.rule, self.path


FindingsOf: TypeAlias = Callable[[RecipeInputs], Mapping[str, Sequence[ReviewFinding]]]
"""The findings of recipes by the names of their sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReview:
    """A pair of files, what follows from how they differ, and the findings that come and go."""

    diff: FileDiff
    consequences: tuple[ConsequencesOfJobs, ...] = ()
    appeared: tuple[ReviewFinding, ...] = ()
    vanished: tuple[ReviewFinding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGroup:
    """The same change in several recipes.

    ``siblings`` lie in the same folders, said the same before, and say it still.
    """

    change: Change
    recipes: tuple[str, ...]
    siblings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Everything a diff says."""

    before: ReviewSide
    after: ReviewSide
    files: tuple[FileReview, ...]
    groups: tuple[ChangeGroup, ...]
    problems: tuple[Problem, ...]


def review(
    before: ReviewSide,
    after: ReviewSide,
    model_of: ModelOf,
    findings_of: FindingsOf,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> Review:
    """Compare two sides; what cannot be read is among the problems and is compared with nothing."""
    problems: list[Problem] = []
    old = _expanded(before.inputs, problems)
    new = _expanded(after.inputs, problems)
    pairs = pair_files(old, new)
    problems += _only_readable_on_one_side(pairs, before.inputs, after.inputs)
    readable = [diff for diff in pairs if not _is_half(diff, problems)]
    files = [_reviewed(diff, model_of, profiles) for diff in readable]
    return Review(
        before=before,
        after=after,
        files=tuple(_with_findings(files, before, after, findings_of)),
        groups=tuple(_groups(readable)),
        problems=tuple(dict.fromkeys(problems)),
    )


def _expanded(inputs: RecipeInputs, problems: list[Problem]) -> list[ExpandedRecipe]:
    problems += inputs.problems
    expanded = []
    for file in inputs.recipes:
        try:
            expanded.append(expand(file))
        except InvalidInput as error:
            problems += error.problems
    return expanded


def _is_half(diff: FileDiff, problems: Iterable[Problem]) -> bool:
    """Whether a file only seems new or gone, since the other side of it could not be read."""
    if diff.before and diff.after:
        return False
    return any(_is_called(problem.source, diff.path) for problem in problems)


def _is_called(source: str, path: str) -> bool:
    """Whether the name of a source is that of a path below the folder or revision given."""
    return source == path or source.endswith((f"/{path}", f":{path}"))


def _only_readable_on_one_side(
    diffs: Iterable[FileDiff], before: RecipeInputs, after: RecipeInputs
) -> Iterator[Problem]:
    """Files that are a recipe on one side and, on the other, a text that is or looks like none."""
    for diff in diffs:
        if diff.before and diff.after:
            continue
        skipped = after.skipped if diff.after is None else before.skipped
        for name in skipped:
            if _is_called(name, diff.path):
                yield Problem(
                    message="is no recipe that can be read, but is one on the other side",
                    hint=f"pdrecipe check {name} says more",
                    source=name,
                )


def _reviewed(
    diff: FileDiff, model_of: ModelOf, profiles: tuple[MeasuredProfile, ...]
) -> FileReview:
    found: dict[Consequences, list[str]] = {}
    for suffix, before, after in _differing_jobs(diff):
        found.setdefault(consequences(before, after, model_of, profiles), []).append(suffix)
    return FileReview(
        diff=diff,
        consequences=tuple(
            ConsequencesOfJobs(suffixes=tuple(suffixes), found=each)
            for each, suffixes in found.items()
        ),
    )


def _differing_jobs(
    diff: FileDiff,
) -> Iterator[tuple[str, NormalForm | None, NormalForm | None]]:
    for pair in diff.pairs:
        if not pair.diff.is_empty:
            yield pair.suffix, pair.before, pair.after
    if diff.before is None and diff.after is not None:
        for suffix, form in diff.after.forms.items():
            yield suffix, None, form


# --- findings ---------------------------------------------------------------------------------


def _with_findings(
    files: Sequence[FileReview], before: ReviewSide, after: ReviewSide, findings_of: FindingsOf
) -> Iterator[FileReview]:
    """The findings that only one side has; files of folders in which nothing differs have none."""
    folders = {
        posixpath.dirname(side.path)
        for each in files
        if each.diff.differs
        for side in (each.diff.before, each.diff.after)
        if side
    }
    old, new = (findings_of(_inside(side.inputs, folders)) for side in (before, after))
    for each in files:
        was = _findings(each.diff.before, old)
        now = _findings(each.diff.after, new)
        yield replace(
            each,
            appeared=tuple(finding for key, finding in now.items() if key not in was),
            vanished=tuple(finding for key, finding in was.items() if key not in now),
        )


def _inside(inputs: RecipeInputs, folders: set[str]) -> RecipeInputs:
    recipes = (
        file for file in inputs.recipes if posixpath.dirname(file.source.relative_path) in folders
    )
    return RecipeInputs(recipes=tuple(recipes))


def _findings(
    recipe: ExpandedRecipe | None, found: Mapping[str, Sequence[ReviewFinding]]
) -> dict[tuple[str, str], ReviewFinding]:
    listed = found.get(recipe.file.source.name, ()) if recipe else ()
    return {finding.key: finding for finding in listed}


# --- the same change in many ------------------------------------------------------------------


def _groups(diffs: Sequence[FileDiff]) -> Iterator[ChangeGroup]:
    """Identical changes of different files together, in the order they are first met."""
    changes: dict[tuple[Any, ...], Change] = {}
    files: dict[tuple[Any, ...], list[FileDiff]] = {}
    for diff in diffs:
        for varied in diff.changes:
            change = varied.change
            key = (change.path, repr((change.before, change.after, change.default)))
            changes.setdefault(key, change)
            files.setdefault(key, []).append(diff)
    both = [diff for diff in diffs if diff.before and diff.after]
    said = {id(diff): [meant_values(pair.before) for pair in diff.pairs] for diff in both}
    for key, change in changes.items():
        held = files[key]
        folders = {posixpath.dirname(diff.path) for diff in held}
        yield ChangeGroup(
            change=change,
            recipes=tuple(diff.path for diff in held),
            siblings=tuple(
                diff.path
                for diff in both
                if posixpath.dirname(diff.path) in folders
                and change.effect is not Effect.COSMETIC
                and not any(varied.change.path == change.path for varied in diff.changes)
                and any(_said_the_same(values, change) for values in said[id(diff)])
            ),
        )


def _said_the_same(values: dict[Any, Any], change: Change) -> bool:
    """Whether a recipe that did not change a value had the one that others changed.

    Of a value that others added, whether it has the section and has nothing there.
    """
    if change.action is not Action.ADDED:
        return change.path in values and same_value(values[change.path], change.before)
    length = 2 if change.path[0] == "roles" else 1
    section = change.path[:length]
    return change.path not in values and any(path[:length] == section for path in values)
