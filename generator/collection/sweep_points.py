"""What a sweep says of its points: which run counts for each, and where those without one stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.cluster.job_file import DONE, PointResult
from generator.errors import InvalidInput
from generator.sweep.folder import SweepFolder
from generator.sweep.history import history
from generator.sweep.looking import read_results
from generator.sweep.observation import Observation, Unreadable
from generator.sweep.points import parse_point
from generator.sweep.statuses import PointState, PointStatus, point_statuses


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPoint:
    """A planned point that gave no record, and why."""

    point: str
    recipe: str
    concurrency: int | None
    state: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoints:
    """The points of a sweep with their results, by id; the cluster is not asked."""

    folder: SweepFolder
    names: Mapping[str, str]
    statuses: tuple[PointStatus, ...]
    results: Mapping[str, PointResult | Unreadable]

    def refusal(self, point: str, run: Path) -> str:
        """Why a run does not count for a point; empty where it does.

        The sweep may have been moved since, so only the end of a run's path is compared.
        """
        result = self.results.get(point)
        if isinstance(result, Unreadable):
            return f"its point's {result.why}"
        if result is None:
            return "its point has no result yet: the job was not over"
        if result.status != DONE:
            return f"its point failed: {result.reason}"
        below = run.resolve().relative_to(self.folder.root).parts
        if Path(result.output).parts[-len(below) :] != below:
            return "another run of its point counts"
        return ""

    def missing(self, collected: set[str]) -> list[MissingPoint]:
        """The points without a record, in the order of the plan."""
        return [
            MissingPoint(
                point=each.point,
                recipe=self.names.get(each.recipe, each.recipe),
                concurrency=parse_point(each.point).concurrency,
                state=each.state.value,
                why=each.why or _why(each.state),
            )
            for each in self.statuses
            if each.point not in collected
        ]


def read_sweep_points(folder: SweepFolder) -> SweepPoints:
    """The points of a sweep; raises InvalidInput where its ledger cannot be read."""
    state = history(folder.ledger.read().events)
    results = read_results(folder, state, lambda _: None)
    return SweepPoints(
        folder=folder,
        names={digest: recipe.name for digest, recipe in state.recipes.items()},
        statuses=point_statuses(state, Observation(results=results)),
        results=results,
    )


def try_sweep_points(folder: SweepFolder) -> SweepPoints | str:
    """The points of a sweep, or why they cannot be read."""
    try:
        return read_sweep_points(folder)
    except InvalidInput as error:
        return error.problems[0].statement


def _why(state: PointState) -> str:
    if state is PointState.DONE:
        return "no usable result in its run"
    return "never sent" if state is PointState.PLANNED else "not over, as far as the sweep knows"
