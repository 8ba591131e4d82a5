"""What public start-up logs of vLLM printed, from nothing but the model and the flags.

A GiB figure with two decimals stands for every value within 0.005 GiB of it. A row passes if at
least one of them gives all the figures of the row at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from generator.architecture import GatedDeltaNet, GroupedQueryAttention, Layer, ModelArchitecture
from generator.kv_cache.kv_cache import (
    KvCacheLayout,
    KvCacheOptions,
    plan_kv_cache,
    tokens_of_uniform_layers,
)
from generator.units import GIB, format_gib

_LOGS = json.loads((Path(__file__).parent / "data" / "startup_logs.json").read_text("utf-8"))
_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
_HALF_DIGIT_GIB = Fraction("0.005")


def _architecture(name: str, draft_layers: int) -> ModelArchitecture:
    figures = _LOGS["architectures"][name]
    attention = Layer(
        mixer=GroupedQueryAttention(
            num_attention_heads=figures["attention_heads"],
            num_key_value_heads=figures["kv_heads"],
            head_dim=figures["head_dim"],
        )
    )
    recurrent = Layer(
        mixer=GatedDeltaNet(
            num_key_heads=figures["gdn_key_heads"],
            num_value_heads=figures["gdn_value_heads"],
            key_head_dim=figures["gdn_head_dim"],
            value_head_dim=figures["gdn_head_dim"],
            conv_kernel=figures["conv_kernel"],
        )
    )
    assert figures["gdn_layers"] == 3 * figures["attention_layers"]
    return ModelArchitecture(
        name=name,
        model_type="test",
        hidden_size=1,
        vocab_size=1,
        max_position_embeddings=1 << 20,
        dtype="bfloat16",
        layers=(recurrent, recurrent, recurrent, attention) * figures["attention_layers"],
        draft_layers=(attention,) * draft_layers,
    )


def _layout(row: dict[str, Any]) -> KvCacheLayout:
    return plan_kv_cache(
        _architecture(row["arch"], row.get("mtp_layer", 0)),
        KvCacheOptions(
            tensor=row.get("tp", 1),
            kv_cache_dtype=_DTYPES.get(row["kv"], row["kv"]),
            mamba_ssm_cache_dtype=_DTYPES[row["ssm"]],
            num_speculative_tokens=row.get("draft", 0),
            prefix_caching=bool(row.get("prefix_cache")),
            kernel_block_tokens=row.get("align_to", 16),
        ),
    )


def _budgets(gib: float) -> tuple[int, int]:
    """Give the least and the most bytes that print as this figure."""
    printed = Fraction(str(gib))
    least = math.ceil((printed - _HALF_DIGIT_GIB) * GIB)
    return least, math.floor((printed + _HALF_DIGIT_GIB) * GIB)


def _possible_blocks(row: dict[str, Any], layout: KvCacheLayout) -> range:
    """Find every number of blocks that the logged memory, or else the concurrency, allows."""
    if "avail_bytes" in row:
        blocks = layout.num_blocks(row["avail_bytes"])
        return range(blocks, blocks + 1)
    if "avail_gib" in row:
        least, most = (layout.num_blocks(budget) for budget in _budgets(row["avail_gib"]))
        return range(least, most + 1)
    printed, blocks = Fraction(str(row["conc"])), layout.blocks_per_request(row["mml"])
    return range(
        math.floor((printed - _HALF_DIGIT_GIB) * blocks),
        math.ceil((printed + _HALF_DIGIT_GIB) * blocks) + 1,
    )


def _figures(row: dict[str, Any], layout: KvCacheLayout, blocks: int) -> Iterator[tuple[Any, Any]]:
    """Pair each figure the row has with what so many blocks would print."""
    tokens = row["mml"]
    budget = blocks * layout.block_bytes_per_rank
    if "conc" in row:
        yield row["conc"], round(float(layout.concurrency(budget, tokens)), 2)
    if "kv_tokens" in row:
        by_style = {"new": layout.logged_tokens, "old": layout.logged_tokens_until_0_20}
        yield row["kv_tokens"], by_style[row["log_style"]](blocks, tokens)
    if "est_len" in row:
        yield row["est_len"], layout.longest_request_tokens(budget)


_HYBRID_ROWS = [row for row in _LOGS["rows"] if row.get("kind") != "plain"]
_PLAIN_ROWS = [row for row in _LOGS["rows"] if row.get("kind") == "plain"]
_STARTED = [row for row in _HYBRID_ROWS if "mml" in row]


def _id(row: dict[str, Any]) -> str:
    return str(row["id"])


@pytest.mark.parametrize("row", [row for row in _HYBRID_ROWS if "block" in row], ids=_id)
def test_a_log_set_this_block(row: dict[str, Any]) -> None:
    layout = _layout(row)
    assert layout.block_tokens == row["block"]
    if "pad" in row:
        assert f"{float(100 * layout.padding_fraction):.2f}" == f"{row['pad']:.2f}"


@pytest.mark.parametrize("row", _STARTED, ids=_id)
def test_a_log_printed_these_figures(row: dict[str, Any]) -> None:
    layout = _layout(row)
    tried = {
        blocks: list(_figures(row, layout, blocks)) for blocks in _possible_blocks(row, layout)
    }
    assert any(all(logged == computed for logged, computed in pairs) for pairs in tried.values()), (
        tried
    )


@pytest.mark.parametrize("row", [row for row in _STARTED if "need_gib" in row], ids=_id)
def test_a_refusal_needed_this_much(row: dict[str, Any]) -> None:
    layout = _layout(row)
    needed = layout.request_bytes_per_rank(row["mml"])
    assert format_gib(needed) == f"{row['need_gib']:.2f} GiB"
    assert layout.concurrency(_budgets(row["avail_gib"])[1], row["mml"]) < 1


@pytest.mark.parametrize("row", _PLAIN_ROWS, ids=_id)
def test_a_log_of_uniform_layers_printed_these_tokens(row: dict[str, Any]) -> None:
    token_bytes = row["bytes_per_token"]
    for gib, tokens in row["pairs"]:
        least, most = (tokens_of_uniform_layers(budget, token_bytes) for budget in _budgets(gib))
        assert least <= tokens <= most
        assert tokens % 16 == 0
    if "need_gib" in row:
        assert format_gib(row["mml"] * token_bytes) == f"{row['need_gib']:.2f} GiB"


def test_every_row_is_tested() -> None:
    checked = {row["id"] for row in _HYBRID_ROWS if "block" in row or "mml" in row}
    assert checked | {row["id"] for row in _PLAIN_ROWS} == {row["id"] for row in _LOGS["rows"]}
