"""The rule that makes a deployment small enough for a laptop, and what it keeps.

Two divisors, both stated with every result. ``sequences`` divides what is in flight: requests that
a rank holds, token budgets of decode, concurrency. ``tokens`` divides lengths: prompts, outputs,
blocks, token budgets of prefill. What is kept: the ratio of concurrency to capacity, which side of
capacity it is on, workers and ranks, the blocks of a request where some block size can, and whether
generation crosses a block boundary, since only then do engines preempt.
"""

from __future__ import annotations

from dataclasses import dataclass

from generator.rehearsal.topology import PoolCapacity, Topology
from generator.units import ceil_div

_MOST_IN_FLIGHT = 72
_MOST_REQUEST_TOKENS = 384
_FEWEST_OUTPUT_TOKENS = 16
_FEWEST_REQUESTS_OF_RANK = 4
_FEWEST_BLOCK_TOKENS = 2  # a mocker of vLLM refuses blocks of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Divisors, 1 for a rehearsal at full size."""

    sequences: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of every request."""

    isl: int
    osl: int

    @property
    def request_tokens(self) -> int:
        return self.isl + self.osl


def auto_scale(topology: Topology, highest_concurrency: int) -> Scale:
    """The least powers of two that two cores carry.

    At most 72 requests in flight at the highest concurrency, as long as a rank still holds 4;
    requests of at most 384 tokens, as long as 16 of them are output.
    """
    return Scale(
        sequences=_sequences(topology, highest_concurrency), tokens=token_divisor(topology)
    )


def _sequences(topology: Topology, highest_concurrency: int) -> int:
    """The divisor of what is in flight."""
    held = topology.decoding.whole_requests_per_rank
    divisor = 1
    while (
        ceil_div(highest_concurrency, divisor) > _MOST_IN_FLIGHT
        and held // (2 * divisor) >= _FEWEST_REQUESTS_OF_RANK
    ):
        divisor *= 2
    return divisor


def token_divisor(topology: Topology) -> int:
    """The divisor of lengths: it follows from them alone, so that a whole sweep has one."""
    longest, osl = topology.isl + topology.osl, topology.osl
    divisor = 1
    while longest > divisor * _MOST_REQUEST_TOKENS and (
        osl < _FEWEST_OUTPUT_TOKENS or osl // (2 * divisor) >= _FEWEST_OUTPUT_TOKENS
    ):
        divisor *= 2
    return divisor


def scaled_lengths(topology: Topology, scale: Scale) -> Lengths:
    """Prompt and output, rounded, at least a token each."""
    return Lengths(
        isl=max(1, round(topology.isl / scale.tokens)),
        osl=max(1, round(topology.osl / scale.tokens)),
    )


def scaled_block_tokens(topology: Topology, block_tokens: int, lengths: Lengths) -> int:
    """The block size nearest to proportional that keeps what blocks do to a request.

    First whether generation crosses a block boundary, then the blocks of prompt and request.
    """
    true = _blocks(topology.isl, topology.isl + topology.osl, block_tokens)
    wanted = block_tokens * lengths.request_tokens / (topology.isl + topology.osl)

    def unlikeness(candidate: int) -> tuple[bool, int, float]:
        blocks = _blocks(lengths.isl, lengths.request_tokens, candidate)
        return (
            (blocks[0] < blocks[1]) != (true[0] < true[1]),
            abs(blocks[0] - true[0]) + abs(blocks[1] - true[1]),
            abs(candidate - wanted),
        )

    most = max(lengths.request_tokens, round(wanted))
    return min(range(_FEWEST_BLOCK_TOKENS, most + 1), key=unlikeness)


def _blocks(isl: int, request_tokens: int, block_tokens: int) -> tuple[int, int]:
    return ceil_div(isl, block_tokens), ceil_div(request_tokens, block_tokens)


def scaled_requests_per_rank(topology: Topology, pool: PoolCapacity, scale: Scale) -> int:
    """Requests that a rank of the rehearsal holds whole.

    Those of decode are rounded down to at least one. Those of prefill follow in proportion, but as
    long as a true rank holds more, at least 4: a rank of one request would stand still whenever
    that is handed over to decode.
    """
    decoding = topology.decoding
    held = max(1, decoding.whole_requests_per_rank // scale.sequences)
    if pool is decoding:
        return held
    proportional = pool.whole_requests_per_rank * held // decoding.whole_requests_per_rank
    return max(proportional, min(pool.whole_requests_per_rank, _FEWEST_REQUESTS_OF_RANK))


def scaled_concurrency(topology: Topology, concurrency: int, scale: Scale) -> int:
    """Requests in flight that are to the rehearsal's capacity what these are to the true one.

    Rounded, but never across capacity.
    """
    decoding = topology.decoding
    held = scaled_requests_per_rank(topology, decoding, scale)
    capacity = held * decoding.ranks
    scaled = max(1, round(concurrency * held / decoding.whole_requests_per_rank))
    return min(scaled, capacity) if concurrency <= decoding.requests else max(scaled, capacity + 1)


def scaled_token_budget(topology: Topology, pool: PoolCapacity, lengths: Lengths, held: int) -> int:
    """Tokens of a step: where prompts are prefilled in as many steps, else in step with sequences.

    A decode step has a token for each sequence, and what is left for preempted ones.
    """
    budget = pool.max_num_batched_tokens
    if pool.role == "decode":
        return max(held, ceil_div(budget * held, pool.whole_requests_per_rank))
    steps = ceil_div(topology.isl, budget)
    if steps > 1:
        return ceil_div(lengths.isl, steps)
    return max(lengths.isl, round(budget * lengths.isl / topology.isl))
