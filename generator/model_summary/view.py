"""The summary of a model as one screen of text."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

from generator.architecture import (
    DenseMlp,
    FullAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    Layer,
    Mamba2,
    MixtureOfExperts,
    ModelArchitecture,
    MultiHeadLatentAttention,
    RecurrentMixer,
    VisionTower,
)
from generator.kv_cache.block_size import RecurrentCacheMode
from generator.model_summary.summary import LayoutCost, ModelSummary, RefusedLayout
from generator.units import KIB, MIB, gib

Table = tuple[list[str], list[list[str]]]

_KINDS: dict[type, str] = {
    GroupedQueryAttention: "full attention",
    MultiHeadLatentAttention: "full attention (MLA)",
    GatedDeltaNet: "GDN",
    Mamba2: "Mamba2",
    DenseMlp: "dense MLP",
    MixtureOfExperts: "MoE",
}
_SHARDING_WIDTH = 66


# --- the architecture -----------------------------------------------------------------------------


def architecture_rows(summary: ModelSummary) -> Iterator[tuple[str, str]]:
    """Label and text of everything the model is made of, in one screen."""
    model = summary.architecture
    yield "model", f"{model.name} ({model.model_type})"
    yield "layers", _layers(model)
    if model.attention is not None:
        yield "attention", _attention(model.attention)
    if model.recurrent is not None:
        yield _KINDS[type(model.recurrent)], _recurrent(model.recurrent)
    if model.experts is not None:
        yield "experts", _experts(model.experts)
    dense = next((layer.mlp for layer in model.layers if isinstance(layer.mlp, DenseMlp)), None)
    if dense is not None:
        gate = "gate, up and down" if dense.is_gated else "up and down"
        yield "dense MLP", f"{dense.intermediate_size} wide, {gate}"
    tied = "the head is the embedding" if model.tie_word_embeddings else "head of its own"
    yield (
        "sizes",
        (
            f"hidden {model.hidden_size}, vocabulary {model.vocab_size} ({tied}), context"
            f" {model.max_position_embeddings} tokens"
        ),
    )
    yield "dtype", _dtype(model)
    yield "vision", _vision(model.vision, is_left_out=summary.options.language_model_only)
    yield (
        "parameters",
        (
            f"{_billions(summary.parameters.total)} in all, {_billions(summary.parameters.active)}"
            " active for a token (MTP layers and vision left out, as in model names)"
        ),
    )


def _layers(model: ModelArchitecture) -> str:
    drafts = len(model.draft_layers)
    mtp = f"; {drafts} MTP: {_kinds(model.draft_layers)}" if drafts else "; no MTP"
    return f"{len(model.layers)}: {_kinds(model.layers)}{mtp}"


def _kinds(layers: tuple[Layer, ...]) -> str:
    counts = Counter(
        _KINDS[type(part)]
        for part in [layer.mixer for layer in layers] + [layer.mlp for layer in layers]
        if part is not None
    )
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _attention(mixer: FullAttention) -> str:
    match mixer:
        case GroupedQueryAttention():
            extras = [
                text
                for has, text in (
                    (mixer.has_output_gate, "output gate"),
                    (mixer.has_qk_norm, "norms of q and k"),
                    (mixer.has_qkv_bias, "biases of q, k and v"),
                )
                if has
            ]
            heads = f"{mixer.num_attention_heads} heads over {mixer.num_key_value_heads} KV heads"
            return ", ".join([f"{heads} of {mixer.head_dim}", *extras])
        case MultiHeadLatentAttention():
            query = f", queries through {mixer.q_lora_rank}" if mixer.q_lora_rank else ""
            return (
                f"{mixer.num_attention_heads} heads over one latent of {mixer.kv_lora_rank} +"
                f" {mixer.qk_rope_head_dim}; heads of {mixer.qk_nope_head_dim} +"
                f" {mixer.qk_rope_head_dim}, values of {mixer.v_head_dim}{query}"
            )


def _recurrent(mixer: RecurrentMixer) -> str:
    match mixer:
        case GatedDeltaNet():
            return (
                f"{mixer.num_key_heads} key heads of {mixer.key_head_dim}, {mixer.num_value_heads}"
                f" value heads of {mixer.value_head_dim}, convolution over {mixer.conv_kernel}"
            )
        case Mamba2():
            return (
                f"{mixer.num_heads} heads of {mixer.head_dim}, {mixer.num_groups} groups, state"
                f" {mixer.state_size}, convolution over {mixer.conv_kernel}, chunks of"
                f" {mixer.chunk_size}"
            )


def _experts(experts: MixtureOfExperts) -> str:
    shared = experts.shared_expert_intermediate_size
    latent = f", in a latent of {experts.latent_size}" if experts.latent_size else ""
    return (
        f"{experts.num_experts} of {experts.moe_intermediate_size}, {experts.num_experts_per_tok}"
        f" for a token{latent}; {f'shared expert of {shared}' if shared else 'none shared'}"
    )


def _dtype(model: ModelArchitecture) -> str:
    stored = model.quantization
    if stored is None:
        return f"{model.dtype}, not quantised"
    group = f" in groups of {stored.group_size}" if stored.group_size else ""
    patterns = len(stored.excluded_modules)
    kept = f", but for modules of {patterns} patterns" if patterns else ""
    scheme = f"KV scheme {stored.kv_cache_dtype}" if stored.kv_cache_dtype else "no KV scheme"
    return f"{model.dtype}; linear layers {stored.linear_format}{group}{kept}; {scheme}"


def _vision(vision: VisionTower | None, *, is_left_out: bool) -> str:
    if vision is None:
        return "none"
    text = f"{vision.depth} blocks of {vision.hidden_size}, {vision.num_heads} heads"
    return f"{text} (not loaded: language model only)" if is_left_out else text


def _billions(count: int) -> str:
    return f"{count / 10**9:,.2f} B"


# --- what it costs --------------------------------------------------------------------------------


def weights_notes(summary: ModelSummary) -> Iterator[str]:
    """The layout and what the largest rank holds."""
    cost = summary.cost
    layout, total = cost.layout, gib(cost.weights.total_bytes_per_rank)
    yield f"Weights on the largest rank of {layout} ({_gpus(layout.ranks)}): {total:.2f} GiB."


def weights_table(summary: ModelSummary) -> Table:
    """GiB of each component on a rank, and how it spreads over the ranks."""
    rows = []
    for item in summary.cost.weights.items:
        size = f"{gib(item.bytes_per_rank):.2f}"
        lines = textwrap.wrap(item.sharding, _SHARDING_WIDTH, break_on_hyphens=False)
        rows += [
            [item.component, size, line] if not index else ["", "", line]
            for index, line in enumerate(lines)
        ]
    return ["component", "GiB", "sharded or replicated"], rows


def cache_rows(summary: ModelSummary) -> Iterator[tuple[str, str]]:
    """Label and text of what tokens and requests take in the KV cache of a rank."""
    kv_cache, tokens = summary.cost.kv_cache, summary.request_tokens
    state = kv_cache.state
    mtp = f"MTP {kv_cache.num_speculative_tokens}" if kv_cache.num_speculative_tokens else "no MTP"
    yield (
        "KV cache",
        (
            f"{kv_cache.kv_cache_dtype}{_state_dtype(summary)}, {mtp}, prefix caching"
            f" {_prefix_caching(summary)}; as {summary.engine} sizes it"
        ),
    )
    yield (
        "block",
        (
            f"{kv_cache.block_tokens} tokens: a page of {kv_cache.page_bytes_per_rank / KIB:g} KiB"
            f" in each of {kv_cache.layers_per_block} layers"
        ),
    )
    yield (
        "token",
        (
            f"{kv_cache.attention_bytes_per_token_per_rank} bytes: {kv_cache.attention_layers}"
            f" attention layers of {kv_cache.attention_bytes_per_token_per_layer}"
        ),
    )
    if state.bytes_per_rank:
        padding = float(kv_cache.padding_fraction)
        yield (
            "state",
            (
                f"{state.bytes_per_rank} bytes in each of"
                f" {summary.architecture.recurrent_layers} layers, convolution"
                f" {state.conv_bytes_per_rank} + SSM {state.ssm_bytes_per_rank}; padded to the page"
                f" by {padding:.1%}"
            ),
        )
    parts = (
        f" ({kv_cache.attention_blocks(tokens)} attention +"
        f" {kv_cache.recurrent_blocks(tokens)} state)"
        if kv_cache.recurrent_groups
        else ""
    )
    yield (
        "request",
        (
            f"{tokens} tokens: {kv_cache.blocks_per_request(tokens)} blocks{parts},"
            f" {_mib(kv_cache.request_bytes_per_rank(tokens))} MiB on the rank"
        ),
    )


def _state_dtype(summary: ModelSummary) -> str:
    if summary.architecture.recurrent is None:
        return ""
    return f", SSM state {summary.cost.kv_cache.mamba_ssm_cache_dtype}"


def _prefix_caching(summary: ModelSummary) -> str:
    mode = summary.cost.kv_cache.mode
    if not summary.prefix_caching:
        return "off"
    return "on" if mode is RecurrentCacheMode.NONE else f"on ({mode})"


def layouts_notes(summary: ModelSummary) -> Iterator[str]:
    """What the columns of the layouts table count."""
    yield (
        f"One rank of each layout; n, MiB: blocks and memory of a request of"
        f" {summary.request_tokens} tokens; replica: on all GPUs that share it, TP x PP."
    )


def layouts_table(summary: ModelSummary) -> Table:
    """What TP does to a rank; a TP that cannot divide the model has the reason."""
    headers = ["layout", "GPUs", "weights GiB", "B/token", "block", "page KiB", "n", "MiB"]
    headers.append("replica")
    return headers, [_layout_row(cost, summary.request_tokens) for cost in summary.by_tensor]


def _layout_row(cost: LayoutCost | RefusedLayout, tokens: int) -> list[str]:
    if isinstance(cost, RefusedLayout):
        return [str(cost.layout), f"refused: {cost.reason}"]
    kv_cache = cost.kv_cache
    request = kv_cache.request_bytes_per_rank(tokens)
    return [
        str(cost.layout),
        str(cost.layout.ranks),
        f"{gib(cost.weights.total_bytes_per_rank):.2f}",
        str(kv_cache.attention_bytes_per_token_per_rank),
        str(kv_cache.block_tokens),
        f"{kv_cache.page_bytes_per_rank / KIB:g}",
        str(kv_cache.blocks_per_request(tokens)),
        _mib(request),
        _mib(request * cost.layout.replica_ranks),
    ]


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.2f}"


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
