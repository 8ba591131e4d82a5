"""The attention and state-space dimensions of one layer, with the checks that tie them."""

from __future__ import annotations

from typing import TypedDict

from generator.architecture import GatedDeltaNet, Mamba2, MultiHeadLatentAttention
from generator.hf_config.fields import Fields


class AttentionHeads(TypedDict):
    """What every grouped-query attention has."""

    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


def attention_heads(fields: Fields) -> AttentionHeads:
    """Heads and their width; without ``head_dim`` the heads share the hidden size."""
    heads = fields.integer("num_attention_heads")
    kv_heads = fields.integer("num_key_value_heads")
    require_divides(fields, "num_key_value_heads", "num_attention_heads")
    if "head_dim" in fields:
        head_dim = fields.integer("head_dim")
    else:
        require_divides(fields, "num_attention_heads", "hidden_size")
        head_dim = fields.integer("hidden_size") // heads
    return AttentionHeads(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim
    )


def multi_head_latent_attention(fields: Fields) -> MultiHeadLatentAttention:
    """MLA; without ``q_lora_rank`` the queries are not compressed."""
    return MultiHeadLatentAttention(
        num_attention_heads=fields.integer("num_attention_heads"),
        kv_lora_rank=fields.integer("kv_lora_rank"),
        qk_rope_head_dim=fields.integer("qk_rope_head_dim"),
        qk_nope_head_dim=fields.integer("qk_nope_head_dim"),
        v_head_dim=fields.integer("v_head_dim"),
        q_lora_rank=fields.integer("q_lora_rank") if "q_lora_rank" in fields else None,
    )


def gated_delta_net(fields: Fields) -> GatedDeltaNet:
    """Qwen's linear attention, whose key heads serve equal numbers of value heads."""
    mixer = GatedDeltaNet(
        num_key_heads=fields.integer("linear_num_key_heads"),
        num_value_heads=fields.integer("linear_num_value_heads"),
        key_head_dim=fields.integer("linear_key_head_dim"),
        value_head_dim=fields.integer("linear_value_head_dim"),
        conv_kernel=fields.integer("linear_conv_kernel_dim"),
    )
    require_divides(fields, "linear_num_key_heads", "linear_num_value_heads")
    return mixer


def mamba2(fields: Fields) -> Mamba2:
    """Nemotron's state-space layer, whose groups serve equal numbers of heads."""
    mixer = Mamba2(
        num_heads=fields.integer("mamba_num_heads"),
        head_dim=fields.integer("mamba_head_dim"),
        num_groups=fields.integer("n_groups"),
        state_size=fields.integer("ssm_state_size"),
        conv_kernel=fields.integer("conv_kernel"),
        chunk_size=fields.integer("chunk_size"),
        has_conv_bias=fields.boolean("use_conv_bias", default=True),
        has_projection_bias=fields.boolean("use_bias"),
    )
    require_divides(fields, "n_groups", "mamba_num_heads")
    return mixer


def require_divides(fields: Fields, part: str, whole: str) -> None:
    """Note a problem where the ``part`` field does not divide the ``whole`` field."""
    divisor, number = fields.integer(part), fields.integer(whole)
    if fields.usable(part, whole) and number % divisor:
        fields.note(part, f"{divisor} does not divide the {number} of {whole}")
