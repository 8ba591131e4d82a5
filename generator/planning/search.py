"""Every deployment of legal engines, and the frontier of what they are predicted to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from generator.bounds.numbers import Array
from generator.derivation.pairing import agree_on_block_tokens, pairing_problems
from generator.engine.resolution import kv_cache_options
from generator.enumeration.legal_engine import Engines, Kind, LegalEngine
from generator.enumeration.limits import most_sequences
from generator.enumeration.role_sizes import MOST_SEQUENCES_PER_RANK
from generator.enumeration.subject import Subject
from generator.facts import PdBlockRule
from generator.kv_cache.kv_cache import KvCacheLayout, plan_kv_cache
from generator.parallel import ParallelLayout, WorkerPool
from generator.planning.candidate import Candidate
from generator.planning.deployments import Block, blocks, combinations
from generator.planning.latency import Limits
from generator.planning.phases import (
    Costs,
    DecodePhase,
    PrefillPhase,
    decode_phase,
    prefill_phase,
)
from generator.planning.pools import DecodePools, PrefillPools, decode_pools, prefill_pools

_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a search found.

    ``frontier`` is by rising tokens per second and user. ``combinations`` are all deployments of
    legal engines at all concurrencies, ``evaluated`` those that were not left out because others
    beat their engines; both without a look at ``limits``. ``evaluated_gpu_s`` is what it takes to
    run all of the latter, with one request for each concurrent one.
    """

    frontier: tuple[Candidate, ...]
    combinations: int
    evaluated: int
    limits: Limits
    evaluated_gpu_s: float


