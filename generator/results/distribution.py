"""How a latency was distributed over the requests of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
_SAMPLES_BEYOND = 10
"""Samples that must lie beyond a percentile before it says something about the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Figures of one latency, in milliseconds.

    ``percentiles`` are pairs of percent and value, ascending. ``samples`` is how many values they
    come from, None where a report does not say. ``is_recomputed`` tells percentiles computed here
    from raw lists from those that a report states.
    """

    mean: float
    minimum: float | None = None
    maximum: float | None = None
    std: float | None = None
    samples: int | None = None
    percentiles: tuple[tuple[float, float], ...] = field(default=())
    is_recomputed: bool = False

    def percentile(self, percent: float) -> float | None:
        """The value at a percentile; None where it is not known."""
        return next((value for at, value in self.percentiles if at == percent), None)

    @property
    def median(self) -> float | None:
        return self.percentile(50)

    def supports(self, percent: float) -> bool:
        """Whether enough samples lie beyond a percentile for it to be stable.

        Ten are asked for, so a p99 takes 1,000 samples. Unknown counts support the median only.
        """
        tail = min(percent, 100 - percent) / 100
        if self.samples is None:
            return percent == 50
        return self.samples * tail >= _SAMPLES_BEYOND

    def shown(self, percent: float) -> float | None:
        """A percentile that readers may see: the median always, others where samples support it."""
        return self.percentile(percent) if percent == 50 or self.supports(percent) else None


def distribution(values: Sequence[float]) -> Distribution:
    """The distribution of raw values in milliseconds; raises ValueError for none or a NaN.

    Percentiles interpolate linearly between the nearest ranks, as numpy and sa-bench do.
    """
    if not values:
        raise ValueError("no values")
    if not all(map(math.isfinite, values)):
        raise ValueError("a value is not a finite number")
    ordered = sorted(values)
    mean = math.fsum(ordered) / len(ordered)
    variance = math.fsum((value - mean) ** 2 for value in ordered) / len(ordered)
    return Distribution(
        mean=mean,
        minimum=ordered[0],
        maximum=ordered[-1],
        std=math.sqrt(variance),
        samples=len(ordered),
        percentiles=tuple((float(at), _at(ordered, at)) for at in PERCENTILES),
        is_recomputed=True,
    )


def _at(ordered: Sequence[float], percent: float) -> float:
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
