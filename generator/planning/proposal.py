"""Which deployments of a frontier to run: few, and spread over interactivity."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from generator.planning.candidate import Candidate, Shape
from generator.planning.point_time import time_limit_of
from generator.workload import format_concurrencies

_SPAN = 4
_APART = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedDeployment:
    """One recipe to run: points of one shape, by rising concurrency."""

    points: tuple[Candidate, ...]

    @property
    def shape(self) -> Shape:
        return self.points[0].shape

    @property
    def concurrencies(self) -> tuple[int, ...]:
        return tuple(each.concurrency for each in self.points)

    @property
    def file(self) -> str:
        """A file name that says what a reader looks for; nothing is ever read from it."""
        prefill, decode, kind = self.shape
        tokens = kind.speculative_tokens
        pools = f"{prefill.workers}x{prefill.layout.slug}-{decode.workers}x{decode.layout.slug}"
        low, high = self.concurrencies[0], self.concurrencies[-1]
        loads = f"cc{low}" if low == high else f"cc{low}-{high}"
        return f"{pools}{f'-mtp{tokens}' if tokens else ''}-{loads}"

    def time_limit(self, requests_per_concurrency: int) -> str:
        """A Slurm time limit at the predicted rates."""
        rounds = sum(each.concurrency / each.requests_per_s for each in self.points)
        return time_limit_of(rounds * requests_per_concurrency)

    def text(self) -> str:
        """The deployment as people say it."""
        prefill, decode, kind = self.shape
        mtp = f" MTP {kind.speculative_tokens}" if kind.speculative_tokens else ""
        return f"{prefill} / {decode}{mtp} at {format_concurrencies(self.concurrencies)}"


def propose(
    frontier: Sequence[Candidate], most: int, without: Collection[Shape] = ()
) -> tuple[ProposedDeployment, ...]:
    """At most so many deployments of a frontier, the two ends among them, by rising interactivity.

    Between the ends they are the nearest to equal steps in the logarithm of tokens per user. All
    share the KV-cache dtype of the throughput end, since one spec has one.
    """
    usable = [each for each in frontier if each.shape not in without]
    if not usable:
        return ()
    dtype = usable[0].kind.kv_cache_dtype
    usable = [each for each in usable if each.kind.kv_cache_dtype == dtype]
    speeds = [math.log(each.tokens_per_s_per_user) for each in usable]
    low, high = speeds[0], speeds[-1]
    steps = [low + (high - low) * step / max(1, most - 1) for step in range(most)]
    # The ends first: what lies between them gives way.
    targets = sorted(steps, key=lambda step: min(step - low, high - step))
    chosen: dict[Shape, list[Candidate]] = {}
    for target in targets[:most]:
        left = [index for index, each in enumerate(usable) if each.shape not in chosen]
        if not left:
            break
        nearest = usable[min(left, key=lambda index: abs(speeds[index] - target))]
        chosen[nearest.shape] = _around(nearest, usable)
    deployments = (ProposedDeployment(points=tuple(points)) for points in chosen.values())
    return tuple(sorted(deployments, key=lambda each: each.points[-1].tokens_per_s_per_user))


def _around(chosen: Candidate, frontier: Sequence[Candidate]) -> list[Candidate]:
    """A point and others of its shape at lower loads, apart, that one size serves as well."""
    own = [each for each in frontier if each.shape == chosen.shape]
    kept: list[Candidate] = []
    for each in sorted(own, key=lambda each: -each.concurrency):
        is_near = chosen.concurrency / _SPAN <= each.concurrency <= chosen.concurrency
        if is_near and (not kept or kept[-1].concurrency >= _APART * each.concurrency):
            kept.append(each)
    return kept[::-1]
