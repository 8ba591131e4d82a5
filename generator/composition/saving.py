"""What composing costs against measuring every combination."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum

from generator.composition.pairs import Pair, PairChecker
from generator.composition.phase_frontier import decode_at, prefill_at
from generator.composition.phase_points import EngineKind, Phases
from generator.composition.proposals import Candidate, Rules
from generator.errors import InvalidInput
from generator.parallel import WorkerPool
from generator.units import ceil_div
from generator.workload import prompts_per_concurrency


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Points to run, the starts of engines they take, and the GPU-hours of the measured load."""

    points: int
    starts: int
    gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The phases and the composed set against every combination that could run.

    ``refused`` counts the points of combinations that cannot: roles that do not pair, a decode
    engine that does not hold the load, more nodes than there are.
    """

    phases: Cost
    composed: Cost
    product: Cost
    refused: int
    most_workers: int
    requests_per_concurrency: int

    @property
    def spent(self) -> float:
        return self.phases.gpu_hours + self.composed.gpu_hours

    @property
    def share_saved(self) -> float:
        """The share of the product's GPU-hours that need not be spent."""
        return 1 - self.spent / self.product.gpu_hours if self.product.gpu_hours else 0.0


def estimate_saving(
    phases: Phases,
    chosen: Iterable[Candidate],
    deployments: int,
    concurrencies: Iterable[int],
    checker: PairChecker,
    rules: Rules,
) -> Saving:
    """GPU-hours of the measured intervals, warm-up and start-ups left out on every side.

    The phases count as they were measured. Any other point takes concurrency times the spec's
    prompts, at the lower of what its decode worker completes and what its prefill workers read.
    The product is every prefill layout, in one to as many workers as the composed set has, before
    every decode layout with every count of drafted tokens, at every concurrency measured for it.
    """
    listed = list(chosen)
    requests = prompts_per_concurrency(checker.target.spec.benchmark)
    most = max((each.match.workers for each in listed), default=1)
    tried = [*_product(phases, most, tuple(concurrencies), checker, rules)]
    runnable = [each for each in tried if each.gpus is not None]
    return Saving(
        phases=Cost(
            points=len(phases.paid),
            starts=len(phases.prefill) + len(phases.decode),
            gpu_hours=fsum(point.gpu_hours for point in phases.paid),
        ),
        composed=Cost(
            points=len(listed),
            starts=deployments,
            gpu_hours=fsum(
                each.gpus * each.concurrency * requests / each.decode.requests_per_s / 3600
                for each in listed
            ),
        ),
        product=Cost(
            points=len(runnable),
            starts=len({each.engines for each in runnable}),
            gpu_hours=fsum(each.gpu_hours(requests) for each in runnable),
        ),
        refused=len(tried) - len(runnable),
        most_workers=most,
        requests_per_concurrency=requests,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Combination:
    """One point of the full product; ``gpus`` are those of its nodes, None where it cannot run."""

    pair: Pair
    workers: int
    gpus: int | None
    requests_per_s: float

    @property
    def engines(self) -> tuple[str, int, EngineKind]:
        """What is started once for all its concurrencies."""
        return self.pair.prefill, self.workers, self.pair.decode

    def gpu_hours(self, requests_per_concurrency: int) -> float:
        requests = self.pair.concurrency * requests_per_concurrency
        return (self.gpus or 0) * requests / self.requests_per_s / 3600


def _product(
    phases: Phases, most: int, concurrencies: Sequence[int], checker: PairChecker, rules: Rules
) -> Iterator[_Combination]:
    """Every combination whose two engines were measured at their share of a concurrency."""
    pairs = ((kind, *each) for kind in phases.decode for each in phases.prefill_for(kind).items())
    for (decode, prefill, curve), workers, concurrency in product(
        pairs, range(1, most + 1), concurrencies
    ):
        point = decode_at(phases.decode[decode], concurrency)
        fed = prefill_at(curve, ceil_div(concurrency, workers))
        if point is None or fed is None:
            continue
        # What a decode worker holds does not depend on how many prefill workers feed it.
        pair = Pair(prefill=prefill, workers=1, decode=decode, concurrency=concurrency)
        gpus = _gpus(pair, workers, rules)
        yield _Combination(
            pair=pair,
            workers=workers,
            gpus=None if gpus is None or checker.check(pair).refusal else gpus,
            requests_per_s=min(point.requests_per_s, workers * fed.requests_per_s),
        )


def _gpus(pair: Pair, workers: int, rules: Rules) -> int | None:
    """GPUs of a combination's nodes; None where it cannot be placed."""
    layout = WorkerPool(workers=workers, layout=pair.prefill_layout)
    try:
        gpus = rules.gpus_of((layout, WorkerPool(workers=1, layout=pair.decode.layout)))
    except InvalidInput:
        return None
    return gpus if gpus <= rules.most_nodes * rules.gpus_per_node else None
