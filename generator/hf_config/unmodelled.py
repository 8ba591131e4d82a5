"""Fields that say a decoder has layers which the arithmetic does not cover."""

from __future__ import annotations

from generator.hf_config.fields import Fields

_MARKERS = {
    "index_topk": "sparse attention with an indexer",
    "compress_ratios": "compressed attention",
    "linear_attn_config": "KDA linear attention",
    "attention_chunk_size": "chunked_attention",
}
# Qwen's config classes read sliding_window only where use_sliding_window is true.
_OPT_IN = ("qwen2", "qwen3")


def refuse_unmodelled(text: Fields) -> None:
    """Refuse each layer type that one field alone gives away, whatever the model type."""
    for name, layer_type in _MARKERS.items():
        if name in text:
            text.refuse(name, layer_type)
    sparse = text.raw("sparse_attention_config")
    if isinstance(sparse, dict) and sparse.get("use_sparse_attention", True):
        text.refuse("sparse_attention_config", "sparse attention")
    kinds = text.raw("layer_types")
    for index, kind in enumerate(kinds if isinstance(kinds, list) else []):
        if isinstance(kind, str) and kind not in ("full_attention", "linear_attention"):
            text.refuse(f"layer_types[{index}]", kind)
    if _slides(text):
        text.refuse("sliding_window", "sliding_attention")
    attention = text.raw("attn_type_list")
    if isinstance(attention, list) and 0 in attention:
        text.refuse(f"attn_type_list[{attention.index(0)}]", "lightning attention")


def _slides(text: Fields) -> bool:
    if "sliding_window" not in text:
        return False
    opt_in = str(text.raw("model_type")).startswith(_OPT_IN)
    return text.boolean("use_sliding_window", default=not opt_in)
