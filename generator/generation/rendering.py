"""Recipe to text by template, and back: what is rendered must mean exactly what went in."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from generator.assets import asset_root
from generator.documents import parse_document
from generator.recipe.dialects import (
    V1_ROLE_NAMES,
    recipe_from_document,
    v2_benchmark,
    v2_dynamo,
    v2_frontend,
    v2_omissions,
)
from generator.recipe.recipe import Dialect, Recipe
from generator.validation import validate
from generator.yaml_text.scalars import dump_yaml_scalar

_SCHEMAS = {Dialect.V1: "recipe-v1", Dialect.V2: "recipe-v2"}


def render_recipe(recipe: Recipe, dialect: Dialect, header_lines: tuple[str, ...] = ()) -> str:
    """The text of a recipe in one dialect, verified: parsed back, schema-valid and equal.

    Raises InvalidInput where the recipe is not one srt-slurm accepts, and RuntimeError where the
    text does not mean the recipe, which is a fault of a template.
    """
    template = _environment().get_template(f"srt-slurm/{dialect}.yaml.j2")
    text = template.render(
        recipe=recipe,
        header_lines=header_lines,
        v1_role_names=V1_ROLE_NAMES,
        v2_dynamo=v2_dynamo(recipe.dynamo),
        v2_frontend=v2_frontend(recipe.frontend),
        v2_benchmark=v2_benchmark(recipe.benchmark),
        v2_omissions=v2_omissions(recipe.benchmark),
    )
    document = parse_document(text, f"{recipe.name} ({dialect})")
    validate(document, _SCHEMAS[dialect])
    if recipe_from_document(document.data, dialect) != expressible(recipe, dialect):
        raise RuntimeError(f"the {dialect} template does not render {recipe.name} faithfully")
    return text


def expressible(recipe: Recipe, dialect: Dialect) -> Recipe:
    """The part of a recipe a dialect can say: v2 lacks two benchmark keys of release 1.0.98."""
    if dialect is Dialect.V1:
        return recipe
    frontend = recipe.frontend
    if frontend is not None and frontend.get("dedicated_node") is False:
        # Layout v2 says so by naming no node.
        frontend = {key: value for key, value in frontend.items() if key != "dedicated_node"}
    return replace(recipe, benchmark=v2_benchmark(recipe.benchmark), frontend=frontend)


@cache
def _environment() -> Environment:
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(asset_root() / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["scalar"] = _scalar
    environment.filters["chomp"] = _chomp
    return environment


def _scalar(value: Any) -> str:
    """One line of YAML; lists in flow style."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_scalar(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_scalar(key)}: {_scalar(item)}' for key, item in value.items())}}}"
    return dump_yaml_scalar(value)


def _chomp(text: str) -> str:
    return text.rstrip("\n")
