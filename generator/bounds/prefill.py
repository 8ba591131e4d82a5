"""The least prefilling takes: chunks of prompts, one prompt alone, and the way to decode."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from generator.bounds.communication import communication_s
from generator.bounds.decode import StepBound, touched_share
from generator.bounds.engine_work import EngineWork
from generator.bounds.numbers import Array
from generator.weights import PassWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillBound:
    """One prompt alone in a worker, and a full batch on every rank of it: seconds and steps."""

    alone_s: float
    alone_steps: float
    batch_s: float
    batch_steps: float
    prompts_per_batch: int

    @property
    def prompts_per_s(self) -> float:
        """The rate of one worker whose ranks are all kept busy."""
        return self.prompts_per_batch / self.batch_s


def prefill_bound(
    work: EngineWork, prompt_tokens: int, batch_tokens: int, collective_latency_s: float
) -> PrefillBound:
    """The bound of prefilling prompts in chunks of at most ``batch_tokens`` on a rank.

    Stages of a pipeline work on different chunks at the same time: of one prompt, a stage has all
    chunks, and the last chunk the other stages still before it. A full pipeline is as fast as its
    fullest stage, of layers that are alike. As in decode_bound every byte and operation counts once
    at its peak, and tokens are routed evenly.
    """
    layout = work.layout
    stages = layout.pipeline
    chunks = math.ceil(prompt_tokens / batch_tokens)
    passed = (chunks + stages - 1) / (chunks * stages)
    prompts = max(1, batch_tokens // prompt_tokens)

    def seconds(of: EngineWork, per_rank: int, busy_ranks: int) -> float:
        step = chunked_prefill(
            of,
            np.array([float(per_rank)]),
            prompt_tokens,
            batch_tokens=batch_tokens,
            busy_ranks=busy_ranks,
            collective_latency_s=collective_latency_s,
        )
        return float(step.total_s[0])

    return PrefillBound(
        alone_s=seconds(work, 1, 1) * passed,
        alone_steps=_steps(prompt_tokens, batch_tokens) * passed,
        batch_s=max(
            seconds(work, prompts, layout.data) / stages,
            seconds(work.without_head(), prompts, layout.data) * work.fullest_stage,
        ),
        batch_steps=_steps(prompts * prompt_tokens, batch_tokens) * work.fullest_stage,
        prompts_per_batch=prompts * layout.data,
    )


def chunked_prefill(
    work: EngineWork,
    prompts: Array,
    prompt_tokens: int,
    *,
    batch_tokens: int,
    busy_ranks: int,
    collective_latency_s: float,
) -> StepBound:
    """The bound of so many prompts on each of ``busy_ranks`` data-parallel ranks.

    Weights are read once for each chunk. Attention is causal: a token sees half the prompt.
    """
    tokens = prompts * prompt_tokens
    chunks = np.maximum(1, tokens / batch_tokens)  # fractions keep it a bound
    per_chunk = tokens / chunks
    passes = [work.decoder, *((work.draft,) if work.draft else ())]
    memory = sum(_read(work, weights, per_chunk * busy_ranks) for weights in passes) * chunks
    memory = memory + prompts * _written(work, prompt_tokens)
    compute = sum(_multiplied_s(work, weights, tokens, prompts, busy_ranks) for weights in passes)
    compute = compute + _mixed_s(work, tokens, prompt_tokens)
    return StepBound(
        memory_s=memory / work.peaks.memory,
        compute_s=compute,
        communication_s=chunks * communication_s(work, per_chunk, collective_latency_s),
    )


def transfer_s(work: EngineWork, prompt_tokens: int) -> float:
    """The least the KV cache of a prompt takes to another rank over NVLink; stages send at once."""
    return _written(work, prompt_tokens) / work.layout.pipeline / work.peaks.link


def _steps(tokens: int, batch_tokens: int) -> float:
    return max(1.0, tokens / batch_tokens)


def _read(work: EngineWork, weights: PassWeights, group_tokens: Array) -> Array:
    touched = touched_share(work.experts, group_tokens)
    always = weights.dense.bytes_per_rank + weights.head.bytes_per_rank
    return always + touched * weights.routed.bytes_per_rank


def _written(work: EngineWork, prompt_tokens: int) -> float:
    """Bytes of KV cache and states that a prompt leaves on a rank."""
    attention, recurrence = work.attention, work.recurrence
    cached = attention.layers * attention.kv_bytes_per_token * prompt_tokens
    return cached / work.layout.decode_context + recurrence.layers * recurrence.state_bytes


def _multiplied_s(
    work: EngineWork, weights: PassWeights, tokens: Array, prompts: Array, busy_ranks: int
) -> Array:
    """Seconds of the matrix products; the head works on the last token of a prompt only."""
    peaks = work.peaks
    routed = busy_ranks * work.experts.share if work.experts else 0.0
    wide = weights.dense.wide_elements + routed * weights.routed.wide_elements
    narrow = weights.dense.narrow_elements + routed * weights.routed.narrow_elements
    head = weights.head.wide_elements / peaks.wide + weights.head.narrow_elements / peaks.narrow
    return 2 * tokens * (wide / peaks.wide + narrow / peaks.narrow) + 2 * prompts * head


def _mixed_s(work: EngineWork, tokens: Array, prompt_tokens: int) -> Array:
    attention, recurrence = work.attention, work.recurrence
    pairs = attention.layers * attention.prefill_flops * prompt_tokens / 2
    states = recurrence.layers * recurrence.flops_per_token
    return tokens * (pairs / work.peaks.attention + states / work.peaks.wide)
