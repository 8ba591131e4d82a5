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
        ("--layers", f"1{'0' * 400}"),  # larger than any float
        (*ENGINE, "--batch", f"1{'0' * 400}"),
        (*ENGINE, "--max-num-batched-tokens", f"1{'0' * 400}"),
        ("--parameters", "1e308", "--batch", "10000", "--json"),  # no time, but Infinity
        # A step of no time at all, whose rate would be a division by zero.
        (
            *("--weights-gb", "1e-320", "--kv-element-bytes", "1e-320"),
            *("--bandwidth-gb-per-s", "1e308", "--compute-tflops", "1e300"),
            *("--parameters", "1e-300"),
        ),
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


def test_a_dense_model_by_hand(shared: Path) -> None:
    """Of 70.55 B parameters in bfloat16 all but the embedding is read, and KV of 8 x 4096."""
    model = shared / "models/meta-llama--Meta-Llama-3.1-70B"
    engine = ("--model", str(model), "--gpu", "b200", "--layout", "TP1")
    document = json.loads(run("roofline", *engine, "--json").stdout)
    Draft202012Validator(schema("roofline")).validate(document)
    assert document["kv_cache_bytes_per_rank"] == 8 * 4096 * 327680
    weights, embedding = document["weights_bytes_per_rank"], 128256 * 8192 * 2
    assert weights == 2 * 70_553_706_496 + 80 * 16  # four scales of attention in each layer
    assert document["memory_ms"] == pytest.approx(
        (weights - embedding + 8 * 4096 * 327680) / 8e12 * 1000, rel=1e-6
    )
    left = document["budget_bytes_per_rank"] - document["required_bytes_per_rank"]
    assert document["headroom_bytes_per_rank"] == left


def test_sequences_that_the_engine_refuses_have_no_step() -> None:
    result = run("roofline", *ENGINE, "--max-model-len", "9216", "--context", "9217")
    assert result.exit_code == 3
    assert "sequences of 9217 tokens are longer than max-model-len 9216" in result.stderr


def test_what_the_engine_would_not_do_is_said() -> None:
    many = run("roofline", *ENGINE, *FLAGS, "--batch", "81").stdout
    assert "81 sequences do not run at once: max-num-seqs lets 80" in many
    assert "do not run at once" not in run("roofline", *ENGINE, *FLAGS, "--batch", "80").stdout
    newer = run("roofline", *ENGINE, "--engine-version", "0.26.7").stdout
    assert "the newest whose source was read that is not above 0.26.7" in " ".join(newer.split())


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
