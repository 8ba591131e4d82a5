"""The experiment contract: what runs that are compared must have in common, and where they do not.

Two runs say something about one factor only where everything else was held fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from generator.errors import Problem
from generator.results.point import MeasuredPoint

NOT_STATED = "not stated"
ORIGIN = "origin"
GOODPUT_LIMITS = "goodput limits"
_LONGEST_SHOWN = 120
_MOST_LISTED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractDifference:
    """A key that points disagree on: each value with the number of points that have it."""

    key: str
    values: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.key}: {' or '.join(self._listed('{value}'))}"

    @property
    def counted(self) -> str:
        """The values, each with the number of points that have it."""
        return ", ".join(self._listed("{value} ({count})"))

    def _listed(self, form: str) -> Iterator[str]:
        """The commonest values, and how many more there are."""
        for value, count in self.values[:_MOST_LISTED]:
            yield form.format(value=_cut(value), count=count)
        if len(self.values) > _MOST_LISTED:
            yield f"{len(self.values) - _MOST_LISTED:,} more"


def held_fixed(point: MeasuredPoint) -> dict[str, str]:
    """What was held fixed for a point; synthetic and measured figures are never one experiment."""
    return {ORIGIN: str(point.origin), **point.contract}


def contract_differences(points: Iterable[MeasuredPoint]) -> tuple[ContractDifference, ...]:
    """Every key of the contract that the points do not agree on, by name.

    A key that some points state and others do not is a difference: it may have been anything.
    """
    return differences_of([held_fixed(point) for point in points])


def differences_of(statements: Sequence[Mapping[str, str]]) -> tuple[ContractDifference, ...]:
    """The keys on which mappings disagree, each value with how many have it, commonest first."""
    alike = Counter(frozenset(each.items()) for each in statements)
    distinct = [(dict(items), count) for items, count in alike.items()]
    found = []
    for key in sorted({key for each, _ in distinct for key in each}):
        values: Counter[str] = Counter()
        for each, count in distinct:
            values[each.get(key, NOT_STATED)] += count
        if len(values) > 1:
            ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
            found.append(ContractDifference(key=key, values=tuple(ordered)))
    return tuple(found)


def each_once(differences: Iterable[ContractDifference]) -> tuple[ContractDifference, ...]:
    """Differences found in several places, each key as it was found first, by name."""
    found: dict[str, ContractDifference] = {}
    for difference in differences:
        found.setdefault(difference.key, difference)
    return tuple(found[key] for key in sorted(found))


def by_phase(points: Iterable[MeasuredPoint]) -> list[list[MeasuredPoint]]:
    """The points of each phase: workloads are a phase's own, so each is held to one alone."""
    found: dict[str, list[MeasuredPoint]] = {}
    for point in points:
        found.setdefault(point.subject.phase, []).append(point)
    return [found[phase] for phase in sorted(found)]


def goodput_limits(point: MeasuredPoint) -> str:
    """The limits that a point's goodput was counted by; empty where it has none."""
    goodput = point.goodput
    return f"TTFT {goodput.ttft_ms:g} ms, gap {goodput.max_gap_ms:g} ms" if goodput else ""


def goodput_differences(points: Iterable[MeasuredPoint]) -> tuple[ContractDifference, ...]:
    """The limits of goodput where points have several, one of them being to have none.

    Goodput beside the throughput of a point that counts none would compare nothing.
    """
    return differences_of(
        [{GOODPUT_LIMITS: goodput_limits(point) or NOT_STATED} for point in points]
    )


def refusals(differences: Sequence[ContractDifference]) -> list[Problem]:
    """A problem for each key that runs disagree on; the last one says what to do about them all."""
    last = len(differences) - 1
    hint = "give fewer results, or --mix to take them together all the same"
    return [
        Problem(
            message=f"runs of different contracts, {each.key}: {each.counted}",
            hint=hint if place == last else "",
        )
        for place, each in enumerate(differences)
    ]


def mixed_note(difference: ContractDifference) -> str:
    """What a reader must know of figures that were taken together all the same."""
    return f"MIXED: these runs do not share one contract, {difference}."


def _cut(value: str) -> str:
    """The value as far as it tells; two that begin alike differ at their end."""
    if len(value) <= _LONGEST_SHOWN:
        return value
    half = _LONGEST_SHOWN // 2
    return f"{value[:half]}...{value[-half:]}"


def common_contract(points: Iterable[MeasuredPoint]) -> dict[str, str]:
    """What all points were held to, by name; keys they disagree on are left out."""
    distinct = {frozenset(held_fixed(point).items()) for point in points}
    return dict(sorted(frozenset.intersection(*distinct))) if distinct else {}
