"""An assessment as the JSON document of ``pdrecipe goodput --json``."""

from __future__ import annotations

from typing import Any

from generator.goodput.acceptance import Assessment
from generator.goodput.trace import NS_PER_S
from generator.results.distribution import Distribution

VERSION = 1


def goodput_document(assessment: Assessment) -> dict[str, Any]:
    """The document; its schema is schemas/goodput.schema.json."""
    limits, window = assessment.limits, assessment.window
    return {
        "version": VERSION,
        "limits": {"ttft_ms": limits.ttft_ms, "max_gap_ms": limits.max_gap_ms},
        "window": {
            "start_s": window.start_ns / NS_PER_S,
            "end_s": window.end_ns / NS_PER_S,
        },
        "gaps_between": f"{assessment.arrival}s",
        "goodput": {
            "requests_per_s": assessment.requests_per_s,
            "tokens_per_s": assessment.tokens_per_s,
        },
        "completed_tokens_per_s": assessment.completed_tokens_per_s,
        "requests": {
            "offered": assessment.offered,
            **{str(outcome): count for outcome, count in assessment.outcomes.items()},
            "passed": assessment.passed,
            "late_first_token": assessment.late,
            "long_gap": assessment.slow,
            "without_output": assessment.empty,
            "without_tpot": assessment.without_tpot,
            "outside_window": assessment.outside,
            "warm_up": assessment.warm_up,
        },
        "ttft_ms": _distribution(assessment.ttft),
        "tpot_ms": _distribution(assessment.tpot),
    }


def _distribution(of: Distribution | None) -> dict[str, Any] | None:
    """Mean, extremes, and the percentiles that the samples support."""
    if of is None:
        return None
    return {
        "samples": of.samples,
        "mean": of.mean,
        "min": of.minimum,
        "max": of.maximum,
        "percentiles": {
            f"{percent:g}": value
            for percent, _ in of.percentiles
            if (value := of.shown(percent)) is not None
        },
    }
