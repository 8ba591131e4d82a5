"""AIPerf's metrics by name, each with the unit that its figures are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.collection.unusable import Unusable, checked_number
from generator.results.distribution import PERCENTILES, Distribution
from generator.results.figure_range import GREATEST

MS_PER_UNIT = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "sec": 1e3, "s": 1e3}
"""Milliseconds in one of AIPerf's units of time."""


class Metrics:
    """The metrics of a report; every reading demands the unit it is to be in."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self._report = report

    def __contains__(self, name: str) -> bool:
        return self._metric(name) is not None

    def value(self, name: str, unit: str) -> float | None:
        """The mean of a metric; None where the report has none."""
        metric = self._metric(name)
        if metric is None:
            return None
        if metric.get("unit") != unit:
            raise Unusable(f"{name} is in {metric.get('unit')!r}, not in {unit}")
        return checked_number(metric.get("avg"), name)

    def demand(self, name: str, unit: str) -> float:
        """The mean of a metric that every report has."""
        found = self.value(name, unit)
        if found is None:
            raise Unusable(f"is no AIPerf export: it lacks {name}")
        return found

    def seconds(self, name: str) -> float:
        """A duration that every report has."""
        metric = self._metric(name)
        if metric is None:
            raise Unusable(f"is no AIPerf export: it lacks {name}")
        factor = ms_per_unit(metric, name)
        return checked_number(metric.get("avg"), name) * factor / 1000

    def spreads(self, *names: str, samples: int) -> list[Distribution | None]:
        """Distributions of latencies in milliseconds, whose units must be one and the same.

        ``samples`` counts the values of a metric that does not say so itself.
        """
        found = {name: metric for name in names if (metric := self._metric(name)) is not None}
        units = {name: str(metric.get("unit")) for name, metric in found.items()}
        if len(set(units.values())) > 1:
            listed = ", ".join(f"{name} in {unit}" for name, unit in units.items())
            raise Unusable(f"mixes units: {listed}")
        return [_spread(found[name], name, samples) if name in found else None for name in names]

    def _metric(self, name: str) -> Mapping[str, Any] | None:
        metric = self._report.get(name)
        if metric is None:
            return None
        if not isinstance(metric, dict):
            raise Unusable(f"{name} is no metric with a unit")
        return metric


def ms_per_unit(metric: Mapping[str, Any], name: str) -> float:
    """Milliseconds in the unit of a metric of time; raises Unusable for another unit."""
    unit = metric.get("unit")
    factor = MS_PER_UNIT.get(unit) if isinstance(unit, str) else None
    if factor is None:
        raise Unusable(f"{name} is in {unit!r}, not in a unit of time")
    return factor


def _spread(metric: Mapping[str, Any], name: str, samples: int) -> Distribution:
    factor = ms_per_unit(metric, name)

    def figure(key: str) -> float | None:
        value = metric.get(key)
        return None if value is None else checked_number(value, f"{name}.{key}") * factor

    mean = figure("avg")
    if mean is None:
        raise Unusable(f"{name} has no avg")
    percentiles = ((float(each), figure(f"p{each}")) for each in PERCENTILES)
    count = metric.get("count")
    return Distribution(
        mean=mean,
        minimum=figure("min"),
        maximum=figure("max"),
        std=figure("std"),
        samples=count if type(count) is int and 0 < count <= GREATEST else samples,
        percentiles=tuple((at, value) for at, value in percentiles if value is not None),
    )
