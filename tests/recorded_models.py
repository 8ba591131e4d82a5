"""The models whose KV cache vLLM sized for the record, and two that cache attention alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from generator.architecture import (
    DenseMlp,
    GatedDeltaNet,
    GroupedQueryAttention,
    Layer,
    Mamba2,
    ModelArchitecture,
    MultiHeadLatentAttention,
)
from generator.kv_cache.kv_cache import KvCacheLayout, KvCacheOptions, plan_kv_cache

DATA = Path(__file__).parent / "data"
RECORDS = json.loads((DATA / "vllm_kv_cache_records.json").read_text("utf-8"))


def architecture(name: str) -> ModelArchitecture:
    model = RECORDS["models"][name]
    heads, kv_heads, head_dim = model["attention"]
    attention = GroupedQueryAttention(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim
    )
    kinds: dict[str, Layer] = {
        "*": Layer(mixer=attention),
        "E": Layer(mlp=DenseMlp(intermediate_size=1)),
    }
    if "gated_delta_net" in model:
        key_heads, value_heads, key_dim, value_dim, kernel = model["gated_delta_net"]
        kinds["G"] = Layer(
            mixer=GatedDeltaNet(
                num_key_heads=key_heads,
                num_value_heads=value_heads,
                key_head_dim=key_dim,
                value_head_dim=value_dim,
                conv_kernel=kernel,
            )
        )
    else:
        mamba_heads, mamba_dim, mamba_groups, state_size, kernel, chunk = model["mamba2"]
        kinds["M"] = Layer(
            mixer=Mamba2(
                num_heads=mamba_heads,
                head_dim=mamba_dim,
                num_groups=mamba_groups,
                state_size=state_size,
                conv_kernel=kernel,
                chunk_size=chunk,
            )
        )
    return ModelArchitecture(
        name=name,
        model_type="test",
        hidden_size=1,
        vocab_size=1,
        max_position_embeddings=1 << 20,
        dtype=model["dtype"],
        recurrent_state_dtype=model["recurrent_state_dtype"],
        layers=tuple(kinds[kind] for kind in model["layers"]),
        draft_layers=(Layer(mixer=attention),),
    )


QWEN38 = architecture("Qwen3.8-2.4T")
QWEN38_OPTIONS = KvCacheOptions(kv_cache_dtype="fp8", mamba_ssm_cache_dtype="bfloat16")


def qwen38(*, tensor: int, mtp: int = 0, **options: Any) -> KvCacheLayout:
    return plan_kv_cache(
        QWEN38,
        replace(QWEN38_OPTIONS, tensor=tensor, num_speculative_tokens=mtp, **options),
    )


def attention_only() -> ModelArchitecture:
    """Llama-3.1-70B: 80 layers, 64 heads over 8 KV heads of 128."""
    attention = GroupedQueryAttention(num_attention_heads=64, num_key_value_heads=8, head_dim=128)
    return replace(QWEN38, name="llama", layers=(Layer(mixer=attention),) * 80, draft_layers=())


def latent_attention() -> ModelArchitecture:
    """DeepSeek-R1: 61 layers that cache 512 + 64 values per token, and one draft layer."""
    attention = MultiHeadLatentAttention(
        num_attention_heads=128,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        q_lora_rank=1536,
    )
    layer = Layer(mixer=attention)
    return replace(QWEN38, name="r1", layers=(layer,) * 61, draft_layers=(layer,))
