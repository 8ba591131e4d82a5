"""What to assume of an engine's start-up memory where nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.facts.engines import FILE, engine_data
from generator.units import ceil_div, parse_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """An assumed amount of memory per GPU and the range that public start-ups span."""

    bytes_per_rank: int
    low_bytes_per_rank: int
    high_bytes_per_rank: int
    source: str
    as_of: str
    note: str = ""

    @property
    def uncertainty_bytes(self) -> int:
        """How far the farther end of the range is."""
        return max(
            self.high_bytes_per_rank - self.bytes_per_rank,
            self.bytes_per_rank - self.low_bytes_per_rank,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimates:
    """What to assume of an engine's start-up where no measured profile matches.

    ``cuda_graphs`` is by CUDA-graph mode, in the engine's own (reserved) sense.
    """

    cuda_context: MemoryEstimate
    non_torch: MemoryEstimate
    cuda_graphs: Mapping[str, MemoryEstimate]
    activation_base: MemoryEstimate
    activation_base_tokens: int
    activation_growth_per_1024_tokens: MemoryEstimate
    activation_reference_hidden_size: int

    def peak_activation(self, *, max_num_batched_tokens: int, hidden_size: int) -> MemoryEstimate:
        """The base, and for each batched token beyond its own a share of the growth.

        The growth is in proportion to the hidden size (engine_defaults.yaml, memory_estimates).
        """
        base, growth = self.activation_base, self.activation_growth_per_1024_tokens
        extra = max(0, max_num_batched_tokens - self.activation_base_tokens) * hidden_size
        unit = 1024 * self.activation_reference_hidden_size
        return MemoryEstimate(
            bytes_per_rank=base.bytes_per_rank + ceil_div(growth.bytes_per_rank * extra, unit),
            low_bytes_per_rank=base.low_bytes_per_rank
            + ceil_div(growth.low_bytes_per_rank * extra, unit),
            high_bytes_per_rank=base.high_bytes_per_rank
            + ceil_div(growth.high_bytes_per_rank * extra, unit),
            source=growth.source if extra else base.source,
            as_of=growth.as_of if extra else base.as_of,
            note=growth.note if extra else base.note,
        )


@cache
def memory_estimates(engine: str) -> MemoryEstimates:
    """The estimates for an engine; raises InvalidInput for one that is not in the data."""
    data = engine_data(engine)["memory_estimates"]
    activation = data["peak_activation"]
    return MemoryEstimates(
        cuda_context=_estimate(data["cuda_context"]),
        non_torch=_estimate(data["non_torch"]),
        cuda_graphs=MappingProxyType(
            {mode: _estimate(entry) for mode, entry in data["cuda_graphs"].items()}
        ),
        activation_base=_estimate(activation["base"]),
        activation_base_tokens=activation["base_tokens"]["value"],
        activation_growth_per_1024_tokens=_estimate(activation["growth"]),
        activation_reference_hidden_size=activation["reference_hidden_size"]["value"],
    )


def _estimate(entry: Mapping[str, Any]) -> MemoryEstimate:
    size = entry["unit"].partition(" ")[0]
    low, value, high = (parse_bytes(f"{entry[key]} {size}") for key in ("low", "value", "high"))
    if not low <= value <= high:
        raise InvalidInput(
            Problem(message=f"{low} <= {value} <= {high} does not hold", source=FILE)
        )
    return MemoryEstimate(
        bytes_per_rank=value,
        low_bytes_per_rank=low,
        high_bytes_per_rank=high,
        source=entry["source"],
        as_of=entry["as_of"],
        note=entry.get("note", ""),
    )
