"""What the collectives of one pass take at least: bytes over NVLink, and a latency for each."""

from __future__ import annotations

from generator.bounds.engine_work import EngineWork
from generator.bounds.numbers import Array

_ACTIVATION_BYTES = 2


def communication_s(work: EngineWork, tokens: Array, collective_latency_s: float) -> Array:
    """Seconds of all collectives of a pass; ``tokens`` are those of one data-parallel rank.

    An all-reduce sends each rank's row once, as a switch that adds up allows, less its own share.
    Under expert parallelism a token goes to every rank that has one of its experts, and comes
    back. Over data-parallel ranks without it every rank has a slice of all experts: it receives
    the tokens of all others, and sends its part of every sum.
    """
    layout = work.layout
    reductions = work.mixers + work.dense_mlps
    elements = reductions * work.hidden_size
    if layout.data == 1:
        reductions += work.expert_mlps
        elements += work.expert_mlps * work.expert_row_size
    size = tokens * elements * _ACTIVATION_BYTES * (1 - 1 / layout.tensor)
    count = reductions if layout.tensor > 1 else 0
    if layout.data > 1:
        size = size + work.expert_mlps * _exchanged_bytes(work, tokens)
        count += 2 * work.expert_mlps
    return size / work.peaks.link + count * collective_latency_s


def _exchanged_bytes(work: EngineWork, tokens: Array) -> Array:
    """Bytes over a rank's link for one layer of experts between data-parallel ranks."""
    layout, row_size = work.layout, work.expert_row_size
    ranks = layout.tensor * layout.data
    if not layout.expert_parallel or work.experts is None:
        received = (layout.data - 1) * work.dispatch_bytes
        sent = layout.data * _ACTIVATION_BYTES * (1 - 1 / ranks)
        return tokens * row_size * (received + sent)
    reached = (ranks - 1) * (1 - (1 - 1 / ranks) ** work.experts.per_token)
    both_ways = row_size * (work.dispatch_bytes + _ACTIVATION_BYTES)
    return tokens / layout.tensor * both_ways * reached
