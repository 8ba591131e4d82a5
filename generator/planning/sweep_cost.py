"""What a proposed sweep costs, against measuring every combination or each phase first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from generator.enumeration.legal_engine import Engines, Kind, LegalEngine
from generator.enumeration.limits import most_sequences
from generator.enumeration.subject import Subject
from generator.parallel import WorkerPool
from generator.planning.candidate import Candidate
from generator.planning.phases import PrefillPhase
from generator.planning.search import DeploymentSpace, Search, worker_concurrencies
from generator.spec.placement import nodes_for_pool
from generator.workload import prompts_per_concurrency

_S_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Points to run and the GPU-hours of their load at the predicted rates."""

    points: int
    gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCost:
    """The proposed sweep beside what it replaces; start-ups and warm-up left out on every side.

    ``product`` is every deployment that was evaluated, at each of its concurrencies: engines that
    others beat are not among them, so that it is at least so much. ``phases`` is the article's
    way: every legal engine alone, at powers of two, before the proposed sweep.
    """

    proposed: Cost
    product: Cost
    phases: Cost
    requests_per_concurrency: int

    @property
    def two_phases_gpu_hours(self) -> float:
        """The phases, and then the sweep that they lead to."""
        return self.phases.gpu_hours + self.proposed.gpu_hours


def sweep_cost(
    subject: Subject,
    engines: Engines,
    space: DeploymentSpace,
    search: Search,
    proposed: Iterable[Candidate],
) -> SweepCost:
    """GPU-hours from the requests of a point and the predicted rates."""
    requests = prompts_per_concurrency(subject.spec.benchmark)
    points = list(proposed)
    alone = [seconds for kind in engines.kinds for seconds in _alone(subject, space, kind)]
    return SweepCost(
        proposed=Cost(
            points=len(points),
            gpu_hours=sum(each.gpus * each.concurrency / each.requests_per_s for each in points)
            * requests
            / _S_PER_HOUR,
        ),
        product=Cost(
            points=search.evaluated,
            gpu_hours=search.evaluated_gpu_s * requests / _S_PER_HOUR,
        ),
        phases=Cost(points=len(alone), gpu_hours=sum(alone) * requests / _S_PER_HOUR),
        requests_per_concurrency=requests,
    )


def _alone(subject: Subject, space: DeploymentSpace, kind: Kind) -> Iterator[float]:
    """GPU-seconds of each point of each engine alone, with one request for each concurrent one."""
    for mine in space.prefill_phases(kind).values():
        for prefill in mine:
            gpus = _gpus(subject, prefill.engine)
            yield from (gpus * seconds for seconds in _prefill_ladder(prefill))
    grid = worker_concurrencies(subject.gpus_per_engine)
    rungs = np.flatnonzero(np.log2(grid) % 1 == 0)
    for theirs in space.decode_phases(kind).values():
        for decode in theirs:
            engine = decode.engine
            data = engine.layout.data
            most = data * most_sequences(subject, engine, engine.kv_cache)
            held = rungs[(grid[rungs] >= data) & (grid[rungs] <= most)]
            yield from (
                _gpus(subject, engine) * subject.workload.osl * float(tpot)
                for tpot in decode.tpot_s[held]
            )


def _prefill_ladder(phase: PrefillPhase) -> Iterator[float]:
    """Seconds of each rung, up to the first at which the worker is full."""
    concurrency = 1
    while True:
        rate = min(phase.prompts_per_s, concurrency / phase.alone_s)
        yield concurrency / rate
        if rate == phase.prompts_per_s:
            return
        concurrency *= 2


def _gpus(subject: Subject, engine: LegalEngine) -> int:
    pool = WorkerPool(workers=1, layout=engine.layout)
    return nodes_for_pool(pool, subject.gpus_per_node).value * subject.gpus_per_node
