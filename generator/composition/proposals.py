"""One deployment for each concurrency: engines of both frontiers, matched, held and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from generator.composition.pairs import Pair, PairCapacity, PairChecker
from generator.composition.phase_frontier import decode_at, frontier, prefill_at
from generator.composition.phase_points import EngineKind, PhasePoint, Phases
from generator.composition.rate_matching import RateMatch, match_rates
from generator.parallel import WorkerPool
from generator.spec.placement import nodes_for_pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A matched deployment at one concurrency. ``gpus`` are those of the nodes it takes."""

    concurrency: int
    prefill: EngineKind
    decode: PhasePoint
    match: RateMatch
    gpus: int
    capacity: PairCapacity
    request_tokens: int

    @property
    def requests_per_s_per_gpu(self) -> float:
        return self.decode.requests_per_s / self.gpus

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Prompt and output tokens per second of every allocated GPU: the article's y axis."""
        return self.requests_per_s_per_gpu * self.request_tokens

    @property
    def tokens_per_s_per_user(self) -> float | None:
        """From the decode study's median TPOT: the article's x axis."""
        return 1000 / self.decode.wait_ms if self.decode.wait_ms else None

    @property
    def shape(self) -> tuple[int, str, EngineKind]:
        """Prefill workers, their layout, and the decode engine."""
        return self.match.workers, self.prefill.name, self.decode.kind

    def __str__(self) -> str:
        return f"{self.match.workers}x{self.prefill.name} + 1x{self.decode.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A decode engine of the phase's frontier that cannot serve a concurrency, and why."""

    decode: PhasePoint
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is proposed for one concurrency, None where nothing serves it, and what else there is.

    ``measured`` are the decode engines at it, most requests per GPU first; ``others`` the
    candidates passed over, best first.
    """

    concurrency: int
    measured: tuple[PhasePoint, ...]
    chosen: Candidate | None
    others: tuple[Candidate, ...]
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The margin of the rate match, and the most GPUs a deployment may take."""

    margin: float
    gpus_per_node: int
    most_nodes: int

    def gpus_of(self, pools: Iterable[WorkerPool]) -> int:
        """GPUs of the nodes that pools take; raises InvalidInput for one that cannot be placed."""
        nodes = (nodes_for_pool(pool, self.gpus_per_node).value for pool in pools)
        return sum(nodes) * self.gpus_per_node


def choose(
    phases: Phases, concurrency: int, checker: PairChecker, rules: Rules, request_tokens: int
) -> Choice:
    """The deployment with the most requests per allocated GPU that serves a concurrency.

    Candidates are the decode engines of the frontier at that concurrency, then, where none of them
    can serve it, the best of those behind them; each with the prefill engines of the frontier at
    the share of the load that a worker gets.
    """
    measured = [
        point
        for curve in phases.decode.values()
        if (point := decode_at(curve, concurrency)) is not None
    ]
    ranking = sorted(measured, key=lambda point: (-point.requests_per_s_per_gpu, point.kind))
    candidates: list[Candidate] = []
    rejected: list[Rejection] = []
    while measured and not candidates:
        front = frontier(measured)
        for point in front:
            found = list(_deployments(phases, point, concurrency, checker, rules, request_tokens))
            served = [each for each in found if isinstance(each, Candidate)]
            candidates += served
            if not served:
                reasons = [each.reason for each in found if isinstance(each, Rejection)]
                reason = reasons[0] if reasons else "no prefill layout keeps it fed in the cluster"
                rejected.append(Rejection(decode=point, reason=reason))
        measured = [point for point in measured if point not in front]
    ranked = sorted(candidates, key=_rank)
    return Choice(
        concurrency=concurrency,
        measured=tuple(ranking),
        chosen=ranked[0] if ranked else None,
        others=tuple(ranked[1:]),
        rejected=tuple(rejected),
    )


def _rank(candidate: Candidate) -> tuple[float, float, float, str]:
    """Most requests per GPU first; then the faster for a user; then the prefill with more room."""
    wait = candidate.decode.wait_ms
    return (
        -candidate.requests_per_s_per_gpu,
        float("inf") if wait is None else wait,
        -candidate.match.supplied,
        str(candidate),
    )


def _deployments(
    phases: Phases,
    decode: PhasePoint,
    concurrency: int,
    checker: PairChecker,
    rules: Rules,
    request_tokens: int,
) -> Iterator[Candidate | Rejection]:
    """Every prefill engine of the frontier in front of a decode engine, matched and held."""
    most = rules.most_nodes * rules.gpus_per_node
    front = frontier(
        point
        for curve in phases.prefill.values()
        if (point := prefill_at(curve, concurrency)) is not None
    )
    for kind in (point.kind for point in front):
        match = match_rates(
            phases.prefill[kind],
            decode.requests_per_s,
            concurrency,
            rules.margin,
            most // kind.gpus,
        )
        if match is None:
            continue
        pair = Pair(
            prefill=kind.name,
            workers=match.workers,
            decode=decode.kind,
            concurrency=concurrency,
        )
        capacity = checker.check(pair)
        if capacity.refusal:
            reason = f"with {match.workers}x{kind.name} {capacity.refusal}"
            yield Rejection(decode=decode, reason=reason)
            continue
        pools = (
            WorkerPool(workers=match.workers, layout=kind.layout),
            WorkerPool(workers=1, layout=decode.kind.layout),
        )
        yield Candidate(
            concurrency=concurrency,
            prefill=kind,
            decode=decode,
            match=match,
            gpus=rules.gpus_of(pools),
            capacity=capacity,
            request_tokens=request_tokens,
        )
