"""What the work of one engine consists of on a rank: bytes, operations and messages.

These are constants of an engine; decode_bound and prefill_bound multiply them by tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from generator.architecture import (
    FullAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba2,
    MixtureOfExperts,
    ModelArchitecture,
    RecurrentMixer,
    WeightFormat,
)
from generator.errors import InvalidInput, Problem
from generator.facts import Gpu
from generator.kv_cache.kv_cache import KvCacheLayout
from generator.kv_cache.layer_groups import stage_layers
from generator.parallel import ParallelLayout
from generator.quantization import bytes_per_parameter, format_of_dtype
from generator.units import DTYPE_BITS
from generator.weights import PassedWeights, PassWeights, decoder_pass, draft_pass

_PATH_OF = {
    WeightFormat.BF16: "bf16",
    WeightFormat.FP16: "bf16",
    WeightFormat.FP8: "fp8",
    WeightFormat.FP8_BLOCK: "fp8",
    WeightFormat.NVFP4: "nvfp4",
    WeightFormat.MXFP4: "nvfp4",
}
_ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """Rates of one GPU in bytes and dense operations a second; ``link`` is one direction."""

    memory: float
    link: float
    wide: float
    narrow: float
    attention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One rank's attention over ``layers``: operations for each pair of a token and a cached one.

    ``prefill_flops`` differs from ``decode_flops`` for MLA, which prefills without absorption.
    """

    layers: int
    decode_flops: float
    prefill_flops: float
    kv_bytes_per_token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """One rank's recurrent layers: bytes of a sequence's state, operations for a token."""

    layers: int
    state_bytes: int
    flops_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Routed experts: how many there are and how many serve a token; none for dense models."""

    count: int
    per_token: int

    @property
    def share(self) -> float:
        """Of all experts, those one token passes."""
        return self.per_token / self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWork:
    """One engine's work on one rank of a tensor group.

    ``mixers`` and ``mlps`` count the layers that end in a collective, by what they have.
    ``expert_row_size`` elements of a token go to its experts and come back: those of the latent
    where experts work in one. ``dispatch_bytes`` are those of one element on its way there.
    ``fullest_stage`` is the share of all layers that the pipeline stage with the most has.
    """

    layout: ParallelLayout
    speculative_tokens: int
    peaks: Peaks
    decoder: PassWeights
    draft: PassWeights | None
    experts: Experts | None
    attention: Attention
    recurrence: Recurrence
    hidden_size: int
    expert_row_size: int
    mixers: int
    dense_mlps: int
    expert_mlps: int
    dispatch_bytes: float
    fullest_stage: float

    def without_head(self) -> EngineWork:
        """The same layers alone."""
        return replace(
            self,
            decoder=replace(self.decoder, head=PassedWeights()),
            draft=replace(self.draft, head=PassedWeights()) if self.draft else None,
        )


def engine_work(
    architecture: ModelArchitecture,
    gpu: Gpu,
    layout: ParallelLayout,
    kv_cache: KvCacheLayout,
    *,
    sequence_parallel_moe: bool,
) -> EngineWork:
    """The work of an engine whose KV cache is laid out; pipeline stages count together.

    Raises InvalidInput where the GPU has no path for the checkpoint's precision, or the ranks
    cannot share a dimension.
    """
    experts = architecture.experts
    drafts = kv_cache.num_speculative_tokens
    return EngineWork(
        layout=layout,
        speculative_tokens=drafts,
        peaks=peaks(architecture, gpu, kv_cache.kv_cache_dtype),
        decoder=decoder_pass(architecture, layout, sequence_parallel_moe=sequence_parallel_moe),
        draft=draft_pass(architecture, layout, sequence_parallel_moe=sequence_parallel_moe)
        if drafts
        else None,
        experts=Experts(count=experts.num_experts, per_token=experts.num_experts_per_tok)
        if experts
        else None,
        attention=_attention(architecture, layout, kv_cache),
        recurrence=_recurrence(architecture, layout, kv_cache),
        hidden_size=architecture.hidden_size,
        expert_row_size=(experts and experts.latent_size) or architecture.hidden_size,
        mixers=sum(layer.mixer is not None for layer in architecture.layers),
        dense_mlps=sum(
            layer.mlp is not None and not isinstance(layer.mlp, MixtureOfExperts)
            for layer in architecture.layers
        ),
        expert_mlps=sum(isinstance(layer.mlp, MixtureOfExperts) for layer in architecture.layers),
        dispatch_bytes=_dispatch_bytes(architecture),
        fullest_stage=_fullest_stage(len(architecture.layers), layout.pipeline),
    )


def peaks(architecture: ModelArchitecture, gpu: Gpu, kv_cache_dtype: str) -> Peaks:
    """The rates that apply to a model on a GPU.

    Attention over an 8-bit cache may run on the 8-bit path. Raises InvalidInput where the GPU has
    none for the checkpoint's format.
    """
    rates = gpu.peak_flops_per_second
    wide = _PATH_OF[format_of_dtype(architecture.dtype)]
    stored = architecture.quantization and architecture.quantization.linear_format
    narrow = _PATH_OF.get(stored, wide) if stored else wide
    if narrow not in rates:
        raise InvalidInput(
            Problem(
                message=(
                    f"{gpu.name} has no {narrow} path for the {stored} weights of"
                    f" {architecture.name}"
                ),
                hint=f"it has {', '.join(rates)}: choose another GPU or checkpoint",
            )
        )
    is_narrow_cache = DTYPE_BITS[kv_cache_dtype] <= 8
    return Peaks(
        memory=float(gpu.hbm_bytes_per_second),
        link=gpu.nvlink_bytes_per_second / 2,
        wide=float(rates[wide]),
        narrow=float(rates[narrow]),
        attention=float(rates["fp8"] if is_narrow_cache else rates[wide]),
    )


def _fullest_stage(layers: int, stages: int) -> float:
    return max(stage_layers(layers, stages)) / layers


def _attention(
    architecture: ModelArchitecture, layout: ParallelLayout, kv_cache: KvCacheLayout
) -> Attention:
    mixer, layers = architecture.attention, architecture.attention_layers
    if mixer is None:
        return Attention(layers=0, decode_flops=0, prefill_flops=0, kv_bytes_per_token=0)
    decode, prefill = _attention_flops(mixer)
    return Attention(
        layers=layers,
        decode_flops=decode / layout.tensor,
        prefill_flops=prefill / layout.tensor,
        kv_bytes_per_token=kv_cache.attention_bytes_per_token_per_layer,
    )


def _attention_flops(mixer: FullAttention) -> tuple[float, float]:
    """Operations of all heads for one token and one cached token: decoding, and prefilling.

    A multiplication and an addition for each element of the score and of the value.
    """
    heads = mixer.num_attention_heads
    if isinstance(mixer, GroupedQueryAttention):
        return 4 * heads * mixer.head_dim, 4 * heads * mixer.head_dim
    latent = 2 * mixer.kv_lora_rank + mixer.qk_rope_head_dim
    unpacked = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
    return 2 * heads * latent, 2 * heads * unpacked


def _recurrence(
    architecture: ModelArchitecture, layout: ParallelLayout, kv_cache: KvCacheLayout
) -> Recurrence:
    mixer = architecture.recurrent
    return Recurrence(
        layers=architecture.recurrent_layers,
        state_bytes=kv_cache.state.bytes_per_rank,
        flops_per_token=_recurrent_flops(mixer) / layout.tensor if mixer else 0,
    )


def _recurrent_flops(mixer: RecurrentMixer) -> float:
    """The least a token costs: its state is updated once and read once."""
    match mixer:
        case GatedDeltaNet():
            return 4 * mixer.num_value_heads * mixer.value_head_dim * mixer.key_head_dim
        case Mamba2():
            return 4 * mixer.num_heads * mixer.head_dim * mixer.state_size


def _dispatch_bytes(architecture: ModelArchitecture) -> float:
    """Tokens may travel in the format the experts multiply in, and no narrower."""
    quantization = architecture.quantization
    if quantization is None:
        return _ACTIVATION_BYTES
    return float(bytes_per_parameter(quantization.linear_format, quantization.group_size))
