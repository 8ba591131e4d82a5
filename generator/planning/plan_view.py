"""A plan as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from generator.efficiency.plan_facts import CitedPoint
from generator.enumeration.rejection import Reason, RefusedEngines, refused_by_reason
from generator.planning.candidate import Candidate
from generator.planning.plan import Plan
from generator.planning.references import Reference, RefusedReference
from generator.units import format_gib
from generator.wording import plural

Table: TypeAlias = tuple[Sequence[str], list[list[str]]]
Rows: TypeAlias = list[tuple[str, str]]

_MOST_LOADS = 3

_REASONS = {
    Reason.DOMAIN: "more GPUs than one NVLink domain",
    Reason.PLACEMENT: "TP x PP neither divides a node nor is whole nodes",
    Reason.HEADS: "heads do not divide by TP",
    Reason.CONTEXT: "DCP is not TP over the KV heads",
    Reason.PIPELINE: "PP with MTP, or more stages than layers",
    Reason.PIPELINE_TRANSFER: "PP of a hybrid model has no KV transfer",
    Reason.CONTEXT_TRANSFER: "DCP has no KV transfer here",
    Reason.PREFILL_CONTEXT: "DCP is for decode",
    Reason.WEIGHT_SHARES: "weights cannot be shared out evenly",
    Reason.OTHER: "the engine refuses the flags",
    Reason.MEMORY: "weights leave no KV cache",
    Reason.REQUEST: "not one request fits the KV cache",
}


def heading(plan: Plan) -> Iterator[str]:
    """What was planned, how much was looked at, and what the figures are."""
    subject, search = plan.subject, plan.search
    workload = subject.workload
    yield (
        f"{subject.architecture.name} on {plural(subject.nodes, 'node')} of"
        f" {subject.gpus_per_node} {subject.gpu.name}, {workload.isl} in / {workload.osl} out."
    )
    yield (
        f"{plan.engines.considered:,} engines looked at, {len(plan.engines.legal):,} legal;"
        f" {search.combinations:,} deployments and concurrencies, {search.evaluated:,} evaluated"
        f" (the others have an engine that another beats), {len(search.frontier)} on the frontier."
    )
    yield "Predictions, not measurements. Speed: tokens/s per user; rate: total tokens/s per GPU."


def sweep_table(plan: Plan) -> Table:
    """The proposed points with prediction and bound side by side."""
    headers = [
        "prefill",
        "decode",
        "MTP",
        "conc.",
        "GPUs",
        "TTFT ms",
        "speed",
        "bound",
        "rate",
        "bound",
    ]
    rows = [
        [
            str(each.predicted.prefill),
            str(each.predicted.decode),
            str(each.predicted.kind.speculative_tokens),
            str(each.predicted.concurrency),
            str(each.predicted.gpus),
            f"{each.predicted.ttft_s * 1000:,.0f}",
            _speed(each.predicted),
            _speed(each.bound),
            _rate(each.predicted),
            _rate(each.bound),
        ]
        for each in plan.points
    ]
    return headers, rows


def references_name(plan: Plan) -> str:
    """What the deployments beside the frontier are."""
    return "the spec's own" if plan.subject.question is None else "published"


def reference_table(plan: Plan) -> Table:
    """What somebody chose, at the ends of its loads, beside what was measured there."""
    figures = ["bound", "measured"]
    headers = [references_name(plan), "conc.", "speed", *figures, "rate", *figures]
    rows: list[list[str]] = []
    for each in _ends(plan.references):
        if isinstance(each, RefusedReference):
            rows.append([each.file, each.reason])
            continue
        rows.append(
            [
                each.file,
                str(each.predicted.concurrency),
                _speed(each.predicted),
                _speed(each.bound),
                _measured(each.measured, "tokens_per_s_per_user"),
                _rate(each.predicted),
                _rate(each.bound),
                _measured(each.measured, "total_tokens_per_s_per_gpu"),
            ]
        )
    return headers, rows


def _ends(
    references: Sequence[Reference | RefusedReference],
) -> Iterator[Reference | RefusedReference]:
    """Those of the lowest and the highest load of each recipe, which is every one where few."""
    for _, group in groupby(references, key=lambda each: each.file):
        loads = list(group)
        yield from loads if len(loads) <= _MOST_LOADS else (loads[0], loads[-1])


def reference_rows(plan: Plan) -> Rows:
    """What of the frontier beats what somebody chose, at the lowest load of each."""
    known = [each for each in plan.references if isinstance(each, Reference)]
    lowest = {each.file: each for each in reversed(known)}
    return [
        (f"{each.file}, {each.predicted.concurrency}", _verdict(each))
        for each in reversed(lowest.values())
    ]


def _verdict(each: Reference) -> str:
    better, asked = each.beaten_by, each.predicted.concurrency
    if each.held_requests < asked:
        return f"no candidate: it holds {each.held_requests:,} of {asked:,} requests at full length"
    if better is None:
        return "on the frontier"
    times = better.total_tokens_per_s_per_gpu / each.predicted.total_tokens_per_s_per_gpu
    return (
        f"{better.text} is as fast for a user ({_speed(better)}) at {times:.2f} times the rate, on"
        f" {better.gpus} GPUs for {each.predicted.gpus}"
    )


def cost_rows(plan: Plan) -> Rows:
    """GPU-hours of the sweep, of all combinations, and of the article's way."""
    cost = plan.cost
    proposed, product, phases = cost.proposed, cost.product, cost.phases
    times = product.gpu_hours / proposed.gpu_hours
    more = cost.two_phases_gpu_hours / proposed.gpu_hours
    sweep = (
        f"{plural(proposed.points, 'point')}, {proposed.gpu_hours:,.1f} GPU-hours at"
        f" {cost.requests_per_concurrency} requests for each concurrent one"
    )
    everything = (
        f"{plural(product.points, 'point')}, {product.gpu_hours:,.0f} GPU-hours:"
        f" {times:,.0f} times as much"
    )
    alone = (
        f"{plural(phases.points, 'point')} of each engine alone, {phases.gpu_hours:,.0f}"
        f" GPU-hours, then the sweep: {more:,.0f} times as much"
    )
    return [("proposed", sweep), ("all of them", everything), ("phases first", alone)]


