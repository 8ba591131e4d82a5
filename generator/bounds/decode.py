"""The least one decode step can take: max(memory, compute) + communication.

A bound on time under stated assumptions: every byte once at the memory's peak, every operation at
the peak of its precision, tokens routed evenly over experts, sequences spread evenly over ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.bounds.communication import communication_s
from generator.bounds.engine_work import EngineWork, Experts
from generator.bounds.numbers import Array
from generator.weights import PassWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBound:
    """Seconds of a pass by what limits it, for each number of sequences or prompts asked about."""

    memory_s: Array
    compute_s: Array
    communication_s: Array

    @property
    def total_s(self) -> Array:
        return np.maximum(self.memory_s, self.compute_s) + self.communication_s


def decode_step(
    work: EngineWork, sequences: Array, context_tokens: float, collective_latency_s: float
) -> StepBound:
    """The bound of a step of so many sequences on each data-parallel rank.

    A step verifies 1 + S tokens of each sequence and drafts S more one after the other.
    Sequences of a pipeline are shared out over its stages, which work at the same time, so the
    time is that of one share through all of them.
    """
    layout = work.layout
    share = sequences / layout.pipeline
    verified = share * (1 + work.speculative_tokens)
    memory = _weights_read(work.decoder, work.experts, verified * layout.data)
    compute = _multiplied_s(work, work.decoder, verified)
    if work.draft is not None:
        drafts = work.speculative_tokens
        memory = memory + drafts * _weights_read(work.draft, work.experts, share * layout.data)
        compute = compute + drafts * _multiplied_s(work, work.draft, share)
    memory = memory + share * _cache_read(work, context_tokens)
    compute = compute + _mixed_s(work, verified, context_tokens)
    return StepBound(
        memory_s=memory / work.peaks.memory,
        compute_s=compute,
        communication_s=communication_s(work, verified, collective_latency_s),
    )


def touched_share(experts: Experts | None, tokens: Array) -> Array:
    """The expected share of the experts that so many tokens reach, routed evenly."""
    if experts is None:
        return np.zeros_like(tokens)
    return 1 - (1 - experts.share) ** tokens


def _weights_read(weights: PassWeights, experts: Experts | None, group_tokens: Array) -> Array:
    touched = touched_share(experts, group_tokens)
    always = weights.dense.bytes_per_rank + weights.head.bytes_per_rank
    return always + touched * weights.routed.bytes_per_rank


def _multiplied_s(work: EngineWork, weights: PassWeights, tokens: Array) -> Array:
    """Seconds of the matrix products of so many tokens on each data-parallel rank."""
    peaks = work.peaks
    routed = work.layout.data * work.experts.share if work.experts else 0.0
    wide = weights.dense.wide_elements + weights.head.wide_elements
    wide_elements = wide + routed * weights.routed.wide_elements
    narrow = weights.dense.narrow_elements + weights.head.narrow_elements
    narrow_elements = narrow + routed * weights.routed.narrow_elements
    return 2 * tokens * (wide_elements / peaks.wide + narrow_elements / peaks.narrow)


def _cache_read(work: EngineWork, context_tokens: float) -> float:
    """Bytes of one sequence on a rank: keys and values once, states read and written."""
    attention, recurrence = work.attention, work.recurrence
    passes = attention.layers + work.speculative_tokens * (1 if work.draft else 0)
    cached = passes * attention.kv_bytes_per_token * context_tokens / work.layout.decode_context
    return cached + 2 * recurrence.layers * recurrence.state_bytes


def _mixed_s(work: EngineWork, tokens: Array, context_tokens: float) -> Array:
    """Seconds of attention over the context and of the recurrent layers.

    Decode context ranks share out the context but each has the heads of all of them, so that
    they read less and compute as much as without.
    """
    attention, recurrence = work.attention, work.recurrence
    pairs = attention.layers * attention.decode_flops * context_tokens
    states = recurrence.layers * recurrence.flops_per_token
    return tokens * (pairs / work.peaks.attention + states / work.peaks.wide)
