"""Whatever a recipe holds, its text means it: to this program, in both layouts, and to srtctl."""

from __future__ import annotations

import string
from dataclasses import replace
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.documents import parse_document
from generator.generation.rendering import expressible, render_recipe
from generator.recipe.dialects import recipe_from_document
from generator.recipe.recipe import V1_ONLY_BENCHMARK_KEYS, Dialect, FieldPath, Recipe, Role

# Text that a careless writer turns into something else: other types, comments, anchors, documents.
HOSTILE = (
    *("", " ", "~", "null", "yes", "No", "on", "y", "=", "<<", "-", "--- ", "...", "? a", ": b"),
    *("0", "-0", "010", "0o7", "0x1F", "1_000", "1e3", ".5", "1.", ".inf", "-.INF", ".NaN", "1:30"),
    *(
        "2026-11-30",
        "1:00:00",
        "a: b",
        "a #b",
        "#",
        "&a",
        "*a",
        "!tag",
        "!!int 1",
        "%YAML 1.2",
        "@",
        "`",
    ),
    *(
        "{a: b}",
        "[a, b]",
        "{{ name }}",
        "{% raw %}",
        "{# note #}",
        "|",
        ">",
        "'",
        '"',
        "''",
        '"a"',
        "\\",
    ),
    *(
        "a\nb",
        "\n",
        "a\r\nb",
        "\t",
        " a",
        "a ",
        "a\n- b",
        "\x00x"[1:],
        "\x07",
        "\x85",
        "\u2028",
        "\ufeff",
    ),
    *("\u00e9", "\U0001f600", "\x7f", "a" * 3000, "a b" * 1000, "name: b\nschema: 2", "# c\n"),
)
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")

texts = st.one_of(st.sampled_from(HOSTILE), st.text(CHARACTERS, max_size=20))
keys = st.one_of(
    st.sampled_from([word for word in HOSTILE if len(word) < 100]),
    st.text(CHARACTERS, max_size=12),
    st.text(string.ascii_lowercase + "-_.", min_size=1, max_size=12),
)
scalars = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(keys, below, max_size=3),
    max_leaves=6,
)
text_maps = st.dictionaries(keys, texts, max_size=3)
# A flag that srt-slurm's schema gives a type would refuse most values; a prefix keeps clear of it.
args = st.dictionaries(keys.map(lambda key: f"x-{key}"), values, max_size=4)


@st.composite
def roles(draw: st.DrawFn, name: str) -> Role:
    return Role(
        name=name,
        nodes=draw(st.integers(1, 18)),
        workers=draw(st.integers(1, 9)),
        gpus=draw(st.integers(1, 72)),
        environment=draw(text_maps),
        args=draw(args),
    )


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    names = draw(st.sampled_from([("prefill", "decode"), ("agg",)]))
    has_connector = draw(st.booleans())
    return Recipe(
        name=draw(texts),
        gpu_type=draw(texts),
        gpus_per_node=draw(st.integers(1, 8)),
        model={"path": draw(texts), "container": draw(texts), "precision": draw(texts)},
        engine="vllm",
        has_connector=has_connector,
        connector=draw(st.none() | st.just("nixl")) if has_connector else None,
        roles=tuple(draw(roles(name)) for name in names),
        benchmark=draw(benchmarks()),
        identity=draw(st.none() | st.fixed_dictionaries({}, optional={"frameworks": text_maps})),
        time_limit=draw(st.none() | st.sampled_from(["1:00:00", "02:30:00", "1-00:00:00"])),
        dynamo=draw(
            st.none()
            | st.fixed_dictionaries({}, optional={"version": texts, "install": st.booleans()})
        ),
        frontend=draw(
            st.none()
            | st.fixed_dictionaries(
                {},
                optional={
                    "type": st.sampled_from(["dynamo", "sglang", "vllm"]),
                    "dedicated_node": st.booleans(),
                    "env": text_maps,
                },
            )
        ),
        sections=draw(st.fixed_dictionaries({}, optional={"environment": text_maps})),
    )


def benchmarks() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("custom")},
        optional={"command": texts, "env": text_maps, "backend": texts, "endpoint": texts},
    )


@st.composite
def commented_recipes(draw: st.DrawFn) -> Recipe:
    """A recipe with one-line comments on some of its roles' values and flags."""
    recipe = draw(recipes())
    paths: list[FieldPath] = [("name",), ("gpu_type",)]
    for role in recipe.roles:
        paths += [("roles", role.name, key) for key in ("nodes", "workers", "gpus")]
        paths += [("roles", role.name, "args", flag) for flag in role.args]
    line = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=30)
    return replace(recipe, comments=draw(st.dictionaries(st.sampled_from(paths), line, max_size=6)))


def read_back(text: str, dialect: Dialect) -> Recipe:
    return recipe_from_document(parse_document(text, "recipe.yaml").data, dialect)


def with_types(value: Any) -> Any:
    """A value for comparison in which true, 1 and 1.0 differ."""
    if isinstance(value, dict):
        return {key: with_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_types(item) for item in value]
    if isinstance(value, Recipe | Role):
        names = [name for name in value.__dataclass_fields__ if name != "comments"]
        return [with_types(getattr(value, name)) for name in names]
    return (type(value).__name__, value)


quick = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
dialects = st.sampled_from(list(Dialect))


@quick
@given(recipe=recipes(), dialect=dialects)
def test_text_means_the_recipe(recipe: Recipe, dialect: Dialect) -> None:
    read = read_back(render_recipe(recipe, dialect, ("header",)), dialect)
    assert with_types(read) == with_types(expressible(recipe, dialect))
    orders = ([list(role.args) for role in each.roles] for each in (read, recipe))
    assert next(orders) == next(orders), "flags stay in the order they are explained in"


@quick
@given(recipe=recipes(), dialect=dialects)
def test_same_recipe_same_bytes(recipe: Recipe, dialect: Dialect) -> None:
    assert render_recipe(recipe, dialect) == render_recipe(recipe, dialect)


@quick
@given(recipe=recipes())
def test_both_layouts_mean_the_same_but_for_two_benchmark_keys(recipe: Recipe) -> None:
    v1, v2 = (read_back(render_recipe(recipe, dialect), dialect) for dialect in Dialect)
    common = {
        key: value for key, value in v1.benchmark.items() if key not in V1_ONLY_BENCHMARK_KEYS
    }
    assert with_types(expressible(replace(v1, benchmark=common), Dialect.V2)) == with_types(v2)
    assert not set(v2.benchmark) & set(V1_ONLY_BENCHMARK_KEYS)


@quick
@given(recipe=recipes(), dialect=dialects)
def test_srtctls_reader_sees_what_this_program_sees(recipe: Recipe, dialect: Dialect) -> None:
    """It reads recipes with PyYAML's safe loader, whose parser here is the one of YAML 1.1."""
    text = render_recipe(recipe, dialect)
    assert with_types(yaml.safe_load(text)) == with_types(parse_document(text, "x").data)


@quick
@given(recipe=commented_recipes(), dialect=dialects)
def test_comments_change_no_meaning(recipe: Recipe, dialect: Dialect) -> None:
    commented = render_recipe(recipe, dialect)
    plain = render_recipe(replace(recipe, comments={}), dialect)
    assert len(commented.splitlines()) == len(plain.splitlines())
    assert with_types(read_back(commented, dialect)) == with_types(read_back(plain, dialect))
    for text in recipe.comments.values():
        assert f"  # {text}\n" in commented
