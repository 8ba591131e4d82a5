"""One deployment for each concurrency: engines of both frontiers, matched, held and compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from generator.composition.pairs import Pair, PairCapacity, PairChecker
from generator.composition.phase_frontier import decode_at, frontier, prefill_at
from generator.composition.phase_points import EngineKind, PhasePoint, Phases
from generator.composition.rate_matching import RateMatch, match_rates
from generator.parallel import WorkerPool
from generator.spec.placement import nodes_for_pool
from generator.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A matched deployment at one concurrency. ``gpus`` are those of the nodes it takes.

    ``refusal`` is why the decode engine cannot have the prefill engine that reads the most per GPU,
    empty where none reads more than this one or nothing speaks against it.
    """

    concurrency: int
    prefill: EngineKind
    decode: PhasePoint
    match: RateMatch
    gpus: int
    capacity: PairCapacity
    request_tokens: int
    refusal: str = ""

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

    @property
    def refusal(self) -> str:
        """Why nothing serves the concurrency, engines with the same reason together."""
        kinds: dict[str, list[str]] = {}
        for each in self.rejected:
            kinds.setdefault(each.reason, []).append(str(each.decode.kind))
        told = (f"{', '.join(named)}: {reason}" for reason, named in kinds.items())
        return "; ".join(told) or "no decode engine was measured at it"


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
    the share of the load that a worker gets. An engine that cannot pair keeps no other off it.
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
            pairings = _pairings(phases, point, concurrency, checker, rules)
            served = _kept(pairings, phases)
            candidates += (
                _candidate(each, pairings, point, concurrency, rules, request_tokens)
                for each in served
            )
            if not served:
                reason = _reason(pairings, phases, concurrency)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairing:
    """As many workers of a prefill engine as feed a decode engine, and what the two hold."""

    match: RateMatch
    share: int
    capacity: PairCapacity

    @property
    def kind(self) -> EngineKind:
        return self.match.prefill.kind

    @property
    def rate(self) -> float:
        return self.match.prefill.requests_per_s_per_gpu

    @property
    def refusal(self) -> str:
        return f"with {self.match.workers}x{self.kind.name} {self.capacity.refusal}"


def _pairings(
    phases: Phases, decode: PhasePoint, concurrency: int, checker: PairChecker, rules: Rules
) -> list[_Pairing]:
    """Every prefill engine that can feed a decode engine, most requests per GPU first."""
    most = rules.most_nodes * rules.gpus_per_node
    pairings = []
    for name, curve in phases.prefill_for(decode.kind).items():
        room = most // EngineKind(name=name).gpus
        match = match_rates(curve, decode.requests_per_s, concurrency, rules.margin, room)
        if match is None:
            continue
        pair = Pair(
            prefill=name, workers=match.workers, decode=decode.kind, concurrency=concurrency
        )
        share = ceil_div(concurrency, match.workers)
        pairings.append(_Pairing(match=match, share=share, capacity=checker.check(pair)))
    return sorted(pairings, key=lambda each: (-each.rate, each.kind))


def _kept(pairings: Iterable[_Pairing], phases: Phases) -> list[_Pairing]:
    """Pairings that serve, of prefill engines that no other such engine beats at their share."""
    served = [each for each in pairings if not each.capacity.refusal]
    curves = [phases.prefill[each.kind] for each in served]
    kept = []
    for each in served:
        front = frontier(point for curve in curves if (point := prefill_at(curve, each.share)))
        if each.kind in {point.kind for point in front}:
            kept.append(each)
    return kept or served


def _reason(pairings: Iterable[_Pairing], phases: Phases, concurrency: int) -> str:
    """Why no prefill engine serves a decode engine: of the best one that feeds it, if any does."""
    for each in pairings:
        return each.refusal
    if any(prefill_at(curve, concurrency) for curve in phases.prefill.values()):
        return "needs more prefill workers than the cluster holds"
    return f"no prefill engine was measured at as few as {concurrency}"


def _candidate(
    pairing: _Pairing,
    pairings: Iterable[_Pairing],
    decode: PhasePoint,
    concurrency: int,
    rules: Rules,
    request_tokens: int,
) -> Candidate:
    refused = (each for each in pairings if each.capacity.refusal and each.rate > pairing.rate)
    first = next(refused, None)
    pools = (
        WorkerPool(workers=pairing.match.workers, layout=pairing.kind.layout),
        WorkerPool(workers=1, layout=decode.kind.layout),
    )
    return Candidate(
        concurrency=concurrency,
        prefill=pairing.kind,
        decode=decode,
        match=pairing.match,
        gpus=rules.gpus_of(pools),
        capacity=pairing.capacity,
        request_tokens=request_tokens,
        refusal=first.refusal if first else "",
    )
