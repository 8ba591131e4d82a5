"""Which layers a model type has: one function for each family of config.json fields.

Field names and defaults are those of the transformers config classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from generator.architecture import (
    DenseMlp,
    GroupedQueryAttention,
    Layer,
    Mixer,
    MixtureOfExperts,
    Mlp,
)
from generator.hf_config.fields import Fields
from generator.hf_config.mixers import (
    attention_heads,
    gated_delta_net,
    mamba2,
    multi_head_latent_attention,
)
from generator.hf_config.stacking import (
    MAX_LAYERS,
    layer_kinds,
    only_full_attention,
    pattern_kinds,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """The layers of a model; empty where they could not be read."""

    layers: tuple[Layer, ...] = ()
    draft_layers: tuple[Layer, ...] = ()
    recurs: bool = False
    recurrent_state_dtype: str | None = None


def _llama(fields: Fields) -> Decoder:
    has_bias = fields.boolean("attention_bias")
    attention = GroupedQueryAttention(
        **attention_heads(fields), has_qkv_bias=has_bias, has_output_bias=has_bias
    )
    mlp = _dense(fields, has_bias=fields.boolean("mlp_bias"))
    return _uniform(attention, [mlp] * _layer_count(fields), fields)


def _qwen2(fields: Fields) -> Decoder:
    attention = GroupedQueryAttention(**attention_heads(fields), has_qkv_bias=True)
    return _uniform(attention, [_dense(fields)] * _layer_count(fields), fields)


def _qwen2_moe(fields: Fields) -> Decoder:
    attention = GroupedQueryAttention(**attention_heads(fields), has_qkv_bias=True)
    return _uniform(attention, _qwen_mlps(fields), fields)


def _qwen3_attention(fields: Fields, *, has_output_gate: bool = False) -> GroupedQueryAttention:
    has_bias = fields.boolean("attention_bias")
    return GroupedQueryAttention(
        **attention_heads(fields),
        has_output_gate=has_output_gate,
        has_qkv_bias=has_bias,
        has_qk_norm=True,
        has_output_bias=has_bias,
    )


def _qwen3(fields: Fields) -> Decoder:
    return _uniform(_qwen3_attention(fields), [_dense(fields)] * _layer_count(fields), fields)


def _qwen3_moe(fields: Fields) -> Decoder:
    return _uniform(_qwen3_attention(fields), _qwen_mlps(fields), fields)


def _mixtral(fields: Fields) -> Decoder:
    attention = GroupedQueryAttention(**attention_heads(fields))
    experts = _experts(fields, count="num_local_experts", width="intermediate_size")
    return _uniform(attention, [experts] * _layer_count(fields), fields)


def _minimax_m2(fields: Fields) -> Decoder:
    """MiniMax-M2; the MTP modules its config.json counts are not in the checkpoints."""
    has_qk_norm = fields.boolean("use_qk_norm")
    kind = fields.choice("qk_norm_type", ("per_layer", "per_head"), default="per_layer")
    attention = GroupedQueryAttention(
        **attention_heads(fields),
        has_qk_norm=has_qk_norm,
        qk_norm_spans_heads=has_qk_norm and kind == "per_layer",
    )
    experts = MixtureOfExperts(
        num_experts=fields.integer("num_local_experts"),
        num_experts_per_tok=_experts_per_token(fields, "num_local_experts"),
        moe_intermediate_size=fields.integer("intermediate_size"),
        shared_expert_intermediate_size=fields.integer(
            "shared_intermediate_size", least=0, default=0
        ),
        has_router_bias=fields.boolean("use_routing_bias"),
        router_dtype="float32",
    )
    return _uniform(attention, [experts] * _layer_count(fields), fields)


def _glm4_moe(fields: Fields) -> Decoder:
    attention = GroupedQueryAttention(
        **attention_heads(fields),
        has_qkv_bias=fields.boolean("attention_bias"),
        has_qk_norm=fields.boolean("use_qk_norm"),
    )
    experts = _deepseek_experts(fields, has_router_bias=True)
    mlps = _deepseek_mlps(fields, experts)
    drafts = _draft_count(fields, "num_nextn_predict_layers")
    return _uniform(attention, mlps, fields, [Layer(mixer=attention, mlp=experts)] * drafts)


def _deepseek(fields: Fields) -> Decoder:
    """DeepSeek-V2 and V3, R1, Kimi-K2."""
    attention = multi_head_latent_attention(fields)
    corrected = fields.text("topk_method", default="greedy") == "noaux_tc"
    experts = _deepseek_experts(fields, has_router_bias=corrected)
    mlps = _deepseek_mlps(fields, experts)
    only_full_attention(fields, len(mlps))
    drafts = _draft_count(fields, "num_nextn_predict_layers")
    return Decoder(
        layers=tuple(Layer(mixer=attention, mlp=mlp) for mlp in mlps),
        draft_layers=(Layer(mixer=attention, mlp=experts),) * drafts,
    )


def _qwen3_next(fields: Fields) -> Decoder:
    """Qwen3-Next: its MTP layer is shipped though the config has no field for it."""
    drafts = _draft_count(fields, "num_nextn_predict_layers", default=1)
    return _qwen_hybrid(fields, _qwen_mlps(fields), drafts)


def _qwen3_5(fields: Fields) -> Decoder:
    """Dense Qwen3.5 and its successors; the recurrent state's dtype is its own field."""
    mlps: list[Mlp] = [_dense(fields)] * _layer_count(fields)
    drafts = _draft_count(fields, "mtp_num_hidden_layers")
    return _qwen_hybrid(fields, mlps, drafts, _state_dtype(fields, "mamba_ssm_dtype"))


