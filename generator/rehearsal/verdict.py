"""What a rehearsal says of each concurrency, beside what the arithmetic had said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from generator.rehearsal.observation import Occupancy
from generator.rehearsal.plan import Load, RehearsalPlan
from generator.rehearsal.timing import MOCKERS_TIMING, PhaseRates, Timing, phase_rates
from generator.wording import plural

MOST_FAILED_SHARE = 0.05
_QUEUE_SHARE = 0.25  # of what is in flight; less of it is on its way from prefill to a step
_FULL_SHARE = 0.9  # of a rank's blocks; a queue before a rank with more room is not for memory
FLAT_GAIN = 0.15
"""Throughput that a load beyond capacity may gain by rounding and ramps, and still be flat."""


class Outcome(StrEnum):
    """What became of a load. Only ``HOLDS`` is a yes."""

    HOLDS = "holds"
    BEYOND_CAPACITY = "beyond-capacity"
    FULL_WITHIN_CAPACITY = "full-within-capacity"
    DECODE_STARVED = "decode-starved"
    NEVER_DRAINS = "never-drains"
    REQUESTS_FAIL = "requests-fail"
    BEYOND_SLOTS = "beyond-slots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What AIPerf measured at a load; times in milliseconds, speeds simulated."""

    completed: int
    failed: int
    duration_s: float
    output_tokens_per_s: float
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    tpot_p50_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedLoad:
    """A load with what was seen of it, and measured: None where the answers did not end in time."""

    load: Load
    measured: Measured | None
    seen: Occupancy


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of a load, why, and whether the KV arithmetic had said so.

    ``agrees_with_arithmetic`` is None where the load never came to decode as a whole, so that its
    memory was not put to the test. ``by_arithmetic`` are statements about the recipe that no mock
    can judge.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    agrees_with_arithmetic: bool | None
    by_arithmetic: tuple[str, ...]


def verdicts(
    plan: RehearsalPlan, rehearsed: Sequence[RehearsedLoad], timing: Timing = MOCKERS_TIMING
) -> tuple[Verdict, ...]:
    """A verdict for each load, compared with the highest load that holds."""
    holding = [each for each in rehearsed if _outcome(plan, each, timing) is Outcome.HOLDS]
    reference = holding[-1] if holding else None
    return tuple(_verdict(plan, each, reference, timing) for each in rehearsed)


def _verdict(
    plan: RehearsalPlan,
    rehearsed: RehearsedLoad,
    reference: RehearsedLoad | None,
    timing: Timing,
) -> Verdict:
    outcome = _outcome(plan, rehearsed, timing)
    slots = tuple(_slot_statements(plan, rehearsed.load))
    final = Outcome.BEYOND_SLOTS if outcome is Outcome.HOLDS and slots else outcome
    return Verdict(
        outcome=final,
        reasons=tuple(_reasons(plan, rehearsed, outcome, reference)),
        agrees_with_arithmetic=_agrees(plan, rehearsed),
        by_arithmetic=(*slots, *_ratio_statements(plan, rehearsed.load, timing)),
    )


def _outcome(plan: RehearsalPlan, rehearsed: RehearsedLoad, timing: Timing) -> Outcome:
    load, seen, measured = rehearsed.load, rehearsed.seen, rehearsed.measured
    if measured is None or not seen.drained:
        return Outcome.NEVER_DRAINS
    if measured.failed > MOST_FAILED_SHARE * (measured.completed + measured.failed):
        return Outcome.REQUESTS_FAIL
    if _is_starved(plan, rehearsed, timing):
        return Outcome.DECODE_STARVED
    if not load.is_within_capacity:
        return Outcome.BEYOND_CAPACITY
    return Outcome.HOLDS if _has_room(rehearsed) else Outcome.FULL_WITHIN_CAPACITY


def _has_room(rehearsed: RehearsedLoad) -> bool:
    """Whether decode took the load without preemptions and without a queue for memory."""
    seen, in_flight = rehearsed.seen, rehearsed.load.in_flight
    queued = seen.mean_waiting > _QUEUE_SHARE * in_flight and seen.peak_kv_usage >= _FULL_SHARE
    return not seen.preemptions and not queued


def _is_starved(plan: RehearsalPlan, rehearsed: RehearsedLoad, timing: Timing) -> bool:
    """Whether prefill has a queue, and of most of the load, so that decode lacks work.

    Where step times are known, their rates must say so too: a rehearsed prompt is a lump of many,
    so that some of them are always at prefill.
    """
    seen, in_flight = rehearsed.seen, rehearsed.load.in_flight
    rates = _rates(plan, rehearsed.load, timing)
    return (
        plan.prefill is not None
        and (rates is None or rates.starves_decode)
        and seen.mean_prefill_in_flight > max(plan.prefill.pool.ranks, in_flight / 2)
        and seen.mean_running < min(in_flight, plan.decoding.requests) / 2
    )


