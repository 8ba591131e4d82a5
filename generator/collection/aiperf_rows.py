"""AIPerf's file of single requests, a JSON object a line, beside its summary."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from generator.collection.aiperf_metrics import ms_per_unit
from generator.collection.request_times import GapCollector, ServedRequests, latencies_of
from generator.collection.streamed_json import open_binary
from generator.collection.unusable import DAMAGED, Unusable, checked_number, decode_json
from generator.goodput.aiperf_rows import aiperf_failure, is_aiperf_warm_up
from generator.goodput.clocks import BadRow
from generator.results.point import Latencies

_LINES_A_CHUNK = 256


class BackwardClock(Unusable):
    """A clock that ran backwards spoils the summary as well as the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTimes:
    """What the rows of the measured phase give, warm-up and failures left out.

    ``summed_ms`` is the mean of TTFT and all gaps of a request. ``has_gaps`` is false for
    rows of an AIPerf that wrote none: nothing adds up then, and no limit on gaps can be judged.
    """

    served: ServedRequests
    latencies: Latencies
    summed_ms: float
    has_gaps: bool


def find_rows(summary: Path) -> Path | None:
    """The file of rows that belongs to a summary, by its name; None where there is none."""
    stem = summary.name.removesuffix("_aiperf.json")
    for name in (f"{stem}.jsonl", f"{stem}_aiperf.jsonl", f"{stem}_records.jsonl"):
        path = summary.with_name(name)
        if path.is_file():
            return path
    return None


def read_rows(path: Path, on_chunk: Callable[[], None] = lambda: None) -> RowTimes:
    """The times of the measured requests; raises Unusable, naming the line, for damaged rows."""
    collector = _Rows()
    with open_binary(path) as stream:
        for number, line in enumerate(stream, 1):
            if not number % _LINES_A_CHUNK:
                on_chunk()
            if line.strip():
                _add(collector, line, number)
    return collector.times()


def _add(collector: _Rows, line: bytes, number: int) -> None:
    try:
        row = decode_json(line.decode("utf-8"))
        collector.add(row)
    except BadRow as error:
        raise Unusable(f"line {number}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise Unusable(f"line {number} is not JSON: {DAMAGED}") from error
    except (AttributeError, TypeError, KeyError) as error:
        raise Unusable(f"line {number} is no row of AIPerf") from error
    except BackwardClock as error:
        raise BackwardClock(f"line {number}: {error}") from error
    except Unusable as error:
        raise Unusable(f"line {number}: {error}") from error


class _Rows:
    def __init__(self) -> None:
        self._ttft_ms = array("d")
        self._end_to_end_ms = array("d")
        self._output_tokens = array("d")
        self._gaps = GapCollector(to_ms=1.0)

    def add(self, row: Mapping[str, Any]) -> None:
        metadata = row["metadata"]
        if is_aiperf_warm_up(row):
            return
        if metadata["request_end_ns"] < metadata["request_start_ns"]:
            raise BackwardClock("request_end_ns is before request_start_ns")
        if aiperf_failure(row) is not None:
            return
        metrics = row["metrics"]
        self._ttft_ms.append(_time(metrics, "time_to_first_token"))
        self._end_to_end_ms.append(_time(metrics, "request_latency"))
        self._output_tokens.append(
            checked_number(metrics["output_sequence_length"]["value"], "osl")
        )
        gaps = metrics.get("inter_chunk_latency")
        factor = ms_per_unit(gaps, "inter_chunk_latency") if gaps else 1.0
        self._gaps.add([each * factor for each in gaps["value"]] if gaps else [])

    def times(self) -> RowTimes:
        if not self._ttft_ms:
            raise Unusable("has no row of the measured phase")
        gaps = self._gaps.collected()
        ttft_ms = np.array(self._ttft_ms)
        end_to_end_ms = np.array(self._end_to_end_ms)
        output_tokens = np.array(self._output_tokens)
        if (end_to_end_ms < ttft_ms).any():
            raise BackwardClock("a request ends before its first token")
        return RowTimes(
            served=ServedRequests(
                ttft_ms=ttft_ms, longest_gap_ms=gaps.longest, output_tokens=output_tokens
            ),
            latencies=latencies_of(ttft_ms, end_to_end_ms, output_tokens, gaps.values),
            summed_ms=float((ttft_ms + gaps.sums).mean()),
            has_gaps=bool(gaps.values.size) or not (output_tokens > 1).any(),
        )


def _time(metrics: Mapping[str, Any], name: str) -> float:
    return checked_number(metrics[name]["value"], name) * ms_per_unit(metrics[name], name)
