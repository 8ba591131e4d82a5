"""Recipes of the check cases: a small base recipe with some values set or removed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from generator.checks.finding import CheckResult
from generator.checks.run import check_recipes
from generator.documents import parse_document
from generator.recipe.inputs import RecipeFile, RecipeInputs, read_recipes
from generator.recipe.sources import CollectedSources, RecipeSource

CASES = Path(__file__).resolve().parent / "cases/checks"
RECIPES = CASES / "recipes"


def text_of(case: Mapping[str, Any]) -> str:
    """The text of a case's recipe; paths are keys joined by slashes."""
    base = (RECIPES / f"{case['recipe']}.yaml").read_text("utf-8")
    if "set" not in case and "remove" not in case:
        return f"{case['top']}\n{base}" if "top" in case else base
    data = yaml.safe_load(base)
    for path, value in case.get("set", {}).items():
        *way, last = keys(path)
        at(data, way)[last] = value
    for path in case.get("remove", ()):
        *way, last = keys(path)
        del at(data, way)[last]
    text: str = yaml.safe_dump(data, sort_keys=False, width=1000)
    return f"{case['top']}\n{text}" if "top" in case else text


def keys(path: str) -> list[str]:
    return path.split("/")


def at(data: Any, way: list[str]) -> Any:
    for key in way:
        data = data.setdefault(key, {})
    return data


def recipe(text: str, name: str = "recipe.yaml") -> RecipeFile:
    """A recipe as it would be read from a file of that name."""
    source = RecipeSource(name=name, relative_path=name, text=text, is_named=True)
    return RecipeFile(source=source, document=parse_document(text, name))


def check_case(case: Mapping[str, Any]) -> CheckResult:
    """What is found in a case's recipe, those beside it checked along."""
    own = recipe(text_of(case), case.get("file", "recipe.yaml"))
    beside = [recipe(text_of(each), each["file"]) for each in case.get("beside", ())]
    result = check_recipes(RecipeInputs(recipes=(own, *beside)))
    assert result.problems == ()
    return result


def check_text(text: str, name: str = "recipe.yaml") -> CheckResult:
    """What is found in one text."""
    source = RecipeSource(name=name, relative_path=name, text=text, is_named=True)
    return check_recipes(read_recipes(CollectedSources(sources=(source,))))
