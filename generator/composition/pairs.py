"""Whether a prefill and a decode engine can serve a load of the target workload together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from generator.capacity.capacity import EngineCapacity, evaluate_engine
from generator.composition.phase_points import EngineKind
from generator.derivation.derivation import Deployment, derive_deployment
from generator.errors import InvalidInput, NothingFits
from generator.estimation import SizingBasis
from generator.parallel import ParallelLayout, WorkerPool, parse_layout
from generator.spec.spec import DeploymentSpec, Spec, SpeculativeTokens
from generator.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A prefill pool in front of one decode worker, sized for a concurrency.

    Both roles draft the decode engine's tokens, as hybrid models need.
    """

    prefill: str
    workers: int
    decode: EngineKind
    concurrency: int

    @property
    def prefill_layout(self) -> ParallelLayout:
        return parse_layout(self.prefill)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCapacity:
    """What a pair holds of requests of the target workload, or why there is no such pair.

    ``refusal`` is empty for a pair that can serve its concurrency. ``held`` is None where the pair
    cannot be built at all. ``block_tokens`` is the decode engine's block size, and
    ``own_block_tokens`` what it would be alone; ``max_num_seqs`` are its slots on each rank.
    """

    refusal: str
    held: float | None = None
    block_tokens: int = 0
    own_block_tokens: int = 0
    max_num_seqs: int = 0

    @property
    def is_block_forced(self) -> bool:
        return self.block_tokens != self.own_block_tokens


@dataclass(slots=True)
class PairChecker:
    """Derives pairs for a target as ``generate`` would and remembers what came out."""

    target: SizingBasis
    known: dict[Pair, PairCapacity] = field(default_factory=dict)

    def check(self, pair: Pair) -> PairCapacity:
        """The capacity of a pair at the target's request length."""
        if pair not in self.known:
            self.known[pair] = self._capacity(pair)
        return self.known[pair]

    def _capacity(self, pair: Pair) -> PairCapacity:
        target = self.target
        try:
            deployment = derive_deployment(
                target.spec, _deployment(target.spec, pair), target.architecture, target.defaults
            )
            capacities = [
                evaluate_engine(
                    engine,
                    target.architecture,
                    target.gpu,
                    target.defaults,
                    target.spec.workload,
                    target.profiles,
                )
                for engine in (deployment.prefill, deployment.decode)
            ]
        except (InvalidInput, NothingFits) as error:
            return PairCapacity(refusal=error.problems[0].message)
        return _judged(deployment, capacities[1], pair.concurrency)


def _deployment(spec: Spec, pair: Pair) -> DeploymentSpec:
    tokens = pair.decode.num_speculative_tokens
    return DeploymentSpec(
        file="composed",
        folder="",
        name="composed",
        group="composed",
        prefill=WorkerPool(workers=pair.workers, layout=pair.prefill_layout),
        decode=WorkerPool(workers=1, layout=pair.decode.layout),
        speculative_tokens=SpeculativeTokens(prefill=tokens, decode=tokens),
        concurrencies=(pair.concurrency,),
        sizing_concurrency=pair.concurrency,
        sizing=spec.sizing,
        time_limit=None,
        benchmark={},
        benchmark_path=("benchmark",),
        path=(),
    )


def _judged(deployment: Deployment, decode: EngineCapacity, concurrency: int) -> PairCapacity:
    engine = deployment.decode
    held = decode.pool_requests
    alone = engine.unforced_kv_cache or engine.kv_cache
    capacity = PairCapacity(
        refusal="",
        held=float(held),
        block_tokens=engine.kv_cache.block_tokens,
        own_block_tokens=alone.block_tokens,
        max_num_seqs=engine.resolved.max_num_seqs,
    )
    slots = engine.pool.data_ranks * engine.resolved.max_num_seqs
    if concurrency > slots:
        return replace(capacity, refusal=f"it has {slots} decode slots for {concurrency} requests")
    if concurrency > held:
        forced = (
            f", block size forced from {alone.block_tokens} to {engine.kv_cache.block_tokens}"
            if capacity.is_block_forced
            else ""
        )
        return replace(
            capacity,
            refusal=(
                f"it holds {format_count(float(held))} of {concurrency} requests of"
                f" {decode.at_workload.tokens} tokens (KV cache"
                f" {decode.memory.kv_cache.basis}{forced})"
            ),
        )
    return capacity
