"""pdrecipe check on recipes with anything in any place: findings, never an exception."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from generator.checks.report import json_document, text_lines
from generator.checks.run import check_recipes
from generator.recipe.inputs import RecipeFile, RecipeInputs
from tests.check_cases import RECIPES, recipe

BASES = {
    path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(RECIPES.glob("*.yaml"))
}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2**40),
    st.floats(allow_nan=False),
    st.sampled_from(["", "{", "{}", "16", "-1", "64x", "colocate", "{tp}", "vllm", "8k", "1e9"]),
    st.text("ab{}:x0 ", max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "method", "tp"]), inner)
    ),
    max_leaves=5,
)


def paths(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    items = data.items() if isinstance(data, dict) else []
    for key, value in items:
        found += paths(value, (*path, key))
    return found


@st.composite
def changed_recipes(draw: st.DrawFn) -> RecipeFile:
    data = deepcopy(BASES[draw(st.sampled_from(sorted(BASES)))])
    for _ in range(draw(st.integers(1, 4))):
        *way, last = draw(st.sampled_from(paths(data) or [("name",)]))
        here = data
        for key in way:
            here = here[key]
        here[last] = draw(VALUES)
    if draw(st.booleans()):
        data["sweep"] = {"tp": draw(st.lists(SCALARS, max_size=3))}
    return recipe(yaml.safe_dump(data, sort_keys=False))


@given(changed_recipes())
def test_no_exception(file: RecipeFile) -> None:
    result = check_recipes(RecipeInputs(recipes=(file,)))
    assert json_document(result)["version"] == 1
    lines = file.document.text.count("\n")
    assert all(0 <= each.line <= lines for each in result.findings)
    assert all("\n" not in line for line in text_lines(result))


def test_an_empty_run() -> None:
    result = check_recipes(RecipeInputs(recipes=()))
    assert (result.files, result.findings) == (0, ())


def test_refusals_of_expansion_are_problems() -> None:
    file = recipe("base: {name: a}\noverride_a: 5\n")
    result = check_recipes(RecipeInputs(recipes=(file,)))
    assert result.files == 0
    assert [each.message for each in result.problems] == ["must be a mapping, not an integer"]
