"""The JSON Schemas of srt-slurm's two recipe layouts, against our own and real recipes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURES = REPOSITORY / "tests/data/recipes"
LAYOUTS = ("v1", "v2")
SCHEMAS: dict[str, dict[str, Any]] = {
    layout: json.loads((REPOSITORY / f"schemas/recipe-{layout}.schema.json").read_text("utf-8"))
    for layout in LAYOUTS
}
CHANGES: dict[str, list[Any]] = yaml.safe_load((FIXTURES / "changes.yaml").read_text("utf-8"))
VALIDATORS = {layout: Draft202012Validator(schema) for layout, schema in SCHEMAS.items()}

EFFECTS = {"cosmetic", "needs-restart", "changes-memory", "invalidates-results"}
# Mappings whose keys srtctl does not look at, and mappings that another definition closes.
OPEN = {"engine_args", "engine_args_or_null", "benchmark_sweep"}
CLOSED_ELSEWHERE = {"backend", "engine"}

FieldPath = Sequence[str | int]


def small(layout: str) -> dict[str, Any]:
    text = (FIXTURES / f"small.{layout}.yaml").read_text("utf-8")
    recipe: dict[str, Any] = yaml.safe_load(text)
    return recipe


def changed(recipe: dict[str, Any], path: FieldPath, value: object) -> dict[str, Any]:
    """A copy with one value set; mappings on the way that are missing are made."""
    recipe = deepcopy(recipe)
    *way, last = path
    here: Any = recipe
    for step in way:
        here = here[step] if isinstance(step, int) else here.setdefault(step, {})
    here[last] = value
    return recipe


def refused(layout: str, recipe: object) -> list[str]:
    """Every error of a recipe as `dotted.path: keyword`, unknown keys with their name."""
    return sorted(
        ".".join(map(str, error.absolute_path)) + f": {error.validator}"
        for error in VALIDATORS[layout].iter_errors(recipe)
    )


def properties(layout: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each property of a schema: the definition it stands in, its name, its schema."""
    schema = SCHEMAS[layout]
    for owner, part in {"": schema, **schema["$defs"]}.items():
        for name, described in part.get("properties", {}).items():
            yield owner, name, described


