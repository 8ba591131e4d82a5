"""The tensors of attention and state-space blocks on a rank."""

from __future__ import annotations

from collections.abc import Iterator

from generator.architecture import (
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba2,
    MultiHeadLatentAttention,
)
from generator.units import round_up
from generator.weights.shards import key_value_heads_on_rank, split
from generator.weights.tensors import FP32_BYTES, Component, Tensor


def grouped_query_attention(
    mixer: GroupedQueryAttention, hidden: int, tensor: int, name: str
) -> Iterator[Tensor]:
    """GQA: q, k, v in one matrix, o, and the norms of queries and keys."""
    component = Component.ATTENTION
    queries = split(mixer.num_attention_heads, tensor, "attention heads") * mixer.head_dim
    keys = key_value_heads_on_rank(mixer, tensor) * mixer.head_dim
    rows = queries * (2 if mixer.has_output_gate else 1) + 2 * keys
    parts = tuple(f"{name}.{part}_proj" for part in ("q", "k", "v", "qkv"))
    yield Tensor(component=component, rows=rows, columns=hidden, parts=3, modules=parts)
    output = (f"{name}.o_proj",)
    yield Tensor(component=component, rows=hidden, columns=queries, modules=output)
    if mixer.has_qkv_bias:
        yield Tensor(component=component, rows=rows)
    if mixer.has_output_bias:
        yield Tensor(component=component, rows=hidden)
    if mixer.has_qk_norm:
        norms = queries + keys if mixer.qk_norm_spans_heads else 2 * mixer.head_dim
        yield Tensor(component=component, rows=norms)


def latent_attention(mixer: MultiHeadLatentAttention, hidden: int, tensor: int) -> Iterator[Tensor]:
    """MLA: projections into the latent are whole on every rank, those out of it split by head."""
    component = Component.ATTENTION
    heads = split(mixer.num_attention_heads, tensor, "attention heads")
    query_rows = heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
    latent_rows = mixer.kv_lora_rank + mixer.qk_rope_head_dim
    latent = ("self_attn.kv_a_proj_with_mqa", "self_attn.fused_qkv_a_proj")
    rank = mixer.q_lora_rank
    if rank is None:
        query = ("self_attn.q_proj",)
        yield Tensor(component=component, rows=query_rows, columns=hidden, modules=query)
        yield Tensor(component=component, rows=latent_rows, columns=hidden, modules=latent)
    else:
        down, query = ("self_attn.q_a_proj", *latent), ("self_attn.q_b_proj",)
        yield Tensor(
            component=component, rows=rank + latent_rows, columns=hidden, parts=2, modules=down
        )
        yield Tensor(component=component, rows=query_rows, columns=rank, modules=query)
    yield Tensor(component=component, rows=mixer.kv_lora_rank + (rank or 0))
    values = heads * mixer.v_head_dim
    yield Tensor(
        component=component,
        rows=heads * mixer.qk_nope_head_dim + values,
        columns=mixer.kv_lora_rank,
        modules=("self_attn.kv_b_proj",),
    )
    output = ("self_attn.o_proj",)
    yield Tensor(component=component, rows=hidden, columns=values, modules=output)


def attention_scales(*, is_quantized: bool) -> Iterator[Tensor]:
    """Scales of q, k, v and probabilities: buffers always, loadable ones if quantised."""
    component = Component.ATTENTION
    yield Tensor(component=component, rows=4, element_bytes=FP32_BYTES, is_engine_buffer=True)
    if is_quantized:
        yield Tensor(component=component, rows=4, is_engine_buffer=True)


def gated_delta_net(mixer: GatedDeltaNet, hidden: int, tensor: int) -> Iterator[Tensor]:
    """GDN: two input projections, the convolution, the output, decay and norm vectors."""
    component = Component.GDN
    value_heads = split(mixer.num_value_heads, tensor, "GDN value heads")
    keys = split(mixer.num_key_heads, tensor, "GDN key heads") * mixer.key_head_dim
    values = value_heads * mixer.value_head_dim
    yield Tensor(
        component=component,
        rows=2 * keys + 2 * values,
        columns=hidden,
        parts=4,
        modules=tuple(f"linear_attn.in_proj_{part}" for part in ("qkvz", "qkv", "z")),
    )
    yield Tensor(
        component=component,
        rows=2 * value_heads,
        columns=hidden,
        parts=2,
        modules=tuple(f"linear_attn.in_proj_{part}" for part in ("ba", "b", "a")),
    )
    yield Tensor(component=component, rows=2 * keys + values, columns=mixer.conv_kernel)
    output = ("linear_attn.out_proj",)
    yield Tensor(component=component, rows=hidden, columns=values, modules=output)
    yield Tensor(component=component, rows=value_heads, element_bytes=FP32_BYTES)  # A_log
    yield Tensor(component=component, rows=value_heads)  # dt_bias
    yield Tensor(component=component, rows=mixer.value_head_dim)  # norm, whole on every rank


def mamba2(mixer: Mamba2, hidden: int, tensor: int) -> Iterator[Tensor]:
    """Mamba2: one input projection (z, x, B, C, dt), the convolution, the output, vectors."""
    component = Component.MAMBA
    heads = split(mixer.num_heads, tensor, "Mamba heads")
    inner = heads * mixer.head_dim
    # Groups that do not divide are replicated until they do, to follow the heads they serve.
    groups = round_up(mixer.num_groups, tensor) // tensor
    conv_rows = inner + 2 * groups * mixer.state_size
    in_rows = inner + conv_rows + heads
    projections = ("mixer.in_proj",), ("mixer.out_proj",)
    yield Tensor(component=component, rows=in_rows, columns=hidden, modules=projections[0])
    yield Tensor(component=component, rows=conv_rows, columns=mixer.conv_kernel)
    yield Tensor(component=component, rows=hidden, columns=inner, modules=projections[1])
    yield Tensor(component=component, rows=heads, element_bytes=FP32_BYTES)  # A
    yield Tensor(component=component, rows=2 * heads + inner)  # D, dt_bias and the gated norm
    if mixer.has_conv_bias:
        yield Tensor(component=component, rows=conv_rows)
    if mixer.has_projection_bias:
        yield Tensor(component=component, rows=in_rows + hidden)
