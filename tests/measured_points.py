"""Points as if measured, of engines whose every phase takes what stated factors make of its bound.

They carry the origin MEASURED, since calibration refuses others; nothing here was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from generator.bounds.phase_work import PhaseWork, decode_step_work, prefill_work
from generator.checks.known_models import chosen_model
from generator.efficiency.measured_engines import MeasuredEngines, measured_engines
from generator.parallel import parse_layout
from generator.results.distribution import Distribution, distribution
from generator.results.engine_pool import EnginePool, configuration_label
from generator.results.point import (
    AllocatedGpus,
    Latencies,
    MeasuredPoint,
    Origin,
    Requests,
    Subject,
    Tokens,
)
from generator.workload import Workload

MODEL = "Qwen--Qwen3.8-2.4T-A95B-NVFP4"
LATENCY_S = 1e-6
CONTRACT = {
    "model.path": "hf:Inferact/Qwen3.8-2.4T-A95B-NVFP4",
    "vllm.version": "0.26.0",
    "gpu.type": "gb300",
    "engine.kv-cache-dtype": "fp8",
    "engine.mamba-ssm-cache-dtype": "bfloat16",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Factors and fixed seconds that times are made with, and tokens of a step with MTP."""

    decode: tuple[float, float] = (1.5, 0.006)
    prefill: tuple[float, float] = (2.0, 0.02)
    tokens_per_step: float = 2.3

    def decode_s(self, work: PhaseWork) -> float:
        return self.decode[0] * work.bound_s + self.decode[1] * work.steps

    def prefill_s(self, work: PhaseWork) -> float:
        return self.prefill[0] * work.bound_s + self.prefill[1] * work.steps


def decode_point(truth: Truth, layout: str, concurrency: int, drafts: int = 0) -> MeasuredPoint:
    """A point of a decode study, 1 token in and 1000 out."""
    empty = _point(engine_pool(layout, drafts), "decode", concurrency, Workload(isl=1, osl=1000))
    engines = _engines(empty)
    per_rank = max(1, concurrency) / engines.decode.pool.data_ranks
    step = decode_step_work(engines.decode.work, per_rank, Workload(isl=1, osl=1000), LATENCY_S)
    step_ms = truth.decode_s(step) * 1000
    tpot_ms = step_ms / (truth.tokens_per_step if drafts else 1)
    return replace(
        empty,
        duration_s=empty.requests.completed / concurrency * tpot_ms,
        latencies=Latencies(tpot=_all(tpot_ms), inter_chunk=_all(step_ms)),
    )


def prefill_point(truth: Truth, layout: str, concurrency: int) -> MeasuredPoint:
    """A point of a prefill study, 8192 tokens in and 2 out; full unless one prompt is alone."""
    empty = _point(engine_pool(layout), "prefill", concurrency, Workload(isl=8192, osl=2))
    engine = _engines(empty).prefill
    work = prefill_work(engine.work, 8192, engine.batch_tokens, LATENCY_S)
    alone_s, each_s = truth.prefill_s(work.alone), truth.prefill_s(work.each_of_batch)
    seconds = alone_s if concurrency == 1 else each_s
    return replace(
        empty,
        duration_s=empty.requests.completed * seconds,
        latencies=Latencies(ttft=_all(1000 * (alone_s if concurrency == 1 else 9 * each_s))),
    )


def aggregated_point(truth: Truth, layout: str, concurrency: int, drafts: int = 0) -> MeasuredPoint:
    """A point of one engine that prefills and decodes 8192/1024 in turn."""
    workload = Workload(isl=8192, osl=1024)
    empty = _point(engine_pool(layout, drafts), "aggregated", concurrency, workload)
    engine = _engines(empty).decode
    per_rank = concurrency / engine.pool.data_ranks
    step_s = truth.decode_s(decode_step_work(engine.work, per_rank, workload, LATENCY_S))
    prompt = prefill_work(engine.work, 8192, engine.batch_tokens, LATENCY_S).alone
    prompt_s, tokens = truth.prefill_s(prompt), truth.tokens_per_step if drafts else 1
    steps_s = 1023 / tokens * step_s
    request_s = steps_s + concurrency * prompt_s
    tpot_ms = (steps_s + (concurrency - 1) * prompt_s) / 1023 * 1000
    return replace(
        empty,
        duration_s=empty.requests.completed / concurrency * request_s,
        latencies=Latencies(tpot=_all(tpot_ms), inter_chunk=_all(tpot_ms * tokens)),
    )


def _engines(point: MeasuredPoint) -> MeasuredEngines:
    return measured_engines(point, chosen_model(MODEL))


def _all(value: float) -> Distribution:
    return distribution([value] * 20)


def engine_pool(layout: str, drafts: int = 0, role: str = "agg") -> EnginePool:
    """One worker of a layout, as a record has it."""
    return EnginePool(
        role=role,
        workers=1,
        gpus_per_worker=parse_layout(layout).ranks,
        engine="vllm",
        layout=layout,
        num_speculative_tokens=drafts,
        draft_method="mtp" if drafts else None,
    )


def deployed(point: MeasuredPoint, phase: str, *pools: EnginePool) -> MeasuredPoint:
    """The same figures, said of other engines."""
    label = configuration_label(pools)
    subject = replace(point.subject, phase=phase, configuration=label, pools=pools)
    return replace(point, subject=subject, factors={**point.factors, "configuration": label})


def _point(pool: EnginePool, phase: str, concurrency: int, workload: Workload) -> MeasuredPoint:
    completed = 8 * concurrency
    label = configuration_label([pool])
    return MeasuredPoint(
        origin=Origin.MEASURED,
        subject=Subject(
            recipe=f"made-{phase}",
            digest="0123456789abcdef",
            configuration=label,
            phase=phase,
            concurrency=concurrency,
            pools=(pool,),
        ),
        gpus=AllocatedGpus(type="gb300", aggregated=8),
        requests=Requests(completed=completed, offered=completed, failed=0),
        tokens=Tokens(input=completed * workload.isl, output=completed * workload.osl),
        duration_s=1.0,
        run=f"runs/{phase}",
        client="made",
        started_at="2026-11-30T08:00:00+00:00",
        contract=CONTRACT,
        factors={"configuration": label, "agg.max-num-batched-tokens": "16384"},
        sources={"figures": "made"},
    )
