"""sa-bench's ``results_concurrency_<C>_*.json``: one report a concurrency, with raw lists or not.

Its times are seconds in the lists and milliseconds in the summary. ``errors`` has a text for every
request, empty where it succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generator.collection.measurement import Measurement, Timing, timing_of_means
from generator.collection.request_times import (
    GapCollector,
    GapLists,
    Milliseconds,
    ServedRequests,
    latencies_of,
    numbers,
)
from generator.collection.streamed_json import StreamedObject, open_binary
from generator.collection.unusable import (
    Figures,
    Unusable,
    checked_duration,
    is_another_unit,
    json_object,
    read_bytes,
)
from generator.results.distribution import Distribution
from generator.results.point import Latencies, Requests, Tokens

CLIENT = "sa-bench"
STREAMED_FROM_BYTES = 16 * 2**20
"""Larger files are read as a stream, which is slower and takes no memory for what is not used."""

_MS_PER_S = 1000.0
_REQUIRED = (
    "max_concurrency",
    "completed",
    "duration",
    "total_input_tokens",
    "total_output_tokens",
)
_LISTS = ("ttfts", "output_lens", "errors", "input_lens")
LATENCY_NAMES = {"ttft": "ttft", "tpot": "tpot", "inter_chunk": "itl", "end_to_end": "e2el"}
"""What sa-bench, and the rollup of its reports, call each latency."""


def read_sa_bench(path: Path, on_chunk: Callable[[], None] = lambda: None) -> Measurement:
    """The measurement in a file; raises Unusable for any other file, and for one that is damaged.

    Percentiles are computed from the raw lists where the file has them.
    """
    try:
        is_large = path.stat().st_size > STREAMED_FROM_BYTES
    except OSError as error:
        raise Unusable((error.strerror or "cannot be read").lower()) from error
    if is_large:
        report, gaps = _streamed(path, on_chunk)
    else:
        report, gaps = _whole(path)
    return _measurement(path, report, gaps)


def _whole(path: Path) -> tuple[dict[str, Any], GapLists | None]:
    report = json_object(read_bytes(path, STREAMED_FROM_BYTES))
    lists = report.get("itls")
    if lists is None:
        return report, None
    if not isinstance(lists, list):
        raise Unusable("itls is no list")
    collector = GapCollector(to_ms=_MS_PER_S)
    for each in lists:
        collector.add(each)
    return report, collector.collected()


def _streamed(path: Path, on_chunk: Callable[[], None]) -> tuple[dict[str, Any], GapLists | None]:
    """All but the generated texts, the gaps without a Python number for each."""
    report: dict[str, Any] = {}
    collector: GapCollector | None = None
    with open_binary(path) as stream:
        document = StreamedObject(stream, on_chunk)
        for key in document.members():
            if key == "itls":
                collector = GapCollector(to_ms=_MS_PER_S)
                for gaps in document.items():
                    collector.add(gaps)
            elif key in _LISTS:
                report[key] = list(document.items())
            elif key != "generated_texts":
                report[key] = document.value()
    return report, collector.collected() if collector else None


def _measurement(path: Path, report: Mapping[str, Any], gaps: GapLists | None) -> Measurement:
    figures = Figures(report, "sa-bench result")
    figures.demand_keys(*_REQUIRED)
    concurrency, completed = figures.count("max_concurrency"), figures.count("completed")
    offered = figures.count("num_prompts") if report.get("num_prompts") is not None else None
    duration_s = checked_duration(figures.number("duration"), "duration")
    if concurrency < 1:
        raise Unusable("max_concurrency is 0")
    if offered is not None and completed > offered:
        raise Unusable(f"completed is {completed:,} of {offered:,} requests")
    tokens = Tokens(
        input=figures.count("total_input_tokens"), output=figures.count("total_output_tokens")
    )
    _check_rates(figures, tokens, duration_s)
    raw = _raw_requests(report, gaps)
    if raw is not None:
        raw.check(tokens, completed)
    latencies = raw.latencies() if raw else Latencies()
    reported = _reported(figures)
    return Measurement(
        client=CLIENT,
        file=path,
        concurrency=concurrency,
        requests=_requests(completed, offered, raw),
        tokens=tokens,
        duration_s=duration_s,
        started=_started(figures, report, duration_s),
        latencies=latencies if latencies.ttft else reported,
        timing=_timing(reported, latencies, tokens, completed),
        conditions=_conditions(report),
        served=raw.served() if raw else None,
    )


def _check_rates(figures: Figures, tokens: Tokens, duration_s: float) -> None:
    """Refuse a report whose rates are those of its tokens in another unit of time."""
    for name, count in (
        ("output_throughput", tokens.output),
        ("total_token_throughput", tokens.input + tokens.output),
    ):
        stated, found = figures.optional(name), count / duration_s
        if tokens.output and stated and is_another_unit(stated, found):
            raise Unusable(
                f"{name} is {stated:,.6g}, but its {count:,} tokens in {duration_s:,.6g} s are"
                f" {found:,.6g}: it mixes units"
            )


def _requests(completed: int, offered: int | None, raw: _RawRequests | None) -> Requests:
    """The requests of a report, whose errors say of more failures than its counts or of none."""
    listed = raw.failed if raw else 0
    if offered is None and raw is not None:
        offered = completed + listed
    if offered is None:
        return Requests(completed=completed)
    failed = min(offered, max(offered - completed, listed))
    return Requests(completed=offered - failed, offered=offered, failed=failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RawRequests:
    """The lists of a report, and a mask of the requests that gave tokens.

    ``failed`` counts the requests that have an error.
    """

    failed: int
    ttft_ms: Milliseconds
    output_tokens: Milliseconds
    gaps: GapLists
    succeeded: NDArray[np.bool_]

    def check(self, tokens: Tokens, completed: int) -> None:
        """Refuse lists that are not those of the summary beside them."""
        listed = int(self.output_tokens[self.succeeded].sum())
        if completed and tokens.output and listed != tokens.output:
            raise Unusable(
                f"total_output_tokens is {tokens.output:,}, but output_lens add up to {listed:,}"
            )

    def served(self) -> ServedRequests:
        """The requests that gave tokens."""
        return ServedRequests(
            ttft_ms=self.ttft_ms[self.succeeded],
            longest_gap_ms=self.gaps.longest[self.succeeded],
            output_tokens=self.output_tokens[self.succeeded],
        )

    def latencies(self) -> Latencies:
        """Recomputed distributions: end to end is TTFT plus all gaps of a request."""
        ttft_ms = self.ttft_ms[self.succeeded]
        return latencies_of(
            ttft_ms,
            ttft_ms + self.gaps.sums[self.succeeded],
            self.output_tokens[self.succeeded],
            self.gaps.of(self.succeeded),
        )


def _raw_requests(report: Mapping[str, Any], gaps: GapLists | None) -> _RawRequests | None:
    """The raw lists; None where the report has none. Raises Unusable for some without others."""
    lists = {name: report.get(name) for name in ("ttfts", "output_lens")}
    if gaps is None or any(each is None for each in lists.values()):
        return None
    ttfts, output_lens = (_list(each, name) for name, each in lists.items())
    errors = _list(report.get("errors") or [""] * len(ttfts), "errors")
    lengths = {"itls": len(gaps.counts), "output_lens": len(output_lens), "errors": len(errors)}
    for name, length in lengths.items():
        if length != len(ttfts):
            raise Unusable(f"ttfts are of {len(ttfts):,} requests, {name} of {length:,}")
    output_tokens = numbers(output_lens, "output_lens")
    is_without_error = np.fromiter((not each for each in errors), dtype=np.bool_, count=len(errors))
    return _RawRequests(
        failed=len(errors) - int(is_without_error.sum()),
        ttft_ms=numbers(ttfts, "ttfts") * _MS_PER_S,
        output_tokens=output_tokens,
        gaps=gaps,
        succeeded=is_without_error & (output_tokens > 0),
    )


def _list(value: object, name: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise Unusable(f"{name} is no list")
    return value


def _reported(figures: Figures) -> Latencies:
    """The summary's own figures, which have the mean, the median and the p99 at most."""
    return Latencies(
        **{field: _reported_spread(figures, name) for field, name in LATENCY_NAMES.items()}
    )


