"""How long the steps of a rehearsal last: the arrays that a mocker takes instead of its own timing.

A rehearsed token stands for several real ones and a rehearsed request for several real requests.
So that all shares stay as they are, the clock runs as many times faster as a token stands for:

- a decode step lasts what the real one lasts, with all its sequences and their real contexts: it
  makes so many tokens, so many times faster. The gap between tokens is the real one.
- a prefill step lasts what its prompts last, for as many requests as each stands for, so many times
  faster: (requests / tokens) of the real step. So prefill has the real share of the work, while
  times to first token are shorter than real ones by the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from generator.architecture import ModelArchitecture
from generator.bounds.decode import decode_step
from generator.bounds.engine_work import EngineWork, engine_work
from generator.bounds.numbers import Array
from generator.bounds.prefill import chunked_prefill
from generator.bounds.speculation import tokens_per_step
from generator.engine.resolution import uses_sequence_parallel_moe
from generator.recipe_engines import RecipeEngine
from generator.rehearsal.plan import RehearsalPlan

_MS = 1000.0
_LOADS = 48
_CONTEXTS = 25
_HALVINGS = 4  # of the prompt, for what is asked of shorter ones
_PREFILLS = 17


class StepTimes(Protocol):
    """What real engines take for a step on all of their data-parallel ranks at once."""

    def decode_s(self, sequences_per_rank: Array, context_tokens: float) -> Array:
        """Seconds of a decode step for each number of sequences, per token that each gets."""
        ...

    def prefill_s(self, prompts_per_rank: Array) -> Array:
        """Seconds until so many prompts are prefilled, fractions of one included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineSteps:
    """Steps as short as the hardware's peaks allow: no engine is faster.

    ``tokens_per_step`` are those that a sequence gets of one decode step, more than one with
    speculation. ``prefill`` is the same work as ``decode`` for aggregated engines.
    """

    decode: EngineWork
    prefill: EngineWork
    prompt_tokens: int
    prefill_batch_tokens: int
    collective_latency_s: float
    tokens_per_step: float = 1.0

    def decode_s(self, sequences_per_rank: Array, context_tokens: float) -> Array:
        step = decode_step(
            self.decode, sequences_per_rank, context_tokens, self.collective_latency_s
        )
        return step.total_s / self.tokens_per_step

    def prefill_s(self, prompts_per_rank: Array) -> Array:
        layout = self.prefill.layout
        step = chunked_prefill(
            self.prefill,
            prompts_per_rank,
            self.prompt_tokens,
            batch_tokens=self.prefill_batch_tokens,
            busy_ranks=layout.data,
            collective_latency_s=self.collective_latency_s,
        )
        return step.total_s / layout.pipeline


def roofline_steps(
    decode: RecipeEngine,
    prefill: RecipeEngine,
    architecture: ModelArchitecture,
    isl: int,
    collective_latency_s: float,
) -> RooflineSteps:
    """The bounds of a recipe's engines, with every drafted token accepted.

    Raises InvalidInput where a GPU has no path for the checkpoint's precision.
    """
    drafts = decode.engine.options.num_speculative_tokens
    return RooflineSteps(
        decode=_work(decode, architecture),
        prefill=_work(prefill, architecture),
        prompt_tokens=isl,
        prefill_batch_tokens=prefill.engine.resolved.max_num_batched_tokens,
        collective_latency_s=collective_latency_s,
        tokens_per_step=tokens_per_step(drafts, acceptance_rate=1.0),
    )