def _agrees(plan: RehearsalPlan, rehearsed: RehearsedLoad) -> bool | None:
    """Whether KV memory was exceeded where the arithmetic says so, and there alone.

    Beyond capacity requests are preempted, or at least half of those that are too many wait on
    average.
    """
    seen, load = rehearsed.seen, rehearsed.load
    if load.is_within_capacity:
        return _has_room(rehearsed)
    excess = load.in_flight - plan.decoding.requests
    if seen.preemptions or seen.mean_waiting >= excess / 2:
        return True
    was_full = seen.peak_running + seen.peak_waiting > plan.decoding.requests
    return False if was_full else None


def _reasons(
    plan: RehearsalPlan,
    rehearsed: RehearsedLoad,
    outcome: Outcome,
    reference: RehearsedLoad | None,
) -> Iterator[str]:
    seen, load, measured = rehearsed.seen, rehearsed.load, rehearsed.measured
    match outcome:
        case Outcome.NEVER_DRAINS:
            yield "requests were left in the queues when their time was over"
        case Outcome.REQUESTS_FAIL if measured is not None:
            sent = measured.completed + measured.failed
            yield f"{measured.failed} of {sent} requests failed: see the logs"
        case Outcome.DECODE_STARVED:
            yield (
                f"prefill holds {seen.mean_prefill_in_flight:.0f} of {load.in_flight} requests"
                f" in flight, decode runs {seen.mean_running:.0f}: prefill does not keep up"
            )
        case Outcome.FULL_WITHIN_CAPACITY:
            yield (
                f"{seen.preemptions} preemptions, {seen.mean_waiting:.0f} of {load.in_flight} wait"
                f" on average although the load fits{_uneven(plan, load)}"
            )
        case Outcome.BEYOND_CAPACITY:
            yield from _beyond(plan, rehearsed, reference)
        case _:
            yield f"no preemption, the fullest rank at {seen.peak_kv_usage:.0%} of its KV cache"


def _uneven(plan: RehearsalPlan, load: Load) -> str:
    """Near capacity a rank that gets one request more than its share is full before the others."""
    room = plan.decoding.requests - load.in_flight
    return ": ranks are not equally full" if room < plan.decoding.pool.ranks else ""


def _beyond(
    plan: RehearsalPlan, rehearsed: RehearsedLoad, reference: RehearsedLoad | None
) -> Iterator[str]:
    seen = rehearsed.seen
    preempted = f"{seen.preemptions} preemptions" if seen.preemptions else "none preempted"
    yield f"{preempted}, {seen.mean_waiting:.0f} of {rehearsed.load.in_flight} wait for KV blocks"
    if reference is None or reference.measured is None or rehearsed.measured is None:
        return
    if not reference.measured.output_tokens_per_s:
        return
    gain = rehearsed.measured.output_tokens_per_s / reference.measured.output_tokens_per_s - 1
    more = rehearsed.load.in_flight / reference.load.in_flight - 1
    yield (
        f"{more:+.0%} load gives {gain:+.0%} throughput over concurrency"
        f" {reference.load.concurrency:,}"
    )
    late, usual = rehearsed.measured.ttft_p99_ms, reference.measured.ttft_p99_ms
    if late and usual:
        yield f"TTFT p99 is {late / usual:.1f} times as long"
    budget = plan.decoding.max_num_batched_tokens
    if seen.preemptions and gain < -FLAT_GAIN and budget < plan.lengths.isl:
        yield (
            f"max-num-batched-tokens leaves a preempted prompt of {plan.lengths.isl} tokens at most"
            f" {budget} of a decode step to be prefilled again"
        )


def _slot_statements(plan: RehearsalPlan, load: Load) -> Iterator[str]:
    """What max-num-seqs means at the recipe's own size, where the mock's is raised to the load."""
    pool = plan.topology.decoding
    if load.concurrency > pool.slots:
        yield (
            f"{load.concurrency - pool.slots:,} requests have no slot:"
            f" {plural(pool.ranks, 'rank')} x max-num-seqs {pool.max_num_seqs} = {pool.slots:,}"
        )


def _ratio_statements(plan: RehearsalPlan, load: Load, timing: Timing) -> Iterator[str]:
    """Whether prefill keeps up at full size, where a rehearsed prompt is no lump of many."""
    rates = _rates(plan, load, timing)
    if rates is not None:
        share = rates.prefill_per_s / rates.decode_per_s
        ends = f"decode waits, at {share:.0%}" if rates.starves_decode else "prefill keeps up"
        yield (
            f"at these step times prefill gives {rates.prefill_per_s:,.1f} requests/s and decode"
            f" takes {rates.decode_per_s:,.1f}: {ends}"
        )


def _rates(plan: RehearsalPlan, load: Load, timing: Timing) -> PhaseRates | None:
    if timing.steps is None:
        return None
    return phase_rates(plan.topology, timing.steps, load.concurrency)


def all_hold(found: Iterable[Verdict]) -> bool:
    """Whether every load is taken, by the rehearsal and by the arithmetic."""
    return all(each.outcome is Outcome.HOLDS for each in found)
