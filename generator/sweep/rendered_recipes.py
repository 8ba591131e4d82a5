"""The digests that a sweep gives the recipes of a spec, once they are rendered."""

from __future__ import annotations

from generator.documents import parse_document
from generator.generation.rendering import render_recipe
from generator.recipe.recipe import Dialect, Recipe
from generator.sweep.points import recipe_digest


def rendered_digests(recipe: Recipe) -> frozenset[str]:
    """Those of both srt-slurm layouts; the header of a file does not count."""
    texts = (render_recipe(recipe, dialect, ()) for dialect in Dialect)
    return frozenset(recipe_digest(parse_document(text, recipe.name).data) for text in texts)
