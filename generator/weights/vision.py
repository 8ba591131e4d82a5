"""The tensors of an image encoder on a rank."""

from __future__ import annotations

from collections.abc import Iterator

from generator.architecture import VisionTower
from generator.weights.tensors import Component, Tensor


def vision_ranks(vision: VisionTower, tensor: int) -> int:
    """Tensor ranks that share the encoder: all of them, or none where they do not divide it."""
    divides = vision.num_heads % tensor == 0 and vision.intermediate_size % tensor == 0
    return tensor if divides else 1


def vision_tensors(vision: VisionTower, tensor: int) -> Iterator[Tensor]:
    """Patch and position embeddings, encoder blocks and mergers; never quantised by vLLM."""
    ranks = vision_ranks(vision, tensor)
    hidden = vision.hidden_size
    pixels = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    yield _tensor(hidden, pixels + 1)
    yield _tensor(vision.num_position_embeddings, hidden)
    blocks = vision.depth
    yield _tensor(3 * hidden // ranks, hidden + 1, copies=blocks)
    yield _tensor(hidden, hidden // ranks + 1, copies=blocks)
    yield _tensor(vision.intermediate_size // ranks, hidden + 1, copies=blocks)
    yield _tensor(hidden, vision.intermediate_size // ranks + 1, copies=blocks)
    yield _tensor(hidden, 4, copies=blocks)  # two layer norms with their biases
    if vision.has_final_norm:
        yield _tensor(hidden, 2)
    yield from _mergers(vision, ranks)


def _mergers(vision: VisionTower, ranks: int) -> Iterator[Tensor]:
    """Each merger: a norm, a square projection of the merged patches, one to the text width."""
    merged = vision.hidden_size * vision.spatial_merge_size**2
    inner = merged if vision.has_replicated_projector else merged // ranks
    count = 1 + vision.num_deepstack_mergers
    yield _tensor(vision.hidden_size, 2)
    yield _tensor(inner, merged + 1, copies=count)
    yield _tensor(vision.out_hidden_size, inner + 1, copies=count)
    if vision.num_deepstack_mergers:  # these norm the merged patches, not each of them
        yield _tensor(merged, 2, copies=vision.num_deepstack_mergers)


def _tensor(rows: int, columns: int, copies: int = 1) -> Tensor:
    return Tensor(component=Component.VISION, rows=rows, columns=columns, copies=copies)
