"""The capacity answer as a versioned JSON document and as tables; one result, two views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from generator.capacity.capacity import EngineCapacity, RequestCapacity, unmodelled_text
from generator.capacity.engine_memory import Basis, EngineMemory, MemoryItem, UnusedProfile
from generator.capacity.inverse import (
    MeanLengthCapacity,
    MemoryForRequests,
    RequestQuestion,
    mean_length_capacity,
    memory_for_requests,
    startup_limits,
)
from generator.units import KIB, format_count, format_gib, gib

JSON_VERSION = 1

MARKS = {Basis.MEASURED: "m", Basis.COMPUTED: "c", Basis.ASSUMED: "a"}
_ROLE_LETTERS = {"agg": "probe", "prefill": "P", "decode": "D"}
# Printed in the budget line of the memory table instead.
_UTILIZATION = "gpu_memory_utilization"

Table = tuple[Sequence[str], list[list[str]]]


def capacity_document(
    capacities: Iterable[EngineCapacity], question: RequestQuestion
) -> dict[str, Any]:
    """The JSON answer, valid against schemas/capacity.schema.json.

    Raises InvalidInput where the question's requests are longer than an engine accepts.
    """
    return {
        "version": JSON_VERSION,
        "engines": [engine_document(item, question) for item in capacities],
    }


def engine_document(capacity: EngineCapacity, question: RequestQuestion) -> dict[str, Any]:
    """One engine of the answer; errors as capacity_document."""
    engine, resolved = capacity.engine, capacity.engine.resolved
    layout = engine.options.layout
    kv_cache = engine.kv_cache
    document: dict[str, Any] = {
        "name": engine.name,
        "role": engine.role,
        "layout": {
            "tensor": layout.tensor,
            "data": layout.data,
            "pipeline": layout.pipeline,
            "expert": layout.expert,
            "decode_context": layout.decode_context,
        },
        "num_speculative_tokens": engine.options.num_speculative_tokens,
        "max_model_len": resolved.max_model_len,
        "max_num_seqs": resolved.max_num_seqs,
        "max_num_batched_tokens": resolved.max_num_batched_tokens,
        "engine_defaults": list(resolved.defaulted),
        "memory": _memory_document(capacity.memory),
        "kv_cache": {
            "block_tokens": kv_cache.block_tokens,
            "page_bytes_per_rank": kv_cache.page_bytes_per_rank,
            "layers_per_block": kv_cache.layers_per_block,
            "num_blocks": capacity.num_blocks,
            "blocks_per_request": capacity.at_workload.blocks_per_request,
        },
        "capacity": {
            **_requests_document(capacity.at_workload),
            "at_max_model_len": _requests_document(capacity.at_max_model_len),
        },
        "limits": asdict(startup_limits(capacity)),
        "memory_for_requests": _needed_document(memory_for_requests(capacity, question)),
        "cudagraph_mode": resolved.cudagraph_mode.value,
        "cudagraph_capture_sizes": list(resolved.graphs.capture_sizes),
        "cudagraphs": resolved.graphs.graphs,
    }
    mean = mean_length_capacity(capacity)
    if mean is not None:
        document["capacity"]["at_mean_length"] = _mean_document(mean)
    if engine.unforced_kv_cache and capacity.unforced:
        document["forced_block_size"] = {
            "unforced_block_tokens": engine.unforced_kv_cache.block_tokens,
            "unforced_requests_per_rank": float(capacity.unforced.per_rank),
        }
    return document


def _requests_document(requests: RequestCapacity) -> dict[str, Any]:
    return {
        "request_tokens": requests.tokens,
        "blocks_per_request": requests.blocks_per_request,
        "requests_per_rank": float(requests.per_rank),
        "requests_per_endpoint": float(requests.per_endpoint),
        "requests_by_whole_model_division": float(requests.by_whole_model_division),
    }


def _needed_document(needed: MemoryForRequests) -> dict[str, Any]:
    return {
        "requests_per_endpoint": needed.requests_per_endpoint,
        "requests_per_rank": needed.requests_per_rank,
        "request_tokens": needed.request_tokens,
        "kv_cache_memory_bytes": needed.kv_cache_bytes_per_rank,
        "total_bytes_per_rank": needed.total.bytes_per_rank,
        "total_uncertainty_bytes": needed.total.uncertainty_bytes,
        "fits": needed.fits,
        "gpu_memory_utilization": needed.gpu_memory_utilization,
    }


def _mean_document(mean: MeanLengthCapacity) -> dict[str, Any]:
    return {
        "random_range_ratio": mean.random_range_ratio,
        "shortest_isl": mean.prompt.shortest_tokens,
        "shortest_osl": mean.output.shortest_tokens,
        "blocks_per_request": float(mean.blocks_per_request),
        "requests_per_rank": float(mean.per_rank),
        "requests_per_endpoint": float(mean.per_endpoint),
    }


def _memory_document(memory: EngineMemory) -> dict[str, Any]:
    terms: dict[str, MemoryItem] = {
        field.name: getattr(memory.terms, field.name) for field in fields(memory.terms)
    }
    terms["kv_cache"] = memory.kv_cache
    unused = memory.unused_profile
    return {
        **{f"{name}_bytes_per_rank": item.bytes_per_rank for name, item in terms.items()},
        "gpu_memory_utilization": memory.gpu_memory_utilization,
        "requested_bytes_per_rank": memory.requested_bytes_per_rank,
        "basis": {name: item.basis.value for name, item in terms.items()},
        "uncertainty_bytes": {
            name: item.uncertainty_bytes for name, item in terms.items() if item.uncertainty_bytes
        },
        **({"unused_profile": asdict(unused)} if unused else {}),
    }


def distinct_engines(capacities: Iterable[EngineCapacity]) -> list[EngineCapacity]:
    """One of each kind of engine: recipes that start the same engine share a row."""
    kinds: dict[str, EngineCapacity] = {}
    for item in capacities:
        kinds.setdefault(engine_label(item), item)
    return list(kinds.values())


def engine_label(capacity: EngineCapacity) -> str:
    """Role, layout, drafted tokens and sequences: what tells engines of one spec apart."""
    engine = capacity.engine
    parts = [_ROLE_LETTERS[engine.role], str(engine.options.layout)]
    if engine.options.num_speculative_tokens:
        parts.append(f"mtp{engine.options.num_speculative_tokens}")
    parts.append(f"s{engine.resolved.max_num_seqs}")
    if engine.options.block_size:
        parts.append(f"b{engine.options.block_size}")
    return " ".join(parts)


def memory_table(capacities: Sequence[EngineCapacity]) -> Table:
    """GiB per GPU of every term, each marked by how it is known."""
    rows = [
        [engine_label(item), *(_cell(term) for term in _terms(item.memory).values())]
        for item in capacities
    ]
    return ["engine", *_terms(capacities[0].memory)], rows


def _terms(memory: EngineMemory) -> dict[str, MemoryItem]:
    """Every term of the account by its column; the total is in the budget line."""
    terms = memory.terms
    return {
        "context": terms.cuda_context,
        "non-torch": terms.non_torch,
        "weights": terms.weights,
        "activation": terms.peak_activation,
        "graphs": terms.cuda_graphs,
        "KV cache": memory.kv_cache,
    }


def _cell(item: MemoryItem) -> str:
    return f"{gib(item.bytes_per_rank):.2f} {MARKS[item.basis]}"


def memory_notes(capacities: Sequence[EngineCapacity]) -> Iterator[str]:
    """The budget line, the marks, and how far each assumed term may be off."""
    budgets = dict.fromkeys(
        f"{format_gib(item.memory.terms.total.bytes_per_rank)}"
        f" {MARKS[item.memory.terms.total.basis]}"
        f" x {item.memory.gpu_memory_utilization:g}"
        f" = {format_gib(item.memory.requested_bytes_per_rank)}"
        for item in capacities
    )
    yield f"GiB per GPU. The engine may use {'; '.join(budgets)}, less all but the CUDA context."
    yield (
        "m measured, c computed, a assumed. P prefill, D decode, mtp: speculative tokens,"
        " s: max-num-seqs, b: forced block size."
    )
    if any(item.engine.options.kv_cache_memory_bytes for item in capacities):
        yield "The KV cache is as given; the other terms do not enter into it."
    yield from _spread_notes(capacities)
    yield from _unused_profile_notes(capacities)


def _spread_notes(capacities: Sequence[EngineCapacity]) -> Iterator[str]:
    """How far assumed terms may be off: a line for each set of ranges, with the rows it is of.

    The CUDA-graph mode is named beside the rows, for most of the range is the graphs'.
    """
    rows: dict[str, list[EngineCapacity]] = {}
    for item in capacities:
        ranges = [
            f"{label} +-{gib(term.uncertainty_bytes):.2f}"
            for label, term in _terms(item.memory).items()
            if term.uncertainty_bytes
        ]
        if ranges:
            rows.setdefault(", ".join(ranges), []).append(item)
    for spread, items in rows.items():
        modes = ", ".join(dict.fromkeys(item.engine.resolved.cudagraph_mode for item in items))
        labels = ", ".join(map(engine_label, items))
        whose = f" ({modes}: {labels})" if len(rows) > 1 else ""
        yield f"Assumed terms may be off by: {spread}{whose}."


def _unused_profile_notes(capacities: Sequence[EngineCapacity]) -> Iterator[str]:
    """Measured start-ups of other weights, each with the rows it would have been of."""
    rows: dict[UnusedProfile, list[str]] = {}
    for item in capacities:
        if item.memory.unused_profile is not None:
            rows.setdefault(item.memory.unused_profile, []).append(engine_label(item))
    for profile, labels in rows.items():
        yield (
            f"{', '.join(labels)}: measured profile '{profile.name}' not used: its weights"
            f" {format_gib(profile.weights_bytes_per_rank)}, computed"
            f" {format_gib(profile.computed_weights_bytes_per_rank)}."
        )


def kv_cache_notes() -> Iterator[str]:
    """What the KV cache table counts."""
    yield "KV cache of one rank: a block is one page in each of its layers, shared by all groups."


def kv_cache_table(capacities: Sequence[EngineCapacity]) -> Table:
    """How every engine cuts its KV cache into blocks, and the graphs it captures."""
    headers = ["engine", "block tokens", "page KiB", "layers per block", "blocks", "graphs"]
    rows = [
        [
            engine_label(item),
            str(item.engine.kv_cache.block_tokens),
            f"{item.engine.kv_cache.page_bytes_per_rank / KIB:g}",
            str(item.engine.kv_cache.layers_per_block),
            str(item.num_blocks),
            str(item.engine.resolved.graphs.graphs),
        ]
        for item in capacities
    ]
    return headers, rows


def requests_notes(capacities: Sequence[EngineCapacity]) -> Iterator[str]:
    """What the columns of the requests table mean, lengths included."""
    lengths = dict.fromkeys(str(item.at_workload.tokens) for item in capacities)
    longest = dict.fromkeys(str(item.at_max_model_len.tokens) for item in capacities)
    yield f"Requests of {', '.join(lengths)} tokens; max: of max-model-len {', '.join(longest)}."
    yield (
        "n: blocks per request. vLLM rank, endpoint: what vLLM holds, blocks / n, with the rank's"
        " own block size and MTP states. whole-model: the rank's KV bytes over a request's bytes"
        " on one whole GPU without MTP, a simple division that ignores what TP and MTP do to a"
        " block."
    )


def requests_table(capacities: Sequence[EngineCapacity]) -> Table:
    """Requests of the workload's length, by both columns, and of max-model-len."""
    headers = ["engine", "n", "vLLM rank", "endpoint", "whole-model", "max rank", "max endp."]
    rows = [
        [
            engine_label(item),
            str(item.at_workload.blocks_per_request),
            format_count(float(item.at_workload.per_rank)),
            format_count(float(item.at_workload.per_endpoint)),
            f"{float(item.at_workload.by_whole_model_division):,.1f}",
            format_count(float(item.at_max_model_len.per_rank)),
            format_count(float(item.at_max_model_len.per_endpoint)),
        ]
        for item in capacities
    ]
    return headers, rows


