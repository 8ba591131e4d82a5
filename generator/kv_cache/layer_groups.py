"""Which layers share a KV-cache block id, for the whole model and for each pipeline stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from generator.architecture import (
    FullAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba2,
    Mixer,
    ModelArchitecture,
    MultiHeadLatentAttention,
    RecurrentMixer,
)
from generator.errors import InvalidInput, Problem
from generator.units import ceil_div


class LayerKind(StrEnum):
    """What a layer caches: keys and values per token, or one state per request."""

    ATTENTION = "attention"
    RECURRENT = "recurrent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers of one kind that use the same block table.

    ``positions`` count the model's layers from 0; draft layers come after the last of them.
    """

    kind: LayerKind
    positions: tuple[int, ...]
    layers_by_stage: tuple[int, ...]


_KIND_OF: dict[type, LayerKind | None] = {
    type(None): None,
    GroupedQueryAttention: LayerKind.ATTENTION,
    MultiHeadLatentAttention: LayerKind.ATTENTION,
    GatedDeltaNet: LayerKind.RECURRENT,
    Mamba2: LayerKind.RECURRENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCensus:
    """What each layer caches, in the model's order (draft layers last), and the two mixers."""

    kinds: tuple[LayerKind | None, ...]
    attention: FullAttention
    recurrent: RecurrentMixer | None


@lru_cache(maxsize=128)  # a sweep asks for few models, each many times
def take_census(architecture: ModelArchitecture, *, with_draft_layers: bool) -> LayerCensus:
    """What the layers of a model cache, draft layers included where they run.

    Raises InvalidInput for a mixer that is not modelled, layers of one kind that differ in shape
    (their pages would differ too), and a model without full attention.
    """
    layers = architecture.layers + (architecture.draft_layers if with_draft_layers else ())
    first: dict[LayerKind, Mixer] = {}
    kinds: list[LayerKind | None] = []
    for position, layer in enumerate(layers):
        mixer = layer.mixer
        if type(mixer) not in _KIND_OF:
            raise _refusal(architecture, position, f"type {type(mixer).__name__}")
        kind = _KIND_OF[type(mixer)]
        kinds.append(kind)
        if kind is not None and mixer is not None:
            expected = first.setdefault(kind, mixer)
            # Loaders share one mixer among layers; comparing fields is for those that do not.
            if mixer is not expected and mixer != expected:
                raise _refusal(architecture, position, f"whose {kind} differs in shape")
    attention, recurrent = first.get(LayerKind.ATTENTION), first.get(LayerKind.RECURRENT)
    if not isinstance(attention, FullAttention):
        raise InvalidInput(
            Problem(message=f"model {architecture.name} without full attention is not modelled")
        )
    return LayerCensus(
        kinds=tuple(kinds),
        attention=attention,
        recurrent=recurrent if isinstance(recurrent, RecurrentMixer) else None,
    )


def _refusal(architecture: ModelArchitecture, position: int, what: str) -> InvalidInput:
    return InvalidInput(
        Problem(
            message=f"layer {what} of model {architecture.name} is not modelled",
            path=f"layers.{position}",
        )
    )


def group_size(attention_layers: int, recurrent_layers: int) -> int:
    """How many layers a group has room for, as vLLM chooses it.

    The smaller kind sets the size, unless the larger has less than half as many again: then one
    padded group is cheaper than two. A single kind is a single group.
    """
    if recurrent_layers == 0:
        return attention_layers
    fewer, more = sorted((attention_layers, recurrent_layers))
    return more if 2 * more < 3 * fewer else fewer


def stage_layers(num_layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage; the remainder goes to the stages before the last.

    >>> stage_layers(92, 8)
    (11, 11, 11, 12, 12, 12, 12, 11)

    Raises InvalidInput where a stage would be empty.
    """
    share, remainder = divmod(num_layers, stages)
    if share == 0:
        raise InvalidInput(
            Problem(
                message=f"{num_layers} layers cannot fill {stages} pipeline stages",
                hint=f"choose a PP of at most {num_layers}",
                path="pipeline",
            )
        )
    last_widened = stages - 2
    return tuple(
        share + (last_widened - remainder < stage <= last_widened) for stage in range(stages)
    )


def group_layers(
    kinds: Sequence[LayerKind | None], *, model_layers: int, pipeline: int
) -> tuple[LayerGroup, ...]:
    """The model's groups, kinds in the order in which they first appear.

    ``kinds`` is the census. Group j of the g groups of a kind takes that kind's
    layers j, j+g, j+2g, ..., so that pipeline stages share every group; draft layers, beyond
    ``model_layers``, run on the last stage.
    """
    positions: dict[LayerKind, list[int]] = {}
    for position, kind in enumerate(kinds):
        if kind is not None:
            positions.setdefault(kind, []).append(position)
    size = group_size(
        len(positions[LayerKind.ATTENTION]), len(positions.get(LayerKind.RECURRENT, ()))
    )
    stages = _stage_by_position(len(kinds), model_layers, pipeline)
    return tuple(
        _group(kind, members[offset :: ceil_div(len(members), size)], stages, pipeline)
        for kind, members in positions.items()
        for offset in range(ceil_div(len(members), size))
    )


def _stage_by_position(total_layers: int, model_layers: int, pipeline: int) -> list[int]:
    stages = [
        stage
        for stage, layers in enumerate(stage_layers(model_layers, pipeline))
        for _ in range(layers)
    ]
    return stages + [pipeline - 1] * (total_layers - model_layers)


def _group(
    kind: LayerKind, positions: Sequence[int], stages: Sequence[int], pipeline: int
) -> LayerGroup:
    counts = [0] * pipeline
    for position in positions:
        counts[stages[position]] += 1
    return LayerGroup(kind=kind, positions=tuple(positions), layers_by_stage=tuple(counts))
