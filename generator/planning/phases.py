"""What each engine does in its phase, computed once for all deployments that have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from generator.planning.decode_bound import decode_step
from generator.planning.engine_work import EngineWork, engine_work
from generator.planning.engines import LegalEngine
from generator.planning.numbers import Array
from generator.planning.prefill_bound import prefill_bound, transfer_s
from generator.planning.speculation import tokens_per_step
from generator.planning.subject import Subject
from generator.resolution import uses_sequence_parallel_moe
from generator.units import ceil_div


class StepCosts(Protocol):
    """What turns the bound of some steps into their predicted time."""

    def predicted_s(self, bound_s: Array, steps: float) -> Array:
        """Seconds of work that takes so many steps and is bounded by ``bound_s`` as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the times of both phases are made of.

    ``acceptance_rate`` is of drafted tokens, ``collective_latency_s`` of one collective.
    """

    prefill: StepCosts
    decode: StepCosts
    acceptance_rate: float
    collective_latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPhase:
    """One prefill worker: a prompt alone in it, its rate when full, and a prompt's way out."""

    engine: LegalEngine
    alone_s: float
    prompts_per_s: float
    transfer_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePhase:
    """One decode worker: seconds per output token at each concurrency of a grid.

    ``transfer_s`` is what receiving the KV cache of a prompt takes.
    """

    engine: LegalEngine
    tpot_s: Array
    transfer_s: float


def work_of(subject: Subject, engine: LegalEngine) -> EngineWork:
    """The work of an engine on one of its ranks."""
    return engine_work(
        subject.architecture,
        subject.gpu,
        engine.layout,
        engine.kv_cache,
        sequence_parallel_moe=uses_sequence_parallel_moe(engine.options, subject.defaults),
    )


def prefill_phase(subject: Subject, engine: LegalEngine, costs: Costs) -> PrefillPhase:
    """One prefill worker by its bound and its costs; prompts are whole chunks where they fit one."""
    prompt, budget = subject.workload.isl, engine.sizes.batched_tokens
    work = work_of(subject, engine)
    bound = prefill_bound(work, prompt, budget, costs.collective_latency_s)
    per_rank = bound.prompts_per_batch // engine.layout.data
    steps = ceil_div(per_rank * prompt, budget) / engine.layout.pipeline
    alone = costs.prefill.predicted_s(np.array([bound.alone_s]), ceil_div(prompt, budget))
    batch = costs.prefill.predicted_s(np.array([bound.batch_s]), steps)
    return PrefillPhase(
        engine=engine,
        alone_s=float(alone[0]),
        prompts_per_s=bound.prompts_per_batch / float(batch[0]),
        transfer_s=transfer_s(work, prompt),
    )


def decode_phase(
    subject: Subject, engine: LegalEngine, concurrencies: Array, costs: Costs
) -> DecodePhase:
    """One decode worker at these concurrencies, all of them decoding and spread evenly."""
    workload = subject.workload
    work = work_of(subject, engine)
    step = decode_step(
        work,
        concurrencies / engine.layout.data,
        workload.isl + workload.osl / 2,
        costs.collective_latency_s,
    )
    tokens = tokens_per_step(engine.kind.speculative_tokens, costs.acceptance_rate)
    return DecodePhase(
        engine=engine,
        tpot_s=costs.decode.predicted_s(step.total_s, 1) / tokens,
        transfer_s=transfer_s(work, workload.isl),
    )
