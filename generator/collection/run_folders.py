"""Run folders below a folder: those of srt-slurm, and those of the jobs of a sweep."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from generator.cluster.job_file import JOB_FILE
from generator.collection.aiperf import SUMMARY_SUFFIX, SWEEP_SUFFIX
from generator.collection.job_metadata import SNAPSHOT_FILE
from generator.collection.rollup import ROLLUP_FILE
from generator.collection.unusable import Unusable, read_json_object
from generator.collection.worker_logs import WORKER_LOG
from generator.sweep.folder import SweepFolder, is_sweep
from generator.sweep.points import parse_point

CONFIG_FILE = "config.yaml"
LOCK_FILE = "recipe.lock.yaml"
_RECIPES = frozenset({CONFIG_FILE, LOCK_FILE})
_LOGS = "logs"
_RUNS = "runs"
_NOT_OF_RUNS = frozenset({"recipes", "points"})
# AIPerf 0.13 repeats its summary, and has one of the warm-up, in a folder for each phase.
_PHASE_MANIFEST = "phase_manifest.json"
_PHASES = "phases"


class Kind(Enum):
    """What a file of a run is, by its name."""

    SA_BENCH = re.compile(r"results_.*\.json\Z")
    AIPERF = re.compile(rf".*{re.escape(SUMMARY_SUFFIX)}\Z")
    AIPERF_SWEEP = re.compile(rf".*{re.escape(SWEEP_SUFFIX)}\Z")
    ROLLUP = re.compile(rf"{re.escape(ROLLUP_FILE)}\Z")
    GSM8K = re.compile(r"gsm8k_run\d+\.json\Z")
    PACKED = re.compile(r"(?:results_.*|profile_export_aiperf)\.json\.(?:gz|zst|xz|bz2)\Z")
    PARTIAL = re.compile(r"(?:results_.*|profile_export_aiperf)\.json\.\w+\Z")
    WORKER_LOG = WORKER_LOG
    METADATA = re.compile(r"(?:jobmeta_)?\d+\.json\Z")
    SNAPSHOT = re.compile(rf"{re.escape(SNAPSHOT_FILE)}\Z")


RESULTS = (Kind.SA_BENCH, Kind.AIPERF, Kind.AIPERF_SWEEP, Kind.ROLLUP, Kind.GSM8K)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sweep planned for a job: the recipe, by its digest, and the sweep's copy of it."""

    sweep: SweepFolder
    digest: str


@dataclass(slots=True, kw_only=True)
class RunFolder:
    """One run and its files by kind. ``plan`` is None outside of sweeps."""

    path: Path
    config: Path | None
    lock: Path | None
    plan: Plan | None = None
    files: dict[Kind, list[Path]] = field(default_factory=dict)

    def of(self, kind: Kind) -> list[Path]:
        """The files of a kind, by path."""
        return self.files.get(kind, [])

    @property
    def has_results(self) -> bool:
        return any(self.of(kind) for kind in RESULTS)


