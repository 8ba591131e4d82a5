"""Every tensor of a decoder layer as one rank holds it.

The shapes are those of vLLM's model classes, where parts of a checkpoint are fused (q, k and v;
gate and up). Reference: parameters of vLLM 0.26.0's own classes, tests/data/weights_vllm_0_26.json.
"""

from __future__ import annotations

from collections.abc import Iterator

from generator.architecture import (
    DenseMlp,
    GatedDeltaNet,
    GroupedQueryAttention,
    Layer,
    Mamba2,
    MixtureOfExperts,
    MultiHeadLatentAttention,
)
from generator.weights.mixers import (
    attention_scales,
    gated_delta_net,
    grouped_query_attention,
    latent_attention,
    mamba2,
)
from generator.weights.mlps import dense_mlp, mixture_of_experts
from generator.weights.shards import Shards
from generator.weights.tensors import Component, Tensor


def layer_tensors(
    layer: Layer, hidden: int, shards: Shards, *, is_quantized: bool
) -> Iterator[Tensor]:
    """Every tensor of one decoder layer on a rank."""
    alone = layer.mixer is None or layer.mlp is None
    match layer.mixer:
        case GroupedQueryAttention():
            name = "mixer" if alone else "self_attn"
            yield from grouped_query_attention(layer.mixer, hidden, shards.tensor, name)
            yield from attention_scales(is_quantized=is_quantized)
        case MultiHeadLatentAttention():
            yield from latent_attention(layer.mixer, hidden, shards.tensor)
            yield from attention_scales(is_quantized=is_quantized)
        case GatedDeltaNet():
            yield from gated_delta_net(layer.mixer, hidden, shards.tensor)
        case Mamba2():
            yield from mamba2(layer.mixer, hidden, shards.tensor)
    name = "mixer" if alone else "mlp"
    match layer.mlp:
        case DenseMlp():
            yield from dense_mlp(layer.mlp, hidden, shards.tensor, name)
        case MixtureOfExperts():
            yield from mixture_of_experts(layer.mlp, hidden, shards, name)
    yield Tensor(component=Component.NORMS, rows=hidden, columns=1 if alone else 2)
