"""The inverse answers as tables: memory for requests, limits of the flags, varying lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generator.capacity.capacity import EngineCapacity
from generator.capacity.inverse import (
    MeanLengthCapacity,
    RequestQuestion,
    mean_length_capacity,
    memory_for_requests,
    startup_fault,
    startup_limits,
)
from generator.capacity.view import Table, engine_label
from generator.units import format_count, gib


def memory_for_requests_table(
    capacities: Sequence[EngineCapacity], question: RequestQuestion
) -> Table:
    """The limits of the two length and sequence flags, and the memory that requests take.

    Raises InvalidInput where the question's requests are longer than an engine accepts.
    """
    headers = ["engine", "longest", "starts", "N", "KV GiB", "total", "fits", "util."]
    return headers, [_memory_row(item, question) for item in capacities]


def _memory_row(capacity: EngineCapacity, question: RequestQuestion) -> list[str]:
    limits, needed = startup_limits(capacity), memory_for_requests(capacity, question)
    starts, utilization = limits.highest_max_num_seqs, needed.gpu_memory_utilization
    return [
        engine_label(capacity),
        str(limits.longest_max_model_len),
        "-" if starts is None else str(starts),
        str(needed.requests_per_rank),
        f"{gib(needed.kv_cache_bytes_per_rank):.2f}",
        f"{gib(needed.total.bytes_per_rank):.2f}",
        "yes" if needed.fits else "no",
        "-" if utilization is None else f"{utilization:.4f}",
    ]


def memory_for_requests_notes(
    capacities: Sequence[EngineCapacity], question: RequestQuestion
) -> Iterator[str]:
    """What the columns mean, and the engines that would not start."""
    context = capacities[0].setting.architecture.max_position_embeddings
    yield (
        f"longest: the longest max-model-len the KV cache allows (the model's context: {context})."
        " starts: the highest max-num-seqs vLLM starts with, - for any; how many of full length it"
        " really holds is the max rank above."
    )
    lengths = dict.fromkeys(
        str(memory_for_requests(item, question).request_tokens) for item in capacities
    )
    yield (
        f"N: requests of {', '.join(lengths)} tokens on one rank ({_asked(question)}), the KV cache"
        " they take, all of the GPU's memory then (CUDA context included), whether the KV cache"
        " above holds them, and the gpu-memory-utilization that gives it: - where none does, or"
        " where the KV cache is set in bytes."
    )
    for item in capacities:
        fault = startup_fault(item)
        if fault is not None:
            yield f"{engine_label(item)}: {fault.message}"


def _asked(question: RequestQuestion) -> str:
    if question.requests is None:
        return "as many as max-num-seqs"
    return f"its share of {question.requests} on an endpoint"


def mean_length_table(capacities: Sequence[EngineCapacity]) -> Table | None:
    """Requests where lengths vary, beside the worst case; None where all are of one length."""
    rows = [
        _mean_row(item, mean)
        for item in capacities
        if (mean := mean_length_capacity(item)) is not None and mean.random_range_ratio < 1
    ]
    headers = ["engine", "mean n", "mean rank", "endpoint", "worst n", "worst rank", "more"]
    return (headers, rows) if rows else None


def _mean_row(capacity: EngineCapacity, mean: MeanLengthCapacity) -> list[str]:
    worst = capacity.at_workload
    return [
        engine_label(capacity),
        f"{float(mean.blocks_per_request):.2f}",
        format_count(float(mean.per_rank)),
        format_count(float(mean.per_endpoint)),
        str(worst.blocks_per_request),
        format_count(float(worst.per_rank)),
        f"{float(mean.per_rank / worst.per_rank - 1):+.1%}",
    ]


def mean_length_notes(capacities: Sequence[EngineCapacity]) -> Iterator[str]:
    """The lengths that the load generator draws."""
    drawn = {
        f"prompts of {mean.prompt.shortest_tokens} to {mean.prompt.longest_tokens} and outputs of"
        f" {mean.output.shortest_tokens} to {mean.output.longest_tokens} tokens"
        f" (random_range_ratio {mean.random_range_ratio:g})"
        for mean in map(mean_length_capacity, capacities)
        if mean is not None
    }
    yield (
        f"Lengths vary: {'; '.join(sorted(drawn))}. mean: requests held in the long run, each at"
        " its full length; worst: all of the longest."
    )
