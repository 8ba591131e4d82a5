"""Which of the texts found are recipes, and those read into documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from generator.documents import Document, parse_document
from generator.errors import InvalidInput, Problem
from generator.recipe.override_files import is_override_key
from generator.recipe.sources import CollectedSources, RecipeSource
from generator.wording import kind_of

_SECTIONS_OF_A_JOB = frozenset({"resources", "backend", "roles", "benchmark"})
_SECTIONS = _SECTIONS_OF_A_JOB | {"model", "engine", "name", "schema"}
_FEWEST_SECTIONS = 2
_FOREIGN_KEYS = frozenset({"pdrecipe", "apiVersion", "kind"})
"""Keys of files that have such sections and are none of srt-slurm's, our own specs among them."""
_KEY_IN_FIRST_COLUMN = re.compile(r"^[\"']?([A-Za-z_][\w-]*)[\"']?\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """A recipe file as it is written; ``recipe_expansion.variants`` gives its jobs."""

    source: RecipeSource
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeInputs:
    """The recipes among texts, the names of those that are none, and what could not be read."""

    recipes: tuple[RecipeFile, ...]
    skipped: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_recipes(collected: CollectedSources) -> RecipeInputs:
    """Recipes in the order collected.

    A text that is no recipe is a problem if it was named itself, and skipped if it was only found
    in a folder. One that is not YAML is always a problem, since nobody can tell what it was meant
    to be; YAML that is no single plain document is one if it was named, or has a recipe's keys.
    """
    recipes: list[RecipeFile] = []
    skipped: list[str] = []
    problems = list(collected.problems)
    for source in collected.sources:
        try:
            document = parse_document(source.text, source.name)
        except InvalidInput as error:
            if source.is_named or _is_meant_as_recipe(source.text) or not _is_yaml(source.text):
                problems += error.problems
            else:
                skipped.append(source.name)
            continue
        if is_recipe(document.data):
            recipes.append(RecipeFile(source=source, document=document))
        elif source.is_named:
            problems.append(_no_recipe(document))
        else:
            skipped.append(source.name)
    return RecipeInputs(recipes=tuple(recipes), skipped=tuple(skipped), problems=tuple(problems))


def _is_meant_as_recipe(text: str) -> bool:
    return has_recipe_keys(_KEY_IN_FIRST_COLUMN.findall(text))


def _is_yaml(text: str) -> bool:
    """Whether a text has YAML's syntax, in one document or several."""
    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):
            pass
    except (yaml.YAMLError, RecursionError):
        return False
    return True


def is_recipe(data: Any) -> bool:
    """Whether a document is meant as an srt-slurm recipe, be it partial or faulty."""
    return isinstance(data, Mapping) and has_recipe_keys(data)


def has_recipe_keys(keys: Iterable[str]) -> bool:
    """Whether top-level keys are those of a recipe or of an override file."""
    known = set(keys)
    if known & _FOREIGN_KEYS:
        return False
    if "base" in known and any(map(is_override_key, known)):
        return True
    return bool(known & _SECTIONS_OF_A_JOB) and len(known & _SECTIONS) >= _FEWEST_SECTIONS


def _no_recipe(document: Document) -> Problem:
    message = "is not an srt-slurm recipe"
    if not isinstance(document.data, dict):
        return document.problem((), f"{message}: {kind_of(document.data)}")
    hint = "a recipe has model, resources and backend, or model, resources, engine and roles"
    if "pdrecipe" in document.data:
        hint = "it is a spec: render it with pdrecipe generate"
    return document.problem((), message, hint)
