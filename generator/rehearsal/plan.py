"""What a rehearsal starts and sends: mock engines and loads, all scaled by one rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.rehearsal.scale import (
    Lengths,
    Scale,
    auto_scale,
    scaled_block_tokens,
    scaled_concurrency,
    scaled_lengths,
    scaled_requests_per_rank,
    scaled_token_budget,
    token_divisor,
)
from generator.rehearsal.topology import PoolCapacity, Topology
from generator.units import ceil_div

MOST_RANKS = 256
MOST_IN_FLIGHT = 1024
_ROUNDS = 6
_FEWEST_REQUESTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MockEngines:
    """The mockers of a pool: a process each worker, which simulates all of its ranks.

    ``requests_per_rank`` are whole requests; a request takes ceil(tokens / block) blocks, since the
    mocker knows no groups of layers. ``max_num_seqs`` is the highest load: a mocker refuses what
    is above it, where an engine would let it wait.
    """

    pool: PoolCapacity
    requests_per_rank: int
    block_tokens: int
    num_gpu_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int

    @property
    def requests(self) -> int:
        """Requests that the KV cache of all ranks holds."""
        return self.requests_per_rank * self.pool.ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One concurrency of the recipe, and what stands for it in flight.

    ``capacity`` are the requests that the recipe's decode engines hold in KV memory.
    """

    concurrency: int
    capacity: int
    in_flight: int
    requests: int

    @property
    def share(self) -> float:
        """The load by the capacity."""
        return self.concurrency / self.capacity

    @property
    def is_within_capacity(self) -> bool:
        return self.concurrency <= self.capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalPlan:
    """A rehearsal: engines, lengths and loads, by ascending concurrency."""

    topology: Topology
    scale: Scale
    lengths: Lengths
    decoding: MockEngines
    prefill: MockEngines | None
    loads: tuple[Load, ...]

    @property
    def engines(self) -> tuple[MockEngines, ...]:
        return (self.decoding,) if self.prefill is None else (self.prefill, self.decoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityShare:
    """A load as percents of the requests that decode holds: 150 is half as much again."""

    percent: int


def plan_rehearsal(
    topology: Topology,
    wanted: Sequence[int | CapacityShare] = (),
    sequences: int | None = None,
) -> RehearsalPlan:
    """The rehearsal of loads, the recipe's own where none are wanted.

    ``sequences`` is that divisor, chosen where absent. Raises InvalidInput without any load, and
    for one that this machine cannot carry.
    """
    loads = _loads(topology, wanted)
    # The recipe's own loads count as well, so that one of them alone is scaled as all of them.
    scale = auto_scale(topology, max(*topology.concurrencies, *loads))
    if sequences is not None:
        scale = Scale(sequences=sequences, tokens=token_divisor(topology))
    lengths = scaled_lengths(topology, scale)
    planned = tuple(_load(topology, each, scale) for each in loads)
    _demand_affordable(topology, planned)
    in_flight = planned[-1].in_flight
    prefill = topology.prefill
    return RehearsalPlan(
        topology=topology,
        scale=scale,
        lengths=lengths,
        decoding=_engines(topology, topology.decoding, scale, lengths, in_flight),
        prefill=_engines(topology, prefill, scale, lengths, in_flight) if prefill else None,
        loads=planned,
    )


def _loads(topology: Topology, wanted: Sequence[int | CapacityShare]) -> list[int]:
    held = topology.decoding.requests
    loads = {
        max(1, held * each.percent // 100) if isinstance(each, CapacityShare) else each
        for each in wanted or topology.concurrencies
    }
    if not loads:
        hint = "give --concurrency, such as 64 or 150% of the capacity"
        raise InvalidInput(Problem(message="the recipe names no concurrency", hint=hint))
    return sorted(loads)


def _load(topology: Topology, concurrency: int, scale: Scale) -> Load:
    in_flight = scaled_concurrency(topology, concurrency, scale)
    return Load(
        concurrency=concurrency,
        capacity=topology.decoding.requests,
        in_flight=in_flight,
        requests=max(_ROUNDS * in_flight, _FEWEST_REQUESTS),
    )


def _demand_affordable(topology: Topology, loads: Sequence[Load]) -> None:
    in_flight, ranks = loads[-1].in_flight, sum(pool.ranks for pool in topology.pools)
    if in_flight > MOST_IN_FLIGHT:
        message = f"{in_flight} requests in flight are more than {MOST_IN_FLIGHT}, which one"
        hint = "a larger --scale, or --scale auto"
        raise InvalidInput(Problem(message=f"{message} machine carries", hint=hint))
    if ranks > MOST_RANKS:
        message = f"{ranks} data-parallel ranks are more than {MOST_RANKS}"
        raise InvalidInput(Problem(message=message, hint="rehearse a smaller deployment"))


def _engines(
    topology: Topology, pool: PoolCapacity, scale: Scale, lengths: Lengths, in_flight: int
) -> MockEngines:
    held = scaled_requests_per_rank(topology, pool, scale)
    block_tokens = scaled_block_tokens(topology, pool.block_tokens, lengths)
    tokens = lengths.isl + 1 if pool.role == "prefill" else lengths.request_tokens
    return MockEngines(
        pool=pool,
        requests_per_rank=held,
        block_tokens=block_tokens,
        num_gpu_blocks=held * ceil_div(tokens, block_tokens),
        max_num_seqs=max(in_flight, held),
        max_num_batched_tokens=scaled_token_budget(topology, pool, lengths, held),
    )