@dataclass(slots=True, kw_only=True)
class Found:
    """What lies below a folder: runs by path, sweeps, and results that belong to no run.

    ``within`` is the sweep that the folder itself lies in: which of its runs count is its to say,
    but not all of them were looked for. ``unreadable`` are folders and job files with what is wrong
    with them.
    """

    runs: list[RunFolder] = field(default_factory=list)
    sweeps: list[SweepFolder] = field(default_factory=list)
    within: SweepFolder | None = None
    strays: list[Path] = field(default_factory=list)
    unreadable: list[tuple[Path, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What a folder lies in."""

    run: RunFolder | None = None
    sweep: SweepFolder | None = None
    plan: Plan | None = None


def find_runs(root: Path) -> Found:
    """All runs at or below a folder, by path; symbolic links are not followed."""
    found = Found()
    around = {root: _above(root, found)}
    found.within = around[root].sweep

    def refused(error: OSError) -> None:
        found.unreadable.append((Path(error.filename), (error.strerror or "").lower()))

    for name, folders, names in os.walk(root, onerror=refused):
        folder = Path(name)
        files = _regular_files(folder, names, found)
        inside = _inside(around.pop(folder), folder, set(folders), set(files), found)
        _assign(folder, files, inside.run, found)
        folders.sort()
        if is_sweep(folder):
            folders[:] = [each for each in folders if each not in _NOT_OF_RUNS]
        if _PHASE_MANIFEST in files and _PHASES in folders:
            folders.remove(_PHASES)
        around.update((folder / each, inside) for each in folders)
    return found


def _above(root: Path, found: Found) -> _Around:
    """What a folder lies in of a sweep: its job may have been named, or one run of it."""
    sweep, plan = None, None
    for folder in reversed(root.parents):
        if is_sweep(folder):
            sweep, plan = SweepFolder(root=folder), None
        elif sweep is not None and (job_files := sorted(folder.glob(f"{JOB_FILE}*"))):
            plan = _plan(sweep, job_files[0], found)
    return _Around(sweep=sweep, plan=plan)


def enclosing_run(path: Path) -> Path | None:
    """The run folder that a file lies in, by the recipe and the logs of srt-slurm; None without."""
    for folder in path.parents:
        has_recipe = (folder / LOCK_FILE).is_file() or (folder / CONFIG_FILE).is_file()
        if has_recipe and (folder / _LOGS).is_dir():
            return folder
    return None


def _regular_files(folder: Path, names: Iterable[str], found: Found) -> list[str]:
    """The names but those of a run's files that are none: a pipe would be waited for for ever."""
    regular = []
    for name in names:
        is_of_run = name in _RECIPES or name.startswith(JOB_FILE) or _kind(name) is not None
        if not is_of_run or (folder / name).is_file():
            regular.append(name)
        else:
            found.unreadable.append((folder / name, "is no regular file"))
    return regular


def _kind(name: str) -> Kind | None:
    """What a file is by its name; None for one that collecting does not read."""
    return next((kind for kind in Kind if kind.value.match(name)), None)


def _inside(
    around: _Around, folder: Path, folders: set[str], files: set[str], found: Found
) -> _Around:
    """What the files and folders of a folder lie in."""
    sweep, plan, run = around.sweep, around.plan, around.run
    if is_sweep(folder):
        sweep = SweepFolder(root=folder.resolve())
        found.sweeps.append(sweep)
    job_files = sorted(each for each in files if each.startswith(JOB_FILE))
    if sweep is not None and job_files:
        plan = _plan(sweep, folder / job_files[0], found)
    if _is_run(around, folder, folders, files) or (plan and _is_run_of_job(folder, plan)):
        run = RunFolder(
            path=folder,
            config=folder / CONFIG_FILE if CONFIG_FILE in files else None,
            lock=folder / LOCK_FILE if LOCK_FILE in files else None,
            plan=plan,
        )
        found.runs.append(run)
    return _Around(run=run, sweep=sweep, plan=plan)


def _is_run(around: _Around, folder: Path, folders: set[str], files: set[str]) -> bool:
    """Whether srt-slurm ran here. Inside a run only logs beside a recipe make another."""
    if around.run is None:
        return not {CONFIG_FILE, LOCK_FILE}.isdisjoint(files)
    if folder.name == _LOGS:
        return False
    return LOCK_FILE in files or (CONFIG_FILE in files and _LOGS in folders)


def _is_run_of_job(folder: Path, plan: Plan) -> bool:
    """``runs/<job>.<restarts>``, and below it a folder for each point of some launchers."""
    if folder.parent.name == _RUNS:
        return True
    return folder.parent.parent.name == _RUNS and folder.name.startswith(plan.digest)


def _plan(sweep: SweepFolder, job_file: Path, found: Found) -> Plan | None:
    try:
        points = read_json_object(job_file)["points"]
        return Plan(sweep=sweep, digest=parse_point(points[0]["point_id"]).digest)
    except (Unusable, KeyError, IndexError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, Unusable) else "is no job file"
        found.unreadable.append((job_file, reason))
        return None


def _assign(folder: Path, files: list[str], run: RunFolder | None, found: Found) -> None:
    for name in sorted(files):
        kind = _kind(name)
        if kind is None:
            continue
        if run is not None:
            run.files.setdefault(kind, []).append(folder / name)
        elif kind in RESULTS:
            found.strays.append(folder / name)