def _work(found: RecipeEngine, architecture: ModelArchitecture) -> EngineWork:
    engine = found.engine
    return engine_work(
        architecture,
        found.gpu,
        engine.pool.layout,
        engine.kv_cache,
        sequence_parallel_moe=uses_sequence_parallel_moe(engine.options, found.defaults),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSteps:
    """Steps as they were timed at the workload's lengths: ``tpot_s`` at so many sequences a rank.

    Between points they are interpolated, outside they are those of the nearest. Prompts follow one
    another, each as long as one alone.
    """

    sequences_per_rank: Array
    tpot_s: Array
    prompt_s: float

    def decode_s(self, sequences_per_rank: Array, context_tokens: float) -> Array:
        """The context does not matter: the points were timed over those of the workload."""
        del context_tokens
        return np.interp(sequences_per_rank, self.sequences_per_rank, self.tpot_s)

    def prefill_s(self, prompts_per_rank: Array) -> Array:
        return prompts_per_rank * self.prompt_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """What stands for what: a rehearsed token for ``tokens``, a request for ``requests``.

    ``isl`` and ``request_tokens`` are rehearsed lengths, ``most_requests_per_rank`` and
    ``most_prefill_tokens`` what a rank has in one step at most.
    """

    tokens: float
    requests: float
    isl: int
    request_tokens: int
    most_requests_per_rank: int
    most_prefill_tokens: int


def stand_in_of(plan: RehearsalPlan) -> StandIn:
    """What stands for what in a planned rehearsal."""
    real, engines = plan.topology, plan.decoding
    return StandIn(
        tokens=(real.isl + real.osl) / plan.lengths.request_tokens,
        requests=real.decoding.whole_requests_per_rank / engines.requests_per_rank,
        isl=plan.lengths.isl,
        request_tokens=plan.lengths.request_tokens,
        most_requests_per_rank=engines.requests_per_rank,
        most_prefill_tokens=(plan.prefill or engines).max_num_batched_tokens,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingProfile:
    """Axes in rehearsed tokens, times in milliseconds; ``decode_itl`` by load, then by context.

    Axes rise. The mocker interpolates between points and goes on beyond them; its own decode step
    lasts at least a millisecond.
    """

    prefill_isl: Array
    prefill_ttft_ms: Array
    decode_active_kv_tokens: Array
    decode_context_length: Array
    decode_itl: Array

    def slowed(self, times: float) -> TimingProfile:
        """The same shares with every step so many times as long."""
        return replace(
            self,
            prefill_ttft_ms=self.prefill_ttft_ms * times,
            decode_itl=self.decode_itl * times,
        )

    def arrays(self) -> Mapping[str, Array]:
        """The members of the file that ``--planner-profile-data`` takes, by their names there."""
        return {
            "prefill_isl": self.prefill_isl,
            "prefill_ttft_ms": self.prefill_ttft_ms,
            "decode_active_kv_tokens": self.decode_active_kv_tokens,
            "decode_context_length": self.decode_context_length,
            "decode_itl": self.decode_itl,
        }


def timing_profile(steps: StepTimes, stand_in: StandIn) -> TimingProfile:
    """The times of rehearsed steps from those of real ones.

    A mocker asks by what a rank has: tokens to prefill, or cached tokens of all its sequences with
    their mean context, of which the number of sequences follows.
    """
    prefill = np.linspace(0, max(stand_in.most_prefill_tokens, stand_in.isl), _PREFILLS)[1:]
    contexts = _contexts(stand_in)
    loads = _loads(stand_in)
    columns = [
        steps.decode_s(loads / context * stand_in.requests, float(context * stand_in.tokens))
        for context in contexts
    ]
    prompts_s = steps.prefill_s(prefill / stand_in.isl)
    return TimingProfile(
        prefill_isl=prefill,
        prefill_ttft_ms=prompts_s * stand_in.requests / stand_in.tokens * _MS,
        decode_active_kv_tokens=loads,
        decode_context_length=contexts,
        decode_itl=np.column_stack(columns) * _MS,
    )


def _contexts(stand_in: StandIn) -> Array:
    """Dense where the contexts of decoding are."""
    below = stand_in.isl * 2.0 ** np.arange(-_HALVINGS, 0)
    return np.concatenate([below, np.linspace(stand_in.isl, stand_in.request_tokens, _CONTEXTS)])


def _loads(stand_in: StandIn) -> Array:
    """Dense where there are few sequences: each new one has experts read that none had before."""
    least = stand_in.isl / 2**_HALVINGS
    most = stand_in.most_requests_per_rank * stand_in.request_tokens
    return np.concatenate([[0.0], np.geomspace(least, most, _LOADS)])
