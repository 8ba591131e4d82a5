"""Why an engine is no candidate, with the numbers that say so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from generator.errors import Problem
from generator.parallel import ParallelLayout


class Reason(StrEnum):
    """What keeps an engine from being a candidate; the values are those of the JSON document."""

    PLACEMENT = "placement"
    HEADS = "heads"
    CONTEXT = "context"
    PIPELINE = "pipeline"
    PIPELINE_TRANSFER = "pipeline-transfer"
    CONTEXT_TRANSFER = "context-transfer"
    PREFILL_CONTEXT = "prefill-context"
    WEIGHT_SHARES = "weight-shares"
    OTHER = "other"
    MEMORY = "memory"
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One layout that is refused, for a role or both, and how many engines go with it.

    ``needed`` and ``available`` are in the unit of the reason: GPUs of a replica and of a node,
    bytes of a rank, KV-cache blocks; both None where the problem says no more than that a number
    does not divide. ``speculative_tokens`` and ``kv_cache_dtype`` are None where none would do.
    """

    layout: ParallelLayout
    reason: Reason
    problem: Problem
    engines: int
    role: str | None = None
    speculative_tokens: int | None = None
    kv_cache_dtype: str | None = None
    needed: int | None = None
    available: int | None = None
