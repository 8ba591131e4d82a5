from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from generator.architecture import ModelArchitecture
from generator.errors import InvalidInput
from generator.facts import KernelBlocks
from generator.hf_config import load_architecture
from generator.kv_cache.block_size import RecurrentCacheMode
from generator.kv_cache.kv_cache import (
    KvCacheLayout,
    KvCacheOptions,
    plan_kv_cache,
    whole_model_concurrency,
)
from generator.units import GIB, MIB
from tests.recorded_models import DATA, QWEN38, QWEN38_OPTIONS, RECORDS, architecture, qwen38

_EDGES = json.loads((DATA / "vllm_kv_cache_edge_cases.json").read_text("utf-8"))
_ROWS = [dict(zip(RECORDS["columns"], row, strict=True)) for row in RECORDS["rows"]]

# The blocks FlashInfer's kernels run on, without and with those of TensorRT-LLM.
_PAGES = (
    KernelBlocks(sizes_tokens=(16, 32, 64)),
    KernelBlocks(sizes_tokens=(16, 32, 64, 128, 256, 512, 1024)),
)


def _blocks_by_group(layout: KvCacheLayout, tokens: int) -> list[int]:
    """Blocks of each group, recurrent groups first as vLLM lists them."""
    recurrent = layout.recurrent_blocks(tokens) // layout.recurrent_groups
    attention = layout.attention_blocks(tokens) // layout.attention_groups
    return [recurrent] * layout.recurrent_groups + [attention] * layout.attention_groups


def _name(row: dict[str, Any]) -> str:
    prefix = "prefix" if row["prefix_caching"] else "noprefix"
    speculation = f"S{row['num_speculative_tokens']}"
    return "-".join(
        (row["model"], f"TP{row['tensor']}", row["kv_cache_dtype"], speculation, prefix)
    )


def _from_config(name: str) -> ModelArchitecture:
    return load_architecture(min((DATA / "hf_configs").glob(f"*--{name}*")))


@pytest.mark.parametrize("read", [architecture, _from_config], ids=["dimensions", "config"])
@pytest.mark.parametrize("row", _ROWS, ids=_name)
def test_vllm_computed_this_record(
    row: dict[str, Any], read: Callable[[str], ModelArchitecture]
) -> None:
    layout = plan_kv_cache(
        read(row["model"]),
        KvCacheOptions(
            tensor=row["tensor"],
            kv_cache_dtype=row["kv_cache_dtype"],
            num_speculative_tokens=row["num_speculative_tokens"],
            prefix_caching=row["prefix_caching"],
            mamba_ssm_cache_dtype=row["mamba_ssm_cache_dtype"],
        ),
    )
    assert layout.block_tokens == row["block_tokens"]
    assert layout.mode == row["mode"]
    assert layout.state.bytes_per_rank == row["state_bytes"]
    assert layout.page_bytes_per_rank == row["page_bytes"]
    assert layout.attention_bytes_per_token_per_layer == row["bytes_per_token"]
    assert layout.attention_layers == row["attention_layers"]
    assert [len(group.positions) for group in layout.groups] == row["group_layers"]
    assert sum(row["group_layers"]) == row["attention_layers"] + row["recurrent_layers"]
    assert layout.layers_per_block == row["layers_per_block"]
    assert [pages.within(layout.block_tokens) for pages in _PAGES] == row["kernel_blocks"]

    budget = RECORDS["kv_cache_bytes"]
    assert layout.num_blocks(budget) == row["num_blocks"]
    for tokens, (blocks, concurrency, logged) in zip(
        RECORDS["request_tokens"], row["requests"], strict=True
    ):
        assert _blocks_by_group(layout, tokens) == blocks
        assert float(layout.concurrency(budget, tokens)) == concurrency
        assert layout.logged_tokens(row["num_blocks"], tokens) == logged


@pytest.mark.parametrize("speculative", [0, 3])
@pytest.mark.parametrize("name", RECORDS["models"])
def test_a_config_has_the_recorded_dimensions(name: str, speculative: int) -> None:
    loaded = _from_config(name)
    recorded = architecture(name)
    options = KvCacheOptions(
        tensor=2, kv_cache_dtype="bfloat16", num_speculative_tokens=speculative
    )
    if not loaded.draft_layers:
        recorded = replace(recorded, draft_layers=())
    assert plan_kv_cache(loaded, options) == plan_kv_cache(recorded, options)


