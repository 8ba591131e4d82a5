"""One run folder read: its recipe, its measurements, its accuracy, and what could not be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.collection.aiperf import SWEEP_CLIENT, read_aiperf, read_aiperf_sweep
from generator.collection.gsm8k import AccuracyRun, read_gsm8k
from generator.collection.job_metadata import read_job_metadata, read_snapshot
from generator.collection.measurement import Measurement
from generator.collection.ran_recipe import RanRecipe, read_locked, read_ran_recipe
from generator.collection.rollup import CLIENT as ROLLUP_CLIENT
from generator.collection.rollup import disagreement, read_rollup
from generator.collection.run_folders import Kind, RunFolder
from generator.collection.sa_bench import CLIENT as SA_BENCH_CLIENT
from generator.collection.sa_bench import read_sa_bench
from generator.collection.unusable import Unusable
from generator.collection.worker_logs import WorkerLogs, read_worker_logs
from generator.errors import InvalidInput
from generator.results.point import AllocatedGpus, Origin
from generator.results.run_marker import MARKER_FILE, RunMarker, read_run_marker

_MOCKER = "mocker"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    """A file of a run that is left out, or something odd about one that is not."""

    file: Path
    message: str


@dataclass(slots=True, kw_only=True)
class RunReading:
    """What a run tells. ``recipe`` is None where the run cannot be used at all.

    ``recipe_file`` is where the recipe is from, ``version_file`` where versions are;
    ``held_file`` says what the job held where that is more than the recipe asks for.
    """

    run: RunFolder
    recipe: RanRecipe | None = None
    recipe_file: Path | None = None
    version_file: Path | None = None
    held_file: Path | None = None
    origin: Origin = Origin.MEASURED
    marker: RunMarker | None = None
    gpus: AllocatedGpus = field(default_factory=lambda: AllocatedGpus(type="unknown"))
    logs: WorkerLogs = field(default_factory=WorkerLogs)
    measurements: list[Measurement] = field(default_factory=list)
    accuracy: list[AccuracyRun] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)

    @property
    def log_files(self) -> list[Path]:
        """The logs of its workers."""
        return self.run.of(Kind.WORKER_LOG)

    def note(self, file: Path, message: object) -> None:
        """Keep a problem."""
        self.problems.append(FileProblem(file=file, message=str(message)))


def read_run(
    run: RunFolder, origin: Origin, on_chunk: Callable[[], None] = lambda: None
) -> RunReading:
    """Everything in a run folder; ``origin`` holds where the run does not say its own.

    A broken file is a problem of its own; only a recipe that is not that of the run spoils all.
    """
    reading = RunReading(run=run, origin=origin)
    for path in run.of(Kind.PARTIAL):
        reading.note(path, "is partial: its writer had not finished")
    for path in run.of(Kind.PACKED):
        reading.note(path, "is packed: unpack it to have it read")
    if not run.has_results:
        reading.note(run.path, "has no result file: the run is not over, or it failed")
        return reading
    if _read_recipe(reading) and _read_origin(reading) and _read_gpus(reading):
        _read_logs(reading)
        _read_results(reading, on_chunk)
    return reading


def _read_recipe(reading: RunReading) -> bool:
    """The recipe that ran; False, with a problem, where that is not certain."""
    run = reading.run
    try:
        file, recipe = _chosen_recipe(reading)
    except Unusable as error:
        reading.note(run.config or run.lock or run.path, error)
        return False
    if run.plan is not None and recipe.digest != run.plan.digest:
        message = f"is recipe {recipe.digest}, but the sweep planned {run.plan.digest}"
        reading.note(file, f"{message}: the recipe was changed since")
        return False
    reading.recipe, reading.recipe_file = recipe, file
    return True


def _chosen_recipe(reading: RunReading) -> tuple[Path, RanRecipe]:
    """``config.yaml`` before the lock file before the sweep's copy; the lock adds its versions."""
    run = reading.run
    config = read_ran_recipe(run.config) if run.config else None
    is_read = config is not None and not config.is_template
    lock = _lock_recipe(reading, read_locked if is_read else read_ran_recipe)
    if config and lock and not (config.is_template or lock.is_template):
        if config.digest != lock.digest:
            raise Unusable("differs from recipe.lock.yaml: which of them ran nobody can tell")
        return (run.config or run.path), replace(config, lock=lock.lock)
    for file, recipe in ((run.config, config), (run.lock, lock)):
        if file is not None and recipe is not None and not recipe.is_template:
            return file, recipe
    if config or lock:
        raise Unusable("holds several recipes, so that nobody can tell which one ran")
    if run.plan is None:
        raise Unusable("is broken, and there is no config.yaml beside it")
    copy = run.plan.sweep.recipe(run.plan.digest)
    try:
        return copy, read_ran_recipe(copy)
    except Unusable as error:
        raise Unusable(f"has no recipe: {copy.name} {error}") from error


