"""The recipes that a command line names: files, and folders of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from generator.documents import read_document
from generator.errors import InvalidInput, Problem
from generator.files import os_problem
from generator.sweep.swept_recipe import SweptRecipe, swept_recipe

_UNSUITABLE = re.compile(r"[^A-Za-z0-9._+-]")
_LEAST_NAME_CHARACTERS = 3
_MOST_NAME_CHARACTERS = 60


def read_recipes(paths: Iterable[Path]) -> list[SweptRecipe]:
    """The jobs of all recipes named, in order, each file once.

    Raises InvalidInput with the problems of every file, not only of the first.
    """
    problems: list[Problem] = []
    recipes: dict[Path, SweptRecipe] = {}
    for file in dict.fromkeys(_all_files(paths, problems)):
        try:
            recipes[file] = swept_recipe(read_document(file))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return list(recipes.values())


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
        below = sorted({each.parent for each in path.glob("*/*.yaml")})
        hint = f"name {below[0]}" if below else "name a folder of *.yaml files"
        message = "holds no recipes"
        raise InvalidInput(Problem(message=message, hint=hint, source=str(path)))
    return found


def common_name(recipes: Iterable[SweptRecipe]) -> str:
    """What the recipes' names begin with, as a name for their sweep; ``sweep`` without that."""
    words = [recipe.name.split("-") for recipe in recipes]
    shared = takewhile(lambda each: len(set(each)) == 1, zip(*words, strict=False))
    name = _UNSUITABLE.sub("-", "-".join(each[0] for each in shared))
    name = name.strip("._+-")[:_MOST_NAME_CHARACTERS]
    return name if len(name) >= _LEAST_NAME_CHARACTERS else "sweep"
