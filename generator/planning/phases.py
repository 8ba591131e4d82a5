"""What each engine does in its phase, computed once for all deployments that have it."""

from __future__ import annotations

from dataclasses import dataclass

from generator.bounds.decode import decode_step
from generator.bounds.engine_work import EngineWork, engine_work
from generator.bounds.numbers import Array
from generator.bounds.phase_work import prefill_work
from generator.bounds.prefill import transfer_s
from generator.bounds.speculation import tokens_per_step
from generator.efficiency.factors import Efficiency
from generator.engine.resolution import uses_sequence_parallel_moe
from generator.enumeration.legal_engine import LegalEngine
from generator.enumeration.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the times of both phases are made of.

    ``acceptance_rate`` is of drafted tokens, ``collective_latency_s`` of one collective.
    """

    prefill: Efficiency
    decode: Efficiency
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
    """One prefill worker by its bound and its costs, its prompts in steps of its token budget."""
    work = work_of(subject, engine)
    prompt = subject.workload.isl
    done = prefill_work(work, prompt, engine.sizes.batched_tokens, costs.collective_latency_s)
    batch_s = costs.prefill.predicted_s(done.batch.bound_s, done.batch.steps)
    return PrefillPhase(
        engine=engine,
        alone_s=costs.prefill.predicted_s(done.alone.bound_s, done.alone.steps),
        prompts_per_s=done.prompts_per_batch / batch_s,
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
        tpot_s=costs.decode.predicted_step_s(step.total_s) / tokens,
        transfer_s=transfer_s(work, workload.isl),
    )
