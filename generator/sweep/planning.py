"""From recipes to arrays: which jobs share one submission, which goes first, what it may cost."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from generator.cluster.protocol import SbatchParameters
from generator.errors import InvalidInput, Problem
from generator.sweep.lanes import Load, slots
from generator.sweep.segment import segment_nodes
from generator.sweep.swept_recipe import SweptRecipe
from generator.units import ceil_div
from generator.wording import plural

_CONFIGURATION_CHARACTERS = 12
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What the site adds to every job.

    ``nodes_per_rack`` is the size of an NVLink domain, None where nodes have none in common;
    ``racks`` is None where nobody says how many there are. ``has_segment``: this Slurm takes
    ``--segment``. ``gres`` is a pattern with ``{gpus}`` that replaces ``--gpus-per-node``;
    ``counts_gpus`` is false where jobs ask for no GPUs. ``max_array_tasks`` is the largest array.
    ``directives`` are further options; a recipe's own come before them.
    """

    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    nodes_per_rack: int | None = None
    racks: int | None = None
    has_segment: bool = False
    counts_gpus: bool = True
    gres: str | None = None
    exclusive: bool = True
    max_array_tasks: int = 1
    directives: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A recipe with the points it still has to run, and ``why`` each is sent now."""

    recipe: SweptRecipe
    points: tuple[str, ...]
    why: str
    parameters: SbatchParameters
    configuration: str

    @property
    def gpu_hours(self) -> float:
        return self.recipe.gpu_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedArray:
    """Jobs of identical sbatch parameters that go out in one submission.

    A held array waits for a canary of each of its jobs' configurations. ``max_parallel`` is in
    jobs, 0 for no limit. Arrays of one ``lane`` run one after the other; None is no lane.
    """

    parameters: SbatchParameters
    jobs: tuple[PlannedJob, ...]
    held: bool
    max_parallel: int = 0
    lane: int | None = None

    @property
    def most_nodes(self) -> int:
        """Nodes in use if every job of it runs that may run at once."""
        nodes = sorted((job.recipe.nodes for job in self.jobs), reverse=True)
        return sum(nodes[: self.max_parallel or None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything one call would send; canaries come first."""

    arrays: tuple[PlannedArray, ...]

    @property
    def jobs(self) -> tuple[PlannedJob, ...]:
        return tuple(job for array in self.arrays for job in array.jobs)

    @property
    def points(self) -> int:
        return sum(len(job.points) for job in self.jobs)

    @property
    def gpu_hours(self) -> float:
        """The most the jobs can cost: each takes all of its time."""
        return sum(job.gpu_hours for job in self.jobs)

    @property
    def held_jobs(self) -> int:
        return sum(len(array.jobs) for array in self.arrays if array.held)

    @property
    def most_nodes(self) -> int:
        """Nodes in use if every job runs that may run at once."""
        free = sum(array.most_nodes for array in self.arrays if array.lane is None)
        lanes: dict[int, int] = {}
        for array in self.arrays:
            if array.lane is not None:
                lanes[array.lane] = max(lanes.get(array.lane, 0), array.most_nodes)
        return free + sum(lanes.values())

    @property
    def max_parallel(self) -> int:
        """Jobs that may run at once, 0 for no limit."""
        return sum({array.lane: array.max_parallel for array in self.arrays}.values())

    def before(self, place: int) -> tuple[int, ...]:
        """The places of the arrays that must be over before the one at ``place`` starts."""
        lane = self.arrays[place].lane
        if lane is None:
            return ()
        return tuple(each for each in range(place) if self.arrays[each].lane == lane)


def planned_job(
    recipe: SweptRecipe, points: Sequence[str], why: str, placement: Placement
) -> PlannedJob:
    """The job of a recipe on a site; raises InvalidInput where it cannot be placed there."""
    parameters = sbatch_parameters(recipe, placement)
    text = repr((recipe.engine, parameters))
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return PlannedJob(
        recipe=recipe,
        points=tuple(points),
        why=why,
        parameters=parameters,
        configuration=digest[:_CONFIGURATION_CHARACTERS],
    )


