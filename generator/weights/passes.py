"""What one forward pass reads and multiplies on a rank: dense weights, routed experts, the head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from generator.architecture import ModelArchitecture
from generator.weights.layers import layer_tensors
from generator.weights.plan import WeightPlan, plan_weights
from generator.weights.shards import Shards, WeightLayout, split
from generator.weights.tensors import Component, Tensor, vocabulary_tensor

_SHARED_OUT = frozenset((Component.ROUTER, Component.SHARED_EXPERT, Component.LATENT))
"""Whole on each rank under sequence-parallel MoE, which then gives each rank its own tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedWeights:
    """Weights on one rank that a pass reads, and their elements by the format they multiply in.

    ``wide_elements`` are in the model dtype, ``narrow_elements`` in the checkpoint's quantised
    format. Two operations for each element and token; of routed experts all are counted here.
    """

    bytes_per_rank: int = 0
    wide_elements: int = 0
    narrow_elements: int = 0

    def __add__(self, other: PassedWeights) -> PassedWeights:
        return PassedWeights(
            bytes_per_rank=self.bytes_per_rank + other.bytes_per_rank,
            wide_elements=self.wide_elements + other.wide_elements,
            narrow_elements=self.narrow_elements + other.narrow_elements,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PassWeights:
    """The weights of a pass: what every pass reads, the routed experts, and the head."""

    dense: PassedWeights
    routed: PassedWeights
    head: PassedWeights


@lru_cache(maxsize=1024)  # a plan asks for each layout in both roles, with and without drafts
def decoder_pass(
    architecture: ModelArchitecture, layout: WeightLayout, *, sequence_parallel_moe: bool = False
) -> PassWeights:
    """The decoder's weights on one tensor rank, all pipeline stages together.

    Embeddings are looked up, not read, and left out. Raises InvalidInput where the ranks cannot
    share a dimension.
    """
    plan = plan_weights(architecture)
    shards = Shards.of_layout(layout, sequence_parallel_moe=sequence_parallel_moe)
    counts = Counter(plan.kind_of_layer)
    return _passed(architecture, plan, shards, counts, ())


@lru_cache(maxsize=1024)
def draft_pass(
    architecture: ModelArchitecture, layout: WeightLayout, *, sequence_parallel_moe: bool = False
) -> PassWeights:
    """The weights one drafted token passes: the MTP module and the head."""
    plan = plan_weights(architecture)
    shards = Shards.of_layout(layout, sequence_parallel_moe=sequence_parallel_moe)
    hidden = architecture.hidden_size
    rows = split(hidden, shards.tensor, "rows of the MTP projection") if plan.is_hybrid else hidden
    joint = Tensor(component=Component.MTP, rows=rows, columns=2 * hidden)
    # A hybrid's MTP layers are one module; of the others the i-th layer drafts the i-th token.
    layers = plan.kind_of_draft_layer if plan.is_hybrid else plan.kind_of_draft_layer[:1]
    return _passed(architecture, plan, shards, Counter(layers), (joint,))


def _passed(
    architecture: ModelArchitecture,
    plan: WeightPlan,
    shards: Shards,
    layers: Counter[int],
    others: Iterable[Tensor],
) -> PassWeights:
    dense = routed = PassedWeights()
    for index, times in layers.items():
        kind = plan.kinds[index]
        tensors = layer_tensors(
            kind.layer,
            architecture.hidden_size,
            shards,
            is_quantized=plan.storage.is_quantized,
        )
        for tensor in tensors:
            passed = _tensor(tensor, plan, kind.wide_modules, shards, times)
            if tensor.component is Component.ROUTED_EXPERTS:
                routed += passed
            else:
                dense += passed
    for tensor in others:
        dense += _tensor(tensor, plan, frozenset(), shards, 1)
    head = vocabulary_tensor(
        Component.HEAD, architecture.vocab_size, architecture.hidden_size, shards.tensor
    )
    return PassWeights(dense=dense, routed=routed, head=_tensor(head, plan, frozenset(), shards, 1))


def _tensor(
    tensor: Tensor, plan: WeightPlan, wide_modules: frozenset[str], shards: Shards, times: int
) -> PassedWeights:
    size = times * plan.storage.tensor_bytes(tensor, wide_modules)
    is_matrix = tensor.columns > 1 and tensor.component is not Component.NORMS
    elements = times * tensor.elements if is_matrix and not tensor.is_engine_buffer else 0
    if shards.replicates_shared_expert and tensor.component in _SHARED_OUT:
        elements //= shards.tensor
    is_wide = (
        tensor.element_bytes is not None
        or not tensor.modules
        or tensor.modules[0] in wide_modules
        or not plan.storage.is_quantized
    )
    return PassedWeights(
        bytes_per_rank=size,
        wide_elements=elements if is_wide else 0,
        narrow_elements=0 if is_wide else elements,
    )
