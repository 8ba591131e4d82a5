"""The accounting of warm_decode for a model from its architecture, on one rank of a layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.architecture import ModelArchitecture
from generator.bounds.decode import StepBound, decode_step
from generator.bounds.engine_work import engine_work
from generator.bounds.speculation import tokens_per_step
from generator.capacity.engine_memory import StartupTerms, requested_bytes
from generator.capacity.memory_terms import startup_terms
from generator.efficiency.factors import ChosenEfficiency
from generator.engine.options import EngineOptions
from generator.engine.plan import Engine, plan_engine
from generator.engine.resolution import uses_sequence_parallel_moe
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, Gpu, MeasuredProfile
from generator.parallel import WorkerPool
from generator.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLoad:
    """What an engine decodes: sequences over all its data ranks, each with so many tokens."""

    sequences: int
    context_tokens: int
    acceptance_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRoofline:
    """One decode step of an engine, bounded, beside the memory it needs on one GPU.

    It is predicted too where there is an ``efficiency``.
    """

    engine: Engine
    load: DecodeLoad
    bound: StepBound
    terms: StartupTerms
    kv_cache_bytes_per_rank: int
    defaults: EngineDefaults
    budget_bytes_per_rank: int
    efficiency: ChosenEfficiency | None = None

    @property
    def slots(self) -> int:
        """Sequences that the scheduler runs at once, over all data ranks."""
        return self.engine.resolved.max_num_seqs * self.engine.options.layout.data

    @property
    def required_bytes_per_rank(self) -> int:
        spent = sum(item.bytes_per_rank for item in self.terms.spent.values())
        return spent + self.kv_cache_bytes_per_rank

    @property
    def headroom_bytes_per_rank(self) -> int:
        return self.budget_bytes_per_rank - self.required_bytes_per_rank

    @property
    def step_ms(self) -> float:
        return float(self.bound.total_s[0]) * 1000

    @property
    def tokens_per_step(self) -> float:
        drafts = self.engine.options.num_speculative_tokens
        return tokens_per_step(drafts, self.load.acceptance_rate)

    @property
    def tokens_per_s(self) -> float | None:
        """The endpoint's ceiling; None, withheld, where the memory does not hold the load."""
        return self._tokens_per_s(self.step_ms)

    @property
    def predicted_step_ms(self) -> float | None:
        if self.efficiency is None:
            return None
        step_s = self.efficiency.efficiency.predicted_step_s(self.bound.total_s)
        return float(step_s[0]) * 1000

    @property
    def predicted_tokens_per_s(self) -> float | None:
        """The endpoint's rate by the prediction; None where the ceiling is withheld too."""
        step_ms = self.predicted_step_ms
        return None if step_ms is None else self._tokens_per_s(step_ms)

    def _tokens_per_s(self, step_ms: float) -> float | None:
        if self.headroom_bytes_per_rank < 0:
            return None
        return self.load.sequences * self.tokens_per_step / step_ms * 1000


def model_roofline(  # noqa: PLR0913 - an engine is its model, GPU, flags and release
    architecture: ModelArchitecture,
    gpu: Gpu,
    options: EngineOptions,
    defaults: EngineDefaults,
    load: DecodeLoad,
    *,
    collective_latency_s: float,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> ModelRoofline:
    """The roofline of one aggregated engine.

    Raises InvalidInput where it would not start, or refuses sequences of that length.

    Memory is what the engine asks of a GPU: weights, start-up terms (measured where a profile
    matches, else assumed) and whole blocks of KV cache for every sequence.
    """
    if options.num_speculative_tokens and not architecture.draft_layers:
        message = f"model {architecture.name} has no multi-token-prediction layers"
        raise InvalidInput(Problem(message=message, hint="leave speculative tokens out"))
    pool = WorkerPool(workers=1, layout=options.layout)
    engine = plan_engine(str(pool.layout), "agg", pool, options, architecture, defaults)
    longest = engine.resolved.max_model_len
    if load.context_tokens > longest:
        message = f"sequences of {load.context_tokens} tokens are longer than max-model-len"
        hint = "ask for shorter ones, or raise max-model-len where the model allows it"
        raise InvalidInput(Problem(message=f"{message} {longest}", hint=hint))
    work = engine_work(
        architecture,
        gpu,
        options.layout,
        engine.kv_cache,
        sequence_parallel_moe=uses_sequence_parallel_moe(options, defaults),
    )
    terms = startup_terms(architecture, gpu, options, engine.resolved, defaults, profiles)
    data = options.layout.data
    held = engine.kv_cache.bytes_for_requests(ceil_div(load.sequences, data), load.context_tokens)
    return ModelRoofline(
        engine=engine,
        load=load,
        bound=decode_step(
            work,
            np.array([load.sequences / data]),
            load.context_tokens,
            collective_latency_s,
        ),
        terms=terms,
        kv_cache_bytes_per_rank=held,
        defaults=defaults,
        budget_bytes_per_rank=requested_bytes(terms, engine.resolved.gpu_memory_utilization),
    )
