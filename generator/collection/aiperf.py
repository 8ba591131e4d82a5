"""AIPerf's exports: ``profile_export_aiperf.json`` of one load, and its sweep of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from generator.collection.aiperf_metrics import Metrics
from generator.collection.aiperf_rows import BackwardClock, find_rows, read_rows
from generator.collection.measurement import Measurement, Timing, timing_of_means
from generator.collection.unusable import (
    Unusable,
    checked_duration,
    is_another_unit,
    read_json_object,
)
from generator.results.point import Latencies, Requests, Tokens
from generator.wording import plural

SUMMARY_SUFFIX = "profile_export_aiperf.json"
SWEEP_SUFFIX = "profile_export_aiperf_sweep.json"
CLIENT = "aiperf"
SWEEP_CLIENT = f"{CLIENT} sweep"

_LATENCIES = (
    "time_to_first_token",
    "inter_token_latency",  # AIPerf's name for (end to end - TTFT) / (output tokens - 1)
    "inter_chunk_latency",
    "request_latency",
)
_SAME = 1e-6
_TOKENS = "tokens"
_RATE = "tokens/sec"


def read_aiperf(path: Path, on_chunk: Callable[[], None] = lambda: None) -> Measurement:
    """The measurement of an export; latencies come from the rows beside it where they are whole.

    Raises Unusable for other files and for runs that were cut off.
    """
    report = read_json_object(path)
    if report.get("was_cancelled") or report.get("is_complete") is False:
        raise Unusable("its run was cancelled before the end")
    metrics = Metrics(report)
    _requests(metrics)  # first, so that another format is called one
    load = _load(report)
    began, ended = _times(report)
    took_s = (ended - began).total_seconds() if began and ended else None
    measured = _measurement(path, metrics, load.concurrency, took_s=took_s)
    measured = replace(
        measured,
        client=f"{CLIENT} {report.get('aiperf_version', '')}".rstrip(),
        started=began,
        conditions={**_conditions(report), **load.conditions},
    )
    rows = find_rows(path)
    return measured if rows is None else _with_rows(measured, rows, on_chunk)


def read_aiperf_sweep(path: Path) -> Iterator[Measurement | Unusable]:
    """Every load of a sweep's export, or why it is none; raises Unusable for another file.

    Figures of repeated trials are AIPerf's means over them; its deviations are between trials,
    and not of requests.
    """
    report = read_json_object(path)
    combinations = report.get("per_combination_metrics")
    metadata = report.get("metadata")
    if not isinstance(combinations, list) or not isinstance(metadata, dict):
        raise Unusable("is no AIPerf sweep: it lacks per_combination_metrics or metadata")
    if failed := _items(report.get("failed_runs")):
        yield Unusable(f"{plural(len(failed), 'run')} of this sweep failed and left no figures")
    trials = metadata.get("num_trials_per_value")
    for combination in combinations:
        try:
            yield _combination(path, combination, trials if isinstance(trials, int) else 1)
        except Unusable as error:
            yield error


def _combination(path: Path, combination: object, trials: int) -> Measurement:
    parts = _object(combination)
    metrics, parameters = parts.get("metrics"), parts.get("parameters")
    if not isinstance(metrics, dict) or not isinstance(parameters, dict):
        raise Unusable("a combination has no metrics or no parameters")
    within_trials = {
        name: {key: value for key, value in each.items() if key != "std"}
        for name, each in metrics.items()
        if isinstance(each, dict)
    }
    concurrency = _whole(parameters.get("concurrency"))
    measured = _measurement(path, Metrics(within_trials), concurrency, trials=trials)
    return replace(measured, client=SWEEP_CLIENT, conditions={"load.loop": "closed"})


def _measurement(
    path: Path, metrics: Metrics, concurrency: int, *, trials: int = 1, took_s: float | None = None
) -> Measurement:
    """The measurement; ``took_s`` is for a run without a response, which has no duration."""
    requests = _requests(metrics)
    completed = requests.completed
    if not completed and took_s is not None and "benchmark_duration" not in metrics:
        duration_s = checked_duration(took_s, "end_time - start_time")
    else:
        duration_s = checked_duration(metrics.seconds("benchmark_duration"), "benchmark_duration")
    tokens = _tokens(metrics, duration_s) if completed else Tokens(input=0, output=0)
    ttft, tpot, inter_chunk, end_to_end = metrics.spreads(*_LATENCIES, samples=completed * trials)
    latencies = Latencies(ttft=ttft, tpot=tpot, inter_chunk=inter_chunk, end_to_end=end_to_end)
    return Measurement(
        client=CLIENT,
        file=path,
        concurrency=concurrency,
        requests=requests,
        tokens=tokens,
        duration_s=duration_s,
        rates_over_s=_rates_over_s(metrics, duration_s),
        latencies=latencies,
        timing=timing_of_means(latencies, tokens, completed),
        tokens_per_s_per_user=metrics.value("output_token_throughput_per_user", "tokens/sec/user"),
    )


def _requests(metrics: Metrics) -> Requests:
    """The requests of the measured phase.

    AIPerf counts no errors where there are none, and no successes where there are none; their
    share stands in for the one, the count of all requests for the other.
    """
    failed = metrics.value("error_request_count", "requests")
    percent = metrics.value("request_error_rate", "%") or 0.0
    if metrics.value("request_count", "requests") is None and (failed or percent == 100):
        if failed is None:
            failed = metrics.demand("completed_request_count", "requests")
        return Requests(completed=0, offered=round(failed), failed=round(failed))
    completed = round(metrics.demand("request_count", "requests"))
    if failed is None:
        if percent >= 100:
            raise Unusable(f"request_error_rate is {percent:g} % beside {completed:,} requests")
        failed = completed * percent / (100 - percent)
    return Requests(completed=completed, offered=completed + round(failed), failed=round(failed))


def _rates_over_s(metrics: Metrics, duration_s: float) -> float | None:
    """The seconds that AIPerf divides by for its rates; None where that is the duration.

    Since 0.13 it is the measured phase, from the first credit to the end of the last request. A
    rate over less than the duration is not of these tokens.
    """
    output = metrics.value("total_osl", _TOKENS)
    rate = metrics.value("output_token_throughput", _RATE)
    if not output or not rate:
        return None
    seconds = checked_duration(output / rate, "total_osl over output_token_throughput")
    if is_another_unit(seconds, duration_s):
        raise Unusable(
            f"output_token_throughput is {rate:,.6g}, but its {output:,.0f} tokens take"
            f" {duration_s:,.6g} s: it mixes units"
        )
    return seconds if seconds > duration_s * (1 + _SAME) else None


def _tokens(metrics: Metrics, duration_s: float) -> Tokens:
    """Totals; where an older export has none, from its rates."""
    output = metrics.value("total_osl", _TOKENS)
    if output is None:
        output = metrics.demand("output_token_throughput", _RATE) * duration_s
    prompt = metrics.value("total_isl", _TOKENS)
    if prompt is None:
        prompt = metrics.demand("total_token_throughput", _RATE) * duration_s - output
    by_server = [
        metrics.value(f"total_usage_{name}_tokens", _TOKENS) for name in ("prompt", "completion")
    ]
    server_input, server_output = (None if each is None else round(each) for each in by_server)
    return Tokens(
        input=round(prompt),
        output=round(output),
        server_input=server_input,
        server_output=server_output,
    )


def _with_rows(measured: Measurement, rows: Path, on_chunk: Callable[[], None]) -> Measurement:
    """The measurement with latencies recomputed; with a remark instead, where rows are damaged."""
    try:
        times = read_rows(rows, on_chunk)
    except BackwardClock as error:
        raise Unusable(f"{rows.name}: {error}: its clock ran backwards") from error
    except Unusable as error:
        remark = f"{rows.name} is left out: {error}"
        return replace(measured, remarks=(*measured.remarks, remark))
    expected = measured.requests.completed
    listed = len(times.served.ttft_ms)
    if listed != expected:
        remark = f"{rows.name} is left out: it has {listed:,} of {expected:,} requests"
        return replace(measured, remarks=(*measured.remarks, remark))
    if not times.has_gaps:
        return replace(measured, latency_file=rows, latencies=times.latencies)
    reported = times.latencies.end_to_end
    return replace(
        measured,
        latency_file=rows,
        latencies=times.latencies,
        served=times.served,
        timing=Timing(summed_ms=times.summed_ms, reported_ms=reported.mean) if reported else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    concurrency: int
    conditions: Mapping[str, str]


def _load(report: Mapping[str, Any]) -> _Load:
    """The load of the measured phase, in the layout of this export's version."""
    config = _object(report.get("input_config"))
    phases = [each for each in _items(config.get("phases")) if isinstance(each, dict)]
    measured = [each for each in phases if each.get("kind") == "profiling"]
    phase = measured[0] if measured else _object(config.get("loadgen"))
    rate = phase.get("request_rate") or phase.get("rate")
    conditions = {
        "load.loop": "open" if rate else "closed",
        "load.request_rate": str(rate) if rate else "inf",
        "load.warmup": _warmup(phases),
    }
    return _Load(concurrency=_whole(phase.get("concurrency")), conditions=conditions)


