"""Why an engine is no candidate, with the numbers that say so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from generator.errors import Problem
from generator.parallel import ParallelLayout


class Reason(StrEnum):
    """What keeps an engine from being a candidate; the values are those of the JSON document."""

    DOMAIN = "domain"
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

    ``needed`` and ``available`` are in the unit of the reason: GPUs of an engine and a domain, of a
    replica and a node, ranks, bytes of a rank, KV-cache blocks; both None where the problem says no
    more than that a number does not divide. ``speculative_tokens`` and ``kv_cache_dtype`` are None
    where none would do.
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

    @property
    def shortage(self) -> float:
        """How many times what there is would do; 1 where there is no such number."""
        return self.needed / self.available if self.needed and self.available else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEngines:
    """How many engines a reason refuses, and the one that lacks least."""

    reason: Reason
    engines: int
    nearest: Rejection


def refused_by_reason(rejections: Iterable[Rejection]) -> tuple[RefusedEngines, ...]:
    """The rejections summed up, in the order in which their reasons are asked."""
    by_reason: dict[Reason, list[Rejection]] = {reason: [] for reason in Reason}
    for each in rejections:
        by_reason[each.reason].append(each)
    return tuple(
        RefusedEngines(
            reason=reason,
            engines=sum(each.engines for each in refused),
            nearest=min(refused, key=lambda each: each.shortage),
        )
        for reason, refused in by_reason.items()
        if refused
    )
