"""Traces on disk: JSON Lines or one JSON array, of the article's rows or of AIPerf's."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.files import MAX_FILE_BYTES, decode_text, os_problem
from generator.goodput.aiperf_rows import aiperf_row, is_aiperf_row, is_aiperf_warm_up
from generator.goodput.clocks import BadRow, as_row, parse_row
from generator.goodput.json_array import BrokenArray, elements
from generator.goodput.token_rows import is_token_row, is_token_warm_up, token_row
from generator.goodput.trace import Arrival, Trace, TracedRequest
from generator.wording import as_below

_HINT = "a row has sent, tokens, done and ok, or is one of AIPerf's profile_export.jsonl"
_AIPERF = "AIPerf's"
_TOKENS = "with sent"

_Numbered = tuple[int, Any]
"""A line and its text as bytes, or the value that starts on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row, read: which form it has, and its request unless it is of the warm-up."""

    form: str
    arrival: Arrival
    request: TracedRequest | None


def read_trace(path: Path) -> Trace:
    """The trace in a file; JSON Lines are read line by line, an array as a whole.

    Times of AIPerf's wall clock are counted from the first request after the warm-up; those of
    the article's rows stay as they are. Raises InvalidInput with every line that is not usable.
    """
    source = str(path)
    try:
        with path.open("rb") as stream:
            if _without_mark(stream.peek()).lstrip()[:1] != b"[":
                return _trace(enumerate(stream, 1), source)
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(os_problem(error, source)) from error
    if len(content) > MAX_FILE_BYTES:
        message = f"an array of over {MAX_FILE_BYTES // 2**20} MiB"
        hint = "write it as JSON Lines, which may be of any length: jq -c .[]"
        raise InvalidInput(Problem(message=message, hint=hint, source=source))
    return _trace(_elements(decode_text(content, source), source), source)


def _without_mark(content: bytes) -> bytes:
    """The bytes of a file without the byte order mark that some editors put first."""
    return content.removeprefix(codecs.BOM_UTF8)


def _trace(rows: Iterable[_Numbered], source: str) -> Trace:
    """The requests of numbered rows; raises InvalidInput with all that are not usable."""
    read: list[_Row] = []
    found: dict[str, list[int]] = {}
    for line, content in rows:
        if isinstance(content, bytes) and not content.strip():
            continue
        try:
            row = _row(_parsed(content) if isinstance(content, bytes) else as_row(content))
            _require_same_kind(read, row)
        except BadRow as error:
            found.setdefault(str(error), []).append(line)
        else:
            read.append(row)
    if found:
        raise InvalidInput(_problem(reason, lines, source) for reason, lines in found.items())
    if not read:
        raise InvalidInput(Problem(message="the trace is empty", hint=_HINT, source=source))
    requests = [row.request for row in read if row.request]
    return Trace(
        requests=tuple(_from_first(requests) if read[0].form == _AIPERF else requests),
        arrival=read[0].arrival,
        warm_up=len(read) - len(requests),
    )


def _problem(reason: str, lines: list[int], source: str) -> Problem:
    """One problem for all lines that have it: a file of another kind has it on each."""
    message = f"{reason}{as_below(lines)}"
    return Problem(message=message, hint=_HINT, source=source, line=lines[0])


def _parsed(line: bytes) -> dict[str, Any]:
    """The object of a line; AIPerf's milliseconds are floats of whole nanoseconds."""
    return parse_row(line, number=float if b'"request_start_ns"' in line else Decimal)


def _row(row: dict[str, Any]) -> _Row:
    if is_aiperf_row(row):
        request = None if is_aiperf_warm_up(row) else aiperf_row(row)
        return _Row(form=_AIPERF, arrival=Arrival.CHUNK, request=request)
    if not is_token_row(row):
        raise BadRow("it is no row of a trace")
    read, arrival = token_row(row)
    return _Row(form=_TOKENS, arrival=arrival, request=None if is_token_warm_up(row) else read)


def _require_same_kind(read: list[_Row], row: _Row) -> None:
    """Raise BadRow for a row that does not compare with those before it."""
    if not read:
        return
    if row.form != read[0].form:
        raise BadRow(f"the file starts with rows {read[0].form}, this one is {row.form}")
    if row.arrival is not read[0].arrival:
        raise BadRow(f"the file starts with {read[0].arrival}s, this row has {row.arrival}s")


def _from_first(requests: list[TracedRequest]) -> list[TracedRequest]:
    """The same requests on a clock that starts with the first of them."""
    start_ns = min((each.sent_ns for each in requests), default=0)
    return [
        replace(
            each,
            sent_ns=each.sent_ns - start_ns,
            ended_ns=None if each.ended_ns is None else each.ended_ns - start_ns,
            received=each.received
            and replace(
                each.received,
                first_ns=each.received.first_ns - start_ns,
                last_ns=each.received.last_ns - start_ns,
            ),
        )
        for each in requests
    ]


def _elements(text: str, source: str) -> Iterator[_Numbered]:
    """The elements of an array with their lines; raises InvalidInput where it is none."""
    try:
        yield from elements(text)
    except BrokenArray as error:
        problem = Problem(message=str(error), hint=_HINT, source=source, line=error.line)
        raise InvalidInput(problem) from None
