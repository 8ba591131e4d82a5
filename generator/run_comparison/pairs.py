"""Which points of two sets of runs stand beside each other, and in what their runs differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from generator.pareto.axes import Axis
from generator.results.contract import (
    GOODPUT_LIMITS,
    NOT_STATED,
    ContractDifference,
    by_phase,
    contract_differences,
    differences_of,
    each_once,
    goodput_limits,
    held_fixed,
)
from generator.results.point import MeasuredPoint
from generator.run_comparison.consequences import CONFIGURATION, is_consequence

RECIPE = "recipe"
# What a configuration says in words: where the configurations differ, these do by themselves.
_IN_CONFIGURATION = frozenset({CONFIGURATION, "layout", "mtp"})
_DRAFTS = ".speculative-config."

_Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The runs of one point on both sides; a configuration is None where each has its own."""

    phase: str
    configuration: str | None
    concurrency: int
    before: tuple[MeasuredPoint, ...]
    after: tuple[MeasuredPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """Points that only one side has, and how many of each side are invalid."""

    only_before: tuple[MeasuredPoint, ...]
    only_after: tuple[MeasuredPoint, ...]
    invalid_before: int
    invalid_after: int


def pairs(
    before: Sequence[MeasuredPoint], after: Sequence[MeasuredPoint]
) -> tuple[tuple[Pair, ...], Unpaired]:
    """The points of both sides by phase, configuration and concurrency; invalid ones nowhere.

    Where the sides have one configuration each, and not the same one, these are compared.
    """
    valid = [[point for point in side if point.is_valid] for side in (before, after)]
    names = [{point.subject.configuration for point in side} for side in valid]
    is_by_name = not (len(names[0]) == len(names[1]) == 1 and names[0] != names[1])
    sides = [_by_key(side, is_by_name=is_by_name) for side in valid]
    shared = sorted(sides[0].keys() & sides[1].keys())
    alone = [
        tuple(point for key in sorted(side.keys() - set(shared)) for point in side[key])
        for side in sides
    ]
    return (
        tuple(
            Pair(
                phase=phase,
                configuration=configuration if is_by_name else None,
                concurrency=concurrency,
                before=tuple(sides[0][phase, configuration, concurrency]),
                after=tuple(sides[1][phase, configuration, concurrency]),
            )
            for phase, configuration, concurrency in shared
        ),
        Unpaired(
            only_before=alone[0],
            only_after=alone[1],
            invalid_before=len(before) - len(valid[0]),
            invalid_after=len(after) - len(valid[1]),
        ),
    )


def _by_key(
    points: Iterable[MeasuredPoint], *, is_by_name: bool
) -> dict[_Key, list[MeasuredPoint]]:
    found: dict[_Key, list[MeasuredPoint]] = {}
    for point in points:
        subject = point.subject
        name = subject.configuration if is_by_name else ""
        found.setdefault((subject.phase, name, subject.concurrency), []).append(point)
    return found


def mixed_within(
    side: Sequence[Sequence[MeasuredPoint]], axes: Iterable[Axis] = ()
) -> tuple[ContractDifference, ...]:
    """Where the runs of one side do not share a contract, nor the limits of figures asked for.

    ``side`` has the runs of each pair. Within a pair no factor may vary either, for its runs are to
    be repetitions.
    """
    return each_once(
        (
            *(each for runs in by_phase(chain(*side)) for each in contract_differences(runs)),
            *(each for runs in by_phase(chain(*side)) for each in _limit_differences(runs, axes)),
            *(each for runs in side for each in differences_of([run.factors for run in runs])),
        )
    )


def _limit_differences(
    runs: Iterable[MeasuredPoint], axes: Iterable[Axis]
) -> tuple[ContractDifference, ...]:
    """The limits of figures asked for, among the runs that have such a figure."""
    return differences_of([stated for run in runs if (stated := _limits(run, axes))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """What one side has otherwise than the other, and what differs only as a consequence."""

    factors: tuple[ContractDifference, ...]
    consequences: tuple[ContractDifference, ...]


def varied_between(found: Sequence[Pair], axes: Iterable[Axis] = ()) -> Varied:
    """Everything in which one side differs from the other, contract and factors alike.

    A configuration stands for the factors it says in words. Recipes that differ although no key
    says how count as a difference of their own; so do the limits of figures asked for.
    """
    by_key: dict[str, list[ContractDifference]] = {}
    following: dict[str, list[ContractDifference]] = {}
    for pair in found:
        first, second = pair.before[0], pair.after[0]
        apart = [
            *_between(held_fixed(first), held_fixed(second)),
            *_factor_differences(first, second),
        ]
        if not apart and first.subject.digest != second.subject.digest:
            apart = _named(RECIPE, first.subject.digest, second.subject.digest)
        limits = _limits(first, axes), _limits(second, axes)
        if all(limits):  # a side without the figure lacks it, whatever the limits
            apart += _between(*limits)
        keys = {difference.key for difference in apart}
        for difference in apart:
            follows = is_consequence(difference.key, first.factors, second.factors, keys)
            (following if follows else by_key).setdefault(difference.key, []).append(difference)
    return Varied(
        factors=tuple(_over_pairs(by_key[key]) for key in sorted(by_key)),
        consequences=tuple(
            _over_pairs(following[key]) for key in sorted(following.keys() - by_key.keys())
        ),
    )


def _over_pairs(differences: Sequence[ContractDifference]) -> ContractDifference:
    """One key over the pairs that differ in it, each side with every value it has there."""
    texts = [dict.fromkeys(each.values[side][0] for each in differences) for side in (0, 1)]
    before, after = (" or ".join(values) for values in texts)
    (difference,) = _named(differences[0].key, before, after)
    return difference


def _limits(point: MeasuredPoint, axes: Iterable[Axis]) -> dict[str, str]:
    """What the figures asked for were counted by; empty where none has limits."""
    stated = goodput_limits(point) if any(axis.limits for axis in axes) else ""
    return {GOODPUT_LIMITS: stated} if stated else {}


def sides(difference: ContractDifference) -> str:
    """A difference between the sides in words: the key, and what it is on each."""
    (before, _), (after, _) = difference.values
    return f"{difference.key}: {before} in A, {after} in B"


def _between(before: Mapping[str, str], after: Mapping[str, str]) -> list[ContractDifference]:
    """The differences of two mappings, the values in the order of the sides."""
    return [
        each
        for key in sorted({*before, *after})
        for each in _named(key, before.get(key, NOT_STATED), after.get(key, NOT_STATED))
        if before.get(key) != after.get(key)
    ]


def _factor_differences(first: MeasuredPoint, second: MeasuredPoint) -> list[ContractDifference]:
    names = first.subject.configuration, second.subject.configuration
    apart = [
        difference
        for difference in _between(first.factors, second.factors)
        if difference.key != CONFIGURATION
    ]
    if names[0] == names[1]:
        return apart
    beside = [
        each for each in apart if each.key not in _IN_CONFIGURATION and _DRAFTS not in each.key
    ]
    return [*_named(CONFIGURATION, *names), *beside]


def _named(key: str, first: str, second: str) -> list[ContractDifference]:
    return [ContractDifference(key=key, values=((first, 1), (second, 1)))]