def _reported_spread(figures: Figures, name: str) -> Distribution | None:
    mean = figures.optional(f"mean_{name}_ms")
    if mean is None:
        return None
    stated = ((50.0, f"median_{name}_ms"), (99.0, f"p99_{name}_ms"))
    found = ((percent, figures.optional(key)) for percent, key in stated)
    return Distribution(
        mean=mean,
        std=figures.optional(f"std_{name}_ms"),
        percentiles=tuple((percent, value) for percent, value in found if value is not None),
    )


def _timing(
    reported: Latencies, recomputed: Latencies, tokens: Tokens, completed: int
) -> Timing | None:
    """The two ways to the mean latency, by the raw lists where there are any; None without one."""
    if reported.end_to_end is None or recomputed.end_to_end is None:
        return timing_of_means(reported, tokens, completed)
    return Timing(summed_ms=recomputed.end_to_end.mean, reported_ms=reported.end_to_end.mean)


def _started(figures: Figures, report: Mapping[str, Any], duration_s: float) -> datetime | None:
    """When the measured interval began, by the client's clock; reports are dated at their end."""
    begin = figures.optional("benchmark_start_time_unix")
    end = figures.optional("benchmark_end_time_unix")
    if begin is not None and end is not None and end < begin:
        raise Unusable("benchmark_end_time_unix is before its start: its clock ran backwards")
    try:
        written = datetime.strptime(str(report.get("date")), "%Y%m%d-%H%M%S")  # noqa: DTZ007 - none
        return (written - timedelta(seconds=duration_s)).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None


def _conditions(report: Mapping[str, Any]) -> dict[str, str]:
    rate = report.get("request_rate")
    is_closed = rate in (None, "inf")
    said = {
        "load.loop": "closed" if is_closed else "open",
        "load.request_rate": "inf" if rate is None else str(rate),
        "load.burstiness": report.get("burstiness"),
        "tokenizer.id": report.get("tokenizer_id"),
        "client.backend": report.get("backend"),
    }
    return {name: str(value) for name, value in said.items() if value is not None}