_FLAG_NAMES = {
    "decode_context_parallel_size": "decode_context",
    "disable_hybrid_kv_cache_manager": "is_hybrid_manager_disabled",
}
# Flags that vLLM accepts and that do not move these figures.
_INERT_FLAGS = {"prefix_match_unit"}


def _edge_options(case: dict[str, Any]) -> KvCacheOptions:
    flags: dict[str, Any] = {
        _FLAG_NAMES.get(flag, flag): value
        for flag, value in case["flags"].items()
        if flag not in _INERT_FLAGS
    }
    if "mamba_cache_mode" in flags:
        flags["mamba_cache_mode"] = RecurrentCacheMode(flags["mamba_cache_mode"])
    return replace(
        QWEN38_OPTIONS,
        tensor=case["tensor"],
        num_speculative_tokens=case["num_speculative_tokens"],
        prefix_caching=case["prefix_caching"],
        **flags,
    )


@pytest.mark.parametrize(
    "case",
    [case for case in _EDGES["edge_cases"] if "error" not in case],
    ids=lambda case: case["label"],
)
def test_vllm_computed_this_edge_case(case: dict[str, Any]) -> None:
    layout = plan_kv_cache(QWEN38, _edge_options(case))
    budget, tokens = _EDGES["kv_cache_bytes"], _EDGES["request_tokens"]
    assert layout.block_tokens == case["block_tokens"]
    assert layout.mode == case["mode"]
    assert layout.state.bytes_per_rank == case["state_bytes"]
    assert layout.page_bytes_per_rank == case["page_bytes"]
    assert layout.layers_per_block == case["layers_per_block"]
    assert layout.num_blocks(budget) == case["num_blocks"]
    assert [pages.within(layout.block_tokens) for pages in _PAGES] == case["kernel_blocks"]
    assert _blocks_by_group(layout, tokens) == case["blocks_per_group"]
    assert layout.request_bytes_per_rank(tokens) == case["request_bytes"]
    assert float(layout.concurrency(budget, tokens)) == case["concurrency"]
    assert layout.logged_tokens(case["num_blocks"], tokens) == case["logged_tokens"]


_REFUSALS = {
    "block_size=24": "block-size 24 is not a multiple of 16 (use 32)",
    "disable hma": "model Qwen3.8-2.4T needs the hybrid KV cache manager, which is off",
    "tp32": "16 key heads are not divisible by TP 32 (choose a TP that divides 16)",
    "TP4 dcp2": "DCP 2 needs a TP above the 4 KV heads, got TP 4",
}


