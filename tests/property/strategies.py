"""Models and engine flags that vLLM would start with, for hypothesis to draw."""

from __future__ import annotations

from hypothesis import strategies as st

from generator.architecture import (
    DenseMlp,
    FullAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    Layer,
    Mamba2,
    ModelArchitecture,
    MultiHeadLatentAttention,
    RecurrentMixer,
)
from generator.kv_cache.block_size import RecurrentCacheMode, tensor_parallel_problems
from generator.kv_cache.kv_cache import KvCacheOptions

_TENSOR_SIZES = (1, 2, 4, 8, 16)


def _powers_of_two(least: int, most: int) -> st.SearchStrategy[int]:
    return st.sampled_from(
        [2**power for power in range(most.bit_length()) if least <= 2**power <= most]
    )


@st.composite
def grouped_query_attentions(draw: st.DrawFn) -> GroupedQueryAttention:
    kv_heads = draw(_powers_of_two(1, 8))
    return GroupedQueryAttention(
        num_attention_heads=kv_heads * draw(_powers_of_two(1, 8)),
        num_key_value_heads=kv_heads,
        head_dim=draw(st.sampled_from([64, 128, 256])),
    )


@st.composite
def latent_attentions(draw: st.DrawFn) -> MultiHeadLatentAttention:
    return MultiHeadLatentAttention(
        num_attention_heads=draw(_powers_of_two(8, 128)),
        kv_lora_rank=draw(st.sampled_from([256, 512])),
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        q_lora_rank=None,
    )


@st.composite
def gated_delta_nets(draw: st.DrawFn) -> GatedDeltaNet:
    key_heads = draw(_powers_of_two(1, 16))
    return GatedDeltaNet(
        num_key_heads=key_heads,
        num_value_heads=key_heads * draw(st.integers(1, 8)),
        key_head_dim=draw(st.sampled_from([64, 128])),
        value_head_dim=draw(st.sampled_from([64, 128])),
        conv_kernel=draw(st.integers(2, 4)),
    )


@st.composite
def mamba2_mixers(draw: st.DrawFn) -> Mamba2:
    return Mamba2(
        num_heads=draw(_powers_of_two(8, 256)),
        head_dim=draw(st.sampled_from([32, 64])),
        num_groups=draw(_powers_of_two(1, 8)),
        state_size=draw(st.sampled_from([64, 128])),
        conv_kernel=draw(st.integers(2, 4)),
        chunk_size=draw(st.sampled_from([64, 128, 256])),
    )


attentions: st.SearchStrategy[FullAttention] = st.one_of(
    grouped_query_attentions(), latent_attentions()
)
recurrent_mixers: st.SearchStrategy[RecurrentMixer] = st.one_of(gated_delta_nets(), mamba2_mixers())


@st.composite
def architectures(draw: st.DrawFn, *, is_hybrid: bool = False) -> ModelArchitecture:
    """Draw a model of up to 40 layers in any order; ``is_hybrid`` leaves no choice about states."""
    attention = Layer(mixer=draw(attentions))
    kinds = [attention, Layer(mlp=DenseMlp(intermediate_size=1))]
    required = [attention]
    if is_hybrid or draw(st.booleans()):
        recurrent = Layer(mixer=draw(recurrent_mixers))
        kinds.append(recurrent)
        required.append(recurrent)
    layers = draw(st.lists(st.sampled_from(kinds), max_size=40))
    return ModelArchitecture(
        name="drawn",
        model_type="drawn",
        hidden_size=1,
        vocab_size=1,
        max_position_embeddings=1 << 20,
        dtype="bfloat16",
        recurrent_state_dtype=draw(st.sampled_from([None, "float32"])),
        layers=tuple(draw(st.permutations(layers + required))),
        draft_layers=(attention,) * draw(st.integers(0, 2)),
    )


def tensor_sizes(architecture: ModelArchitecture) -> tuple[int, ...]:
    """List the tensor parallel sizes vLLM can shard this model over; 1 is always among them."""
    attention = architecture.attention
    assert attention is not None
    return tuple(
        size
        for size in _TENSOR_SIZES
        if not tensor_parallel_problems(attention, architecture.recurrent, size)
    )


@st.composite
def options_for(draw: st.DrawFn, architecture: ModelArchitecture) -> KvCacheOptions:
    """Draw flags that vLLM accepts for this model, context ranks wherever heads are replicated."""
    tensor = draw(st.sampled_from(tensor_sizes(architecture)))
    attention = architecture.attention
    heads = attention.num_key_value_heads if isinstance(attention, GroupedQueryAttention) else 1
    speculative = draw(st.integers(0, 7))
    has_drafts = speculative > 0 and bool(architecture.draft_layers)
    most_stages = 1 if has_drafts else min(len(architecture.layers), 8)
    return KvCacheOptions(
        tensor=tensor,
        pipeline=draw(st.integers(1, most_stages)),
        decode_context=draw(_powers_of_two(1, max(1, tensor // heads))),
        kv_cache_dtype=draw(st.sampled_from(["auto", "bfloat16", "fp8", "nvfp4"])),
        mamba_ssm_cache_dtype=draw(st.sampled_from(["auto", "bfloat16", "float32"])),
        num_speculative_tokens=speculative,
        prefix_caching=draw(st.booleans()),
        mamba_cache_mode=draw(st.sampled_from(RecurrentCacheMode)),
        block_size=draw(st.none() | st.integers(1, 256).map(lambda count: 16 * count)),
        kernel_block_tokens=draw(_powers_of_two(16, 128)),
    )


@st.composite
def engines(
    draw: st.DrawFn, *, is_hybrid: bool = False
) -> tuple[ModelArchitecture, KvCacheOptions]:
    architecture = draw(architectures(is_hybrid=is_hybrid))
    return architecture, draw(options_for(architecture))
