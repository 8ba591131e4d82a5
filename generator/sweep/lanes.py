"""A limit on the jobs that run at once, such that Slurm keeps it when no client is there.

Slurm limits the jobs of one array, not of several. So the limit is shared out over *lanes*: the
arrays of a lane run one after the other, each with at most the lane's share of jobs at once, and
the shares add up to the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """An array: how many jobs, each of at most so many minutes."""

    jobs: int
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where an array runs: behind the earlier ones of its lane, ``share`` jobs at once."""

    lane: int
    share: int


@dataclass(slots=True)
class _Lane:
    minutes: int = 0
    widest: int = 0
    share: int = 1

    def add(self, load: Load) -> None:
        self.minutes += load.jobs * load.minutes
        self.widest = max(self.widest, load.jobs)


def slots(loads: Sequence[Load], limit: int) -> list[Slot]:
    """A slot for each array, in their order; the shares of all lanes add up to at most ``limit``.

    An array joins the lane with the least to do, and the larger share goes where more is to do.
    """
    lanes = [_Lane() for _ in range(min(limit, len(loads)))]
    numbers = []
    for load in loads:
        number = min(range(len(lanes)), key=lambda each: lanes[each].minutes)
        lanes[number].add(load)
        numbers.append(number)
    for _ in range(limit - len(lanes)):
        narrow = [lane for lane in lanes if lane.share < lane.widest]
        if not narrow:
            break
        max(narrow, key=lambda lane: lane.minutes / lane.share).share += 1
    return [Slot(lane=number, share=lanes[number].share) for number in numbers]
