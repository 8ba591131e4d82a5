"""What a choice costs in requests: figures of the facts, layouts, refusals and the table."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generator.capacity.capacity import EngineCapacity, evaluate_engine
from generator.capacity.comparison import ComparedVariant, compare_variants, requests_per_gpu
from generator.capacity.engine_memory import Basis
from generator.cli import main
from generator.engine.options import options_from_flags
from generator.engine.plan import plan_engine
from generator.estimation import estimate_spec
from generator.facts import engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.parallel import WorkerPool, parse_layout
from generator.units import GIB, parse_bytes
from generator.validation import schema
from generator.weights import weight_footprint

REPOSITORY = Path(__file__).resolve().parent.parent
QWEN38 = REPOSITORY / "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
CONFIGS = REPOSITORY / "tests/data/hf_configs"
LLAMA = CONFIGS / "meta-llama--Meta-Llama-3.1-70B"
NEMOTRON = CONFIGS / "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
SPEC = REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
TOKENS = 9216


@cache
def compared(
    layout: str,
    mtp: int = 0,
    kv_cache: str | None = None,
    folder: Path = QWEN38,
    batched_tokens: int = 96,
    **flags: Any,
) -> tuple[ComparedVariant, ...]:
    """The variants of an engine with the article's flags."""
    accelerator = gpu("gb300")
    defaults = engine_defaults("vllm", "0.26.0", accelerator)
    architecture = load_architecture(folder)
    every = {
        "kv_cache_dtype": "fp8",
        "mamba_ssm_cache_dtype": "bfloat16",
        "max_model_len": TOKENS,
        "max_num_seqs": 20,
        "max_num_batched_tokens": batched_tokens,
        "speculative_config.num_speculative_tokens": mtp,
        **({"kv_cache_memory_bytes": parse_bytes(kv_cache)} if kv_cache else {}),
        **flags,
    }
    pool = WorkerPool(workers=1, layout=parse_layout(layout))
    options = replace(options_from_flags(every), layout=pool.layout)
    engine = plan_engine(layout, "agg", pool, options, architecture, defaults)
    return compare_variants(evaluate_engine(engine, architecture, accelerator, defaults, None))


def variant(variants: tuple[ComparedVariant, ...], name: str) -> ComparedVariant:
    (found,) = (each for each in variants if each.name == name)
    return found


def figures(variants: tuple[ComparedVariant, ...], name: str) -> EngineCapacity:
    capacity = variant(variants, name).capacity
    assert capacity is not None, variant(variants, name).refusal
    return capacity


# --- figures of the facts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "block", "blocks", "per_rank"),
    [
        ("as given", 1088, 21, 317.43),
        ("block 2176, as TP4", 2176, 17, 196.06),
        ("TP4DP2+EP", 2176, 17, 196.06),
        ("MTP 0", 1056, 12, 597.17),
    ],
)
def test_run_1_at_83_gib(name: str, block: int, blocks: int, per_rank: float) -> None:
    """Blocks and pages of the facts: TP8 S0 7166 // 12, TP4 S3 3333 // 17."""
    capacity = figures(compared("TEP8", 3, "83.00 GiB"), name)
    assert capacity.engine.kv_cache.block_tokens == block
    assert capacity.at_workload.blocks_per_request == blocks
    assert float(capacity.at_workload.per_rank) == pytest.approx(per_rank, abs=0.005)


def test_forced_block_size_taken_back() -> None:
    variants = compared("TEP8", 3, "83.00 GiB", block_size=2176)
    assert float(figures(variants, "as given").at_workload.per_rank) == pytest.approx(
        196.06, abs=0.005
    )
    assert float(figures(variants, "own block size").at_workload.per_rank) == pytest.approx(
        317.43, abs=0.005
    )


def test_run_8_at_132_85_gib() -> None:
    variants = compared("TP4DP4+EP", 0, "132.85 GiB")
    given_engine = figures(variants, "as given")
    assert float(given_engine.at_workload.per_rank) == pytest.approx(716.88, abs=0.005)
    assert given_engine.at_workload.per_endpoint == 2867.5
    assert figures(variants, "MTP 3").at_workload.blocks_per_request == 17
    assert figures(variants, "TP8DP2+EP").at_workload.blocks_per_request == 12


def test_change_is_of_the_requests_on_one_gpu() -> None:
    variants = compared("TEP8", 3, "83.00 GiB")
    given_engine = figures(variants, "as given")
    for each in variants:
        if each.capacity is not None:
            expected = requests_per_gpu(each.capacity) / requests_per_gpu(given_engine) - 1
            assert each.change == expected, each.name
    assert variant(variants, "as given").change == 0
    assert float(variant(variants, "block 2176, as TP4").change or 0) == pytest.approx(
        196.06 / 317.43 - 1, abs=0.0001
    )


@pytest.mark.parametrize("tokens", [0, 1, 2, 3])
def test_every_mtp_but_the_given_one_is_a_row(tokens: int) -> None:
    names = [each.name for each in compared("TEP8", tokens, "83.00 GiB")]
    assert [name for name in names if name.startswith("MTP")] == [
        f"MTP {other}" for other in range(4) if other != tokens
    ]


