"""Bytes of weights on the largest rank of a layout, by component."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from generator.architecture import ModelArchitecture
from generator.kv_cache.layer_groups import stage_layers
from generator.weights.layers import layer_tensors
from generator.weights.plan import LayerKind, WeightPlan, plan_weights
from generator.weights.sharding import describe_sharding
from generator.weights.shards import Shards, WeightLayout, split
from generator.weights.tensors import Component, Tensor, vocabulary_tensor
from generator.weights.vision import vision_tensors

_NOTHING_WIDE: frozenset[str] = frozenset()
# Their vLLM classes build the head on every pipeline stage.
_HEAD_ON_EVERY_STAGE = ("qwen3_next", "nemotron_h")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightItem:
    """The weights of one component; ``sharding`` says how they spread over ranks, and why."""

    component: str
    bytes_per_rank: int
    sharding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFootprint:
    """What the weights take on the largest rank, components without weights left out."""

    items: tuple[WeightItem, ...]

    @property
    def total_bytes_per_rank(self) -> int:
        return sum(item.bytes_per_rank for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One question: a model, a layout, and the options that decide what is loaded."""

    architecture: ModelArchitecture
    tensor: int
    data: int
    pipeline: int
    expert: int
    has_draft: bool
    has_vision: bool
    sequence_parallel_moe: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """A question with what it takes to answer it."""

    request: _Request
    plan: WeightPlan
    shards: Shards


def weight_footprint(
    architecture: ModelArchitecture,
    layout: WeightLayout,
    *,
    speculative_tokens: int = 0,
    language_model_only: bool = False,
    sequence_parallel_moe: bool = False,
) -> WeightFootprint:
    """Bytes of weights on the largest rank, scales and small engine buffers included.

    ``speculative_tokens`` above 0 loads the MTP layers, ``language_model_only`` leaves the vision
    tower out, ``sequence_parallel_moe`` says that the all2all backend works so. Rotary caches and
    copies made after loading (MLA's unpacked value projection) are not weights and not here.
    Raises InvalidInput where the ranks cannot share a dimension. Source of the rules: vLLM
    0.26.0's model classes, whose bytes the tests reproduce.
    """
    return _footprint(
        _Request(
            architecture=architecture,
            tensor=layout.tensor,
            data=layout.data,
            pipeline=layout.pipeline,
            expert=layout.expert,
            has_draft=speculative_tokens > 0,
            has_vision=not language_model_only,
            sequence_parallel_moe=sequence_parallel_moe,
        )
    )


@lru_cache(maxsize=256)  # a sweep asks for few layouts, each many times
def _footprint(request: _Request) -> WeightFootprint:
    shards = Shards.of_layout(request, sequence_parallel_moe=request.sequence_parallel_moe)
    plan = plan_weights(request.architecture)
    stages = _stage_bytes(_Work(request=request, plan=plan, shards=shards))
    largest = max(stages, key=lambda stage: stage.total())
    return WeightFootprint(
        items=tuple(
            WeightItem(
                component=component.value,
                bytes_per_rank=largest[component],
                sharding=describe_sharding(component, request.architecture, request, shards),
            )
            for component in Component
            if largest[component]
        )
    )


def _stage_bytes(work: _Work) -> list[Counter[Component]]:
    """Bytes by component of each pipeline stage."""
    plan = work.plan
    kind_bytes = [_kind_bytes(work, kind) for kind in plan.kinds]
    counts = stage_layers(len(plan.kind_of_layer), work.request.pipeline)
    stages, start = [], 0
    for stage, count in enumerate(counts):
        total = _summed(work, _outer_tensors(work, stage), _NOTHING_WIDE)
        for kind, times in Counter(plan.kind_of_layer[start : start + count]).items():
            for component, size in kind_bytes[kind].items():
                total[component] += times * size
        stages.append(total)
        start += count
    if work.request.has_draft and plan.kind_of_draft_layer:
        layers = sum(kind_bytes[kind].total() for kind in plan.kind_of_draft_layer)
        stages[-1][Component.MTP] = layers + _joint_bytes(work)
    return stages


def _kind_bytes(work: _Work, kind: LayerKind) -> Counter[Component]:
    tensors = layer_tensors(
        kind.layer,
        work.request.architecture.hidden_size,
        work.shards,
        is_quantized=work.plan.storage.is_quantized,
    )
    return _summed(work, tensors, kind.wide_modules)


def _outer_tensors(work: _Work, stage: int) -> Iterator[Tensor]:
    """What a stage holds besides layers."""
    architecture, tensor = work.request.architecture, work.shards.tensor
    hidden = architecture.hidden_size
    is_last = stage == work.request.pipeline - 1
    tied = architecture.tie_word_embeddings
    # vLLM's hybrid classes build the embedding on every pipeline stage, the others on the first.
    if stage == 0 or work.plan.is_hybrid or (is_last and tied):
        yield vocabulary_tensor(Component.EMBEDDINGS, architecture.vocab_size, hidden, tensor)
    if not tied and (is_last or architecture.model_type in _HEAD_ON_EVERY_STAGE):
        yield vocabulary_tensor(Component.HEAD, architecture.vocab_size, hidden, tensor)
    if is_last:
        yield Tensor(component=Component.NORMS, rows=hidden)
    if work.request.has_vision and architecture.vision is not None:
        yield from vision_tensors(architecture.vision, tensor)


def _joint_bytes(work: _Work) -> int:
    """What joins the MTP layers to the decoder: a projection of embedding and hidden state to one.

    Qwen's and Nemotron's classes split it over the tensor ranks and have one, DeepSeek's and
    GLM's have a whole one for each layer. Three norms surround it. Embedding and head are the
    decoder's; only on a pipeline, where its embedding is elsewhere, do the MTP layers load one.
    """
    architecture, tensor = work.request.architecture, work.shards.tensor
    hidden = architecture.hidden_size
    joints, ranks = (1, tensor) if work.plan.is_hybrid else (len(architecture.draft_layers), 1)
    rows = split(hidden, ranks, "rows of the MTP projection")
    mtp = Component.MTP
    tensors = [
        Tensor(component=mtp, rows=rows, columns=2 * hidden, copies=joints, modules=("fc",)),
        Tensor(component=mtp, rows=hidden, columns=3, copies=joints),
    ]
    if work.request.pipeline > 1:
        tensors.append(vocabulary_tensor(mtp, architecture.vocab_size, hidden, tensor))
    wide = frozenset(("fc",)) if work.plan.is_joint_wide else _NOTHING_WIDE
    return _summed(work, tensors, wide).total()


def _summed(
    work: _Work, tensors: Iterable[Tensor], wide_modules: frozenset[str]
) -> Counter[Component]:
    tensor_bytes = work.plan.storage.tensor_bytes
    total: Counter[Component] = Counter()
    for tensor in tensors:
        total[tensor.component] += tensor_bytes(tensor, wide_modules)
    return total
