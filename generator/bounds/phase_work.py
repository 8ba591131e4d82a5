"""Work of a phase as an efficiency is applied to it: seconds at least, and in how many steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.bounds.decode import decode_step
from generator.bounds.engine_work import EngineWork
from generator.bounds.prefill import prefill_bound
from generator.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWork:
    """Work of one phase: what it takes at least, and in how many steps."""

    bound_s: float
    steps: float

    def times(self, count: float) -> PhaseWork:
        """The same work so many times, one after the other."""
        return PhaseWork(bound_s=self.bound_s * count, steps=self.steps * count)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillWork:
    """One prompt alone in a worker, and a full batch on all of its data-parallel ranks."""

    alone: PhaseWork
    batch: PhaseWork
    prompts_per_batch: int

    @property
    def each_of_batch(self) -> PhaseWork:
        """A prompt's share of a worker that is always full."""
        return self.batch.times(1 / self.prompts_per_batch)


def decode_step_work(
    work: EngineWork, sequences_per_rank: float, workload: Workload, collective_latency_s: float
) -> PhaseWork:
    """One step over sequences that are on average half-way through their output."""
    context_tokens = workload.isl + workload.osl / 2
    step = decode_step(work, np.array([sequences_per_rank]), context_tokens, collective_latency_s)
    return PhaseWork(bound_s=float(step.total_s[0]), steps=1.0)


def prefill_work(
    work: EngineWork, prompt_tokens: int, batch_tokens: int, collective_latency_s: float
) -> PrefillWork:
    """Prefilling in steps of at most ``batch_tokens`` on a rank, as prefill_bound has it."""
    bound = prefill_bound(work, prompt_tokens, batch_tokens, collective_latency_s)
    return PrefillWork(
        alone=PhaseWork(bound_s=bound.alone_s, steps=bound.alone_steps),
        batch=PhaseWork(bound_s=bound.batch_s, steps=bound.batch_steps),
        prompts_per_batch=bound.prompts_per_batch,
    )
