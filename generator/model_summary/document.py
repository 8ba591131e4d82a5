"""The summary of a model as a versioned JSON document."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from generator.architecture import (
    DenseMlp,
    FullAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba2,
    MixtureOfExperts,
    ModelArchitecture,
    MultiHeadLatentAttention,
    RecurrentMixer,
)
from generator.model_summary.summary import LayoutCost, ModelSummary, RefusedLayout

JSON_VERSION = 1

_MIXER_NAMES: dict[type, str] = {
    GroupedQueryAttention: "gqa",
    MultiHeadLatentAttention: "mla",
    GatedDeltaNet: "gdn",
    Mamba2: "mamba2",
}


def model_document(summary: ModelSummary) -> dict[str, Any]:
    """The JSON answer, valid against schemas/model.schema.json."""
    cost, options = summary.cost, summary.options
    return {
        "version": JSON_VERSION,
        "model": _model_document(summary.architecture),
        "parameters": asdict(summary.parameters),
        "engine": summary.engine,
        "request_tokens": summary.request_tokens,
        "kv_cache_dtype": cost.kv_cache.kv_cache_dtype,
        "mamba_ssm_cache_dtype": (
            cost.kv_cache.mamba_ssm_cache_dtype if summary.architecture.is_hybrid else None
        ),
        "num_speculative_tokens": options.num_speculative_tokens,
        "prefix_caching": summary.prefix_caching,
        "weights": [asdict(item) for item in cost.weights.items],
        "cost": _cost_document(cost, summary.request_tokens),
        "by_tensor": [_cost_document(each, summary.request_tokens) for each in summary.by_tensor],
    }


def _model_document(model: ModelArchitecture) -> dict[str, Any]:
    mlps = Counter(type(layer.mlp) for layer in model.layers)
    return {
        "name": model.name,
        "model_type": model.model_type,
        "dtype": model.dtype,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.max_position_embeddings,
        "tie_word_embeddings": model.tie_word_embeddings,
        "layers": {
            "all": len(model.layers),
            "attention": model.attention_layers,
            "recurrent": model.recurrent_layers,
            "moe": mlps[MixtureOfExperts],
            "dense_mlp": mlps[DenseMlp],
            "mtp": len(model.draft_layers),
        },
        "attention": _mixer_document(model.attention),
        "recurrent": _mixer_document(model.recurrent),
        "experts": asdict(model.experts) if model.experts else None,
        "quantization": asdict(model.quantization) if model.quantization else None,
        "vision": asdict(model.vision) if model.vision else None,
    }


def _mixer_document(mixer: FullAttention | RecurrentMixer | None) -> dict[str, Any] | None:
    return {"kind": _MIXER_NAMES[type(mixer)], **asdict(mixer)} if mixer is not None else None


def _cost_document(cost: LayoutCost | RefusedLayout, tokens: int) -> dict[str, Any]:
    layout = {"layout": str(cost.layout), "gpus": cost.layout.ranks}
    if isinstance(cost, RefusedLayout):
        return {**layout, "refused": cost.reason}
    kv_cache = cost.kv_cache
    request = kv_cache.request_bytes_per_rank(tokens)
    return {
        **layout,
        "weights_bytes_per_rank": cost.weights.total_bytes_per_rank,
        "bytes_per_token_per_rank": kv_cache.attention_bytes_per_token_per_rank,
        "state_bytes_per_layer": kv_cache.state.bytes_per_rank,
        "conv_state_bytes_per_layer": kv_cache.state.conv_bytes_per_rank,
        "ssm_state_bytes_per_layer": kv_cache.state.ssm_bytes_per_rank,
        "block_tokens": kv_cache.block_tokens,
        "page_bytes_per_rank": kv_cache.page_bytes_per_rank,
        "layers_per_block": kv_cache.layers_per_block,
        "blocks_per_request": kv_cache.blocks_per_request(tokens),
        "request_bytes_per_rank": request,
        "request_bytes_per_replica": request * cost.layout.replica_ranks,
    }
