"""The points that no other point beats on both axes, or at the same value of one."""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[float, float]
"""A point as two numbers of each of which more is better."""


def dominates(one: Pair, other: Pair) -> bool:
    """Whether a point is at least as good on both axes and better on one."""
    return one[0] >= other[0] and one[1] >= other[1] and one != other


def frontier(pairs: Sequence[Pair]) -> list[int]:
    """The indices of the points that none dominates, ascending by the first axis.

    Exact, without tolerance. Points that tie on both axes dominate each other in nothing, so all
    of them are kept, in the order they were given; a tie on one axis keeps the better other.
    """
    best_second = float("-inf")
    kept: list[int] = []
    by_first = sorted(range(len(pairs)), key=lambda index: (*_negated(pairs[index]), -index))
    for index in by_first:
        second = pairs[index][1]
        if second > best_second or (kept and pairs[index] == pairs[kept[-1]]):
            best_second = second
            kept.append(index)
    return kept[::-1]


def best_of_each(pairs: Sequence[Pair]) -> list[int]:
    """The indices of the points with the best second number for their first, ascending by it.

    Points that tie on both are all kept, in the order they were given.
    """
    best: dict[float, float] = {}
    for first, second in pairs:
        best[first] = max(second, best.get(first, second))
    kept = [index for index, (first, second) in enumerate(pairs) if second == best[first]]
    return sorted(kept, key=lambda index: pairs[index][0])


def _negated(pair: Pair) -> Pair:
    return -pair[0], -pair[1]
