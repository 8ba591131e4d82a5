"""What one look at a sweep found: result files and the cluster's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from generator.cluster.job_file import PointResult
from generator.cluster.protocol import StateReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A result file that is there and says nothing: neither a result nor the lack of one."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look.

    ``results`` has, by point, what its folder holds; a point without a result is absent. ``report``
    is None where nobody asked the cluster. ``has_accounting`` is false where sacct never answers.
    ``unsettled`` are task ids of jobs that seem over without a result for all their points: files
    and accounting lag behind the queue, so that a later look must say so too.
    """

    results: Mapping[str, PointResult | Unreadable]
    report: StateReport | None = None
    has_accounting: bool = True
    unsettled: frozenset[str] = frozenset()
