"""Where the logs of a job lie: Slurm's own, and those of the launcher by run."""

from __future__ import annotations

from pathlib import Path

from generator.sweep.folder import SweepFolder
from generator.sweep.history import Attempt

_LAUNCHER_LOGS = ("launcher.log", "logs/sweep_*.log")


def job_logs(folder: SweepFolder, attempt: Attempt, point: str) -> list[Path]:
    """The logs that exist, the one that tells most about the point last."""
    runs = sorted(folder.job(attempt.token, attempt.index).glob("runs/*"), key=_began)
    found = [
        log
        for run in runs
        for place in (run, run / point)
        for pattern in _LAUNCHER_LOGS
        for log in sorted(place.glob(pattern))
    ]
    task = attempt.task_id
    own = sorted(folder.array(attempt.token).glob(f"{task}_*log.out")) if task else []
    return [*own, *found]


def _began(run: Path) -> float:
    return run.stat().st_mtime
