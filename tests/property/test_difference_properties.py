"""A difference is empty on itself, leads from one side to the other, and has a mirror image."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from generator.documents import parse_document
from generator.migration.migration import migrate_document
from generator.normal_form import NormalForm, normal_form
from generator.recipe.expansion import variants
from generator.recipe_diff.difference import RecipeDiff, apply, compare, meant_values, same_values
from tests.property.test_normal_form_properties import block, in_v2, v1_recipes


@st.composite
def recipes(draw: st.DrawFn) -> dict[str, Any]:
    recipe = draw(v1_recipes())
    return in_v2(recipe) if draw(st.booleans()) else recipe


def form(recipe: dict[str, Any]) -> NormalForm:
    (variant,) = variants(parse_document(block(recipe), "recipe.yaml"))
    return normal_form(variant)


def as_set(diff: RecipeDiff) -> set[str]:
    return {repr(change) for change in (*diff.changes, *diff.inexpressible)}


@given(recipes())
def test_a_recipe_does_not_differ_from_itself(recipe: dict[str, Any]) -> None:
    found = form(recipe)
    assert compare(found, found) == RecipeDiff(unchanged=len(meant_values(found)))


@given(recipes(), recipes())
def test_applied_to_one_side_it_gives_the_other(one: dict[str, Any], other: dict[str, Any]) -> None:
    before, after = form(one), form(other)
    assert same_values(apply(compare(before, after), meant_values(before)), meant_values(after))


@given(recipes(), recipes())
def test_the_other_way_round_it_is_mirrored(one: dict[str, Any], other: dict[str, Any]) -> None:
    before, after = form(one), form(other)
    assert as_set(compare(after, before)) == as_set(compare(before, after).mirrored())


@given(v1_recipes())
def test_migrated_it_does_not_differ(recipe: dict[str, Any]) -> None:
    text = block(recipe)
    migration = migrate_document(parse_document(text, "recipe.yaml"))
    (variant,) = variants(parse_document(migration.text, "migrated.yaml"))
    diff = compare(form(recipe), normal_form(variant))
    assert diff.is_empty
    assert diff.compared == migration.compared
    assert text.count("#") <= migration.text.count("#")
