"""What a ledger amounts to: the points of a sweep, every attempt at them, and how each ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from generator.sweep.events import (
    CancelledBy,
    End,
    Ended,
    Event,
    Foreign,
    Intended,
    Planned,
    PlannedRecipe,
    Released,
    Requeued,
    Running,
    Submitted,
)


class Seen(StrEnum):
    """How far a job had come when the ledger last heard of it."""

    INTENDED = "intended"
    SUBMITTED = "submitted"
    RUNNING = "running"
    REQUEUED = "requeued"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One job that was to run points: task ``index`` of the array with this token.

    ``task_id`` is None while it is not known whether the cluster ever had it. ``is_held``: it
    waits for the canary of its ``configuration``. ``ended`` has the points that are over and
    ``ended_at`` the place of that event in the ledger. ``runs`` and ``requeues`` count what the
    ledger has of its runs and of its returns to the queue.
    """

    token: str
    index: int
    recipe: str
    points: tuple[str, ...]
    task_id: str | None
    seen: Seen
    nodes: tuple[str, ...]
    runs: int
    requeues: int
    is_held: bool
    configuration: str
    ended: Mapping[str, Ended]
    ended_at: Mapping[str, int]

    @property
    def open_points(self) -> tuple[str, ...]:
        """The points this job may still give a result for."""
        return tuple(point for point in self.points if point not in self.ended)

    def cancelled(self, why: str, by: CancelledBy) -> tuple[Ended, ...]:
        """The events of its cancellation, one for each point that has no end yet."""
        return tuple(
            Ended(
                state=End.CANCELLED,
                point=point,
                token=self.token,
                index=self.index,
                why=why,
                by=by,
            )
            for point in self.open_points
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One submission; ``submitted`` is None between its intent and the cluster's answer.

    ``intended_at`` is the place of its intent in the ledger.
    """

    intended: Intended
    intended_at: int
    submitted: Submitted | None
    attempts: tuple[Attempt, ...]

    @property
    def token(self) -> str:
        return self.intended.token

    @property
    def is_open(self) -> bool:
        """Whether a point of it is not over yet."""
        return any(attempt.open_points for attempt in self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A sweep as its ledger has it, before anybody asks the cluster.

    ``recipes`` and ``points`` are in the order they were planned in. ``foreign`` counts lines of a
    newer pdrecipe.
    """

    recipes: Mapping[str, PlannedRecipe]
    points: Mapping[str, str]
    arrays: Mapping[str, Array]
    foreign: int = 0

    def all_attempts(self) -> Iterator[Attempt]:
        """Every job of every submission, the latest last."""
        for array in self.arrays.values():
            yield from array.attempts

    def attempts(self, point: str) -> tuple[Attempt, ...]:
        """Every attempt at a point, the latest last."""
        return tuple(attempt for attempt in self.all_attempts() if point in attempt.points)

    def tokens(self) -> dict[str, set[str]]:
        """The submissions that were to give each point; one that was never sent is absent."""
        tokens: dict[str, set[str]] = {}
        for attempt in self.all_attempts():
            for point in attempt.points:
                tokens.setdefault(point, set()).add(attempt.token)
        return tokens

    def time_limit_s(self, attempt: Attempt) -> int:
        """The time limit of an attempt's job."""
        return 60 * self.arrays[attempt.token].intended.asked.parameters.time_minutes

    def latest_attempts(self) -> dict[str, Attempt]:
        """The attempt that counts, by point; points that were never sent are absent."""
        return {point: attempt for attempt in self.all_attempts() for point in attempt.points}


def history(events: Iterable[Event]) -> History:
    """The state that these events lead to, in the order of the ledger's lines.

    Events about a token or index that was never intended are passed over: the intent is what a
    later line relies on, and it was on disk before.
    """
    building = _Building()
    for event in events:
        building.take(event)
    return History(
        recipes=building.recipes,
        points=building.points,
        arrays={token: array.frozen() for token, array in building.arrays.items()},
        foreign=building.foreign,
    )


@dataclass(slots=True)
class _Task:
    seen: Seen = Seen.INTENDED
    nodes: tuple[str, ...] = ()
    runs: int = 0
    requeues: int = 0
    is_released: bool = False
    ended: dict[str, Ended] = field(default_factory=dict)
    ended_at: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Array:
    intended: Intended
    intended_at: int
    tasks: list[_Task]
    submitted: Submitted | None = None

    def frozen(self) -> Array:
        ids = self.submitted.task_ids if self.submitted else (None,) * len(self.tasks)
        return Array(
            intended=self.intended,
            intended_at=self.intended_at,
            submitted=self.submitted,
            attempts=tuple(
                Attempt(
                    token=self.intended.token,
                    index=index,
                    recipe=what.recipe,
                    points=what.points,
                    task_id=task_id,
                    seen=task.seen,
                    nodes=task.nodes,
                    runs=task.runs,
                    requeues=task.requeues,
                    is_held=self.intended.held and not task.is_released,
                    configuration=what.configuration,
                    ended=task.ended,
                    ended_at=task.ended_at,
                )
                for index, (task, what, task_id) in enumerate(
                    zip(self.tasks, self.intended.tasks, ids, strict=True)
                )
            ),
        )


@dataclass(slots=True)
class _Building:
    recipes: dict[str, PlannedRecipe] = field(default_factory=dict)
    points: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, _Array] = field(default_factory=dict)
    foreign: int = 0
    place: int = 0

    def take(self, event: Event) -> None:
        self.place += 1
        match event:
            case Planned():
                self._plan(event)
            case Intended():
                self._intend(event)
            case Submitted():
                self._submit(event)
            case Released():
                if task := self._task(event.token, event.index):
                    task.is_released = True
            case Running() | Requeued():
                self._see(event)
            case Ended():
                self._end(event)
            case Foreign():
                self.foreign += 1

    def _plan(self, event: Planned) -> None:
        for recipe in event.recipes:
            before = self.recipes.get(recipe.digest)
            points = dict.fromkeys([*(before.points if before else ()), *recipe.points])
            self.recipes[recipe.digest] = replace(recipe, points=tuple(points))
            self.points |= dict.fromkeys(recipe.points, recipe.digest)

    def _intend(self, event: Intended) -> None:
        tasks = [_Task() for _ in event.tasks]
        array = _Array(intended=event, intended_at=self.place, tasks=tasks)
        self.arrays.setdefault(event.token, array)

    def _submit(self, event: Submitted) -> None:
        array = self.arrays.get(event.token)
        if array is None or len(event.task_ids) != len(array.tasks):
            return
        array.submitted = event
        for task in array.tasks:
            if task.seen is Seen.INTENDED:
                task.seen = Seen.SUBMITTED

    def _see(self, event: Running | Requeued) -> None:
        task = self._task(event.token, event.index)
        if task is None:
            return
        if isinstance(event, Requeued):
            task.seen = Seen.REQUEUED
            task.requeues += 1
            return
        task.seen = Seen.RUNNING
        task.nodes = event.nodes
        task.runs += 1
        # A job that was given up and is seen running was not lost.
        for point in [key for key, ended in task.ended.items() if ended.state is End.LOST]:
            del task.ended[point]

    def _end(self, event: Ended) -> None:
        task = self._task(event.token, event.index)
        if task is None:
            return
        before = task.ended.get(event.point)
        if before is None or before.state is not End.DONE:
            task.ended[event.point] = event
            task.ended_at[event.point] = self.place

    def _task(self, token: str, index: int) -> _Task | None:
        array = self.arrays.get(token)
        if array is None or not 0 <= index < len(array.tasks):
            return None
        return array.tasks[index]