def _lock_recipe(reading: RunReading, read: Callable[[Path], RanRecipe]) -> RanRecipe | None:
    """The recipe of the lock file; a broken one is a problem, but config.yaml may do without it."""
    path = reading.run.lock
    if path is None:
        return None
    try:
        recipe = read(path)
    except Unusable as error:
        reading.note(path, f"{error}; versions are taken from elsewhere")
        return None
    if recipe.is_template:
        return recipe
    if not recipe.lock.is_there:
        reading.note(path, "ends before its lock section; it is not used")
        return None
    if not recipe.lock.is_whole:
        reading.note(path, "ends early: its lock section has no end; what it says is used")
    return recipe


def _read_origin(reading: RunReading) -> bool:
    try:
        marker = read_run_marker(reading.run.path)
    except InvalidInput as error:
        reading.note(reading.run.path / MARKER_FILE, error.problems[0].statement)
        return False
    if marker is not None:
        reading.origin, reading.marker = marker.origin, marker
    elif reading.origin is Origin.MEASURED and _is_simulated(reading.recipe):
        reading.origin = Origin.REHEARSAL
    return True


def _is_simulated(recipe: RanRecipe | None) -> bool:
    """Whether an engine was Dynamo's mocker, which sleeps instead of computing."""
    return recipe is not None and any(pool.engine == _MOCKER for pool in recipe.pools)


def _read_gpus(reading: RunReading) -> bool:
    """Allocated GPUs by the recipe, checked against what the job had."""
    recipe, run = reading.recipe, reading.run
    if recipe is None:
        return False
    gpus = recipe.gpus
    workers = gpus.total - gpus.other
    for path in run.of(Kind.METADATA):
        try:
            metadata = read_job_metadata(path)
        except Unusable as error:
            reading.note(path, error)
            continue
        if metadata.worker_gpus is not None and metadata.worker_gpus != workers:
            says = f"says {metadata.worker_gpus} GPUs for workers, the recipe {workers}"
            reading.note(path, f"{says}: it is not the recipe that ran")
            return False
    held = _held_gpus(reading, recipe)
    if held is not None and held[1] < gpus.total:
        reading.note(held[0], f"says {held[1]} GPUs, the recipe allocates {gpus.total}")
        return False
    if held is not None and held[1] > gpus.total:
        reading.note(held[0], f"says {held[1]} GPUs: {held[1] - gpus.total} more than the recipe")
        gpus = replace(gpus, other=gpus.other + held[1] - gpus.total)
        reading.held_file = held[0]
    reading.gpus = gpus
    return True


def _held_gpus(reading: RunReading, recipe: RanRecipe) -> tuple[Path, int] | None:
    """What the allocation held, and the file that says so; None where none does."""
    for path in reading.run.of(Kind.SNAPSHOT):
        try:
            held = read_snapshot(path)
        except Unusable as error:
            reading.note(path, error)
            continue
        if held is not None:
            return path, held
    if recipe.lock.gpus is not None and reading.run.lock is not None:
        return reading.run.lock, recipe.lock.gpus
    return None


