"""The two sides that the arguments of a diff name, with the unchanged neighbours of a range."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from generator.errors import InvalidInput, Problem
from generator.recipe.inputs import RecipeInputs, read_recipes
from generator.recipe.sources import (
    CollectedSources,
    RecipeSource,
    collect_both_sides,
    collect_sources,
    is_range,
)
from generator.recipe_diff.review import ReviewSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is compared with what."""

    before: ReviewSide
    after: ReviewSide


def sides_of_arguments(
    arguments: Sequence[str], stdin: BinaryIO | None, folder: Path = Path()
) -> Sides:
    """The sides of ``BEFORE AFTER`` or of ``REV..REV[:FOLDER]``.

    Raises InvalidInput for another number of arguments and for one that leads nowhere.
    """
    if len(arguments) == 1 and is_range(arguments[0], folder):
        return _range_sides(arguments[0], folder)
    if len(arguments) != 2:
        message = f"a diff has two sides, not {len(arguments)}"
        hint = "give BEFORE and AFTER, or REV..REV"
        raise InvalidInput(Problem(message=message, hint=hint))
    collected: list[CollectedSources] = []
    problems: list[Problem] = []
    for argument in arguments:
        try:
            collected.append(collect_sources([argument], folder=folder, stdin=stdin))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(dict.fromkeys(problems))
    before, after = (
        ReviewSide(label=argument, inputs=read_recipes(each))
        for argument, each in zip(arguments, collected, strict=True)
    )
    return Sides(before=before, after=after)


def _range_sides(argument: str, folder: Path) -> Sides:
    """Changed files of both revisions, and the files beside them that stayed as they were."""
    before, after = collect_both_sides(argument, folder=folder)
    revisions, _, inside = argument.partition(":")
    first, _, second = revisions.partition("..")
    first, second = first or "HEAD", second.removeprefix(".") or "HEAD"
    known = {each.relative_path for each in (*before.sources, *after.sources)}
    folders = {posixpath.dirname(each) for each in known}
    kept = [
        each
        for each in _all_sources(second, inside, folder)
        if each.relative_path not in known
        and (not folders or posixpath.dirname(each.relative_path) in folders)
    ]
    return Sides(
        before=ReviewSide(label=first, inputs=_inputs(before, kept)),
        after=ReviewSide(label=second, inputs=_inputs(after, kept)),
    )


def _all_sources(revision: str, inside: str, folder: Path) -> tuple[RecipeSource, ...]:
    """Every text of a revision, none where it has none there."""
    try:
        return collect_sources([f"{revision}:{inside}"], folder=folder).sources
    except InvalidInput:
        return ()


def _inputs(collected: CollectedSources, kept: Sequence[RecipeSource]) -> RecipeInputs:
    return read_recipes(replace(collected, sources=(*collected.sources, *kept)))