def sbatch_parameters(recipe: SweptRecipe, placement: Placement) -> SbatchParameters:
    """What sbatch is told of one job; a recipe's own account, partition and options come first.

    Raises InvalidInput, naming the recipe, for a deployment that the site's racks cannot hold.
    """
    try:
        segment = segment_nodes(recipe.nodes, placement.nodes_per_rack, placement.racks)
    except ValueError as error:
        hint = "use a smaller deployment, or write racks into the site file"
        raise InvalidInput(Problem(message=str(error), hint=hint, source=recipe.file)) from error
    directives = {**placement.directives, **recipe.directives}
    own_segment = directives.pop("segment", None)
    if own_segment is not None:
        segment = _own_segment(own_segment, recipe)
    gres = None
    if placement.gres and recipe.gpus_per_node:
        gres = placement.gres.replace("{gpus}", str(recipe.gpus_per_node))
    return SbatchParameters(
        nodes=recipe.nodes,
        time_minutes=ceil_div(recipe.time_limit_s, 60),
        account=recipe.account or placement.account,
        partition=recipe.partition or placement.partition,
        qos=placement.qos,
        gpus_per_node=recipe.gpus_per_node if placement.counts_gpus and not gres else 0,
        gres=gres,
        exclusive=placement.exclusive,
        segment=segment if placement.has_segment else None,
        directives=tuple((name, value or None) for name, value in sorted(directives.items())),
    )


def _own_segment(text: str, recipe: SweptRecipe) -> int:
    if text.isdecimal() and 0 < int(text) <= recipe.nodes and recipe.nodes % int(text) == 0:
        return int(text)
    message = f"segment {text} does not divide the job's {plural(recipe.nodes, 'node')}"
    hint = "remove it: the whole deployment stays in one rack then"
    raise InvalidInput(
        Problem(message=message, hint=hint, source=recipe.file, path="sbatch_directives.segment")
    )


def plan(
    jobs: Iterable[PlannedJob],
    *,
    max_array_tasks: int,
    max_parallel: int = 0,
    canary: bool = True,
    healthy: frozenset[str] = frozenset(),
) -> Plan:
    """The arrays that these jobs make, in the jobs' order.

    With ``canary`` the cheapest job of each configuration that is not ``healthy`` yet goes first
    and the others of it wait.
    """
    listed = list(jobs)
    first = _canaries(listed, healthy) if canary else set(range(len(listed)))
    waiting = {
        number
        for number, job in enumerate(listed)
        if number not in first and job.configuration not in healthy
    }
    free = [job for number, job in enumerate(listed) if number not in waiting]
    held = [job for number, job in enumerate(listed) if number in waiting]
    arrays = [
        PlannedArray(parameters=parameters, jobs=part, held=is_held)
        for group, is_held in ((free, False), (held, True))
        for parameters, members in _grouped(group, lambda job: job.parameters).items()
        for part in _cut(members, max_array_tasks)
    ]
    return Plan(arrays=_limited(arrays, max_parallel))


def _canaries(jobs: Sequence[PlannedJob], healthy: frozenset[str]) -> set[int]:
    """The cheapest job of each configuration nothing is known of."""
    numbers = _grouped(range(len(jobs)), lambda number: jobs[number].configuration)
    return {
        min(members, key=lambda number: (jobs[number].gpu_hours, number))
        for configuration, members in numbers.items()
        if configuration not in healthy
    }


def _grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _cut(jobs: Sequence[PlannedJob], size: int) -> list[tuple[PlannedJob, ...]]:
    return [tuple(jobs[start : start + size]) for start in range(0, len(jobs), size)]


def _limited(arrays: Sequence[PlannedArray], max_parallel: int) -> tuple[PlannedArray, ...]:
    """The arrays in lanes that keep the limit together."""
    if not max_parallel:
        return tuple(arrays)
    loads = [Load(jobs=len(array.jobs), minutes=array.parameters.time_minutes) for array in arrays]
    return tuple(
        replace(array, max_parallel=slot.share, lane=slot.lane)
        for array, slot in zip(arrays, slots(loads, max_parallel), strict=True)
    )
