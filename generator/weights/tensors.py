"""One tensor on a rank, and the component it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from generator.units import round_up
from generator.weights.shards import split

FP32_BYTES = 4
VOCABULARY_MULTIPLE = 64
"""vLLM pads the vocabulary to this multiple before it splits it over tensor ranks."""


class Component(StrEnum):
    """What a tensor belongs to, in the order of a report."""

    EMBEDDINGS = "embeddings"
    ATTENTION = "attention"
    GDN = "GDN"
    MAMBA = "Mamba"
    ROUTER = "router"
    SHARED_EXPERT = "shared expert"
    LATENT = "latent projections"
    ROUTED_EXPERTS = "routed experts"
    DENSE_MLP = "dense MLP"
    MTP = "MTP"
    HEAD = "head"
    VISION = "vision"
    NORMS = "norms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor on a rank, or ``copies`` of it.

    ``modules`` are the names, relative to the layer, under which a checkpoint may keep its parts
    wide; only a tensor with names is ever quantised. ``parts`` checkpoint matrices are fused in
    it, each with scales of its own. ``element_bytes`` is given where the model dtype does not
    matter. ``input_scales`` overrides how many inputs have a scale. An engine buffer is memory on
    the rank, but no parameter of the model.
    """

    component: Component
    rows: int
    columns: int = 1
    copies: int = 1
    parts: int = 1
    modules: tuple[str, ...] = ()
    element_bytes: int | None = None
    input_scales: int | None = None
    is_engine_buffer: bool = False

    @property
    def elements(self) -> int:
        return self.rows * self.columns * self.copies


def vocabulary_tensor(component: Component, vocab_size: int, hidden: int, tensor: int) -> Tensor:
    """The embedding or the head: padded rows of the vocabulary over the tensor ranks."""
    padded = round_up(vocab_size, VOCABULARY_MULTIPLE)
    rows = split(padded, tensor, "rows of the padded vocabulary")
    return Tensor(component=component, rows=rows, columns=hidden)
