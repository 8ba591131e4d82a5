"""What is seen of a deployment while it works: gauges of workers by time, and their summary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{[^}]*\})? (?P<value>\S+)")
_GAUGES = {
    "in_flight": "dynamo_component_inflight_requests",
    "running": "vllm:num_requests_running",
    "waiting": "vllm:num_requests_waiting",
    "preemptions": "vllm:num_preemptions_total",
}
_KV_USAGE = "vllm:kv_cache_usage_perc"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGauges:
    """A worker's ranks together at one moment; ``kv_usage`` is of its fullest rank, 0 to 1.

    A prefill mocker exports no gauges of its scheduler: only ``in_flight`` counts there.
    """

    in_flight: int = 0
    running: int = 0
    waiting: int = 0
    preemptions: int = 0
    kv_usage: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The deployment at one moment, in seconds since the epoch, each worker's gauges by name."""

    at: float
    prefill: Mapping[str, WorkerGauges]
    decoding: Mapping[str, WorkerGauges]

    @property
    def prefill_in_flight(self) -> int:
        return sum(each.in_flight for each in self.prefill.values())

    @property
    def running(self) -> int:
        return sum(each.running for each in self.decoding.values())

    @property
    def waiting(self) -> int:
        """Requests that decode has neither running nor still at prefill.

        A decode mocker has every request from the start, and in its own gauge only those that wait
        with their KV cache there already: the others wait for blocks to receive it in.
        """
        held = sum(each.in_flight - each.running for each in self.decoding.values())
        queued = sum(each.waiting for each in self.decoding.values())
        return max(queued, held - self.prefill_in_flight)

    @property
    def preemptions(self) -> int:
        return sum(each.preemptions for each in self.decoding.values())

    @property
    def kv_usage(self) -> float:
        return max((each.kv_usage for each in self.decoding.values()), default=0.0)

    @property
    def is_idle(self) -> bool:
        """Whether no request is left anywhere."""
        workers = (*self.prefill.values(), *self.decoding.values())
        return not any(each.in_flight or each.running or each.waiting for each in workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Samples of a measured interval: means over time, peaks, and preemptions from end to end.

    ``drained`` says whether every queue was empty again soon after the last request.
    """

    samples: int
    mean_prefill_in_flight: float
    mean_running: float
    peak_running: int
    mean_waiting: float
    peak_waiting: int
    peak_kv_usage: float
    preemptions: int
    drained: bool


def worker_gauges(metrics: str) -> WorkerGauges:
    """The gauges of a worker's Prometheus text, summed over ranks; what is missing counts as 0."""
    values: dict[str, list[float]] = {}
    for line in metrics.splitlines():
        match = _SAMPLE.match(line)
        if match:
            values.setdefault(match["name"], []).append(float(match["value"]))
    counts = {name: round(sum(values.get(metric, ()))) for name, metric in _GAUGES.items()}
    return WorkerGauges(**counts, kv_usage=max(values.get(_KV_USAGE, ()), default=0.0))


def occupancy(samples: Sequence[Sample], began: float, ended: float, *, drained: bool) -> Occupancy:
    """The summary of the samples of an interval; ``samples`` are by time, before and after as well.

    Means weigh each sample by the time until the next. Preemptions are those counted from the last
    sample before the interval to the first one after it.
    """
    inside = [each for each in samples if began <= each.at <= ended]
    before = [each.preemptions for each in samples if each.at < began]
    after = [each.preemptions for each in samples if each.at > ended]
    counted = [each.preemptions for each in inside]
    first = before[-1] if before else min(counted, default=0)
    last = after[0] if after else max(counted, default=0)

    def mean(values: Sequence[int]) -> float:
        spans = [later.at - earlier.at for earlier, later in pairwise(inside)]
        if not spans or sum(spans) <= 0:
            return float(sum(values)) / max(1, len(values))
        return sum(v * s for v, s in zip(values, spans, strict=False)) / sum(spans)

    return Occupancy(
        samples=len(inside),
        mean_prefill_in_flight=mean([each.prefill_in_flight for each in inside]),
        mean_running=mean([each.running for each in inside]),
        peak_running=max((each.running for each in inside), default=0),
        mean_waiting=mean([each.waiting for each in inside]),
        peak_waiting=max((each.waiting for each in inside), default=0),
        peak_kv_usage=max((each.kv_usage for each in inside), default=0.0),
        preemptions=max(0, last - first),
        drained=drained,
    )