@pytest.mark.parametrize(
    ("ssm", "name", "blocks"),
    [("bfloat16", "float32 ssm", 2080), ("float32", "bfloat16 ssm", 1056)],
)
def test_states_in_the_other_width(ssm: str, name: str, blocks: int) -> None:
    """TP8 without MTP: 15,360 + 524,288 bytes of state, or 15,360 + 1,048,576, 512 a token."""
    variants = compared("TEP8", 0, "83.00 GiB", mamba_ssm_cache_dtype=ssm)
    assert figures(variants, name).engine.kv_cache.block_tokens == blocks


def test_prefix_caching_the_other_way() -> None:
    without = compared("TEP8", 3, "83.00 GiB", batched_tokens=8192)
    on = figures(without, "prefix caching on")
    assert on.at_workload.blocks_per_request == 21 + 3  # one more state in each of three groups
    with_it = compared("TEP8", 3, "83.00 GiB", batched_tokens=8192, enable_prefix_caching=True)
    off = figures(with_it, "prefix caching off")
    assert off.at_workload.blocks_per_request == 21


# --- layouts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "rows"),
    [
        ("TEP8", ["TEP16, 16 GPUs", "TP4DP2+EP"]),
        ("TP4DP4+EP", ["TP8DP2+EP", "TP2DP8+EP"]),
        ("TP8DP2+EP", ["TEP16", "TP4DP4+EP"]),
        ("TP4DP3+EP", ["TP8DP3+EP, 24 GPUs", "TP2DP6+EP"]),
        ("TP1DP8+EP", ["TP2DP4+EP"]),
    ],
)
def test_tp_doubled_and_halved_on_the_same_gpus_where_dp_gives_way(
    layout: str, rows: list[str]
) -> None:
    variants = compared(layout, 0, "83.00 GiB")
    changed = [each for each in variants if each.options.layout != variants[0].options.layout]
    assert [each.name for each in changed] == rows
    for each in changed:
        if "GPUs" not in each.name:
            assert each.options.layout.ranks == variants[0].options.layout.ranks


def test_no_larger_block_where_every_tp_has_the_same() -> None:
    names = [each.name for each in compared("TP8", 0, "80 GiB", LLAMA)]
    assert names == ["as given", "MTP 1", "prefix caching off", "TP16, 16 GPUs", "TP4DP2"]


# --- memory -----------------------------------------------------------------------------------


def test_a_given_kv_cache_is_kept() -> None:
    for each in compared("TEP8", 3, "83.00 GiB"):
        if each.capacity is not None:
            assert each.capacity.memory.kv_cache.bytes_per_rank == 83 * GIB


def test_computed_kv_cache_follows_the_weights() -> None:
    variants = compared("TEP8", 3)
    given_engine = figures(variants, "as given")

    def weights(layout: str, mtp: int) -> int:
        return weight_footprint(
            load_architecture(QWEN38), parse_layout(layout), speculative_tokens=mtp
        ).total_bytes_per_rank

    for name, layout, mtp in (
        ("MTP 0", "TEP8", 0),
        ("MTP 1", "TEP8", 1),
        ("TEP16, 16 GPUs", "TEP16", 3),
    ):
        gained = weights("TEP8", 3) - weights(layout, mtp)
        kv_cache = figures(variants, name).memory.kv_cache.bytes_per_rank
        assert kv_cache - given_engine.memory.kv_cache.bytes_per_rank == gained, name


def test_measured_account_keeps_its_other_terms() -> None:
    """Run 1 was measured; its variants differ from it by computed weights alone."""
    capacities = estimate_spec(SPEC).capacities
    variants = compare_variants(capacities["probe-tep8-mtp-cc4"])
    measured = figures(variants, "as given").memory
    assert measured.terms.weights.basis is Basis.MEASURED
    same = figures(variants, "float32 ssm").memory
    assert same.terms == measured.terms
    changed = figures(variants, "MTP 0").memory
    assert changed.terms.weights.basis is Basis.COMPUTED
    assert replace(changed.terms, weights=measured.terms.weights) == measured.terms


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "name", "reason"),
    [
        (
            {"layout": "TEP8", "kv_cache": "83.00 GiB", "batched_tokens": 64},
            "prefix caching on",
            (
                "prefix caching aligns states to blocks of 1056 tokens, more than"
                " max-num-batched-tokens 64"
            ),
        ),
        (
            {"layout": "TEP16", "kv_cache": "83.00 GiB"},
            "TEP32, 32 GPUs",
            "16 key heads are not divisible by TP 32",
        ),
        (
            {"layout": "TP8", "kv_cache": "80 GiB", "folder": LLAMA},
            "MTP 1",
            "model meta-llama--Meta-Llama-3.1-70B has no MTP layers",
        ),
        (
            {"layout": "TEP8", "max_cudagraph_capture_size": 1},
            "MTP 1",
            "no CUDA graph of at most 1 tokens holds one decode step of 2 tokens",
        ),
        (
            {"layout": "TEP8", "kv_cache": "2.00 GiB", "max_model_len": 165_000},
            "MTP 3",
            "one request of max-model-len 165000 needs 164 KV-cache blocks, but the GPU has 160",
        ),
    ],
    ids=["align", "heads", "no MTP layers", "graphs", "one request"],
)
def test_a_variant_that_is_refused_says_why(
    arguments: dict[str, Any], name: str, reason: str
) -> None:
    refused = variant(compared(**arguments), name)
    assert refused.capacity is None
    assert refused.refusal == reason


