"""What figures of a run can be at all."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from generator.results.distribution import Distribution
from generator.results.point import MeasuredPoint

GREATEST = 1e15
"""No figure of a run, be it tokens, seconds or milliseconds, is larger than this."""
SHORTEST_S = 1e-6
"""No run is shorter than this."""
_LEAST_MS = 1e-6
_LONGEST_SHOWN = 20

_FIGURES = (
    *("duration_s", "tokens.input", "tokens.output", "tokens.server_input", "tokens.server_output"),
    *("requests.completed", "requests.offered", "requests.failed"),
    *("gpus.prefill", "gpus.decode", "gpus.aggregated", "gpus.other"),
    *("subject.concurrency", "preemptions", "client_tokens_per_s_per_user"),
)
_GOODPUT = ("ttft_ms", "max_gap_ms", "requests_per_s", "tokens_per_s")
_POOL = ("workers", "gpus_per_worker", "num_speculative_tokens")
_LATENCIES = ("ttft", "tpot", "inter_chunk", "end_to_end")
_OF_A_LATENCY = ("mean", "minimum", "maximum", "std", "samples")

# One call for all figures of a point: there may be ten thousand points.
_figures, _goodput, _pool = attrgetter(*_FIGURES), attrgetter(*_GOODPUT), attrgetter(*_POOL)
_latencies, _of_a_latency = attrgetter(*_LATENCIES), attrgetter(*_OF_A_LATENCY)


def check_figures(point: MeasuredPoint) -> None:
    """Raise ValueError, naming the figure, for a point with one that no run measures."""
    _check_all("", _FIGURES, _figures(point))
    if point.duration_s < SHORTEST_S:
        message = f"duration_s must be above 0, got {point.duration_s:g}"
        raise ValueError(f"{message}: no run is shorter than {SHORTEST_S:g} s")
    if point.rates_over_s is not None and not SHORTEST_S <= point.rates_over_s <= GREATEST:
        raise ValueError(f"rates_over_s must be above 0, got {point.rates_over_s}")
    if point.gpus.total < 1 or point.subject.concurrency < 1:
        raise ValueError("it counts no GPU or no concurrency")
    for pool in point.subject.pools:
        if pool.workers < 1:
            raise ValueError(
                f"subject.pools has {str(pool.workers)[:_LONGEST_SHOWN]} workers of one kind"
            )
        _check_all("subject.pools.", _POOL, _pool(pool))
    if point.goodput is not None:
        _check_all("goodput.", _GOODPUT, _goodput(point.goodput))
    if point.accuracy is not None:
        _check_share("accuracy.score", point.accuracy.score)
        _check_share("accuracy.threshold", point.accuracy.threshold)
    for name, latency in zip(_LATENCIES, _latencies(point.latencies), strict=True):
        if latency is not None:
            _check_latency(f"latencies.{name}", latency)


def _check_latency(name: str, latency: Distribution) -> None:
    _check_all(f"{name}.", _OF_A_LATENCY, _of_a_latency(latency))
    percents, values = zip(*latency.percentiles, strict=True) if latency.percentiles else ((), ())
    for percent in (min(percents, default=0), max(percents, default=0)):
        if not 0 <= percent <= 100:
            raise ValueError(f"{name} has a percentile {percent:g}, not one from 0 to 100")
    times = (latency.mean, *values)
    lowest = min(times)
    _check(name, lowest)
    _check(name, max(times))
    if lowest < _LEAST_MS and any(0 < time < _LEAST_MS for time in times):
        raise ValueError(f"{name} has a time below {_LEAST_MS:g} ms, which nothing takes")


def _check_all(prefix: str, names: tuple[str, ...], values: Iterable[float | None]) -> None:
    for name, value in zip(names, values, strict=True):
        if value is not None and not 0 <= value <= GREATEST:
            _check(f"{prefix}{name}", value)


def _check(name: str, value: float) -> None:
    if not 0 <= value <= GREATEST:
        # A whole number may have more digits than a float holds.
        text = str(value)[:_LONGEST_SHOWN] if isinstance(value, int) else f"{value:g}"
        raise ValueError(f"{name} has {text}, not a number from 0 to {GREATEST:g}")


def _check_share(name: str, value: float | None) -> None:
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"{name} has {value:g}, not a share from 0 to 1")
