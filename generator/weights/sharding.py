"""How each component spreads over the ranks of a layout, in words."""

from __future__ import annotations

from generator.architecture import GroupedQueryAttention, Mamba2, ModelArchitecture
from generator.units import ceil_div
from generator.weights.shards import Shards, WeightLayout, key_value_heads_on_rank
from generator.weights.tensors import Component
from generator.weights.vision import vision_ranks

_REPLICATED = {
    Component.ROUTER: "replicated: every rank routes the tokens it has",
    Component.LATENT: "replicated: every rank needs the whole latent",
    Component.NORMS: "replicated: every rank norms whole rows",
}
_SPLIT = {
    Component.EMBEDDINGS: "vocabulary",
    Component.HEAD: "vocabulary",
    Component.GDN: "heads",
    Component.SHARED_EXPERT: "columns",
    Component.DENSE_MLP: "columns",
}


def describe_sharding(
    component: Component, architecture: ModelArchitecture, layout: WeightLayout, shards: Shards
) -> str:
    """One line on what is split, what is replicated, and why."""
    if component is Component.ROUTED_EXPERTS:
        return _routed_experts(architecture, layout, shards)
    text = _REPLICATED.get(component) or _over_tensor_ranks(component, architecture, layout)
    if component is Component.SHARED_EXPERT and shards.replicates_shared_expert:
        text = "replicated: sequence-parallel MoE gives each rank whole tokens"
    return text if layout.data == 1 else f"{text}; once more on each of {layout.data} DP ranks"


def _over_tensor_ranks(
    component: Component, architecture: ModelArchitecture, layout: WeightLayout
) -> str:
    tensor = layout.tensor
    if component is Component.MTP:
        where = "own embedding on the last stage" if layout.pipeline > 1 else "embedding and head"
        owner = "" if layout.pipeline > 1 else " are the decoder's"
        return f"each part as in the decoder; {where}{owner}"
    if tensor == 1:
        text = "whole: TP is 1"
    elif component is Component.ATTENTION:
        text = _attention(architecture, tensor)
    elif component is Component.MAMBA:
        text = _mamba(architecture, tensor)
    elif component is Component.VISION:
        text = _vision(architecture, tensor)
    else:
        text = f"{_SPLIT[component]} split over TP {tensor}"
    if component is Component.EMBEDDINGS and architecture.tie_word_embeddings:
        text += ", the head is the same table"
    return text


def _attention(architecture: ModelArchitecture, tensor: int) -> str:
    mixer = architecture.attention
    if not isinstance(mixer, GroupedQueryAttention):
        return (
            f"projections of the heads split over TP {tensor}; those into the latent replicated: "
            "every head reads the whole latent"
        )
    heads = mixer.num_key_value_heads
    if key_value_heads_on_rank(mixer, tensor) * tensor == heads:
        return f"q, k, v and o heads split over TP {tensor}"
    return (
        f"q and o heads split over TP {tensor}; k and v replicated {tensor // heads} times: "
        f"only {heads} KV heads, one on each rank"
    )


def _mamba(architecture: ModelArchitecture, tensor: int) -> str:
    text, mixer = f"heads split over TP {tensor}", architecture.recurrent
    if isinstance(mixer, Mamba2) and mixer.num_groups % tensor:
        text += f"; {mixer.num_groups} groups replicated to follow the heads"
    return text


def _routed_experts(architecture: ModelArchitecture, layout: WeightLayout, shards: Shards) -> str:
    experts = architecture.experts
    count = experts.num_experts if experts else 0
    if layout.expert > 1:
        here = ceil_div(count, layout.expert)
        return f"{count} whole experts over {layout.expert} ranks (EP), {here} on a rank"
    if shards.expert_slices == 1:
        return f"all {count} experts whole: one rank"
    return f"each of {count} experts split over {shards.expert_slices} ranks (TP x DP), no EP"


def _vision(architecture: ModelArchitecture, tensor: int) -> str:
    vision = architecture.vision
    if vision is None or vision_ranks(vision, tensor) == 1:
        return f"replicated: its heads do not divide by TP {tensor}"
    return f"heads and columns split over TP {tensor}; patch and position embeddings replicated"
