"""A rehearsal as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generator.rehearsal.plan import MockEngines, RehearsalPlan
from generator.rehearsal.topology import PoolCapacity
from generator.rehearsal.verdict import Outcome, RehearsedLoad, Verdict
from generator.units import ceil_div
from generator.wording import plural

Rows = list[tuple[str, str]]

HEADERS = (
    *("concurrency", "of KV", "sent", "tok/s", "TTFT p50", "p99 ms", "TPOT ms"),
    *("preempted", "waiting", "verdict"),
)

_OUTCOMES = {
    Outcome.HOLDS: "holds",
    Outcome.BEYOND_CAPACITY: "falls over",
    Outcome.FULL_WITHIN_CAPACITY: "full early",
    Outcome.DECODE_STARVED: "starves",
    Outcome.NEVER_DRAINS: "never drains",
    Outcome.REQUESTS_FAIL: "fails",
    Outcome.BEYOND_SLOTS: "no slots",
}


_AGREEMENT = {
    True: "as the KV arithmetic has it",
    False: "NOT as the KV arithmetic has it",
    None: "the KV arithmetic not put to the test",
}


def summary_rows(plan: RehearsalPlan, timing: str) -> Rows:
    """What is deployed, what it holds, and what stands for it."""
    topology, lengths, scale = plan.topology, plan.lengths, plan.scale
    deployed = ", ".join(f"{each.workers} x {each.layout} {each.role}" for each in topology.pools)
    return [
        ("recipe", topology.recipe),
        ("deploys", deployed),
        ("holds", _held(topology.decoding)),
        (
            "scale",
            (
                f"sequences 1/{scale.sequences}, tokens 1/{scale.tokens}:"
                f" requests of {lengths.isl} + {lengths.osl} tokens"
            ),
        ),
        *((f"mock {each.pool.role}", _mock(plan, each)) for each in plan.engines),
        ("timing", timing),
    ]


def _held(pool: PoolCapacity) -> str:
    return (
        f"{pool.requests:,} requests of {pool.request_tokens:,} tokens in the KV cache of"
        f" {pool.role}: {plural(pool.ranks, 'rank')} x {pool.whole_requests_per_rank:,}"
        f" ({pool.basis})"
    )


def _mock(plan: RehearsalPlan, engines: MockEngines) -> str:
    pool = engines.pool
    blocks = ceil_div(_tokens_held(plan, engines), engines.block_tokens)
    return (
        f"{plural(pool.workers, 'worker')} x {plural(pool.data_ranks, 'rank')}"
        f" x {plural(engines.requests_per_rank, 'request')}"
        f" = {engines.requests:,}; {blocks} of {engines.num_gpu_blocks} blocks of"
        f" {engines.block_tokens} tokens each, {engines.max_num_batched_tokens} tokens a step"
    )


def _tokens_held(plan: RehearsalPlan, engines: MockEngines) -> int:
    is_prefill = engines.pool.role == "prefill"
    return plan.lengths.isl + 1 if is_prefill else plan.lengths.request_tokens


def load_row(rehearsed: RehearsedLoad, verdict: Verdict) -> tuple[str, ...]:
    """The figures of a load, under ``HEADERS``."""
    load, seen, measured = rehearsed.load, rehearsed.seen, rehearsed.measured
    return (
        f"{load.concurrency:,}",
        f"{load.share:.0%}",
        str(load.in_flight),
        f"{measured.output_tokens_per_s:,.0f}" if measured else "-",
        _milliseconds(measured.ttft_p50_ms if measured else None),
        _milliseconds(measured.ttft_p99_ms if measured else None),
        _milliseconds(measured.tpot_p50_ms if measured else None),
        f"{seen.preemptions:,}",
        f"{seen.mean_waiting:.0f}",
        outcome_words(verdict),
    )


def outcome_words(verdict: Verdict) -> str:
    """In two words; beyond capacity nothing has fallen over where memory was never full."""
    if verdict.outcome is Outcome.BEYOND_CAPACITY and not verdict.agrees_with_arithmetic:
        return "beyond KV"
    return _OUTCOMES[verdict.outcome]


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def verdict_lines(rehearsed: Sequence[RehearsedLoad], found: Sequence[Verdict]) -> Iterator[str]:
    """Why each load has its verdict, and what the arithmetic says of it."""
    for each, verdict in zip(rehearsed, found, strict=True):
        reasons = "; ".join(verdict.reasons)
        yield (
            f"{each.load.concurrency:,} {outcome_words(verdict)},"
            f" {_AGREEMENT[verdict.agrees_with_arithmetic]}: {reasons}."
        )
        for statement in verdict.by_arithmetic:
            yield f"{each.load.concurrency:,} by arithmetic, not rehearsed: {statement}."


def notes(plan: RehearsalPlan) -> Iterator[str]:
    """What the mock cannot say."""
    yield (
        "Speeds are simulated and slower or faster than real ones; what counts is which load fits"
        " and how it fails."
    )
    yield (
        "The mock's max-num-seqs is raised to the load, since a mocker refuses with HTTP 503 what"
        " an engine would let wait: slots are judged by arithmetic."
    )
    if plan.topology.random_range_ratio < 1:
        yield (
            f"The recipe draws lengths from {plan.topology.random_range_ratio:.0%} upwards; here"
            " every request is as long as the longest."
        )