def test_weights_that_overflow_are_a_reason_too() -> None:
    """TP4DP2 holds 18 GiB more weights on a rank than TP8: its shared experts are whole."""
    refused = variant(compared("TEP8", 3, gpu_memory_utilization=0.7), "TP4DP2+EP")
    assert refused.capacity is None
    assert "276.62 GiB x 0.7 = 193.63 GiB per GPU" in refused.refusal


@given(
    layout=st.sampled_from(["TEP8", "TP4DP4+EP", "TP2DP4+EP", "TP8DP2"]),
    mtp=st.integers(0, 3),
    gib=st.integers(20, 200),
)
def test_a_row_has_figures_or_a_reason(layout: str, mtp: int, gib: int) -> None:
    for each in compared(layout, mtp, f"{gib} GiB"):
        assert (each.capacity is None) is (each.change is None) is bool(each.refusal)
        if each.capacity is not None:
            assert each.change is not None
            assert each.change > -1


# --- the command ------------------------------------------------------------------------------


def compare_command(*arguments: str) -> Result:
    flags = (
        "--gpu gb300 --layout TEP8 --mtp 3 --kv-cache-dtype fp8 --mamba-ssm-cache-dtype bfloat16"
        " --max-model-len 9216 --max-num-seqs 20 --max-num-batched-tokens 96"
    )
    runner = CliRunner(catch_exceptions=False)
    return runner.invoke(
        main, ["capacity", "--model", str(QWEN38), *flags.split(), "--compare", *arguments]
    )


TABLE_OF_RUN_1 = """\
kept: the KV cache is the one given, whatever the row does to weights.
n: blocks per request. change: of the requests per GPU.

probe TEP8 mtp3 s20, requests of 9216 tokens:

| variant            | block |   n |     KV GiB | per rank | endpoint | per GPU | change |
| ------------------ | ----: | --: | ---------: | -------: | -------: | ------: | -----: |
| as given           |  1088 |  21 | 83.00 kept |   317.43 |   317.43 |   39.68 |        |
| MTP 0              |  1056 |  12 | 83.00 kept |   597.17 |   597.17 |   74.65 | +88.1% |
| MTP 1              |  1072 |  15 | 83.00 kept |   451.00 |   451.00 |   56.38 | +42.1% |
| MTP 2              |  1088 |  18 | 83.00 kept |   370.33 |   370.33 |   46.29 | +16.7% |
| prefix caching on  | refused: prefix caching aligns states to blocks of 1088 tokens,   |
|                    | more than max-num-batched-tokens 96                               |
| float32 ssm        |  2112 |  17 | 83.00 kept |   202.00 |   202.00 |   25.25 | -36.4% |
| TEP16, 16 GPUs     |   544 |  29 | 83.00 kept |   459.72 |   459.72 |   28.73 | -27.6% |
| TP4DP2+EP          |  2176 |  17 | 83.00 kept |   196.06 |   392.12 |   49.01 | +23.5% |
| block 2176, as TP4 |  2176 |  17 | 83.00 kept |   196.06 |   196.06 |   24.51 | -38.2% |
"""


def test_table() -> None:
    result = compare_command("--kv-cache-gib", "83.00")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == TABLE_OF_RUN_1


def test_json_has_figures_or_a_reason_for_each_variant() -> None:
    document = json.loads(compare_command("--kv-cache-gib", "83.00", "--json").stdout)
    Draft202012Validator(schema("capacity")).validate(document)
    (engine,) = document["engines"]
    rows = {row["variant"]: row for row in engine["comparison"]}
    assert rows["as given"]["changed_options"] == {}
    assert rows["as given"]["requests_per_rank"] == engine["capacity"]["requests_per_rank"]
    assert rows["TP4DP2+EP"]["changed_options"] == {"layout": "TP4DP2+EP"}
    assert rows["block 2176, as TP4"]["changed_options"] == {"block_size": 2176}
    assert rows["block 2176, as TP4"]["requests_per_rank"] == pytest.approx(196.06, abs=0.005)
    assert rows["block 2176, as TP4"]["is_kv_cache_kept"] is True
    assert "refused" in rows["prefix caching on"]


def test_spec_compares_each_kind_of_engine_within_the_page() -> None:
    runner = CliRunner(catch_exceptions=False)
    result = runner.invoke(main, ["capacity", str(SPEC), "--compare"])
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert result.stdout.count("as given") == result.stdout.count(", requests of 9216 tokens:")
    assert "D TP8 s20" not in result.stdout
    as_json = runner.invoke(main, ["capacity", str(SPEC), "--compare", "--json"])
    document = json.loads(as_json.stdout)
    Draft202012Validator(schema("capacity")).validate(document)
    assert all(engine["comparison"] for engine in document["engines"])