def capacity_notes(capacities: Sequence[EngineCapacity]) -> Iterator[str]:
    """What a forced block size costs, and what was left to the engine."""
    for item in capacities:
        unforced = item.engine.unforced_kv_cache
        if unforced and item.unforced and item.unforced.per_rank != item.at_workload.per_rank:
            before, after = float(item.unforced.per_rank), float(item.at_workload.per_rank)
            yield (
                f"{engine_label(item)}: block size forced from {unforced.block_tokens} to"
                f" {item.engine.kv_cache.block_tokens} costs {before - after:,.2f} requests per"
                f" rank: {before:,.2f} -> {after:,.2f}"
            )
    for item in capacities:
        resolved = item.engine.resolved
        chosen = [
            f"{name} {getattr(resolved, name)}"
            for name in resolved.defaulted
            if name != _UTILIZATION
        ]
        if chosen:
            yield (
                f"{engine_label(item)}: left to the engine, which takes {', '.join(chosen)},"
                f" graphs up to {max(resolved.graphs.capture_sizes, default=0)} tokens"
            )
    for item in capacities:
        if flags := item.engine.options.unmodelled_flags:
            yield f"{engine_label(item)}: {unmodelled_text(flags)}"
    yield from dict.fromkeys(
        f"Rules of vLLM {defaults.resolved_version}, the newest whose source was read that is not"
        f" above {defaults.version}."
        for defaults in (item.setting.defaults for item in capacities)
        if defaults.version and not defaults.is_exact_version
    )
