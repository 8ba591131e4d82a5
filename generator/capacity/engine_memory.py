"""The memory account of one GPU: from what the engine sees down to what the KV cache gets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from generator.errors import NothingFits, Problem
from generator.units import ceil_div, format_gib

_UTILIZATION_STEPS = 10_000


class Basis(StrEnum):
    """How a figure is known."""

    MEASURED = "measured"
    COMPUTED = "computed"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """One term of the account. ``uncertainty_bytes`` is the +- of an assumed term."""

    bytes_per_rank: int
    basis: Basis
    uncertainty_bytes: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupTerms:
    """What an engine finds and takes on one GPU before there is a KV cache."""

    total: MemoryItem
    cuda_context: MemoryItem
    weights: MemoryItem
    peak_activation: MemoryItem
    non_torch: MemoryItem
    cuda_graphs: MemoryItem

    @property
    def spent(self) -> dict[str, MemoryItem]:
        """What the share that the engine may use is spent on before the KV cache, by its name."""
        return {
            "weights": self.weights,
            "non-torch memory": self.non_torch,
            "peak activation": self.peak_activation,
            "CUDA graphs": self.cuda_graphs,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedProfile:
    """A measured start-up of an engine's settings that is not of its weights, so not of it."""

    name: str
    weights_bytes_per_rank: int
    computed_weights_bytes_per_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMemory:
    """Where the memory of one GPU goes when an engine starts (vLLM 0.26 and later).

    The CUDA context is listed but not subtracted: it predates the engine's baseline and sits in
    the share that ``gpu_memory_utilization`` leaves alone. ``unused_profile`` is what was measured
    under the same settings but with other weights, where that is why terms are assumed.
    """

    terms: StartupTerms
    gpu_memory_utilization: float
    kv_cache: MemoryItem
    unused_profile: UnusedProfile | None = None

    @property
    def requested_bytes_per_rank(self) -> int:
        """What the engine may use: total x utilization, rounded up as the engine does."""
        return requested_bytes(self.terms, self.gpu_memory_utilization)


def utilization_for(terms: StartupTerms, kv_cache_bytes_per_rank: int) -> float | None:
    """The least gpu-memory-utilization, to four decimals, that leaves so large a KV cache.

    None where the GPU has not that much beside the CUDA context, which utilization leaves alone.
    """
    needed = kv_cache_bytes_per_rank + sum(item.bytes_per_rank for item in terms.spent.values())
    total = terms.total.bytes_per_rank
    utilization = ceil_div(needed * _UTILIZATION_STEPS, total) / _UTILIZATION_STEPS
    requested = requested_bytes(terms, utilization)
    return utilization if requested + terms.cuda_context.bytes_per_rank <= total else None


def account_engine_memory(
    terms: StartupTerms,
    gpu_memory_utilization: float,
    kv_cache_bytes_per_rank: int | None = None,
) -> EngineMemory:
    """The account, with the KV cache as its remainder or as given.

    KV bytes = ceil(total x utilization) - weights - peak activation - non-torch - CUDA graphs
    (vLLM 0.26's start-up; ``kv_cache_memory_bytes`` overrides the remainder). Raises NothingFits,
    naming the term that overflows, where nothing is left, or where what is given is more than the
    GPU has.
    """
    total = terms.total.bytes_per_rank
    if kv_cache_bytes_per_rank is None:
        kv_cache = _remainder(terms, gpu_memory_utilization)
    elif kv_cache_bytes_per_rank > total:
        raise NothingFits(
            Problem(
                message=(
                    f"a KV cache of {format_gib(kv_cache_bytes_per_rank)} is more than the GPU's"
                    f" {format_gib(total)}"
                ),
                hint="give the KV cache of one GPU",
            )
        )
    else:
        kv_cache = MemoryItem(bytes_per_rank=kv_cache_bytes_per_rank, basis=Basis.MEASURED)
    return EngineMemory(
        terms=terms, gpu_memory_utilization=gpu_memory_utilization, kv_cache=kv_cache
    )


def requested_bytes(terms: StartupTerms, gpu_memory_utilization: float) -> int:
    """What an engine may use of one GPU: total x utilization, rounded up as vLLM does."""
    return math.ceil(terms.total.bytes_per_rank * gpu_memory_utilization)


def _remainder(terms: StartupTerms, gpu_memory_utilization: float) -> MemoryItem:
    """What the terms leave of the request; as uncertain as all assumed terms together."""
    spent = terms.spent
    requested = requested_bytes(terms, gpu_memory_utilization)
    remainder = requested - sum(item.bytes_per_rank for item in spent.values())
    if remainder <= 0:
        raise NothingFits(_overflow(terms.total, gpu_memory_utilization, requested, spent))
    uncertainty = sum(item.uncertainty_bytes for item in spent.values())
    is_assumed = Basis.ASSUMED in {item.basis for item in (terms.total, *spent.values())}
    return MemoryItem(
        bytes_per_rank=remainder,
        basis=Basis.ASSUMED if is_assumed else Basis.COMPUTED,
        uncertainty_bytes=uncertainty,
    )


def _overflow(
    total: MemoryItem, utilization: float, requested: int, spent: dict[str, MemoryItem]
) -> Problem:
    """The problem of an account that does not close, named for the term that crosses the line."""
    sizes = [item.bytes_per_rank for item in spent.values()]
    crossing = next(
        label
        for label, running in zip(spent, accumulate(sizes), strict=True)
        if running >= requested
    )
    terms = ", ".join(f"{name} {format_gib(item.bytes_per_rank)}" for name, item in spent.items())
    return Problem(
        message=(
            f"no room for {crossing}: {format_gib(total.bytes_per_rank)} x {utilization:g} ="
            f" {format_gib(requested)} per GPU, needed before any KV cache: {terms}"
        ),
        hint="use more GPUs per replica, expert parallelism, or a narrower checkpoint",
    )