def _read_logs(reading: RunReading) -> None:
    run, recipe = reading.run, reading.recipe
    logs = run.of(Kind.WORKER_LOG)
    try:
        reading.logs = read_worker_logs(logs)
    except Unusable as error:
        reading.note(run.path, f"has a worker's log that cannot be read: {error}")
    if recipe is not None and recipe.lock.versions:
        reading.version_file = run.lock
    elif reading.logs.versions:
        reading.version_file = logs[0]
    else:
        reading.version_file = reading.recipe_file


def _read_results(reading: RunReading, on_chunk: Callable[[], None]) -> None:
    """The measurements by preference: reports of one load, AIPerf's sweep, the rollup."""
    run = reading.run
    for kind, read in ((Kind.SA_BENCH, read_sa_bench), (Kind.AIPERF, read_aiperf)):
        for path in run.of(kind):
            try:
                measured = read(path, on_chunk)
            except Unusable as error:
                reading.note(path, error)
                continue
            reading.measurements.append(_as_marked(reading, measured))
            for remark in measured.remarks:
                reading.note(path, remark)
    for path in run.of(Kind.AIPERF_SWEEP):
        _add_unmeasured(reading, _usable(reading, path, read_aiperf_sweep))
    for path in run.of(Kind.ROLLUP):
        _add_unmeasured(reading, _usable(reading, path, read_rollup))
    for path in run.of(Kind.GSM8K):
        try:
            reading.accuracy.append(read_gsm8k(path))
        except Unusable as error:
            reading.note(path, error)


def _as_marked(reading: RunReading, measured: Measurement) -> Measurement:
    """The measurement under the load that it stood for, where the run's marker says so."""
    marker = reading.marker
    if marker is None:
        return measured
    measured = replace(measured, conditions={**measured.conditions, **marker.conditions})
    folder = measured.file.parent.relative_to(reading.run.path).as_posix()
    for load in marker.loads:
        if load.folder == folder:
            return replace(
                measured,
                concurrency=load.concurrency,
                in_flight=measured.concurrency,
                preemptions=load.preemptions,
            )
    return measured


def _usable(
    reading: RunReading,
    path: Path,
    read: Callable[[Path], Iterable[Measurement | Unusable]],
) -> Iterator[Measurement]:
    try:
        for each in read(path):
            if isinstance(each, Unusable):
                reading.note(path, each)
            else:
                yield each
    except Unusable as error:
        reading.note(path, error)


def _add_unmeasured(reading: RunReading, found: Iterable[Measurement]) -> None:
    """The loads that no report of their own tells of; the others are compared with it.

    One benchmark ran all loads of a rollup, so that what its reports agree on holds for it too.
    """
    own = {each.concurrency: each for each in reading.measurements}
    conditions = _shared_conditions(each for each in own.values() if each.client == SA_BENCH_CLIENT)
    for measured in found:
        report = own.get(measured.concurrency)
        if report is None:
            reading.measurements.append(_under(conditions, measured))
            if measured.client == ROLLUP_CLIENT:
                said = f"stands in for concurrency {measured.concurrency}, whose report is missing"
                reading.note(measured.file, said)
        elif measured.client != SWEEP_CLIENT and (different := disagreement(report, measured)):
            place = f"concurrency {measured.concurrency}"
            reading.note(measured.file, f"is left out: {place} has {different}")


def _shared_conditions(measurements: Iterable[Measurement]) -> dict[str, str]:
    """What all of them say alike of their load; nothing where there are none."""
    listed = [each.conditions.items() for each in measurements]
    return dict(set(listed[0]).intersection(*listed[1:])) if listed else {}


def _under(conditions: Mapping[str, str], measured: Measurement) -> Measurement:
    """A measurement under the conditions of its run's reports, where it is of the same client."""
    if measured.client != ROLLUP_CLIENT:
        return measured
    return replace(measured, conditions={**conditions, **measured.conditions})
