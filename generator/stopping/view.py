"""Verdicts on planned points for people, and as a versioned JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from generator.results.wording import unmeasured_notes
from generator.stopping.next_runs import Answer, LadderVerdicts, NextRuns
from generator.workload import format_concurrencies

JSON_VERSION = 1

Table = tuple[Sequence[str], list[list[str]]]


def next_notes(runs: NextRuns) -> Iterator[str]:
    """Where the figures are from, what the rules compare with, and what was left out."""
    yield from unmeasured_notes(runs.origins, "figures")
    limits = runs.limits
    objectives = [
        f"p{limits.percentile:g} {label} {limit:g} ms"
        for label, limit in (("TTFT", limits.ttft_ms), ("TPOT", limits.tpot_ms))
        if limit is not None
    ]
    yield (
        f"Latency objective: {' and '.join(objectives) or 'none'}. Variation where nothing was"
        f" repeated: {limits.variation:.1%}. Stop above {limits.preemption_share:.1%} preempted and"
        f" {limits.failure_share:.1%} failed requests."
    )
    yield from runs.notes


def next_table(runs: NextRuns) -> Table:
    """The points of each recipe by what to do about them."""
    headers = ["recipe", *(answer.value for answer in Answer)]
    rows = [
        [
            each.ladder.file,
            *(format_concurrencies(each.concurrencies(answer)) or "-" for answer in Answer),
        ]
        for each in runs.ladders
    ]
    return headers, rows


def reason_rows(runs: NextRuns) -> list[tuple[str, str]]:
    """Why points are skipped or run again, and what else is worth running."""
    rows = [row for each in runs.ladders for row in _reasons(each)]
    rows += [
        (each.file, f"suggested {each.concurrency}: {each.reason}") for each in runs.suggestions
    ]
    return rows


def _reasons(each: LadderVerdicts) -> Iterator[tuple[str, str]]:
    told = [
        verdict
        for verdict in each.verdicts
        if verdict.answer is Answer.SKIP
        or (verdict.answer is Answer.RUN and verdict.reason != "no result yet")
    ]
    for (answer, rule, reason), verdicts in groupby(
        told, lambda verdict: (verdict.answer, verdict.rule, verdict.reason)
    ):
        loads = format_concurrencies(tuple(verdict.concurrency for verdict in verdicts))
        yield each.ladder.file, f"{answer} {loads}: {f'{rule}, ' if rule else ''}{reason}"


def summary(runs: NextRuns) -> str:
    """One line: how many points there are of each answer."""
    counts = ", ".join(f"{runs.count(answer)} {answer.value}" for answer in Answer)
    more = len(runs.suggestions)
    return f"{counts}; {more} suggested."


def next_document(runs: NextRuns) -> dict[str, Any]:
    """The JSON answer, valid against schemas/next.schema.json."""
    return {
        "version": JSON_VERSION,
        "origins": list(runs.origins),
        "limits": asdict(runs.limits),
        "notes": list(runs.notes),
        "points": [
            {
                "recipe": each.ladder.file,
                "phase": each.ladder.phase,
                "concurrency": verdict.concurrency,
                "answer": verdict.answer.value,
                "rule": verdict.rule.value if verdict.rule else None,
                "reason": verdict.reason,
            }
            for each in runs.ladders
            for verdict in each.verdicts
        ],
        "suggestions": [
            {"recipe": each.file, "concurrency": each.concurrency, "reason": each.reason}
            for each in runs.suggestions
        ],
    }