def rejection_rows(plan: Plan) -> Rows:
    """How many engines each reason refuses, with one, that which lacks least."""
    return [
        (f"{each.engines:,}", f"{_REASONS[each.reason]}, as {_example(each)}")
        for each in refused_by_reason(plan.engines.rejections)
    ]


def _example(refused: RefusedEngines) -> str:
    nearest = refused.nearest
    needed, available = nearest.needed, nearest.available
    if needed is None or available is None:
        return str(nearest.layout)
    if refused.reason is Reason.MEMORY:
        return f"{nearest.layout}: {format_gib(needed)} of {format_gib(available)}"
    if refused.reason is Reason.REQUEST:
        return f"{nearest.layout}: {needed} blocks of {available}"
    return str(nearest.layout)


def assumptions(plan: Plan) -> Iterator[str]:
    """What the figures rest on."""
    costs = plan.costs
    yield (
        f"Prefill: {costs.prefill.factor:.2f} x bound +"
        f" {costs.prefill.fixed_s_per_step * 1000:.1f} ms a step; decode:"
        f" {costs.decode.factor:.2f} x bound + {costs.decode.fixed_s_per_step * 1000:.1f} ms."
        f" Of drafted tokens {costs.acceptance_rate:.0%} are accepted (--acceptance-rate); the"
        " bounds take all."
    )
    yield (
        "A closed loop: requests/s are the least of prefill's, decode's and concurrency / latency;"
        " all requests are taken to decode at once, tokens to be routed evenly over experts."
    )
    yield from (f"Note: {note}." for note in plan.notes)
    for each in plan.refused:
        reasons = "; ".join(problem.message for problem in each.problems)
        yield f"Not proposed: {each.proposed.text()}: {reasons}."


def _speed(candidate: Candidate) -> str:
    return f"{candidate.tokens_per_s_per_user:,.1f}"


def _rate(candidate: Candidate) -> str:
    return f"{candidate.total_tokens_per_s_per_gpu:,.0f}"


def _measured(point: CitedPoint | None, figure: str) -> str:
    value = getattr(point, figure) if point else None
    return "-" if value is None else f"{value:,.6g}"