def _qwen3_5_moe(fields: Fields) -> Decoder:
    drafts = _draft_count(fields, "mtp_num_hidden_layers")
    state_dtype = _state_dtype(fields, "mamba_ssm_dtype")
    return _qwen_hybrid(fields, _qwen_mlps(fields), drafts, state_dtype)


def _qwen_hybrid(
    fields: Fields, mlps: list[Mlp], drafts: int, state_dtype: str | None = None
) -> Decoder:
    has_gate = fields.boolean("attn_output_gate", default=True)
    attention = _qwen3_attention(fields, has_output_gate=has_gate)
    recurrent = gated_delta_net(fields)
    mixers: dict[str, Mixer] = {"full_attention": attention, "linear_attention": recurrent}
    kinds = layer_kinds(fields, len(mlps))
    return Decoder(
        layers=tuple(
            Layer(mixer=mixers[kind], mlp=mlp) for kind, mlp in zip(kinds, mlps, strict=True)
        ),
        draft_layers=tuple(Layer(mixer=attention, mlp=mlp) for mlp in mlps[:1] * drafts),
        recurs="linear_attention" in kinds,
        recurrent_state_dtype=state_dtype,
    )


def _nemotron_h(fields: Fields) -> Decoder:
    """Nemotron-H and Nemotron-3: each layer is a mixer or an MLP."""
    kinds = pattern_kinds(fields, "hybrid_override_pattern", "layers_block_type")
    draft_kinds: list[str] = []
    drafts = _draft_count(fields, "num_nextn_predict_layers")
    if drafts:
        draft_kinds = pattern_kinds(fields, "mtp_hybrid_override_pattern", "mtp_layers_block_type")
    if "num_hidden_layers" in fields and fields.integer("num_hidden_layers") != len(kinds):
        given = fields.integer("num_hidden_layers")
        if kinds and fields.usable("num_hidden_layers"):
            message = f"is {given}, but the layer pattern has {len(kinds)} layers"
            fields.note("num_hidden_layers", message)
    layers = {kind: _nemotron_layer(fields, kind) for kind in {*kinds, *draft_kinds}}
    return Decoder(
        layers=tuple(layers[kind] for kind in kinds),
        draft_layers=tuple(layers[kind] for kind in draft_kinds) * drafts,
        recurs="mamba" in kinds,
        recurrent_state_dtype=_state_dtype(fields, "mamba_ssm_cache_dtype") or "float32",
    )


def _nemotron_layer(fields: Fields, kind: str) -> Layer:
    match kind:
        case "mamba":
            return Layer(mixer=mamba2(fields))
        case "attention":
            return Layer(mixer=GroupedQueryAttention(**attention_heads(fields)))
        case "moe":
            return Layer(mlp=_nemotron_experts(fields))
        case _:
            has_bias = fields.boolean("mlp_bias")
            return Layer(mlp=_dense(fields, is_gated=False, has_bias=has_bias))


def _nemotron_experts(fields: Fields) -> MixtureOfExperts:
    count = fields.integer("n_shared_experts", least=0, default=0)
    shared = fields.integer("moe_shared_expert_intermediate_size") if count else 0
    return MixtureOfExperts(
        num_experts=fields.integer("n_routed_experts"),
        num_experts_per_tok=_experts_per_token(fields, "n_routed_experts"),
        moe_intermediate_size=fields.integer("moe_intermediate_size"),
        shared_expert_intermediate_size=shared * count,
        is_gated=False,
        latent_size=fields.integer("moe_latent_size") if "moe_latent_size" in fields else None,
        has_router_bias=True,
    )


