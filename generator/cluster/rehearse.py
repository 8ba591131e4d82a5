"""The ``rehearse`` launcher: a recipe's deployment with simulated engines, on the job's first node.

The work is that of ``pdrecipe rehearse``; this module knows its command line and what it leaves.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from generator.cluster.job_file import JobFile, JobPoint, RehearseLauncher
from generator.cluster.launching import Launch, LaunchEnd

_A_LOAD_IS_NOT_TAKEN = 10
_REHEARSED_FILE = "rehearsed.json"


def rehearse_launch(
    launcher: RehearseLauncher, job: JobFile, points: Sequence[JobPoint], output: Path
) -> Launch:
    """The process that rehearses these points; its folder of results is the output folder."""
    loads = [str(point.concurrency) for point in points if point.concurrency is not None]
    options = {
        "--out": str(output),
        "--cache": str(launcher.cache),
        "--scale": "auto" if launcher.scale is None else str(launcher.scale),
        **({"--timing": launcher.timing} if launcher.timing else {}),
        **({"--concurrency": ",".join(loads)} if loads else {}),
    }
    words = [word for option in options.items() for word in option]
    return Launch(
        argv=(sys.executable, "-m", "generator.cli", "rehearse", str(job.recipe), *words),
        folder=output,
        output=output,
        log=output / "launcher.log",
        environment={**os.environ, **dict(launcher.environment)},
        signals_group=False,  # it ends what it started by itself
    )


def as_rehearsed(end: LaunchEnd) -> LaunchEnd:
    """The end of a rehearsal: that a load is not taken is an answer, and no failure of the job."""
    return replace(end, exit_code=0) if end.exit_code == _A_LOAD_IS_NOT_TAKEN else end


def missing_rehearsal(output: Path, point: JobPoint) -> str:
    """Why a point has no figures although the rehearsal ended well; empty where it has."""
    path = output / f"c{point.concurrency}" / _REHEARSED_FILE
    try:
        rehearsed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"concurrency {point.concurrency} was not rehearsed"
    if not isinstance(rehearsed, dict) or rehearsed.get("measured") is None:
        return f"the answers at concurrency {point.concurrency} did not end in time"
    return ""
