"""What a point can be judged by: named axes with their unit and which way is better."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.results.contract import goodput_limits
from generator.results.distribution import Distribution
from generator.results.figure_range import GREATEST
from generator.results.point import Goodput, MeasuredPoint
from generator.wording import did_you_mean, shown

_Value = Callable[[MeasuredPoint], float | None]

CONCURRENCY = "concurrency"
_LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "end_to_end": "end-to-end latency"}
_PERCENTILE = re.compile(rf"({'|'.join(_LATENCIES)})_p([0-9]{{1,2}})_ms\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One figure of a point. ``value`` is None where a point does not have it.

    ``short`` heads a column. ``is_setting`` marks what a run is given and not what it reaches: as
    x it asks for the best y of each value. ``limits`` are the conditions that the figure was taken
    under, which points must share.
    """

    name: str
    title: str
    unit: str
    short: str
    more_is_better: bool
    value: _Value
    lacks: str
    is_setting: bool = False
    limits: Callable[[MeasuredPoint], str] | None = None

    @property
    def label(self) -> str:
        return f"{self.title} ({self.unit})"

    def better(self, value: float) -> float:
        """The value as a number of which more is better."""
        return value if self.more_is_better else -value


def _per_gpu(value: _Value) -> _Value:
    def per_gpu(point: MeasuredPoint) -> float | None:
        whole = value(point)
        return None if whole is None else whole / point.gpus.total

    return per_gpu


def _throughput(name: str, title: str, unit: str, short: str, value: _Value) -> Axis:
    return Axis(
        name=name,
        title=title,
        unit=unit,
        short=short,
        more_is_better=True,
        value=_per_gpu(value),
        lacks="no such throughput",
    )


def _goodput(
    name: str, title: str, unit: str, short: str, value: Callable[[Goodput], float]
) -> Axis:
    return Axis(
        name=name,
        title=title,
        unit=unit,
        short=short,
        more_is_better=True,
        value=_per_gpu(lambda point: value(point.goodput) if point.goodput else None),
        lacks="no goodput (collect --ttft-ms --max-gap-ms counts it)",
        limits=goodput_limits,
    )


_TOKENS = "tokens/s per GPU"
_REQUESTS = "requests/s per GPU"
_FIXED = (
    Axis(
        name="tokens_per_s_per_user",
        title="Generated tokens per user",
        unit="tokens/s, 1000 / median TPOT",
        short="tokens/s/user",
        more_is_better=True,
        value=lambda point: point.tokens_per_s_per_user,
        lacks="no median TPOT",
    ),
    _throughput(
        "total_tokens_per_s_per_gpu",
        "Total token throughput",
        _TOKENS,
        "total tokens/s/GPU",
        lambda point: point.total_tokens_per_s,
    ),
    _throughput(
        "output_tokens_per_s_per_gpu",
        "Output token throughput",
        _TOKENS,
        "output tokens/s/GPU",
        lambda point: point.output_tokens_per_s,
    ),
    _throughput(
        "input_tokens_per_s_per_gpu",
        "Input token throughput",
        _TOKENS,
        "input tokens/s/GPU",
        lambda point: point.input_tokens_per_s,
    ),
    _throughput(
        "requests_per_s_per_gpu",
        "Request throughput",
        _REQUESTS,
        "requests/s/GPU",
        lambda point: point.requests_per_s,
    ),
    _goodput(
        "goodput_tokens_per_s_per_gpu",
        "Token goodput",
        _TOKENS,
        "good tokens/s/GPU",
        lambda goodput: goodput.tokens_per_s,
    ),
    _goodput(
        "goodput_requests_per_s_per_gpu",
        "Request goodput",
        _REQUESTS,
        "good requests/s/GPU",
        lambda goodput: goodput.requests_per_s,
    ),
    Axis(
        name=CONCURRENCY,
        title="Concurrency",
        unit="requests at once",
        short="concurrency",
        more_is_better=True,
        value=lambda point: float(point.subject.concurrency),
        lacks="no concurrency",
        is_setting=True,
    ),
)
_COSTS: dict[str, tuple[str, Callable[[MeasuredPoint], float]]] = {
    "cost_per_million_tokens": (
        "Cost of a million tokens",
        lambda point: point.total_tokens_per_s,
    ),
    "cost_per_million_output_tokens": (
        "Cost of a million output tokens",
        lambda point: point.output_tokens_per_s,
    ),
}
AXIS_NAMES = (
    *(each.name for each in _FIXED),
    *(f"{name}_ms" for name in _LATENCIES),
    *(f"{name}_p99_ms" for name in _LATENCIES),
    *_COSTS,
)


def axis(name: str, gpu_hour_price: float | None = None) -> Axis:
    """The axis of a name; latencies also at any percentile, as ``ttft_p90_ms``.

    ``gpu_hour_price`` is what the cost axes multiply by. Raises InvalidInput for a name that is
    none, and for a cost without a price.
    """
    if found := next((each for each in _FIXED if each.name == name), None):
        return found
    if name.removesuffix("_ms") in _LATENCIES and name.endswith("_ms"):
        return _latency(name.removesuffix("_ms"), 50)
    if match := _PERCENTILE.match(name):
        return _latency(match[1], int(match[2]))
    if name in _COSTS:
        return _cost(name, gpu_hour_price)
    hint = did_you_mean(name, AXIS_NAMES) or f"axes are {', '.join(AXIS_NAMES)}"
    raise InvalidInput(Problem(message=f"no axis is called {shown(name)}", hint=hint))


def _latency(kind: str, percent: int) -> Axis:
    """A latency at a percentile; one that its samples do not support counts as not there."""
    is_median = percent == 50

    def value(point: MeasuredPoint) -> float | None:
        found: Distribution | None = getattr(point.latencies, kind)
        return None if found is None else found.shown(percent)

    which = "median" if is_median else f"p{percent}"
    return Axis(
        name=f"{kind}_ms" if is_median else f"{kind}_p{percent}_ms",
        title=f"{_LATENCIES[kind][:1].upper()}{_LATENCIES[kind][1:]}",
        unit=f"ms, {which}",
        short=f"{which} {_LATENCIES[kind]}, ms",
        more_is_better=False,
        value=value,
        lacks=f"no {which} {_LATENCIES[kind]}{'' if is_median else ' that its samples support'}",
    )


def _cost(name: str, gpu_hour_price: float | None) -> Axis:
    if gpu_hour_price is None:
        message = f"{name} needs the price of a GPU for an hour"
        raise InvalidInput(Problem(message=message, hint="give --gpu-hour-price"))
    if gpu_hour_price > GREATEST:
        raise InvalidInput(Problem(message=f"a GPU hour for {gpu_hour_price:g} is no price"))
    price = gpu_hour_price
    title, tokens_per_s = _COSTS[name]

    def value(point: MeasuredPoint) -> float | None:
        rate = tokens_per_s(point)
        return point.gpus.total * price / 3600 / rate * 10**6 if rate else None

    return Axis(
        name=name,
        title=title,
        unit=f"at {price:g} for a GPU hour",
        short="cost of 1M output tokens" if "output" in name else "cost of 1M tokens",
        more_is_better=False,
        value=value,
        lacks="no tokens",
    )