@pytest.mark.parametrize(
    "case",
    [case for case in _EDGES["edge_cases"] if "error" in case],
    ids=lambda case: case["label"],
)
def test_vllm_refused_this_edge_case(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        plan_kv_cache(QWEN38, _edge_options(case))
    assert _REFUSALS[case["label"]] in str(refusal.value)


@pytest.mark.parametrize(
    "case",
    _EDGES["pipeline_parallel"],
    ids=lambda case: f"PP{case['pipeline']}-S{case['num_speculative_tokens']}",
)
def test_vllm_splits_pipeline_stages_so(case: dict[str, Any]) -> None:
    options = {
        "tensor": case["tensor"],
        "mtp": case["num_speculative_tokens"],
        "pipeline": case["pipeline"],
    }
    if "error" in case:
        with pytest.raises(InvalidInput, match="PP 2 with multi-token prediction"):
            qwen38(**options)
        return
    layout = qwen38(**options)
    budget = _EDGES["kv_cache_bytes"]
    assert layout.block_tokens == case["block_tokens"]
    assert layout.page_bytes_per_rank == case["page_bytes"]
    for stage, expected in enumerate(case["stages"]):
        layers = [group.layers_by_stage[stage] for group in layout.groups]
        assert layers == expected["group_layers"]
        assert sum(layers) == expected["layers"]
        assert layout.layers_per_block_by_stage[stage] == expected["layers_per_block"]
    assert layout.num_blocks(budget) == case["num_blocks"]
    assert layout.num_blocks_of_stages((budget, budget)) == case["num_blocks"]
    assert case["num_blocks"] * case["page_bytes"] == case["tensor_bytes"]
    assert layout.concurrency(budget, case["request_tokens"]) == case["concurrency"]


def test_the_tightest_pipeline_stage_decides() -> None:
    layout = qwen38(tensor=4, pipeline=2)
    block_bytes = layout.page_bytes_per_rank * 12
    assert layout.num_blocks_of_stages((10 * block_bytes, 7 * block_bytes)) == 7


@pytest.mark.parametrize(
    ("tensor", "mtp", "sizes", "blocks", "mib"),
    [
        (4, 0, (2112, 1_081_344, 23), 8, 189.75),
        (4, 3, (2176, 1_114_112, 24), 17, 433.5),
        (8, 0, (1056, 540_672, 23), 12, 142.3125),
        (8, 3, (1088, 557_056, 24), 21, 267.75),
    ],
)
def test_qwen38_with_fp8_keys_and_bfloat16_states(
    tensor: int, mtp: int, sizes: tuple[int, int, int], blocks: int, mib: float
) -> None:
    layout = qwen38(tensor=tensor, mtp=mtp)
    assert (layout.block_tokens, layout.page_bytes_per_rank, layout.layers_per_block) == sizes
    assert layout.blocks_per_request(9216) == blocks
    assert layout.request_bytes_per_rank(9216) / MIB == mib
    assert layout.bytes_for_requests(10, 9216) / MIB == 10 * mib


# Row of the GB300 article: TP, speculative tokens, KV GiB per GPU, requests of 9216 tokens as vLLM
# counts them and by whole-model division.
_ARTICLE = [
    (1, 8, 3, "83.00", 317.43, 112.0),
    (2, 8, 3, "82.63", 316.0, 111.5),
    (3, 8, 3, "81.60", 312.05, 110.1),
    (4, 8, 3, "72.97", 279.05, 98.4),
    (5, 4, 3, "133.74", 315.88, 180.4),
    (6, 4, 3, "133.77", 315.94, 180.5),
    (7, 4, 0, "133.96", 722.88, 180.7),
    (8, 4, 0, "132.85", 716.88, 179.2),
]


@pytest.mark.parametrize(
    ("tensor", "mtp", "kv_gib", "requests", "whole_model"),
    [row[1:] for row in _ARTICLE],
    ids=[f"run-{row[0]}" for row in _ARTICLE],
)
def test_the_article_has_these_requests(
    tensor: int, mtp: int, kv_gib: str, requests: float, whole_model: float
) -> None:
    budget = int(Fraction(kv_gib) * GIB)
    layout = qwen38(tensor=tensor, mtp=mtp)
    assert float(layout.concurrency(budget, 9216)) == pytest.approx(requests, abs=0.005)
    options = replace(QWEN38_OPTIONS, tensor=tensor, num_speculative_tokens=mtp)
    division = whole_model_concurrency(QWEN38, options, budget, 9216)
    assert float(division) == pytest.approx(whole_model, abs=0.05)


def test_whole_model_division_divides_by_759_mib() -> None:
    forced = replace(QWEN38_OPTIONS, tensor=8, num_speculative_tokens=3, block_size=2176)
    assert whole_model_concurrency(QWEN38, forced, 759 * MIB, 9216) == 1


@pytest.mark.parametrize(
    ("tokens", "block_size", "requests"),
    [(9216, None, 317.43), (9216, 2176, 196.06), (10240, None, 303.0)],
)
def test_what_a_forced_block_and_a_longer_request_cost(
    tokens: int, block_size: int | None, requests: float
) -> None:
    layout = qwen38(tensor=8, mtp=3, block_size=block_size)
    assert float(layout.concurrency(83 * GIB, tokens)) == pytest.approx(requests, abs=0.005)


def test_a_tp4dp4_endpoint_serves_2560_requests_without_mtp() -> None:
    layout = qwen38(tensor=4)
    budget = int(Fraction("132.85") * GIB)
    assert layout.num_blocks(budget) == 5735
    assert 4 * layout.concurrency(budget, 9216) == 2867.5
