"""srt-slurm's rollup of a run: what is left of a load whose own report is gone, and a cross-check.

The JSON has counts and means, the CSV beside it medians; neither has lists. Per-GPU figures of the
CSV are never read: they divide by the GPUs at work, not by those allocated.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from generator.collection.measurement import Measurement, timing_of_means
from generator.collection.sa_bench import LATENCY_NAMES
from generator.collection.unusable import (
    Figures,
    Unusable,
    checked_duration,
    checked_number,
    read_json_object,
)
from generator.results.distribution import Distribution
from generator.results.point import Latencies, Requests, Tokens

ROLLUP_FILE = "benchmark-rollup.json"
CLIENT = "sa-bench rollup"
_MEDIANS = {"ttft": "Median TTFT", "tpot": "Median TPOT", "inter_chunk": "Median ITL"}


def read_rollup(path: Path) -> Iterator[Measurement | Unusable]:
    """Every load of a rollup, or why it is none; raises Unusable for another file.

    The duration is output tokens over their rate, since a rollup has none; without any output,
    requests over theirs. A CSV that cannot be read costs the medians alone.
    """
    runs = read_json_object(path).get("runs")
    if not isinstance(runs, list):
        raise Unusable("is no rollup: it lacks runs")
    medians: dict[int, dict[str, float]] = {}
    try:
        medians = _medians(path.with_suffix(".csv"))
    except Unusable as error:
        yield error
    for run in runs:
        try:
            measured = _measurement(path, Figures(run if isinstance(run, dict) else {}, "rollup"))
        except Unusable as error:
            yield error
        else:
            yield _with_medians(measured, medians.get(measured.concurrency, {}))


def _measurement(path: Path, figures: Figures) -> Measurement:
    completed, output = figures.count("completed_requests"), figures.count("total_output_tokens")
    duration_s = _duration_s(figures, completed, output)
    tokens = Tokens(input=figures.count("total_input_tokens"), output=output)
    latencies = Latencies(
        **{field: _spread(figures, name) for field, name in LATENCY_NAMES.items()}
    )
    return Measurement(
        client=CLIENT,
        file=path,
        concurrency=figures.count("concurrency"),
        requests=Requests(completed=completed),
        tokens=tokens,
        duration_s=duration_s,
        latencies=latencies,
        timing=timing_of_means(latencies, tokens, completed),
    )


def _duration_s(figures: Figures, completed: int, output: int) -> float:
    rate = figures.number("throughput_toks")
    if rate and output:
        return checked_duration(output / rate, "output tokens over their rate")
    requests_per_s = figures.optional("request_throughput")
    if output or not requests_per_s or not completed:
        load = figures.count("concurrency")
        raise Unusable(f"concurrency {load} has no rate of tokens or requests, so no duration")
    return checked_duration(completed / requests_per_s, "requests over their rate")


def _spread(figures: Figures, name: str) -> Distribution | None:
    mean, p99 = figures.optional(f"{name}_mean_ms"), figures.optional(f"{name}_p99_ms")
    if mean is None:
        return None
    return Distribution(mean=mean, percentiles=() if p99 is None else ((99.0, p99),))


def _medians(path: Path) -> dict[int, dict[str, float]]:
    """Medians by concurrency from the CSV; empty where it is not there or says nothing."""
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        return {
            int(row["Concurrency"]): {
                field: checked_number(float(row[name]), name)
                for field, name in _MEDIANS.items()
                if row.get(name)
            }
            for row in rows
        }
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, ValueError, TypeError) as error:
        raise Unusable(f"{path.name} beside it cannot be read: {error}") from error


def _with_medians(measured: Measurement, medians: Mapping[str, float]) -> Measurement:
    changes: dict[str, Any] = {}
    if not medians:
        return measured
    for field, median in medians.items():
        spread = getattr(measured.latencies, field)
        if spread is not None:
            changes[field] = replace(spread, percentiles=((50.0, median), *spread.percentiles))
    return replace(
        measured,
        latencies=replace(measured.latencies, **changes),
        latency_file=measured.file.with_suffix(".csv"),
    )


def disagreement(report: Measurement, rollup: Measurement) -> str:
    """How a rollup differs from the report of the same load; empty where it does not."""
    pairs = {
        "completed requests": (report.requests.completed, rollup.requests.completed),
        "input tokens": (report.tokens.input, rollup.tokens.input),
        "output tokens": (report.tokens.output, rollup.tokens.output),
    }
    different = (
        f"{theirs:,} {name}, the report {ours:,}"
        for name, (ours, theirs) in pairs.items()
        if ours != theirs
    )
    return "; ".join(different)
