"""The B200 article's warm-decode reader by its figures, and the same of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from generator.bounds.speculation import tokens_per_step
from generator.hf_config import load_architecture
from generator.parallel import parse_layout
from generator.roofline.warm_decode import WarmDecode
from generator.validation import schema
from generator.weights import decoder_pass, draft_pass, parameter_counts, weight_footprint
from tests.small_specs import run

MODEL = Path(__file__).parent.parent / "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
ENGINE = ("--model", str(MODEL), "--gpu", "gb300", "--layout", "TEP8")
FLAGS = ("--kv-cache-dtype", "fp8", "--mamba-ssm-cache-dtype", "bfloat16", "--max-num-seqs", "80")


@pytest.mark.parametrize(
    ("figure", "published", "digits"),
    [
        ("cache_gb", 10.73741824, 8),
        ("required_gb", 168.73741824, 8),
        ("headroom_gb", 11.26258176, 8),
        ("memory_ms", 30.148, 3),
        ("compute_ms", 1.507, 3),
        ("step_ms", 30.148, 3),
        ("tokens_per_s", 265.357, 3),
        ("kv_bytes_per_token", 327680, 0),
    ],
)
def test_the_articles_figures(figure: str, published: float, digits: int) -> None:
    assert round(getattr(WarmDecode(), figure), digits) == published


def test_the_ceiling_is_withheld_where_memory_does_not_fit() -> None:
    reader = WarmDecode(batch=17)
    assert reader.headroom_gb < 0
    assert reader.tokens_per_s is None
    assert "ceiling   withheld" in run("roofline", "--batch", "17").stdout


def test_every_input_is_an_option() -> None:
    given = {
        "--batch": "4",
        "--context": "1024",
        "--weights-gb": "70",
        "--reserve-gb": "0",
        "--budget-gb": "100",
        "--kv-element-bytes": "1",
        "--bandwidth-gb-per-s": "8000",
        "--compute-tflops": "2500",
        "--parameters": "35e9",
        "--layers": "40",
        "--query-heads": "32",
        "--kv-heads": "4",
        "--head-dim": "64",
    }
    options = [part for pair in given.items() for part in pair]
    document = json.loads(run("roofline", *options, "--json").stdout)
    Draft202012Validator(schema("roofline")).validate(document)
    assert list(document["inputs"].values()) == [
        4,
        1024,
        70,
        0,
        100,
        1,
        8000,
        2500,
        35e9,
        40,
        32,
        4,
        64,
    ]
    assert document["memory_ms"] == pytest.approx((70 + 4 * 1025 * 20480 / 1e9) / 8)


@pytest.mark.parametrize(
    "options",
    [
        ("--batch", "0"),
        ("--bandwidth-gb-per-s", "nan"),
        ("--compute-tflops", "-1"),
        ("--weights-gb", "inf"),
        ("--gpu", "gb300"),
        ("--mtp", "3"),
        ("--model", str(MODEL)),
        (*ENGINE, "--weights-gb", "3"),
    ],
)
def test_bad_input(options: tuple[str, ...]) -> None:
    assert run("roofline", *options).exit_code == 2


# --- a model ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["TP1", "TP8", "TEP8", "TP4DP4+EP", "TP2DP8+EP", "DEP16"])
@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_a_pass_reads_all_weights_but_the_embedding(layout: str, sequence_parallel: bool) -> None:
    architecture, sizes = load_architecture(MODEL), parse_layout(layout)
    parts = decoder_pass(architecture, sizes, sequence_parallel_moe=sequence_parallel)
    footprint = weight_footprint(
        architecture, sizes, language_model_only=True, sequence_parallel_moe=sequence_parallel
    )
    of = {item.component: item.bytes_per_rank for item in footprint.items}
    read = sum(each.bytes_per_rank for each in (parts.dense, parts.routed, parts.head))
    final_norm = architecture.hidden_size * 2
    assert read + of["embeddings"] + final_norm == footprint.total_bytes_per_rank
    assert parts.routed.bytes_per_rank == of["routed experts"]


def test_a_pass_multiplies_the_active_parameters() -> None:
    architecture = load_architecture(MODEL)
    parts = decoder_pass(architecture, parse_layout("TP1"))
    routed = parts.routed.narrow_elements * 10 // 512
    multiplied = parts.dense.wide_elements + routed + parts.head.wide_elements
    looked_up = 248320 * 8192
    active = parameter_counts(architecture).active
    assert active - looked_up == pytest.approx(multiplied, rel=1e-4)
    assert (
        draft_pass(architecture, parse_layout("TP1")).routed.narrow_elements
        == 512 * 3 * 2048 * 8192
    )


def test_tokens_of_a_step() -> None:
    assert [tokens_per_step(3, rate) for rate in (0.0, 0.5, 1.0)] == [1, 1.875, 4]
    assert tokens_per_step(0, 0.9) == 1


def test_a_model_on_one_page() -> None:
    result = run("roofline", *ENGINE, "--mtp", "3", "--batch", "64", *FLAGS)
    assert result.exit_code == 0, result.stderr
    assert "collectives" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_a_load_beyond_the_kv_cache_has_no_ceiling() -> None:
    result = run("roofline", *ENGINE, "--batch", "5000", "--context", "9216", *FLAGS, "--json")
    document = json.loads(result.stdout)
    assert document["tokens_per_s"] is None
    assert document["headroom_bytes_per_rank"] < 0


def test_a_document_keeps_its_schema() -> None:
    document = json.loads(run("roofline", *ENGINE, "--mtp", "1", *FLAGS, "--json").stdout)
    Draft202012Validator(schema("roofline")).validate(document)


def test_a_gpu_without_the_path_is_named() -> None:
    result = run("roofline", "--model", str(MODEL), "--gpu", "h200", "--layout", "TEP8", *FLAGS)
    assert result.exit_code == 3
    assert "h200 has no nvfp4 path for the nvfp4 weights" in result.stderr
