"""How much lies under a frontier: a step from each measured point to the next, nothing between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierArea:
    """The area under the steps between two values of x, in units of x times units of y.

    ``mean`` is the height of a rectangle of that area: the y reached on average over the range.
    ``reached`` is how much of the range some point reaches at all; the rest counts as 0.
    """

    start: float
    stop: float
    area: float
    reached: float

    @property
    def unreached_share(self) -> float:
        """The share of the range that no point reaches."""
        return max(0.0, 1 - self.reached / (self.stop - self.start))

    @property
    def mean(self) -> float:
        return self.area / (self.stop - self.start)


def area_under(
    points: Sequence[tuple[float, float]],
    start: float,
    stop: float,
    *,
    more_x_is_better: bool,
) -> FrontierArea:
    """The area under the best y at each x from start to stop.

    At an x, the best of the points that are at least as good in x counts: for tokens/s per user
    those to the right, for a latency those to the left. Raises ValueError for an empty range.
    """
    if not start < stop:
        raise ValueError(f"the range from {start:g} to {stop:g} is empty")
    edges = sorted({start, stop, *(x for x, _ in points if start < x < stop)})
    steps = list(pairwise(edges))
    # From the x that is hardest to reach to the easiest, so that each point enters once. Within a
    # step nothing is measured: a point has to reach the harder of its two ends.
    waiting = sorted(points, reverse=not more_x_is_better)
    if more_x_is_better:
        steps.reverse()
    area = reached = 0.0
    best = None
    for low, high in steps:
        while waiting and (waiting[-1][0] >= high if more_x_is_better else waiting[-1][0] <= low):
            y = waiting.pop()[1]
            best = y if best is None else max(best, y)
        if best is not None:
            area += best * (high - low)
            reached += high - low
    return FrontierArea(start=start, stop=stop, area=area, reached=reached)
