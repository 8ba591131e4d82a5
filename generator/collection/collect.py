"""Everything below some folders into one set of points: find, read, assemble, compare."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generator.collection.records import points_of_run, scored_runs
from generator.collection.run_folders import Found, enclosing_run, find_runs
from generator.collection.run_reading import RunReading, read_run
from generator.collection.sweep_points import MissingPoint, SweepPoints, try_sweep_points
from generator.collection.validity import with_duplicates
from generator.errors import Problem
from generator.goodput.acceptance import Limits
from generator.results.point import MeasuredPoint, Origin
from generator.sweep.points import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Points, valid and invalid, planned points without one, and files that were left out.

    ``base`` is the folder that files and runs are called from.
    """

    base: Path
    runs: int
    points: tuple[MeasuredPoint, ...]
    missing: tuple[MissingPoint, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionOptions:
    """How to collect.

    ``origin`` is of runs that do not say theirs; ``threshold`` the least accuracy that is good
    enough; ``limits`` what goodput is counted by, None for no goodput. ``on_run`` is told of each
    run, ``on_chunk`` is called now and then within a large file.
    """

    origin: Origin = Origin.MEASURED
    threshold: float | None = None
    limits: Limits | None = None
    on_run: Callable[[str], None] = field(default=lambda _name: None)
    on_chunk: Callable[[], None] = field(default=lambda: None)


def collect(folders: Sequence[Path], options: CollectionOptions) -> Collection:
    """All points of the runs below the folders; the same files give the same collection.

    Files are called by their paths below the folder, or below what several folders share.
    """
    collector = _Collector(folders, options)
    for folder in folders:
        collector.add(folder)
    return collector.collected()


class _Collector:
    def __init__(self, folders: Sequence[Path], options: CollectionOptions) -> None:
        resolved = [folder.resolve() for folder in folders]
        self._base = Path(os.path.commonpath(resolved)) if resolved else Path()
        self._options = options
        self._readings: list[RunReading] = []
        self._runs: set[Path] = set()
        self._strays: set[Path] = set()
        self._sweeps: dict[Path, SweepPoints] = {}
        self._whole_sweeps: set[Path] = set()
        self._problems: list[Problem] = []

    def add(self, folder: Path) -> None:
        """Read the runs of a folder, but for those that another folder has given already."""
        found = find_runs(folder.resolve())
        runs = [run for run in found.runs if run.path not in self._runs]
        self._runs.update(run.path for run in runs)
        self._note_found(folder, found)
        self._whole_sweeps.update(sweep.root for sweep in found.sweeps)
        for sweep in (*found.sweeps, *([found.within] if found.within else [])):
            points = try_sweep_points(sweep)
            if isinstance(points, SweepPoints):
                self._sweeps[sweep.root] = points
            else:
                self._note(sweep.root, f"is a sweep whose ledger cannot be read: {points}")
        for run in runs:
            self._options.on_run(self._name(run.path))
            reading = read_run(run, self._options.origin, self._options.on_chunk)
            self._drop_uncounted(reading)
            reading.measurements[:] = [
                each.judged(self._options.limits) for each in reading.measurements
            ]
            self._readings.append(reading)

    def collected(self) -> Collection:
        """What all folders gave."""
        scored = scored_runs(self._readings)
        points = with_duplicates(
            point
            for reading in self._readings
            for point in points_of_run(reading, scored, self._options.threshold, self._name)
        )
        for reading in self._readings:
            for each in reading.problems:
                self._note(each.file, each.message)
        self._note_strays()
        known = {point.subject.point_id for point in points} | _scored_points(self._readings)
        return Collection(
            base=self._base,
            runs=len(self._readings),
            points=tuple(points),
            missing=tuple(
                each
                for root, sweep in self._sweeps.items()
                if root in self._whole_sweeps
                for each in sweep.missing(known)
            ),
            problems=tuple(sorted(dict.fromkeys(self._problems), key=_place)),
        )

    def _note_found(self, folder: Path, found: Found) -> None:
        for path, message in found.unreadable:
            self._note(path, message)
        self._strays.update(found.strays)
        if not (found.runs or found.sweeps or found.strays or found.unreadable):
            message, hint = "holds no run folder", "name an output folder of srt-slurm, or a sweep"
            if any(each.is_symlink() for each in folder.iterdir()):
                message = "holds no run folder, and links are not followed"
                hint = "name the folders that they point to"
            self._problems.append(Problem(message=message, hint=hint, source=str(folder)))

    def _note_strays(self) -> None:
        """Results outside of all runs: a folder may have been named that lies inside of its run."""
        for path in self._strays:
            if not self._runs.isdisjoint(path.parents):
                continue
            run = enclosing_run(path)
            message = "belongs to no run: no config.yaml or recipe.lock.yaml around it"
            self._note(path, f"belongs to {run}: name that folder" if run else message)

    def _drop_uncounted(self, reading: RunReading) -> None:
        """Leave out what the sweep does not count: attempts that failed, or are not over."""
        run, recipe = reading.run, reading.recipe
        sweep = self._sweeps.get(run.plan.sweep.root) if run.plan else None
        if sweep is None or recipe is None:
            return
        counted = []
        for measured in reading.measurements:
            point = Point(digest=recipe.digest, concurrency=measured.concurrency).id
            refusal = sweep.refusal(point, run.path)
            if refusal:
                reading.note(measured.file, f"is left out: {refusal}")
            else:
                counted.append(measured)
        reading.measurements[:] = counted
        if reading.accuracy and (refusal := sweep.refusal(recipe.digest, run.path)):
            reading.note(run.path, f"its accuracy is left out: {refusal}")
            reading.accuracy.clear()

    def _note(self, path: Path, message: str) -> None:
        self._problems.append(Problem(message=message, source=self._name(path)))

    def _name(self, path: Path) -> str:
        """A file by its path below what was named; a sweep above that by its own."""
        name, below = str(path), f"{str(self._base).rstrip(os.sep)}{os.sep}"
        if name.startswith(below):
            return name.removeprefix(below)
        return "." if path == self._base else name


def _scored_points(readings: Iterable[RunReading]) -> set[str]:
    """Points without a load, whose accuracy is known."""
    return {each.recipe.digest for each in readings if each.recipe is not None and each.accuracy}


def _place(problem: Problem) -> tuple[str, str]:
    return (problem.source, problem.message)
