"""Rows of the B200 article's form: one request a row, times in seconds of one monotonic clock."""

from __future__ import annotations

from typing import Any

from generator.goodput.clocks import BadRow, require_order, time_ns, whole_number
from generator.goodput.trace import Arrival, Outcome, TracedRequest, receive

_WARM_UP = "warmup"
_PHASES = (_WARM_UP, "profiling")
_ENDED = tuple(each for each in Outcome if each is not Outcome.PENDING)


def is_token_row(row: dict[str, Any]) -> bool:
    """Whether a row is of this form."""
    return "sent" in row and not {"tokens", "chunks"}.isdisjoint(row)


def is_token_warm_up(row: dict[str, Any]) -> bool:
    """Whether a row belongs to the warm-up: it says ``phase: warmup``.

    Raises BadRow for a phase of another name, which might mean either.
    """
    if "phase" in row and row["phase"] not in _PHASES:
        raise BadRow(f"phase must be one of {', '.join(_PHASES)}, or not be there")
    return row.get("phase") == _WARM_UP


def token_row(row: dict[str, Any]) -> tuple[TracedRequest, Arrival]:
    """The request of a row and what its time stamps are of; raises BadRow.

    ``sent``, ``done`` (null while pending), ``tokens`` (a time for each) and ``ok``. In place of
    ``tokens`` a row may have ``chunks`` with ``output_tokens``, and in place of ``ok`` an
    ``outcome``.
    """
    sent_ns = time_ns("sent", row.get("sent"), "s")
    name = "chunks" if "chunks" in row else "tokens"
    times = row[name]
    if not isinstance(times, list):
        raise BadRow(f"{name} must be a list of times")
    label = name[:-1]
    times_ns = [time_ns(f"{label} {number}", each, "s") for number, each in enumerate(times, 1)]
    ended_ns = None if row.get("done") is None else time_ns("done", row["done"], "s")
    moments = [("sent", sent_ns)]
    moments += [(f"{label} {number}", each) for number, each in enumerate(times_ns, 1)]
    moments += [("done", ended_ns)] if ended_ns is not None else []
    require_order(moments)
    request = TracedRequest(
        sent_ns=sent_ns,
        ended_ns=ended_ns,
        outcome=_outcome(row, is_pending=ended_ns is None),
        received=receive(times_ns, _output_tokens(row, name, len(times_ns))),
    )
    return request, Arrival.CHUNK if name == "chunks" else Arrival.TOKEN


def _output_tokens(row: dict[str, Any], name: str, arrivals: int) -> int:
    if name == "tokens":
        return arrivals
    tokens = whole_number("output_tokens", row.get("output_tokens"))
    if tokens < arrivals:
        raise BadRow(f"output_tokens {tokens} is less than the {arrivals} chunks")
    return tokens


def _outcome(row: dict[str, Any], *, is_pending: bool) -> Outcome:
    if is_pending:
        return Outcome.PENDING
    if "outcome" in row:
        if row["outcome"] not in _ENDED:
            raise BadRow(f"outcome must be one of {', '.join(_ENDED)}")
        return Outcome(row["outcome"])
    if not isinstance(row.get("ok"), bool):
        raise BadRow("ok must be true or false")
    return Outcome.COMPLETED if row["ok"] else Outcome.FAILED
