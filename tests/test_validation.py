from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from generator import validation
from generator.documents import parse_document
from generator.errors import InvalidInput
from generator.validation import problems, schema, validate

ENGINE = {
    "oneOf": [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["type"],
            "properties": {"type": {"const": "vllm"}, "max_num_seqs": {"type": "integer"}},
        },
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["type"],
            "properties": {"type": {"const": "sglang"}, "mem_fraction": {"type": "number"}},
        },
        {"type": "string", "pattern": "^v", "x-hint": "the name of an engine profile"},
    ]
}
SWEEP = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}},
        {"type": "string", "pattern": "^[0-9]+(x[0-9]+)*$", "x-hint": "such as 64x128"},
        {"type": "integer", "minimum": 1},
    ]
}
BENCHMARK = {
    "type": "object",
    "properties": {"type": {"enum": ["sweep", "manual"]}},
    "required": ["type"],
    "if": {"properties": {"type": {"const": "manual"}}, "required": ["type"]},
    "then": {"propertyNames": {"enum": ["type", "notes"], "x-hint": "manual does not use this"}},
    "else": {"$ref": "#/$defs/sweep_benchmark"},
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["isl", "osl"],
    "patternProperties": {"^x-": True},
    "properties": {
        "isl": {"type": "integer", "minimum": 1},
        "osl": {"type": "integer"},
        "utilization": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "max_num_seqs": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]},
        "kv_cache": {"enum": ["fp8", "bf16", "off"]},
        "name": {"type": "string", "pattern": "^[a-z]+$", "x-hint": "lower-case letters only"},
        "file": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
        "block": {"type": ["integer", "null"]},
        "sizes": {
            "type": "array",
            "minItems": 2,
            "uniqueItems": True,
            "items": {"type": "integer", "multipleOf": 4},
        },
        "environment": {
            "type": "object",
            "maxProperties": 2,
            "propertyNames": {"pattern": "^[A-Z_]+$", "x-hint": "capitals and _"},
            "additionalProperties": {"type": "string"},
        },
        "eager": {"type": "boolean"},
        "notes": {"type": "string", "minLength": 1},
        "version": {"const": 1},
        "label": {"not": {"const": "latest"}, "x-hint": "pin a version"},
        "retired": {"not": {}},
        "tags": {"type": "array", "contains": {"const": "x"}},
        "ports": {"type": "object", "dependentRequired": {"first": ["last", "step"]}},
        "engine": ENGINE,
        "pool": {"anyOf": [{"$ref": "#/$defs/by~1nodes"}, {"$ref": "#/$defs/by~1gpus"}]},
        "sweep": SWEEP,
        "benchmark": BENCHMARK,
        "deployments": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["prefill"],
                "properties": {"prefill": {"$ref": "#/$defs/layout"}},
            },
        },
    },
    "$defs": {
        "layout": {"type": "string", "pattern": "^T", "x-hint": "a layout such as TEP8"},
        "by/nodes": {
            "type": "object",
            "additionalProperties": False,
            "required": ["role"],
            "properties": {"role": {"type": "string"}, "nodes": {"type": "integer"}},
        },
        "by/gpus": {
            "type": "object",
            "additionalProperties": False,
            "required": ["role", "gpus_per_worker"],
            "properties": {"role": {"type": "string"}, "gpus_per_worker": {"type": "integer"}},
        },
        "sweep_benchmark": {
            "additionalProperties": False,
            "properties": {"type": True, "concurrencies": {"type": "array"}, "rate": True},
        },
    },
}


@pytest.fixture(scope="module", autouse=True)
def _schemas_of_this_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root = tmp_path_factory.mktemp("assets")
    (root / "schemas").mkdir()
    (root / "schemas" / "test.schema.json").write_text(json.dumps(SCHEMA))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "asset_root", lambda: root)
        clear_caches()
        yield
    clear_caches()


def clear_caches() -> None:
    schema.cache_clear()
    validation._validator.cache_clear()


def lines(text: str) -> list[str]:
    return [str(problem) for problem in problems(parse_document(text, "f"), "test")]


