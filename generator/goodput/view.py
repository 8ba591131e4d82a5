"""An assessment as the tables and notes of ``pdrecipe goodput``."""

from __future__ import annotations

from collections.abc import Iterator

from generator.goodput.acceptance import Assessment
from generator.goodput.trace import NS_PER_S, Arrival, Outcome
from generator.results.distribution import Distribution
from generator.units import format_count

Table = tuple[list[str], list[list[str]]]


def headline(assessment: Assessment) -> str:
    """Both goodputs in the words of the B200 article's example."""
    return (
        f"Goodput: {format_count(assessment.requests_per_s)} requests/s,"
        f" {format_count(assessment.tokens_per_s)} tokens/s"
    )


def contract(assessment: Assessment) -> str:
    """What a response had to do to count."""
    limits, window = assessment.limits, assessment.window
    start, end = window.start_ns / NS_PER_S, window.end_ns / NS_PER_S
    return (
        f"Of requests sent from {start:g} s to {end:g} s: completed before the end, first token"
        f" within {limits.ttft_ms:g} ms, no gap between {assessment.arrival}s above"
        f" {limits.max_gap_ms:g} ms."
    )


def requests_table(assessment: Assessment) -> Table:
    """How the offered requests stand when the window closes."""
    outcomes = assessment.outcomes
    rows = [
        ["offered", str(assessment.offered)],
        ["completed", str(outcomes[Outcome.COMPLETED])],
        ["- passed", str(assessment.passed)],
        ["- first token late", str(assessment.late)],
        ["- gap too long", str(assessment.slow)],
        ["- without output", str(assessment.empty)],
        ["failed", str(outcomes[Outcome.FAILED])],
        ["rejected", str(outcomes[Outcome.REJECTED])],
        ["cancelled", str(outcomes[Outcome.CANCELLED])],
        ["pending at the end", str(outcomes[Outcome.PENDING])],
    ]
    return ["requests", "count"], rows


def latency_table(assessment: Assessment) -> Table:
    """TTFT and TPOT of completed responses; a percentile too few samples support is ``-``."""
    headers = ["completed, ms", "samples", "mean", "p50", "p90", "p99", "max"]
    rows = [
        _latency_row(name, of)
        for name, of in (("TTFT", assessment.ttft), ("TPOT", assessment.tpot))
        if of is not None
    ]
    return headers, rows


def _latency_row(name: str, of: Distribution) -> list[str]:
    figures = [of.mean, *(of.shown(percent) for percent in (50, 90, 99)), of.maximum]
    return [name, str(of.samples), *("-" if each is None else f"{each:,.2f}" for each in figures)]


def notes(assessment: Assessment) -> Iterator[str]:
    """What else a reader should know of the figures."""
    yield (
        f"All completed responses together: {format_count(assessment.completed_tokens_per_s)}"
        " tokens/s, those that missed a limit included."
    )
    if assessment.arrival is Arrival.CHUNK:
        yield (
            "Gaps are between chunks, which may hold several tokens: the gaps between tokens are"
            " not known."
        )
    if assessment.without_tpot:
        yield f"Without a TPOT, since their output came in one piece: {assessment.without_tpot}."
    if assessment.outside:
        yield f"Not offered in this window, sent before or after it: {assessment.outside}."
    if assessment.warm_up:
        yield f"Left out as warm-up: {assessment.warm_up}."
