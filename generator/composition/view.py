"""A composition for people: a table of deployments, why each, what it saves, what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generator.composition.compose import Composition
from generator.composition.explanation import Comparison, choice_reasons
from generator.composition.proposals import Candidate
from generator.composition.saving import Cost
from generator.results.wording import unmeasured_notes
from generator.wording import plural

Table = tuple[Sequence[str], list[list[str]]]


def phase_notes(composition: Composition) -> Iterator[str]:
    """Where the figures are from, and which engines lead each phase alone."""
    phases = composition.phases
    yield from unmeasured_notes(phases.origins, "rates")
    yield from phases.notes
    for phase, leads in (
        ("Prefill", composition.prefill_leads),
        ("Decode", composition.decode_leads),
    ):
        yield f"{phase} alone, most requests/s per GPU at: {', '.join(map(str, leads))}."


def deployment_notes(composition: Composition) -> Iterator[str]:
    """What the columns of the table of deployments mean."""
    workload = composition.target.spec.workload
    yield (
        f"Requests of {workload.isl} + {workload.osl} tokens. P:D: prefill workers to one decode"
        f" worker. reads: what the prefill workers supply, {composition.margin:.0%} of it kept for"
        " the transfer of KV cache and for queueing; asks: what the decode worker completes, both"
        " in requests/s. holds: requests in the decode worker's KV cache at that length."
    )
    yield (
        "Decode was measured at the context of its study: longer contexts are slower, so that asks"
        " and the predicted tokens/s are upper bounds."
    )


def deployment_table(composition: Composition) -> Table:
    """One row for each concurrency; where nothing serves it, why."""
    headers = [
        "conc.", "P:D", "prefill", "decode", "GPUs", "reads", "asks", "tok/s/GPU", "tok/s/user",
        "holds",
    ]  # fmt: skip
    rows = []
    for choice in composition.choices:
        if choice.chosen is None:
            rows.append([str(choice.concurrency), f"nothing serves it: {choice.refusal}"])
        else:
            rows.append(_row(choice.chosen))
    return headers, rows


def _row(candidate: Candidate) -> list[str]:
    speed = candidate.tokens_per_s_per_user
    held = candidate.capacity.held
    return [
        str(candidate.concurrency),
        f"{candidate.match.workers}:1",
        candidate.prefill.name,
        str(candidate.decode.kind),
        str(candidate.gpus),
        f"{candidate.match.supplied:.2f}",
        f"{candidate.match.needed:.2f}",
        f"{candidate.tokens_per_s_per_gpu:,.0f}",
        "-" if speed is None else f"{speed:,.1f}",
        "-" if held is None else f"{held:,.0f}",
    ]


def reason_rows(composition: Composition) -> list[tuple[str, str]]:
    """Why each concurrency has its engines."""
    return [
        (str(choice.concurrency), "; ".join(choice_reasons(choice)))
        for choice in composition.choices
        if choice.chosen is not None
    ]


def saving_notes(composition: Composition) -> Iterator[str]:
    """What was and will be spent against the full product of both phases."""
    saving = composition.saving
    share = saving.share_saved
    saved = f"Saved: {share:.0%}." if share >= 0 else f"Nothing saved: {-share:,.0%} more."
    most = saving.most_workers
    workers = "1 worker" if most == 1 else f"1 to {most} workers"
    yield (
        f"Cost of measuring, warm-up and start-ups left out: the phases {_cost(saving.phases)}, the"
        f" composed set {_cost(saving.composed)}. Every prefill layout, {workers},"
        f" before every decode layout and MTP at every concurrency:"
        f" {_cost(saving.product)}; {saving.refused:,} more cannot run. {saved}"
    )
    yield (
        f"A point takes {saving.requests_per_concurrency} requests for each concurrent one at the"
        " lower of what decode completes and prefill reads; the phases count as measured."
    )


def _cost(cost: Cost) -> str:
    points, starts = plural(cost.points, "point"), plural(cost.starts, "start")
    return f"{cost.gpu_hours:,.1f} GPU-hours ({points}, {starts})"


def comparison_notes(comparisons: Sequence[Comparison], name: str) -> Iterator[str]:
    """How many loads of the other spec are served as proposed."""
    agreed = [str(each.concurrency) for each in comparisons if each.agrees]
    yield (
        f"{name} agrees at {len(agreed)} of {len(comparisons)} loads"
        f"{': ' if agreed else ''}{', '.join(agreed)}."
    )


def comparison_rows(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """Each load that the other spec serves otherwise, and what speaks for which."""
    return [
        (
            str(each.concurrency),
            f"{each.theirs}; proposed {each.ours or 'nothing'}: {'; '.join(each.reasons)}",
        )
        for each in comparisons
        if not each.agrees
    ]