def _object(value: object) -> Mapping[str, Any]:
    """An object of the export's free-form parts; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _warmup(phases: list[dict[str, Any]]) -> str:
    warmups = [each for each in phases if each.get("kind") == "warmup"]
    if not warmups:
        return "none"
    is_excluded = all(each.get("exclude_from_results", True) for each in warmups)
    return "excluded" if is_excluded else "included"


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Unusable("names no concurrency: its load was none of so many requests at a time")
    return value


def _conditions(report: Mapping[str, Any]) -> dict[str, str]:
    config = _object(report.get("input_config"))
    endpoint, tokenizer = (_object(config.get(name)) for name in ("endpoint", "tokenizer"))
    datasets = _items(config.get("datasets"))
    prompts = _object(_object(datasets[0] if datasets else None).get("prompts"))
    said = {
        **{f"workload.{name}": _mean_length(prompts.get(name)) for name in ("isl", "osl")},
        "tokenizer.id": tokenizer.get("name"),
        "client.endpoint": endpoint.get("type"),
        "client.streaming": endpoint.get("streaming"),
    }
    return {name: str(value) for name, value in said.items() if value is not None}


def _mean_length(drawn: object) -> str | None:
    """The mean of a length that requests are drawn with, as recipes write it."""
    mean = _object(drawn).get("mean")
    return f"{mean:.15g}" if isinstance(mean, float) else None if mean is None else str(mean)


def _times(report: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    """When the run began and ended by the client's clock; None where it does not say both."""
    try:
        began, ended = (
            datetime.fromisoformat(str(report.get(name))).replace(tzinfo=None)
            for name in ("start_time", "end_time")
        )
    except ValueError:
        return None, None
    if ended < began:
        raise Unusable("end_time is before start_time: its clock ran backwards")
    return began, ended
