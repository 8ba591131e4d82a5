"""The recipes that a command line names: files, folders of them, and specs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path

from generator.errors import InvalidInput, Problem
from generator.files import os_problem, pasted
from generator.generation.generation import plan_generation
from generator.recipe.inputs import RecipeInputs, read_recipes
from generator.recipe.recipe import Dialect
from generator.recipe.sources import CollectedSources, RecipeSource, collect_sources
from generator.sweep.swept_recipe import SweptRecipe, swept_recipes

_UNSUITABLE = re.compile(r"[^A-Za-z0-9._+-]")
_LEAST_NAME_CHARACTERS = 3
_MOST_NAME_CHARACTERS = 60
_MOST_NAMED = 3
_MOST_SEARCHED = 1000
_IS_SPEC = re.compile(r"^pdrecipe:", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipesToSend:
    """The files as a check takes them, and the jobs that they make."""

    inputs: RecipeInputs
    recipes: tuple[SweptRecipe, ...]


def read_recipes_to_send(paths: Iterable[Path], dialect: Dialect) -> RecipesToSend:
    """The jobs of all recipes named, in order, each file read once.

    A folder stands for the ``*.yaml`` directly in it. A spec stands for the recipes that it gives
    in a dialect, as they are on disk. Raises InvalidInput with the problems of every file, not
    only of the first.
    """
    problems: list[Problem] = []
    named = _collected(_all_files(paths, problems), problems)
    sources: dict[str, RecipeSource] = {}
    for source in named:
        if _IS_SPEC.search(source.text):
            rendered = _rendered(Path(source.name), dialect, problems)
            sources |= {each.name: each for each in _collected(rendered, problems)}
        else:
            sources[source.name] = source
    inputs = read_recipes(CollectedSources(sources=tuple(sources.values())))
    problems += inputs.problems
    recipes: list[SweptRecipe] = []
    for file in inputs.recipes:
        try:
            recipes += swept_recipes(file.document)
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return RecipesToSend(inputs=inputs, recipes=tuple(recipes))


def _collected(files: Iterable[Path], problems: list[Problem]) -> Iterator[RecipeSource]:
    """The texts of files; what cannot be read joins the problems."""
    for file in files:
        try:
            collected = collect_sources([str(file)])
        except InvalidInput as error:
            problems += error.problems
            continue
        problems += collected.problems
        yield from collected.sources


def _rendered(spec: Path, dialect: Dialect, problems: list[Problem]) -> list[Path]:
    """The files that a spec has given; a spec that would give others now joins the problems.

    Another header alone is no other recipe.
    """
    try:
        generation = plan_generation(spec, dialect, None)
    except InvalidInput as error:
        problems += error.problems
        return []
    other = [each for each in generation.changed if not each.is_header_only]
    if other:
        message = f"{len(other)} of its {len(generation.files)} recipes are not what it gives now"
        hint = f"run pdrecipe generate {pasted(spec)} --dialect {dialect} and look at them"
        problems.append(Problem(message=message, hint=hint, source=str(spec)))
        return []
    return [Path(os.path.relpath(each.path)) for each in generation.files]


def _all_files(paths: Iterable[Path], problems: list[Problem]) -> list[Path]:
    """The files of all paths; what is wrong with a path joins the problems."""
    files: list[Path] = []
    for path in paths:
        try:
            files += _files(path)
        except InvalidInput as error:
            problems += error.problems
    return files


def _files(path: Path) -> list[Path]:
    """A file, or the recipes directly in a folder."""
    try:
        if not path.is_dir():
            return [path]
        found = sorted(path.glob("*.yaml"))
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error
    if not found:
        raise InvalidInput(_no_recipes(path, list(islice(_folders_below(path), _MOST_NAMED + 1))))
    return found


def _no_recipes(path: Path, below: list[Path]) -> Problem:
    """A folder is not searched for recipes: v1 beside v2 would be every point twice."""
    if not below:
        hint = "name files, or a folder of *.yaml files"
        return Problem(message="holds no recipes", hint=hint, source=str(path))
    names = ", ".join(map(pasted, below[:_MOST_NAMED]))
    hint = f"name those to send: {names}{', ...' if len(below) > _MOST_NAMED else ''}"
    message = "holds no recipes itself, only in folders below it"
    return Problem(message=message, hint=hint, source=str(path))


def _folders_below(path: Path) -> Iterator[Path]:
    """The folders below that hold *.yaml files, in order, as far as is worth looking."""
    for folder, names, files in islice(os.walk(path), _MOST_SEARCHED):
        names[:] = sorted(name for name in names if not name.startswith("."))
        if any(name.endswith(".yaml") for name in files):
            yield Path(folder)


def common_name(recipes: Iterable[SweptRecipe]) -> str:
    """What the recipes' names begin with, as a name for their sweep; ``sweep`` without that."""
    words = [recipe.name.split("-") for recipe in recipes]
    shared = takewhile(lambda each: len(set(each)) == 1, zip(*words, strict=False))
    name = _UNSUITABLE.sub("-", "-".join(each[0] for each in shared))
    name = name.strip("._+-")[:_MOST_NAME_CHARACTERS]
    return name if len(name) >= _LEAST_NAME_CHARACTERS else "sweep"
