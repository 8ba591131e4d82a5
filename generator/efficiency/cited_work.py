"""The work behind each cited measurement, by the flags that were published with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from generator.bounds.engine_work import EngineWork
from generator.bounds.phase_work import PhaseWork, PrefillWork, decode_step_work, prefill_work
from generator.bounds.planned_work import planned_work
from generator.bounds.prefill import transfer_s
from generator.efficiency.plan_facts import CitedPoint, cited_points, collective_latency
from generator.engine.options import options_from_flags
from generator.facts import engine_defaults, gpu
from generator.facts.fact import DATA
from generator.hf_config import load_architecture
from generator.parallel import WorkerPool

_ENGINE = "vllm"
_BATCH_FLAG = "max-num-batched-tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedWork:
    """One decode step at the point's concurrency, its prefill, and the way between them.

    An aggregated engine (``point.prefill`` is None) prefills on the same GPUs.
    """

    point: CitedPoint
    step: PhaseWork
    prefill: PrefillWork
    prefill_workers: int
    transfer_s: float


@cache
def cited_works() -> tuple[CitedWork, ...]:
    """The work of every cited point."""
    return tuple(map(_of_point, cited_points()))


def _of_point(point: CitedPoint) -> CitedWork:
    latency_s = collective_latency().value / 1e6
    decode = _engine(point, point.decode)
    prefill_pool = point.prefill or point.decode
    prefill = _engine(point, prefill_pool)
    isl = point.workload.isl
    per_rank = point.concurrency / point.decode.data_ranks
    return CitedWork(
        point=point,
        step=decode_step_work(decode, per_rank, point.workload, latency_s),
        prefill=prefill_work(prefill, isl, point.flags[_BATCH_FLAG], latency_s),
        prefill_workers=prefill_pool.workers,
        transfer_s=transfer_s(prefill, isl) if point.prefill else 0.0,
    )


def _engine(point: CitedPoint, pool: WorkerPool) -> EngineWork:
    flags = dict(point.flags)
    if point.speculative_tokens:
        flags["speculative_config.num_speculative_tokens"] = point.speculative_tokens
    accelerator = gpu(point.gpu)
    return planned_work(
        load_architecture(DATA / "models" / point.model),
        accelerator,
        replace(options_from_flags(flags), layout=pool.layout),
        engine_defaults(_ENGINE, point.engine_version, accelerator),
    )
