from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generator.architecture import Mamba2, Quantization, WeightFormat
from generator.errors import InvalidInput
from generator.kv_cache.block_size import RecurrentCacheMode
from generator.kv_cache.kv_cache import KvCacheOptions, plan_kv_cache
from tests.recorded_models import QWEN38, architecture, attention_only, latent_attention


@pytest.mark.parametrize(
    ("tensor", "token_bytes"), [(1, 4096), (2, 2048), (8, 512), (16, 512), (32, 512)]
)
def test_kv_heads_are_replicated_past_their_count(tensor: int, token_bytes: int) -> None:
    layout = plan_kv_cache(attention_only(), KvCacheOptions(tensor=tensor))
    assert layout.attention_bytes_per_token_per_layer == token_bytes
    assert layout.attention_bytes_per_token_per_rank == 80 * token_bytes
    assert layout.block_tokens == 16
    assert layout.padding_fraction == 0
    assert layout.layers_per_block == 80
    # Attention alone fits whole blocks of 16 tokens and nothing else.
    budget = 1000 * token_bytes * 80
    assert layout.longest_request_tokens(budget) == 1000 // 16 * 16
    assert layout.logged_tokens_until_0_20(layout.num_blocks(budget), 4096) == 1000 // 16 * 16


@pytest.mark.parametrize(
    ("kv_cache_dtype", "token_bytes"),
    [("auto", 1152), ("bf16", 1152), ("fp8", 576), ("fp8_e4m3", 576)],
)
@pytest.mark.parametrize("tensor", [1, 8])
def test_a_latent_is_whole_on_every_rank(
    tensor: int, kv_cache_dtype: str, token_bytes: int
) -> None:
    options = KvCacheOptions(
        tensor=tensor,
        kv_cache_dtype=kv_cache_dtype,
        kernel_block_tokens=64,
        num_speculative_tokens=1,
    )
    layout = plan_kv_cache(latent_attention(), options)
    assert layout.attention_bytes_per_token_per_layer == token_bytes
    assert layout.block_tokens == 64
    assert layout.layers_per_block == 62


def test_context_ranks_share_the_tokens_of_a_latent() -> None:
    options = KvCacheOptions(tensor=8, decode_context=8, kernel_block_tokens=64)
    layout = plan_kv_cache(latent_attention(), options)
    assert layout.blocks_per_request(64 * 8) == 1
    assert layout.blocks_per_request(64 * 8 + 1) == 2
    assert layout.longest_request_tokens(3 * layout.block_bytes_per_rank) == 3 * 64 * 8


@pytest.mark.parametrize(
    ("flag", "scheme", "resolved", "token_bytes"),
    [
        ("auto", None, "bfloat16", 4096),
        ("auto", "fp8_e4m3", "fp8_e4m3", 2048),
        ("bfloat16", "fp8_e4m3", "bfloat16", 4096),
        ("fp8", None, "fp8", 2048),
        ("nvfp4", None, "nvfp4", 1152),
    ],
)
def test_a_kv_dtype_resolves(
    flag: str, scheme: str | None, resolved: str, token_bytes: int
) -> None:
    quantization = Quantization(linear_format=WeightFormat.NVFP4, kv_cache_dtype=scheme)
    layout = plan_kv_cache(
        replace(QWEN38, quantization=quantization), KvCacheOptions(kv_cache_dtype=flag)
    )
    assert layout.kv_cache_dtype == resolved
    assert layout.attention_bytes_per_token_per_layer == token_bytes


@pytest.mark.parametrize(
    ("checkpoint", "conv", "ssm", "resolved"),
    [
        ("float32", "auto", "auto", "float32"),
        ("float32", "auto", "bfloat16", "bfloat16"),
        (None, "auto", "auto", "bfloat16"),
        (None, "float32", "auto", "float32"),
    ],
)
def test_a_state_dtype_resolves(checkpoint: str | None, conv: str, ssm: str, resolved: str) -> None:
    layout = plan_kv_cache(
        replace(QWEN38, recurrent_state_dtype=checkpoint),
        KvCacheOptions(mamba_cache_dtype=conv, mamba_ssm_cache_dtype=ssm),
    )
    assert layout.mamba_ssm_cache_dtype == resolved
    width = {"bfloat16": 2, "float32": 4}
    assert layout.state.ssm_bytes_per_rank == 128 * 128 * 128 * width[resolved]
    assert layout.state.conv_bytes_per_rank == 20480 * 3 * width.get(conv, 2)