VALID = """\
isl: 8192
osl: 1024
utilization: 0.92
max_num_seqs: auto
kv_cache: fp8
block:
sizes: [4, 8]
environment: {A_B: "1"}
engine: {type: vllm, max_num_seqs: 8}
sweep: 64x128
benchmark: {type: sweep, concurrencies: []}
deployments:
- prefill: TEP8
x-anything: [1]
"""

# One bad line after a good `isl` and `osl`, and what is said about it.
FIELDS: list[tuple[str, str]] = [
    # Keys.
    (
        "max_num_seq: 1",
        "f:3: max_num_seq: unknown key 'max_num_seq' (did you mean 'max_num_seqs'?)",
    ),
    (
        "max-num-seqs: 1",
        "f:3: max-num-seqs: unknown key 'max-num-seqs' (did you mean 'max_num_seqs'?)",
    ),
    (
        "zzz: 1",
        (
            "f:3: zzz: unknown key 'zzz' (allowed: isl, osl, utilization, max_num_seqs, kv_cache,"
            " name, file, block, ...)"
        ),
    ),
    ("'n me': 1", "f:3: ['n me']: unknown key 'n me' (did you mean 'name'?)"),
    ("deployments: [{}]", "f:3: deployments[0]: 'prefill' is required"),
    (
        "deployments: [{prefil: T, prefill: T}]",
        "f:3: deployments[0].prefil: unknown key 'prefil' (did you mean 'prefill'?)",
    ),
    ("environment: {A: x, b: y}", "f:3: environment.b: 'b' is not valid here (capitals and _)"),
    ("environment: {A: x, B: x, C: x}", "f:3: environment: must have at most 2 keys, has 3"),
    ("ports: {first: 1, last: 2}", "f:3: ports: 'step' is required beside 'first'"),
    (
        "tags: [a,\n  b]",
        "f:3: tags: ['a', 'b'] does not contain items matching the given schema",
    ),
    ("retired: 1", "f:3: retired: 1 is not allowed here"),
    # Types.
    ("block: eight", "f:3: block: expected an integer or null, got 'eight' (a string)"),
    ("block: 1.5", "f:3: block: expected an integer or null, got 1.5 (a number)"),
    ("block: 8.0", "f:3: block: expected an integer or null, got 8.0 (a number) (write 8)"),
    ("block: '8'", "f:3: block: expected an integer or null, got '8' (a string) (write 8)"),
    ("block: true", "f:3: block: expected an integer or null, got true (a boolean)"),
    ("block: [8]", "f:3: block: expected an integer or null, got a list"),
    ("block: {a: 8}", "f:3: block: expected an integer or null, got a mapping"),
    (
        "utilization:",
        "f:3: utilization: expected a number, got null (give it a value, or remove the key)",
    ),
    (
        "utilization: 9e-1",
        "f:3: utilization: expected a number, got '9e-1' (a string) (write 0.9)",
    ),
    ("utilization: .nan", "f:3: utilization: expected a number, got .nan (not a finite number)"),
    ("utilization: -.inf", "f:3: utilization: expected a number, got -.inf (not a finite number)"),
    ("eager: 1", "f:3: eager: expected true or false, got 1 (an integer)"),
    ("sizes: 4", "f:3: sizes: expected a list, got 4 (an integer) (write [4])"),
    ("sizes: a b", "f:3: sizes: expected a list, got 'a b' (a string) (write [a b])"),
    ("notes: 1", "f:3: notes: expected a string, got 1 (an integer) (put it in quotes)"),
    ("notes: off", "f:3: notes: expected a string, got false (a boolean) (put it in quotes)"),
    ("name: 1", "f:3: name: expected a string, got 1 (an integer) (lower-case letters only)"),
    ("version: 2", "f:3: version: expected 1, got 2 (an integer)"),
    # Values.
    (
        "kv_cache: fp9",
        "f:3: kv_cache: 'fp9' is not one of 'fp8', 'bf16', 'off' (did you mean 'fp8'?)",
    ),
    ("kv_cache:", "f:3: kv_cache: null is not one of 'fp8', 'bf16', 'off'"),
    ("kv_cache: 8", "f:3: kv_cache: 8 is not one of 'fp8', 'bf16', 'off'"),
    ("kv_cache: off", "f:3: kv_cache: false is not one of 'fp8', 'bf16', 'off' (put it in quotes)"),
    ("kv_cache: [fp8]", "f:3: kv_cache: a list is not one of 'fp8', 'bf16', 'off'"),
    ("utilization: 1.2", "f:3: utilization: must be at most 1, got 1.2"),
    ("utilization: 0", "f:3: utilization: must be above 0, got 0"),
    ("sizes: [4]", "f:3: sizes: must have at least 2 items, has 1"),
    ("sizes: [4, 6]", "f:3: sizes[1]: must be a multiple of 4, got 6"),
    ("sizes: [4, 8, 4]", "f:3: sizes: item 2 repeats item 0, 4"),
    ("notes: ''", "f:3: notes: must not be empty"),
    ("file: abcde", "f:3: file: must have at most 4 characters, has 5"),
    ("file: a/b", "f:3: file: 'a/b' does not match ^[a-z]+$"),
    ("name: a/b", "f:3: name: 'a/b' is not valid here (lower-case letters only)"),
    (
        f"name: {'A' * 90}",
        f"f:3: name: '{'A' * 55}...' is not valid here (lower-case letters only)",
    ),
    ("label: latest", "f:3: label: 'latest' is not allowed here (pin a version)"),
    (
        "deployments: [{prefill: 8}]",
        (
            "f:3: deployments[0].prefill: expected a string, got 8 (an integer)"
            " (a layout such as TEP8)"
        ),
    ),
    # Choices.
    (
        "max_num_seqs: atuo",
        (
            "f:3: max_num_seqs: expected an integer or 'auto', got 'atuo' (a string)"
            " (did you mean 'auto'?)"
        ),
    ),
    ("max_num_seqs: 0", "f:3: max_num_seqs: must be at least 1, got 0"),
    ("max_num_seqs: [8]", "f:3: max_num_seqs: expected an integer or 'auto', got a list"),
    ("sweep: [64, x]", "f:3: sweep[1]: expected an integer, got 'x' (a string)"),
    ("sweep: []", "f:3: sweep: must not be empty"),
    ("sweep: 64,128", "f:3: sweep: '64,128' is not valid here (such as 64x128)"),
    ("sweep: 0", "f:3: sweep: must be at least 1, got 0"),
    (
        "sweep: {a: 1}",
        "f:3: sweep: expected a list, a string or an integer, got a mapping (such as 64x128)",
    ),
    (
        "engine: {type: vllm, max_num_seq: 1}",
        "f:3: engine.max_num_seq: unknown key 'max_num_seq' (did you mean 'max_num_seqs'?)",
    ),
    (
        "engine: {type: sglang, mem_fractoin: 1}",
        "f:3: engine.mem_fractoin: unknown key 'mem_fractoin' (did you mean 'mem_fraction'?)",
    ),
    (
        "engine: {type: sglang, max_num_seqs: 1}",
        (
            "f:3: engine.max_num_seqs: unknown key 'max_num_seqs'"
            " (it does not go together with the other keys here)"
        ),
    ),
    (
        "engine: {type: sglang, mem_fraction: x}",
        "f:3: engine.mem_fraction: expected a number, got 'x' (a string)",
    ),
    (
        "engine: {type: vlm, max_num_seqs: 1}",
        (
            "f:3: engine.type: expected 'vllm' or 'sglang', got 'vlm' (a string)"
            " (did you mean 'vllm'?)"
        ),
    ),
    (
        "pool: {role: decode, gpu_per_worker: 4}",
        "f:3: pool.gpu_per_worker: unknown key 'gpu_per_worker' (did you mean 'gpus_per_worker'?)",
    ),
    ("engine: {}", "f:3: engine: 'type' is required"),
    ("engine: x", "f:3: engine: 'x' is not valid here (the name of an engine profile)"),
    (
        "benchmark: {type: manual, rate: 1}",
        "f:3: benchmark.rate: unknown key 'rate' (manual does not use this)",
    ),
    (
        "benchmark: {type: manual, note: 1}",
        "f:3: benchmark.note: unknown key 'note' (did you mean 'notes'?)",
    ),
    (
        "benchmark: {type: sweep, rates: 1}",
        "f:3: benchmark.rates: unknown key 'rates' (did you mean 'rate'?)",
    ),
]


