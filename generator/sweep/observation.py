"""What one look at a sweep found: result files and the cluster's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from generator.cluster.job_file import PointResult
from generator.cluster.protocol import JobState, StateReport
from generator.cluster.starts import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A result file that is there and says nothing: neither a result nor the lack of one."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look.

    ``results`` has, by point, what its folder holds; a point without a result is absent. ``starts``
    has, by token and index, what jobs wrote down of themselves. ``report`` is None where nobody
    asked the cluster. ``has_accounting`` is false where sacct never answers. ``at`` is when it was
    asked, in seconds since the epoch.
    ``unsettled`` are task ids of jobs that seem over without a result for all their points: files
    and accounting lag behind the queue, so that a later look must say so too.
    """

    results: Mapping[str, PointResult | Unreadable]
    report: StateReport | None = None
    starts: Mapping[tuple[str, int], tuple[Start, ...]] = field(default_factory=dict)
    at: float = 0.0
    has_accounting: bool = True
    unsettled: frozenset[str] = frozenset()

    def job(self, task_id: str | None, token: str) -> JobState | None:
        """What the cluster says of a submission's job; None where nothing is known of it."""
        return self.report.job(task_id, token) if self.report else None

    def starts_of(self, token: str, index: int) -> tuple[Start, ...]:
        """Every start that a job wrote down."""
        return self.starts.get((token, index), ())
