"""Rows of AIPerf's per-request export (profile_export.jsonl): chunk gaps, wall-clock time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from generator.goodput.clocks import BadRow, as_row, require_order, time_ns, whole_number
from generator.goodput.trace import Outcome, Received, TracedRequest, receive

_MEASURED_PHASE = "profiling"
_REJECTIONS = (429, 503)
"""HTTP: too many requests, and service unavailable."""


def is_aiperf_row(row: dict[str, Any]) -> bool:
    """Whether a row is of this form."""
    return isinstance(row.get("metadata"), dict) and "request_start_ns" in row["metadata"]


def is_aiperf_warm_up(row: Mapping[str, Any]) -> bool:
    """Whether a row is of any phase but the measured one; raises BadRow where it names none.

    The one rule for all readers of these rows.
    """
    phase = row["metadata"].get("benchmark_phase")
    if not isinstance(phase, str):
        raise BadRow("metadata.benchmark_phase is missing")
    return phase != _MEASURED_PHASE


def aiperf_failure(row: Mapping[str, Any]) -> Outcome | None:
    """How a request failed to give a whole response; None where nothing says that it did.

    The one rule for all readers of these rows.
    """
    if row["metadata"].get("was_cancelled") is True:
        return Outcome.CANCELLED
    error = row.get("error")
    if error is None:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return Outcome.REJECTED if code in _REJECTIONS else Outcome.FAILED


def aiperf_row(row: dict[str, Any]) -> TracedRequest:
    """The request of a row; raises BadRow.

    Arrivals are the start, the time to the first token, and the gaps between chunks added up.
    """
    metadata = row["metadata"]
    sent_ns = whole_number("metadata.request_start_ns", metadata.get("request_start_ns"))
    end = metadata.get("request_end_ns")
    ended_ns = None if end is None else whole_number("metadata.request_end_ns", end)
    received = _received(as_row(row.get("metrics", {})), sent_ns)
    moments = [("request_start_ns", sent_ns)]
    moments += [("the last chunk", received.last_ns)] if received else []
    moments += [("request_end_ns", ended_ns)] if ended_ns is not None else []
    require_order(moments)
    return TracedRequest(
        sent_ns=sent_ns,
        ended_ns=ended_ns,
        outcome=aiperf_failure(row) or (Outcome.PENDING if ended_ns is None else Outcome.COMPLETED),
        received=received,
    )


def _received(metrics: dict[str, Any], sent_ns: int) -> Received | None:
    if "time_to_first_token" not in metrics:
        return None
    first = time_ns("time_to_first_token", _value(metrics, "time_to_first_token", "ms"), "ms")
    gaps = _value(metrics, "inter_chunk_latency", "ms") if "inter_chunk_latency" in metrics else []
    if not isinstance(gaps, list):
        raise BadRow("inter_chunk_latency must be a list of times")
    gaps_ns = [
        time_ns(f"inter_chunk_latency {number}", each, "ms") for number, each in enumerate(gaps, 1)
    ]
    tokens = _value(metrics, "output_sequence_length", "tokens")
    times_ns = list(accumulate([sent_ns + first, *gaps_ns]))
    return receive(times_ns, whole_number("output_sequence_length", tokens))


def _value(metrics: dict[str, Any], name: str, unit: str) -> Any:
    """A metric's value; raises BadRow where it is missing or in another unit."""
    metric = metrics.get(name)
    if not isinstance(metric, dict) or "value" not in metric:
        raise BadRow(f"{name} is missing")
    if metric.get("unit") != unit:
        raise BadRow(f"{name} is in {str(metric.get('unit'))[:20]}, expected {unit}")
    return metric["value"]
