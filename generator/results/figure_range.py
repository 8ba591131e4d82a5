"""What figures of a run can be at all."""

from __future__ import annotations

from generator.results.distribution import Distribution
from generator.results.point import MeasuredPoint

GREATEST = 1e15
"""No figure of a run, be it tokens, seconds or milliseconds, is larger than this."""
_LEAST_MS = 1e-6
_LATENCIES = ("ttft", "tpot", "inter_chunk", "end_to_end")


def check_figures(point: MeasuredPoint) -> None:
    """Raise ValueError, naming the figure, for a point with one that no run measures."""
    _check("gpus", max(point.gpus.total, 0))
    _check("subject.concurrency", max(point.subject.concurrency, 0))
    if point.rates_over_s is not None and not 0 < point.rates_over_s <= GREATEST:
        raise ValueError(f"rates_over_s must be above 0, got {point.rates_over_s}")
    _check("duration_s", point.duration_s)
    _check("tokens.input", point.tokens.input)
    _check("tokens.output", point.tokens.output)
    _check("requests.completed", point.requests.completed)
    if not point.duration_s > 0:
        raise ValueError(f"duration_s must be above 0, got {point.duration_s}")
    if point.gpus.total < 1 or point.subject.concurrency < 1:
        raise ValueError("it counts no GPU or no concurrency")
    _check_counts(point)
    for name in _LATENCIES:
        latency: Distribution | None = getattr(point.latencies, name)
        if latency is not None:
            _check_latency(f"latencies.{name}", latency)


def _check_counts(point: MeasuredPoint) -> None:
    """What there can be none of, but not less than none; a pool has a worker at least."""
    for pool in point.subject.pools:
        if pool.workers < 1:
            raise ValueError(f"subject.pools has {pool.workers} workers of one kind")
        _check("subject.pools.gpus_per_worker", pool.gpus_per_worker)
        _check("subject.pools.num_speculative_tokens", pool.num_speculative_tokens)
    gpus, requests = point.gpus, point.requests
    _check("gpus", min(gpus.prefill, gpus.decode, gpus.aggregated, gpus.other))
    _check("requests.offered", requests.offered or 0)
    _check("requests.failed", requests.failed or 0)
    _check("preemptions", point.preemptions or 0)
    if point.goodput is not None:
        _check("goodput.tokens_per_s", point.goodput.tokens_per_s)
        _check("goodput.requests_per_s", point.goodput.requests_per_s)


def _check_latency(name: str, latency: Distribution) -> None:
    values = [latency.mean, *(value for _, value in latency.percentiles)]
    lowest = min(values)
    _check(name, lowest)
    _check(name, max(values))
    if lowest < _LEAST_MS and any(0 < value < _LEAST_MS for value in values):
        raise ValueError(f"{name} has a time below {_LEAST_MS:g} ms, which nothing takes")


def _check(name: str, value: float) -> None:
    if not 0 <= value <= GREATEST:
        raise ValueError(f"{name} has {value:g}, not a number from 0 to {GREATEST:g}")
