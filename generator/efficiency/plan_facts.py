"""The facts of plans: the latency of a collective, and public measurements with their sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from generator.facts.fact import Fact, fact_of, load_data
from generator.parallel import WorkerPool, parse_pool
from generator.workload import Workload

_FILE = "plan_facts.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedPoint:
    """A published measurement of one engine (``prefill`` is None), or of a deployment.

    ``model`` is a folder of the package's models, ``flags`` are those of both roles that a bound
    needs, and ``max-num-batched-tokens`` is prefill's. What was not published is None.
    """

    name: str
    source: str
    as_of: str
    model: str
    gpu: str
    engine_version: str | None
    flags: Mapping[str, Any]
    workload: Workload
    prefill: WorkerPool | None
    decode: WorkerPool
    speculative_tokens: int
    concurrency: int
    tpot_ms: float | None
    tokens_per_s_per_user: float | None
    total_tokens_per_s_per_gpu: float | None

    @property
    def gpus(self) -> int:
        return self.decode.gpus + (self.prefill.gpus if self.prefill else 0)


def collective_latency() -> Fact[float]:
    """What a collective is taken to need at least, in microseconds; an assumption."""
    fact: Fact[float] = fact_of(load_data(_FILE)["collective_latency"])
    return fact


@cache
def cited_points() -> tuple[CitedPoint, ...]:
    """Every published point in the data."""
    return tuple(point for entry in load_data(_FILE)["measurements"] for point in _points_of(entry))


def _points_of(entry: Mapping[str, Any]) -> Iterator[CitedPoint]:
    for point in entry["points"]:
        prefill = point.get("prefill")
        yield CitedPoint(
            name=point["name"],
            source=entry["source"],
            as_of=entry["as_of"],
            model=entry["model"],
            gpu=entry["gpu"],
            engine_version=entry["engine_version"],
            flags=entry["flags"],
            workload=Workload(isl=entry["isl"], osl=entry["osl"]),
            prefill=parse_pool(prefill) if prefill else None,
            decode=parse_pool(point["decode"] if prefill else point["layout"]),
            speculative_tokens=point.get("speculative_tokens", 0),
            concurrency=point["concurrency"],
            tpot_ms=point.get("tpot_ms"),
            tokens_per_s_per_user=point.get("tokens_per_s_per_user"),
            total_tokens_per_s_per_gpu=point.get("total_tokens_per_s_per_gpu"),
        )