@pytest.mark.parametrize(
    ("name", "prefix_caching", "asked", "mode"),
    [
        ("Qwen3.5-397B-A17B", False, "align", "none"),
        ("Qwen3.5-397B-A17B", True, "none", "align"),
        ("Qwen3.5-397B-A17B", True, "all", "align"),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", False, "all", "none"),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", True, "none", "all"),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", True, "align", "align"),
    ],
)
def test_a_cache_mode_resolves(name: str, prefix_caching: bool, asked: str, mode: str) -> None:
    options = KvCacheOptions(
        prefix_caching=prefix_caching, mamba_cache_mode=RecurrentCacheMode(asked)
    )
    assert plan_kv_cache(architecture(name), options).mode == mode


def test_a_mamba_block_replaces_the_chunk_where_all_states_are_kept() -> None:
    nano = architecture("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    options = KvCacheOptions(tensor=8, prefix_caching=True)
    assert plan_kv_cache(nano, options).block_tokens == 640
    options = replace(options, mamba_block_size=1000)
    assert plan_kv_cache(nano, options).block_tokens == 2000


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("Qwen3.8-2.4T", {"tensor": 3}, "64 attention heads are not divisible by TP 3"),
        ("Qwen3.8-2.4T", {"tensor": 3}, "4 KV heads are not divisible by TP 3"),
        ("Qwen3.8-2.4T", {"tensor": 3}, "128 value heads are not divisible by TP 3"),
        (
            "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
            {"tensor": 16},
            "8 Mamba groups are not divisible by TP 16",
        ),
        ("Qwen3.8-2.4T", {"tensor": 0}, "tensor must be at least 1, got 0"),
        ("Qwen3.8-2.4T", {"num_speculative_tokens": -1}, "must be at least 0, got -1"),
        ("Qwen3.8-2.4T", {"block_size": 0}, "block_size must be at least 1, got 0"),
        ("Qwen3.8-2.4T", {"pipeline": 93}, "92 layers cannot fill 93 pipeline stages"),
        ("Qwen3.8-2.4T", {"tensor": 8, "decode_context": 4}, "DCP 4 is more than TP 8 / 4 KV"),
        ("Qwen3.8-2.4T", {"tensor": 16, "decode_context": 3}, "TP 16 is not divisible by DCP 3"),
        ("Qwen3.8-2.4T", {"kv_cache_dtype": "int4"}, "kv-cache-dtype 'int4' is not modelled"),
        ("Qwen3.8-2.4T", {"mamba_ssm_cache_dtype": "fp8"}, "'fp8' is not modelled"),
        ("Qwen3.8-2.4T", {"mamba_block_size": 64}, "mamba-block-size 64 needs prefix caching"),
        (
            "Qwen3.8-2.4T",
            {"mamba_block_size": 9, "prefix_caching": True},
            "mamba-block-size 9 is not a multiple of 8 (use 16)",
        ),
    ],
)
def test_what_vllm_refuses_is_refused(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        plan_kv_cache(architecture(name), KvCacheOptions(**options))
    assert says in str(refusal.value)


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as refusal:
        plan_kv_cache(
            QWEN38, KvCacheOptions(tensor=32, block_size=24, is_hybrid_manager_disabled=True)
        )
    assert len(refusal.value.problems) == 3


@pytest.mark.parametrize(("tensor", "rows"), [(1, 4096 + 256), (4, 1024 + 256)])
def test_a_single_mamba_group_is_replicated(tensor: int, rows: int) -> None:
    nano = architecture("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    mixer = nano.recurrent
    assert isinstance(mixer, Mamba2)
    single = replace(mixer, num_groups=1)
    layers = tuple(
        replace(layer, mixer=single) if layer.mixer == mixer else layer for layer in nano.layers
    )
    layout = plan_kv_cache(replace(nano, layers=layers), KvCacheOptions(tensor=tensor))
    assert layout.state.conv_bytes_per_rank == rows * 3 * 2
