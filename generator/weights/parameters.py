"""How many parameters a model has, and how many of them work on one token."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from generator.architecture import Layer, MixtureOfExperts, ModelArchitecture
from generator.weights.layers import layer_tensors
from generator.weights.shards import Shards
from generator.weights.tensors import Component

_WHOLE = Shards()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Parameters of the decoder with its embedding and head, as model names count them."""

    total: int
    active: int


def parameter_counts(architecture: ModelArchitecture) -> ParameterCounts:
    """Parameters in all, and those that one token passes: its experts instead of all experts.

    Without MTP layers and vision tower, which model names leave out too.
    """
    hidden = architecture.hidden_size
    tables = 1 if architecture.tie_word_embeddings else 2
    total = active = tables * architecture.vocab_size * hidden + hidden
    for layer, times in Counter(architecture.layers).items():
        routed, other = _layer_parameters(layer, hidden)
        total += times * (routed + other)
        active += times * (_active_experts(layer, routed) + other)
    return ParameterCounts(total=total, active=active)


def _layer_parameters(layer: Layer, hidden: int) -> tuple[int, int]:
    """Parameters of the routed experts, and all others."""
    sizes: Counter[bool] = Counter()
    for tensor in layer_tensors(layer, hidden, _WHOLE, is_quantized=False):
        if not tensor.is_engine_buffer:
            sizes[tensor.component is Component.ROUTED_EXPERTS] += tensor.elements
    return sizes[True], sizes[False]


def _active_experts(layer: Layer, routed: int) -> int:
    if not isinstance(layer.mlp, MixtureOfExperts):
        return routed
    return routed * layer.mlp.num_experts_per_tok // layer.mlp.num_experts