ALL_PROPERTIES = [
    pytest.param(layout, owner, name, described, id=f"{layout}-{owner or 'top'}.{name}")
    for layout in LAYOUTS
    for owner, name, described in properties(layout)
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_schema_is_a_schema(layout: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[layout])


@pytest.mark.parametrize(("layout", "owner", "name", "described"), ALL_PROPERTIES)
def test_property_is_described_and_its_examples_are_valid(
    layout: str, owner: str, name: str, described: dict[str, Any]
) -> None:
    assert described["description"].endswith("."), (owner, name)
    assert described["examples"]
    alone = Draft202012Validator({"$defs": SCHEMAS[layout]["$defs"], **described})
    for example in described["examples"]:
        assert not list(alone.iter_errors(example)), example


@pytest.mark.parametrize(("layout", "owner", "name", "described"), ALL_PROPERTIES)
def test_property_says_what_a_change_costs(
    layout: str, owner: str, name: str, described: dict[str, Any]
) -> None:
    """A value has an effect class, unless it is a section whose own keys have one."""
    reference = described.get("$ref", "").removeprefix("#/$defs/")
    is_section = "properties" in SCHEMAS[layout]["$defs"].get(reference, {})
    is_section |= described.get("items", {}).get("$ref", "") == "#/$defs/service"
    assert described.get("x-effect") in EFFECTS or is_section, (owner, name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lists_say_how_they_compare(layout: str) -> None:
    kinds = {
        name: described["x-list-type"]
        for _, name, described in properties(layout)
        if "array" in described.get("type", ())
    }
    assert {name for name, kind in kinds.items() if kind == "set"} == {"concurrencies"}
    assert set(kinds.values()) == {"set", "atomic"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_patterns_come_with_advice(layout: str) -> None:
    schema = SCHEMAS[layout]
    parts = [*schema["$defs"].values(), *(each for _, _, each in properties(layout))]
    assert [each for each in parts if "pattern" in each and not each.get("x-hint")] == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_structural_level_is_closed(layout: str) -> None:
    schema = SCHEMAS[layout]
    levels = {name: part for name, part in schema["$defs"].items() if "properties" in part}
    still_open = {
        name for name, part in levels.items() if part.get("additionalProperties") is not False
    }
    assert still_open <= OPEN | CLOSED_ELSEWHERE
    assert schema["additionalProperties"] is False


def test_article_keys_are_a_profile_of_layout_v1() -> None:
    marked = {name for _, name, part in properties("v1") if part.get("x-profile") == "v1.0.98"}
    assert marked == {"backend", "endpoint"}
    assert not [name for _, name, part in properties("v2") if "x-profile" in part]


# --- recipes that are right ---------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_small_recipe_is_valid(layout: str) -> None:
    assert refused(layout, small(layout)) == []


@pytest.mark.parametrize(("layout", "path", "value"), CHANGES["right"])
def test_right_recipe(layout: str, path: FieldPath, value: object) -> None:
    assert refused(layout, changed(small(layout), path, value)) == []


# --- recipes that are wrong ---------------------------------------------------------------------

EXPORTER = {"container_image": "x", "port": 9401}
# Every level at which srtctl refuses a key it does not know, with what must stand there besides.
LEVELS: dict[str, list[tuple[FieldPath, dict[str, Any]]]] = {
    "v1": [
        ((), {}),
        (("resources",), {}),
        (("infra",), {}),
        (("backend",), {}),
        (("backend", "vllm_config"), {}),
        (("backend", "mooncake_kv_store"), {}),
        (("backend",), {"type": "sglang"}),
        (("backend",), {"type": "trtllm", "trtllm_config": {"prefill": {}}}),
        (("backend",), {"type": "mocker"}),
        (("observability", "tachometer", "node_exporter"), EXPORTER),
    ],
    "v2": [
        ((), {}),
        (("resources",), {}),
        (("engine",), {}),
        (("engine",), {"type": "trtllm"}),
        (("engine",), {"type": "tokenspeed"}),
        (("roles",), {}),
        (("roles", "prefill"), {}),
        (("roles", "decode"), {}),
        (("roles", "agg"), {}),
        (("roles", "decode", "restart"), {"policy": "never"}),
        (("dynamo", "source"), {}),
        (("frontend", "placement"), {}),
        (("benchmark", "placement"), {}),
        (("services", 0), {}),
        (("services", 0, "placement"), {}),
        (("services", 0, "readiness"), {"port": 9000}),
        (("services", 0, "metrics"), {"port": 9000}),
        (("services", 0, "source"), {"git": "x", "rev": "y"}),
        (("host_setup",), {}),
        (("post_eval",), {}),
        (("observability", "nsys"), {}),
        (("telemetry", "cpu_power"), {}),
        (("observability", "tachometer", "node_exporter"), EXPORTER),
    ],
}
BOTH: list[tuple[FieldPath, dict[str, Any]]] = [
    (("model",), {}),
    (("identity",), {}),
    (("identity", "model"), {}),
    (("identity", "container"), {}),
    (("slurm",), {}),
    (("dynamo",), {}),
    (("frontend",), {}),
    (("benchmark",), {}),
    (("health_check",), {}),
    (("output",), {}),
    (("profiling",), {}),
    (("profiling", "prefill"), {}),
    (("observability",), {}),
    (("observability", "tachometer"), {}),
    (("telemetry",), {}),
    (("telemetry", "dcgm_exporter"), EXPORTER),
    (("reporting",), {}),
    (("reporting", "status"), {}),
    (("reporting", "ai_analysis"), {}),
    (("reporting", "s3"), {"bucket": "b"}),
]


@pytest.mark.parametrize(
    ("layout", "level", "besides"),
    [(layout, *each) for layout in LAYOUTS for each in LEVELS[layout] + BOTH],
)
def test_unknown_key_is_refused(layout: str, level: FieldPath, besides: dict[str, Any]) -> None:
    recipe = small(layout)
    if besides:
        recipe = changed(recipe, level, besides)
    assert refused(layout, recipe) == []
    wrong = refused(layout, changed(recipe, (*level, "no_such_key"), 1))
    assert ".".join(map(str, level)) + ": additionalProperties" in wrong


@pytest.mark.parametrize(("layout", "path", "value", "error"), CHANGES["wrong"])
def test_wrong_recipe(layout: str, path: FieldPath, value: object, error: str) -> None:
    assert error in refused(layout, changed(small(layout), path, value))


@pytest.mark.parametrize(
    ("layout", "key"),
    [*(("v1", key) for key in ("name", "model", "resources")), ("v2", "schema"), ("v2", "model")],
)
def test_missing_key_is_refused(layout: str, key: str) -> None:
    recipe = small(layout)
    del recipe[key]
    assert refused(layout, recipe) == [": required"]


# --- real recipes, where the shared folder lies beside the checkout -------------------------------

# The files that are no recipe until they are expanded, and why; their variants are valid.
TEMPLATES = {
    "v1/multi-node/DeepSeek-V4-Pro/H100/vllm/8k1k-mtp.yaml": "placeholders in typed fields",
    "v1/multi-node/GLM-5/GB300/sglang/glm5-fp8-1k1k-hightpt1-c7500.yaml": "placeholders in a list",
    "v2/infx__dsv4__gb300-fp4__variants.truncated.yaml": "base and override_agg_tp4_mtp",
}


def variants(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What srtctl makes of a sweep or an override file."""
    if "base" in document:
        overrides = [each for key, each in document.items() if key.startswith("override_")]
        yield from ({"schema": 2, **merged(document["base"], each)} for each in overrides)
        return
    grid: dict[str, list[Any]] = document["sweep"]
    rest = {key: value for key, value in document.items() if key != "sweep"}
    for values in itertools.product(*grid.values()):
        yield substituted(rest, dict(zip(grid, values, strict=True)))


def merged(base: Any, override: Any) -> Any:
    """Mappings key by key, null deletes, anything else replaces."""
    if not (isinstance(base, dict) and isinstance(override, dict)):
        return override
    both = base | {key: merged(base.get(key), value) for key, value in override.items()}
    return {key: value for key, value in both.items() if override.get(key, 0) is not None}


def substituted(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: substituted(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [substituted(each, values) for each in value]
    for name, each in values.items() if isinstance(value, str) else ():
        value = value.replace(f"{{{name}}}", str(each))
    return value


@pytest.mark.parametrize("layout", LAYOUTS)
def test_real_recipes(shared: Path, layout: str) -> None:
    folder = shared / "recipes"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.yaml")}
    names = sorted(name for name in files if name.startswith(layout))
    assert names
    for name in names:
        document = yaml.safe_load(files[name].read_text("utf-8"))
        is_template = "base" in document or "sweep" in document
        recipes = list(variants(document)) if is_template else [document]
        assert [refused(layout, each) for each in recipes] == [[]] * len(recipes), name


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_is_no_recipe_until_expanded(shared: Path, name: str) -> None:
    document = yaml.safe_load((shared / "recipes" / name).read_text("utf-8"))
    assert refused(name[:2], document) != []


def test_published_recipes_of_layout_v1(shared: Path) -> None:
    files = sorted((shared / "truth").glob("qwen38_*.v1.yaml"))
    article = [yaml.safe_load(path.read_text("utf-8")) for path in files]
    table = json.loads((shared / "truth/qwen35_gb200_recipes.json").read_text("utf-8"))
    recipes = [*article, table["full_example_4xdep2-1xdep8"]]
    assert [refused("v1", each) for each in recipes] == [[], [], []]