def _uniform(
    attention: GroupedQueryAttention,
    mlps: list[Mlp] | list[DenseMlp] | list[MixtureOfExperts],
    fields: Fields,
    draft_layers: list[Layer] | None = None,
) -> Decoder:
    """A decoder with the same attention in every layer."""
    only_full_attention(fields, len(mlps))
    return Decoder(
        layers=tuple(Layer(mixer=attention, mlp=mlp) for mlp in mlps),
        draft_layers=tuple(draft_layers or ()),
    )


def _layer_count(fields: Fields) -> int:
    return fields.integer("num_hidden_layers", most=MAX_LAYERS)


def _draft_count(fields: Fields, name: str, default: int = 0) -> int:
    return fields.integer(name, least=0, most=MAX_LAYERS, default=default)


def _state_dtype(fields: Fields, name: str) -> str | None:
    if name not in fields:
        return None
    return fields.choice(name, ("float32", "bfloat16", "float16"))


def _dense(fields: Fields, *, is_gated: bool = True, has_bias: bool = False) -> DenseMlp:
    width = fields.integer("intermediate_size")
    return DenseMlp(intermediate_size=width, is_gated=is_gated, has_bias=has_bias)


def _experts_per_token(fields: Fields, count: str) -> int:
    chosen = fields.integer("num_experts_per_tok")
    if fields.usable("num_experts_per_tok", count) and chosen > fields.integer(count):
        message = f"is {chosen}, more than the {fields.integer(count)} of {count}"
        fields.note("num_experts_per_tok", message)
    return chosen


def _experts(
    fields: Fields, *, count: str = "num_experts", width: str = "moe_intermediate_size"
) -> MixtureOfExperts:
    """Routed experts, and Qwen's gated shared expert where the config has one."""
    shared = fields.integer("shared_expert_intermediate_size", least=0, default=0)
    return MixtureOfExperts(
        num_experts=fields.integer(count),
        num_experts_per_tok=_experts_per_token(fields, count),
        moe_intermediate_size=fields.integer(width),
        shared_expert_intermediate_size=shared,
        has_shared_expert_gate=shared > 0,
    )


def _qwen_mlps(fields: Fields) -> list[Mlp]:
    """Experts in every ``decoder_sparse_step``-th layer that is not listed as dense."""
    layers = _layer_count(fields)
    step = fields.integer("decoder_sparse_step", default=1)
    dense_layers = set(fields.integers("mlp_only_layers"))
    is_sparse = [index not in dense_layers and (index + 1) % step == 0 for index in range(layers)]
    return _mixed(fields, is_sparse, _experts(fields))


def _deepseek_experts(fields: Fields, *, has_router_bias: bool) -> MixtureOfExperts:
    width = fields.integer("moe_intermediate_size")
    shared = fields.integer("n_shared_experts", least=0, default=0)
    return MixtureOfExperts(
        num_experts=fields.integer("n_routed_experts"),
        num_experts_per_tok=_experts_per_token(fields, "n_routed_experts"),
        moe_intermediate_size=width,
        shared_expert_intermediate_size=width * shared,
        has_router_bias=has_router_bias,
    )


def _deepseek_mlps(fields: Fields, experts: MixtureOfExperts) -> list[Mlp]:
    """Dense layers first, then experts in every ``moe_layer_freq``-th layer."""
    layers = _layer_count(fields)
    first = fields.integer("first_k_dense_replace", least=0, default=0)
    if isinstance(fields.raw("moe_layer_freq"), list):
        marks = fields.integers("moe_layer_freq")
        if fields.usable("moe_layer_freq", "num_hidden_layers") and len(marks) != layers:
            message = f"has {len(marks)} entries for {layers} layers"
            fields.note("moe_layer_freq", message)
        marks += [1] * (layers - len(marks))
        return _mixed(fields, [bool(mark) for mark in marks[:layers]], experts)
    step = fields.integer("moe_layer_freq", default=1)
    is_sparse = [index >= first and index % step == 0 for index in range(layers)]
    return _mixed(fields, is_sparse, experts)


def _mixed(fields: Fields, is_sparse: list[bool], experts: MixtureOfExperts) -> list[Mlp]:
    dense = None if all(is_sparse) else _dense(fields)
    return [experts if sparse or dense is None else dense for sparse in is_sparse]


FAMILIES: dict[str, Callable[[Fields], Decoder]] = {
    "llama": _llama,
    "mistral": _llama,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_text": _qwen3,
    "qwen3_vl_moe_text": _qwen3_moe,
    "minimax_m2": _minimax_m2,
    "glm4_moe": _glm4_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "qwen3_next": _qwen3_next,
    "qwen3_5": _qwen3_5,
    "qwen3_5_text": _qwen3_5,
    "qwen3_5_moe": _qwen3_5_moe,
    "qwen3_5_moe_text": _qwen3_5_moe,
    "nemotron_h": _nemotron_h,
}