def test_a_valid_document_has_no_problems() -> None:
    document = parse_document(VALID, "f")
    assert problems(document, "test") == []
    validate(document, "test")


@pytest.mark.parametrize(("field", "line"), FIELDS, ids=[field[:40] for field, _ in FIELDS])
def test_a_bad_field(field: str, line: str) -> None:
    assert lines(f"isl: 8192\nosl: 1024\n{field}\n") == [line]


def test_the_root_itself_may_be_wrong() -> None:
    assert lines("# nothing\n- 1\n") == ["f:2: expected a mapping, got a list"]
    assert lines("x-a: 1\n") == ["f:1: 'isl' is required", "f:1: 'osl' is required"]


def test_all_problems_are_told_by_line() -> None:
    text = "osl: x\nisl: 0\nkv_cache: fp9\ndeployments:\n- prefill: TEP8\n  decode: TEP8\n- {}\n"
    text += "ils: 1\n"
    assert lines(text) == [
        "f:1: osl: expected an integer, got 'x' (a string)",
        "f:2: isl: must be at least 1, got 0",
        "f:3: kv_cache: 'fp9' is not one of 'fp8', 'bf16', 'off' (did you mean 'fp8'?)",
        "f:6: deployments[0].decode: unknown key 'decode' (allowed: prefill)",
        "f:7: deployments[1]: 'prefill' is required",
        "f:8: ils: unknown key 'ils' (did you mean 'isl'?)",
    ]


