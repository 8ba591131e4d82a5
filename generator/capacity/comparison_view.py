"""The comparison of an engine with its variants, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from generator.capacity.capacity import EngineCapacity
from generator.capacity.comparison import ComparedVariant, requests_per_gpu
from generator.capacity.view import MARKS, Table, engine_label
from generator.engine.options import EngineOptions
from generator.units import format_count, gib


def comparison_notes(capacities: Sequence[EngineCapacity]) -> Iterator[str]:
    """What the columns mean, whatever engines are compared."""
    are_given = {item.engine.options.kv_cache_memory_bytes is not None for item in capacities}
    if True in are_given:
        yield "kept: the KV cache is the one given, whatever the row does to weights."
    if False in are_given:
        yield (
            "KV cache: m measured, c computed, a assumed. Weights are computed for each row, all"
            " other memory is as the engine has it."
        )
    yield "n: blocks per request. change: of the requests per GPU."


def comparison_heading(capacity: EngineCapacity) -> str:
    """The engine that is compared, and the requests that are counted."""
    return f"{engine_label(capacity)}, requests of {capacity.at_workload.tokens} tokens:"


def comparison_table(compared: Sequence[ComparedVariant]) -> Table:
    """A row for each variant; one that the engine refuses has the reason instead of figures."""
    headers = [
        "variant",
        "block",
        "n",
        "KV GiB",
        "per rank",
        "endpoint",
        "per GPU",
        "change",
    ]
    return headers, [_row(item) for item in compared]


def _row(compared: ComparedVariant) -> list[str]:
    capacity = compared.capacity
    if capacity is None or compared.change is None:
        return [compared.name, f"refused: {compared.refusal}"]
    kv_cache = capacity.memory.kv_cache
    is_kept = capacity.engine.options.kv_cache_memory_bytes is not None
    return [
        compared.name,
        str(capacity.engine.kv_cache.block_tokens),
        str(capacity.at_workload.blocks_per_request),
        f"{gib(kv_cache.bytes_per_rank):.2f} {'kept' if is_kept else MARKS[kv_cache.basis]}",
        format_count(float(capacity.at_workload.per_rank)),
        format_count(float(capacity.at_workload.per_endpoint)),
        format_count(float(requests_per_gpu(capacity))),
        "" if compared.is_given else f"{float(compared.change):+.1%}",
    ]


def with_comparisons(
    document: Mapping[str, Any], comparisons: Sequence[Sequence[ComparedVariant]]
) -> dict[str, Any]:
    """The capacity document with each engine's comparison beside its capacity."""
    engines = [
        {**engine, "comparison": [_variant_document(each, compared[0]) for each in compared]}
        for engine, compared in zip(document["engines"], comparisons, strict=True)
    ]
    return {**document, "engines": engines}


def _variant_document(compared: ComparedVariant, given: ComparedVariant) -> dict[str, Any]:
    document = {
        "variant": compared.name,
        "changed_options": _changed(compared.options, given.options),
    }
    capacity = compared.capacity
    if capacity is None or compared.change is None:
        return {**document, "refused": compared.refusal}
    kv_cache = capacity.memory.kv_cache
    return {
        **document,
        "block_tokens": capacity.engine.kv_cache.block_tokens,
        "blocks_per_request": capacity.at_workload.blocks_per_request,
        "kv_cache_bytes_per_rank": kv_cache.bytes_per_rank,
        "kv_cache_basis": kv_cache.basis.value,
        "is_kv_cache_kept": capacity.engine.options.kv_cache_memory_bytes is not None,
        "requests_per_rank": float(capacity.at_workload.per_rank),
        "requests_per_endpoint": float(capacity.at_workload.per_endpoint),
        "requests_per_gpu": float(requests_per_gpu(capacity)),
        "change": float(compared.change),
    }


def _changed(options: EngineOptions, given: EngineOptions) -> dict[str, Any]:
    """The options that differ from the engine's own; a layout in its own notation."""
    changed: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        if value != getattr(given, field.name):
            changed[field.name] = str(value) if field.name == "layout" else value
    return changed
