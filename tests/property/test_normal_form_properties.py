"""The normal form says what a recipe means: order, quotes, comments and layout are not in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from generator.documents import parse_document
from generator.normal_form import NormalForm, canonical, inexpressible, normal_form, recipe_defaults
from generator.recipe.dialects import V1_ROLE_NAMES, v2_dynamo, v2_frontend
from generator.recipe.expansion import variants
from generator.recipe.recipe import Dialect
from generator.yaml_text.scalars import dump_yaml_scalar

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=6
)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,5}){0,2}", fullmatch=True)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.floats(allow_nan=False), WORDS
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
FLAGS = st.dictionaries(NAMES, TREES, max_size=3)
ENVIRONMENT = st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), WORDS, max_size=3)
COUNTS = st.integers(1, 64)


@st.composite
def v1_recipes(draw: st.DrawFn) -> dict[str, Any]:
    """A recipe in layout v1 with what both layouts can say."""
    engine = draw(st.sampled_from(["vllm", "sglang", "trtllm", "mocker"]))
    roles = draw(st.sampled_from([("prefill", "decode"), ("agg",)]))
    resources: dict[str, Any] = {"gpu_type": "gb300", "gpus_per_node": draw(COUNTS)}
    backend: dict[str, Any] = {"type": engine, f"{engine}_config": {}}
    for role in roles:
        resources |= {f"{role}_nodes": draw(COUNTS), f"{role}_workers": draw(COUNTS)}
        resources[f"gpus_per_{role}"] = draw(COUNTS)
        backend[f"{engine}_config"][V1_ROLE_NAMES[role]] = draw(FLAGS)
        backend[f"{V1_ROLE_NAMES[role]}_environment"] = draw(ENVIRONMENT)
    if "decode" in roles and draw(st.booleans()):
        resources["decode_nodes"] = 0
    if engine == "vllm":
        backend["connector"] = draw(st.sampled_from([None, "nixl"]))
    recipe: dict[str, Any] = {
        "name": draw(NAMES),
        "model": {"path": draw(WORDS), "container": draw(WORDS), "precision": "fp8"},
        "resources": resources,
        "backend": backend,
        "environment": draw(ENVIRONMENT),
        "benchmark": {"type": "sa-bench", "concurrencies": draw(st.lists(COUNTS, min_size=1))},
    }
    if draw(st.booleans()):
        recipe["dynamo"] = {draw(st.sampled_from(["version", "wheel", "hash"])): draw(NAMES)}
    if draw(st.booleans()):
        recipe["frontend"] = {
            "type": draw(st.sampled_from(["dynamo", "sglang"])),
            "dedicated_node": True,
            "args": draw(FLAGS),
        }
    return recipe


def in_v2(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The same recipe in layout v2, written down independently of the normal form."""
    backend, resources = recipe["backend"], dict(recipe["resources"])
    engine = {key: backend[key] for key in ("type", "connector") if key in backend}
    roles = {}
    for role, section in V1_ROLE_NAMES.items():
        if f"{role}_nodes" not in resources:
            continue
        roles[role] = {
            "nodes": resources.pop(f"{role}_nodes") or "colocate",
            "workers": resources.pop(f"{role}_workers"),
            "gpus": resources.pop(f"gpus_per_{role}"),
            "env": backend[f"{section}_environment"],
            "args": backend[f"{backend['type']}_config"][section],
        }
    rest = {key: value for key, value in recipe.items() if key not in ("backend", "resources")}
    for key, moved in (("dynamo", v2_dynamo), ("frontend", v2_frontend)):
        if key in rest:
            rest[key] = moved(rest[key])
    return {"schema": 2, **rest, "resources": resources, "engine": engine, "roles": roles}


def block(value: Any, indent: str = "") -> str:
    """YAML in block style with comments, unlike the JSON that the same tree makes."""
    if isinstance(value, dict) and value:
        return "".join(
            f"\n{indent}# {index}\n{indent}{dump_yaml_scalar(key)}:{block(item, indent + '  ')}"
            for index, (key, item) in enumerate(value.items())
        )
    if isinstance(value, list | dict):
        return f" {flow(value)}\n"
    return f" {dump_yaml_scalar(value)}  # why\n"


def flow(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{dump_yaml_scalar(key)}: {flow(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return dump_yaml_scalar(value)


def form(text: str) -> NormalForm:
    (variant,) = variants(parse_document(text, "recipe.yaml"))
    return normal_form(variant)


def shuffled(value: Any, draw: st.DataObject) -> Any:
    if isinstance(value, dict):
        keys = draw.draw(st.permutations(list(value)))
        return {key: shuffled(value[key], draw) for key in keys}
    return value


@given(recipe=v1_recipes(), data=st.data())
def test_order_style_and_comments_make_no_difference(
    recipe: dict[str, Any], data: st.DataObject
) -> None:
    expected = form(flow(recipe)).plain()
    assert form(block(shuffled(recipe, data))).plain() == expected


@given(v1_recipes())
def test_v1_and_v2_of_a_recipe_have_one_form(recipe: dict[str, Any]) -> None:
    one, other = form(flow(recipe)), form(block(in_v2(recipe)))
    assert one.plain() == other.plain()
    assert inexpressible(one, Dialect.V2) == () == inexpressible(other, Dialect.V1)


@given(v1_recipes())
def test_spelling_of_flags_makes_no_difference(recipe: dict[str, Any]) -> None:
    expected = form(flow(recipe)).plain()
    backend = recipe["backend"]
    configs = backend[f"{backend['type']}_config"]
    for role, flags in configs.items():
        configs[role] = {
            flag.replace("-", "_"): json.dumps(value) if _is_json(value) else value
            for flag, value in flags.items()
        }
    assert form(flow(recipe)).plain() == expected


def _is_json(value: Any) -> bool:
    """Whether a flag may as well be given as JSON text: infinity has no place in it."""
    return isinstance(value, dict) and bool(value) and "inf" not in flow(value)


@given(v1_recipes())
def test_every_value_has_a_line_and_is_its_documents(recipe: dict[str, Any]) -> None:
    found = form(block(recipe))
    lines = found.variant.document.text.count("\n") + 1
    for path, each in found.values.items():
        assert 1 <= found.line(path) <= lines
        here: Any = recipe
        for step in each.written_at:
            here = here[step]
    assert not found.repeated


@given(v1_recipes())
def test_writing_a_default_out_makes_no_difference(recipe: dict[str, Any]) -> None:
    bare = canonical(form(flow(recipe)))
    for path, default in recipe_defaults().items():
        if path[0] != "health_check":
            continue
        recipe.setdefault(path[0], {})[path[1]] = default.value
    assert canonical(form(flow(recipe))).plain() == bare.plain()
    assert canonical(bare).plain() == bare.plain()


@given(st.dictionaries(st.sampled_from(
    ["name", "schema", "model", "resources", "backend", "roles", "engine", "services", "infra",
     "dynamo", "frontend", "benchmark", "environment"]), TREES))  # fmt: skip
def test_whatever_stands_in_a_section_is_read(recipe: dict[str, Any]) -> None:
    found = form(flow(recipe))
    canonical(found)
    inexpressible(found, Dialect.V2)
    for path in found.values:
        assert found.line(path) == 1