def worker_concurrencies(gpus_per_engine: int) -> NDArray[np.int64]:
    """The concurrencies of one decode worker that are looked at: four to each doubling."""
    grid = list(range(1, _PER_OCTAVE + 1))
    while grid[-1] < MOST_SEQUENCES_PER_RANK * gpus_per_engine:
        octave = grid[-1]
        grid += [octave + octave * step // _PER_OCTAVE for step in range(1, _PER_OCTAVE + 1)]
    return np.array(grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Pools of both roles that pair, on the nodes of a subject."""

    prefill: PrefillPools
    decode: DecodePools


class DeploymentSpace:
    """The deployments of legal engines: each phase computed once, pools paired on demand."""

    def __init__(self, subject: Subject, engines: Engines, costs: Costs, latency: Limits) -> None:
        self._subject = subject
        self._engines = engines
        self._costs = costs
        self.latency = latency
        self._grid = worker_concurrencies(subject.gpus_per_engine)
        self._prefill: dict[Kind, dict[int, list[PrefillPhase]]] = {}
        self._decode: dict[Kind, dict[int, list[DecodePhase]]] = {}
        self._sequences: dict[tuple[ParallelLayout, Kind, int | None], int] = {}

    def pairings(self) -> Iterator[Pairing]:
        """Every pairing: engines of one kind whose tensor sizes go together."""
        for kind in self._engines.kinds:
            prefill = self.prefill_phases(kind)
            decode = self.decode_phases(kind)
            for mine in prefill.values():
                pools = prefill_pools(mine, *self._nodes)
                if not pools.phase.size:
                    continue
                for theirs in decode.values():
                    paired = self._decode_pools(mine[0].engine, theirs)
                    if paired is not None and paired.phase.size:
                        yield Pairing(prefill=pools, decode=paired)

    def blocks(self, pairing: Pairing) -> Iterator[Block]:
        """The deployments of a pairing."""
        return blocks(
            pairing.prefill,
            pairing.decode,
            self._subject.workload,
            most_nodes=self._subject.nodes,
            gpus_per_node=self._subject.gpus_per_node,
        )

    @property
    def _nodes(self) -> tuple[int, int]:
        """The most nodes of one role, which leave one to the other, and the GPUs of each."""
        return self._subject.nodes - 1, self._subject.gpus_per_node

    def prefill_phases(self, kind: Kind) -> Mapping[int, list[PrefillPhase]]:
        """Every legal prefill engine of a kind alone, by its tensor size."""
        if kind not in self._prefill:
            found = self._prefill.setdefault(kind, {})
            for engine in self._engines.of("prefill", kind):
                phase = prefill_phase(self._subject, engine, self._costs)
                found.setdefault(engine.layout.tensor, []).append(phase)
        return self._prefill[kind]

    def decode_phases(self, kind: Kind) -> Mapping[int, list[DecodePhase]]:
        """The same of decode, over ``worker_concurrencies``."""
        if kind not in self._decode:
            found = self._decode.setdefault(kind, {})
            concurrencies = self._grid.astype(float)
            for engine in self._engines.of("decode", kind):
                phase = decode_phase(self._subject, engine, concurrencies, self._costs)
                found.setdefault(engine.layout.tensor, []).append(phase)
        return self._decode[kind]

    def _decode_pools(
        self, prefill: LegalEngine, phases: Sequence[DecodePhase]
    ) -> DecodePools | None:
        """The decode pools beside a prefill engine, whose block size may be forced on them."""
        subject, sample = self._subject, phases[0].engine
        problems = pairing_problems(subject.architecture, prefill.options, sample.options)
        if any(problem.is_fatal for problem in problems):
            return None
        forced = agree_on_block_tokens(prefill.kv_cache, sample.kv_cache, block_rule(subject))
        limits = [each.engine.layout.data * self._most(each.engine, forced) for each in phases]
        if not any(limits):
            return None
        return decode_pools(phases, limits, self._grid, *self._nodes, self.latency)

    def _most(self, engine: LegalEngine, block_tokens: int | None) -> int:
        """The most sequences of a data rank of an engine, with a block size forced on it."""
        key = (engine.layout, engine.kind, block_tokens)
        if key not in self._sequences:
            kv_cache = kv_cache_with_block(self._subject, engine, block_tokens)
            self._sequences[key] = most_sequences(self._subject, engine, kv_cache)
        return self._sequences[key]


def block_rule(subject: Subject) -> PdBlockRule:
    """How this release compares the blocks of two roles of the model."""
    defaults = subject.defaults
    return (
        defaults.pd_block_rule_of_hybrids
        if subject.architecture.is_hybrid
        else defaults.pd_block_rule_of_attention_only
    ).value


def kv_cache_with_block(
    subject: Subject, engine: LegalEngine, block_tokens: int | None
) -> KvCacheLayout:
    """The layout of an engine's KV cache with a block size forced on it, its own where None."""
    if block_tokens is None or block_tokens == engine.kv_cache.block_tokens:
        return engine.kv_cache
    options = replace(engine.options, block_size=block_tokens)
    flags = kv_cache_options(subject.architecture, options, subject.defaults)
    return plan_kv_cache(subject.architecture, flags)


def search(
    subject: Subject,
    space: DeploymentSpace,
    on_pairing: Callable[[str], None] = lambda _: None,
) -> Search:
    """The frontier of all deployments within the limits; ``on_pairing`` is told, for progress."""
    tokens = subject.workload.request_tokens
    found = _Frontier()
    total = evaluated = 0
    gpu_s = 0.0
    for pairing in space.pairings():
        on_pairing(_name(pairing))
        total += combinations(pairing.prefill, pairing.decode, subject.nodes)
        for block in space.blocks(pairing):
            evaluated += int(block.exists.sum())
            gpu_s += block.gpu_s
            found.add(block, space.latency, tokens)
    return Search(
        frontier=found.candidates(),
        combinations=total,
        evaluated=evaluated,
        limits=space.latency,
        evaluated_gpu_s=gpu_s,
    )


def _name(pairing: Pairing) -> str:
    prefill, decode = pairing.prefill.phases[0].engine, pairing.decode.phases[0].engine
    kind = decode.kind
    mtp = f" MTP {kind.speculative_tokens}" if kind.speculative_tokens else ""
    return f"TP{prefill.layout.tensor} before TP{decode.layout.tensor}{mtp}"


class _Frontier:
    """The best of each block, merged: more tokens a user, or more tokens a GPU."""

    def __init__(self) -> None:
        self._found: list[Candidate] = []

    def add(self, block: Block, limits: Limits, tokens: int) -> None:
        """Take in the best of a block: TPOT is of decode alone, so the best prefill will do."""
        point = block.point
        rate = point.requests_per_s * tokens / block.gpus[:, :, None]
        counts = block.exists & (point.ttft_s <= limits.ttft_s) & (point.tpot_s <= limits.tpot_s)
        rate[~counts] = 0.0
        prefill = rate.argmax(axis=0)
        best = np.take_along_axis(rate, prefill[None], axis=0)[0]
        users = 1 / point.tpot_s[0]
        rows, columns = np.nonzero(best)
        for index in _steps(users[rows, columns], best[rows, columns]):
            row, column = int(rows[index]), int(columns[index])
            place = int(prefill[row, column]), row, column
            self._found.append(candidate_at(block, place, tokens))

    def candidates(self) -> tuple[Candidate, ...]:
        """The frontier of everything taken in, by rising tokens per user."""
        users = np.array([each.tokens_per_s_per_user for each in self._found])
        rates = np.array([each.total_tokens_per_s_per_gpu for each in self._found])
        return tuple(self._found[index] for index in _steps(users, rates))


def _steps(users: Array, rates: Array) -> NDArray[np.int64]:
    """The points that no other beats, ascending by the first axis; of equal ones the first."""
    order = np.lexsort((np.arange(len(users)), -rates, -users))
    highest = np.maximum.accumulate(np.concatenate([[0.0], rates[order]]))
    return order[rates[order] > highest[:-1]][::-1]


def candidate_at(block: Block, place: tuple[int, int, int], tokens: int) -> Candidate:
    """The deployment at a place of a block: prefill pool, decode pool and concurrency."""
    prefill, decode, point = block.prefill, block.pools, block.point
    row = int(block.decode[place[1]])
    phase = decode.phases[decode.phase[row]]
    requests = float(point.requests_per_s[place])
    gpus = int(block.gpus[place[:2]])
    return Candidate(
        prefill=WorkerPool(
            workers=int(prefill.workers[place[0]]),
            layout=prefill.phases[prefill.phase[place[0]]].engine.layout,
        ),
        decode=WorkerPool(workers=int(decode.workers[row]), layout=phase.engine.layout),
        kind=phase.engine.kind,
        concurrency=int(decode.concurrency[row, place[2]]),
        gpus=gpus,
        requests_per_s=requests,
        ttft_s=float(point.ttft_s[place]),
        tpot_s=float(decode.tpot_s[row, place[2]]),
        prefill_load=requests / float(prefill.prompts_per_s[place[0]]),
        total_tokens_per_s_per_gpu=requests * tokens / gpus,
    )
