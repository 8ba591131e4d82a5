"""What a model is made of: layers, heads, experts and states, as plain frozen dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQueryAttention:
    """Full attention with shared key/value heads (MHA and MQA are its two ends).

    ``has_output_gate`` doubles the query projection. With ``qk_norm_spans_heads`` one norm covers
    the whole query (and key) row, else one vector of ``head_dim`` serves every head.
    """

    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    has_output_gate: bool = False
    has_qkv_bias: bool = False
    has_qk_norm: bool = False
    has_output_bias: bool = False
    qk_norm_spans_heads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiHeadLatentAttention:
    """Full attention that caches one compressed latent per token (DeepSeek's MLA)."""

    num_attention_heads: int
    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDeltaNet:
    """Linear attention with a convolution state and a matrix state per request (GDN)."""

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """State-space layer with a convolution state and an SSM state per request."""

    num_heads: int
    head_dim: int
    num_groups: int
    state_size: int
    conv_kernel: int
    chunk_size: int
    has_conv_bias: bool = True
    has_projection_bias: bool = False


FullAttention = GroupedQueryAttention | MultiHeadLatentAttention
RecurrentMixer = GatedDeltaNet | Mamba2
Mixer = FullAttention | RecurrentMixer


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseMlp:
    """A feed-forward block; ``is_gated`` means three matrices (gate, up, down), else two."""

    intermediate_size: int
    is_gated: bool = True
    has_bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """Routed experts plus an optional shared expert.

    ``shared_expert_intermediate_size`` is the sum over shared experts, 0 without any.
    ``latent_size`` is the width experts work in when it is not the hidden size (Nemotron-3).
    ``router_dtype`` is the torch name of the router's own dtype, None for the model's.
    """

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int = 0
    has_shared_expert_gate: bool = False
    is_gated: bool = True
    latent_size: int | None = None
    has_router_bias: bool = False
    router_dtype: str | None = None


Mlp = DenseMlp | MixtureOfExperts


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One decoder layer; Nemotron-H layers have a mixer or an MLP, not both."""

    mixer: Mixer | None = None
    mlp: Mlp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTower:
    """The image encoder, counted unless the engine runs language-model-only.

    A patch merger projects ``spatial_merge_size`` squared patches to ``out_hidden_size``;
    ``num_deepstack_mergers`` further ones feed intermediate layers. ``has_final_norm`` and
    ``has_replicated_projector`` tell Kimi's tower from Qwen's.
    """

    depth: int
    hidden_size: int
    intermediate_size: int
    out_hidden_size: int
    patch_size: int
    temporal_patch_size: int
    in_channels: int
    spatial_merge_size: int
    num_position_embeddings: int
    num_heads: int = 16
    num_deepstack_mergers: int = 0
    has_final_norm: bool = False
    has_replicated_projector: bool = False


class WeightFormat(StrEnum):
    """How one linear weight is stored; bytes per parameter are in quantization.py."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP32 = "fp32"
    FP8 = "fp8"
    FP8_BLOCK = "fp8-block"
    NVFP4 = "nvfp4"
    MXFP4 = "mxfp4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Which linear weights are stored narrow, and what the checkpoint says of its KV cache.

    ``linear_format`` holds for every linear module that no pattern of ``excluded_modules`` (names,
    globs or ``re:`` patterns over dotted module names, as the checkpoint spells them) matches;
    everything else stays in the model dtype. ``group_size`` is the side of a scale's group or
    block. ``kv_cache_dtype`` is None where the checkpoint declares no KV scheme.
    """

    linear_format: WeightFormat
    group_size: int | None = None
    excluded_modules: tuple[str, ...] = ()
    kv_cache_dtype: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArchitecture:
    """The dimensions of one checkpoint, independent of any engine or layout.

    ``dtype`` and ``recurrent_state_dtype`` are torch names ("bfloat16", "float32"); the latter is
    what the engine's automatic choice resolves to. ``draft_layers`` are the multi-token-prediction
    layers the checkpoint ships.
    """

    name: str
    model_type: str
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int
    dtype: str
    layers: tuple[Layer, ...]
    tie_word_embeddings: bool = False
    recurrent_state_dtype: str | None = None
    draft_layers: tuple[Layer, ...] = ()
    vision: VisionTower | None = None
    quantization: Quantization | None = field(default=None)

    def __hash__(self) -> int:
        """Three fields that equal models share: to hash all layers takes longer than a plan."""
        return hash((self.name, self.hidden_size, len(self.layers)))

    @property
    def attention_layers(self) -> int:
        return sum(isinstance(layer.mixer, FullAttention) for layer in self.layers)

    @property
    def recurrent_layers(self) -> int:
        return sum(isinstance(layer.mixer, RecurrentMixer) for layer in self.layers)

    @property
    def draft_attention_layers(self) -> int:
        return sum(isinstance(layer.mixer, FullAttention) for layer in self.draft_layers)

    @property
    def is_hybrid(self) -> bool:
        return self.recurrent is not None

    @property
    def attention(self) -> FullAttention | None:
        """The attention every full-attention layer uses, None where the model has none."""
        return next(
            (layer.mixer for layer in self.layers if isinstance(layer.mixer, FullAttention)), None
        )

    @property
    def recurrent(self) -> RecurrentMixer | None:
        """The recurrent mixer every such layer uses, None for attention-only models."""
        return next(
            (layer.mixer for layer in self.layers if isinstance(layer.mixer, RecurrentMixer)), None
        )

    @property
    def experts(self) -> MixtureOfExperts | None:
        """The expert block of the model's MoE layers, None for dense models."""
        return next(self._expert_blocks(), None)

    @property
    def signature(self) -> str:
        """A short key that names the weights' shape, e.g. ``qwen3_5_moe/92Lx8192/512E/nvfp4``."""
        experts = self.experts
        parts = [self.model_type, f"{len(self.layers)}Lx{self.hidden_size}"]
        if experts is not None:
            parts.append(f"{experts.num_experts}E")
        parts.append(str(self.quantization.linear_format) if self.quantization else self.dtype)
        return "/".join(parts)

    def _expert_blocks(self) -> Iterator[MixtureOfExperts]:
        return (layer.mlp for layer in self.layers if isinstance(layer.mlp, MixtureOfExperts))