def test_what_an_alias_brings_in_is_told_where_it_is_written() -> None:
    text = "isl: 1\nosl: 1\nx-base: &base\n  prefil: T\ndeployments:\n- <<: *base\n  prefill: T\n"
    expected = "f:4: deployments[0].prefil: unknown key 'prefil' (did you mean 'prefill'?)"
    assert lines(text) == [expected]


def test_validate_raises_all_problems() -> None:
    with pytest.raises(InvalidInput) as caught:
        validate(parse_document("isl: x\nosl: x\n", "f"), "test")
    assert str(caught.value).splitlines() == [
        "f:1: isl: expected an integer, got 'x' (a string)",
        "f:2: osl: expected an integer, got 'x' (a string)",
    ]


KEYS = st.sampled_from([*SCHEMA["properties"], "type", "prefill", "x-a", "A", "zzz"])
# What the reader takes: no NUL and no surrogate.
READABLE = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(READABLE, max_size=5)
WORDS = st.sampled_from(["vllm", "sglang", "manual", "sweep", "auto", "TEP8", "64x128"])
TREES = st.recursive(
    LEAVES | WORDS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=6),
    max_leaves=20,
)


@given(TREES)
def test_whatever_is_wrong_is_told_in_single_lines_with_a_place(data: Any) -> None:
    document = parse_document(yaml.safe_dump(data, allow_unicode=True), "f")
    found = problems(document, "test")
    assert bool(found) != validation._validator("test").is_valid(document.data)
    for problem in found:
        assert "\n" not in str(problem)
        assert 1 <= problem.line <= document.text.count("\n") + 1


def test_a_schema_is_read_once() -> None:
    assert schema("test") is schema("test")
    assert schema("test") == SCHEMA


def test_jsonschema_is_imported_only_when_a_document_is_validated() -> None:
    code = "import sys, generator.validation; sys.exit('jsonschema' in sys.modules)"
    repository = Path(validation.__file__).parent.parent
    subprocess.run([sys.executable, "-c", code], check=True, cwd=repository)
