"""Choices of single concurrencies as the groups of a spec: one decode size for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from generator.composition.phase_points import EngineKind
from generator.composition.proposals import Candidate
from generator.planning.point_time import time_limit_of

_SPAN = 4
_GROWTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedDeployment:
    """Neighbouring concurrencies of a group that one recipe runs."""

    candidates: tuple[Candidate, ...]

    @property
    def concurrencies(self) -> tuple[int, ...]:
        return tuple(each.concurrency for each in self.candidates)

    @property
    def prefill(self) -> str:
        first = self.candidates[0]
        return f"{first.match.workers}x{first.prefill.name}"

    @property
    def file(self) -> str:
        """A file name that says what a reader looks for; nothing is ever read from it."""
        first = self.candidates[0]
        decode = first.decode.kind
        tokens = decode.num_speculative_tokens
        prefill = f"{first.match.workers}x{first.prefill.layout.slug}"
        mtp = f"-mtp{tokens}" if tokens else ""
        return f"{prefill}-1x{decode.layout.slug}{mtp}-{_span(self.concurrencies)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedGroup:
    """Deployments whose decode worker is the same and sized for the highest of their loads."""

    decode: EngineKind
    deployments: tuple[ComposedDeployment, ...]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(each for deployment in self.deployments for each in deployment.candidates)

    @property
    def name(self) -> str:
        return _span(tuple(each.concurrency for each in self.candidates))

    def time_limit(self, requests_per_concurrency: int) -> str:
        """A Slurm time limit for the longest recipe of the group.

        Of its points at the predicted rates.
        """
        longest = max(
            sum(
                each.concurrency * requests_per_concurrency / each.decode.requests_per_s
                for each in deployment.candidates
            )
            for deployment in self.deployments
        )
        return time_limit_of(longest)


def group_candidates(chosen: Iterable[Candidate]) -> tuple[ComposedGroup, ...]:
    """Groups of neighbouring concurrencies with one decode engine.

    A group spans at most a factor of four in concurrency, and its highest load asks for less than
    twice the max-num-seqs of its lowest: further apart, a size for the one misjudges the other.
    """
    groups: list[list[Candidate]] = []
    for candidate in sorted(chosen, key=lambda each: each.concurrency):
        if groups and _belongs(groups[-1], candidate):
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
    return tuple(
        ComposedGroup(decode=each[0].decode.kind, deployments=tuple(_deployments(each)))
        for each in groups
    )


def _belongs(group: list[Candidate], candidate: Candidate) -> bool:
    first = group[0]
    return (
        first.decode.kind == candidate.decode.kind
        and candidate.concurrency <= _SPAN * first.concurrency
        and candidate.capacity.max_num_seqs < _GROWTH * first.capacity.max_num_seqs
    )


def _deployments(group: list[Candidate]) -> Iterator[ComposedDeployment]:
    run: list[Candidate] = []
    for candidate in group:
        if run and run[0].shape != candidate.shape:
            yield ComposedDeployment(candidates=tuple(run))
            run = []
        run.append(candidate)
    yield ComposedDeployment(candidates=tuple(run))


def _span(concurrencies: tuple[int, ...]) -> str:
    low, high = min(concurrencies), max(concurrencies)
    return f"cc{low}" if low == high else f"cc{low}-{high}"
