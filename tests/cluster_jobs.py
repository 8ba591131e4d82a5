"""Small jobs and arrays for the tests of clusters."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from generator.cluster.job_file import (
    CommandLauncher,
    JobFile,
    JobPoint,
    Launcher,
    PointResult,
    read_result,
    write_job_file,
)
from generator.cluster.protocol import ArrayRequest, Cluster, SbatchParameters

_TOKENS = itertools.count(1)


def python(code: str, *arguments: str) -> CommandLauncher:
    """A launcher that runs a piece of Python."""
    return CommandLauncher(argv=(sys.executable, "-c", code, *arguments))


def written_job(  # one job with its points, as a sweep would lay it out
    sweep: Path,
    name: str,
    launcher: Launcher,
    *,
    token: str = "t1",
    concurrencies: Sequence[int | None] = (None,),
    time_minutes: int = 30,
    max_runs: int = 3,
    recipe: Path | None = None,
) -> Path:
    points = tuple(
        JobPoint(
            point_id=f"{name}-c{load}",
            concurrency=load,
            folder=sweep / "points" / f"{name}-c{load}",
        )
        for load in concurrencies
    )
    job = JobFile(
        token=token,
        recipe=recipe or sweep / f"{name}.yaml",
        points=points,
        launcher=launcher,
        time_minutes=time_minutes,
        max_runs=max_runs,
    )
    folder = sweep / "jobs" / token / name
    write_job_file(folder, job)
    return folder


def result(sweep: Path, name: str, concurrency: int | None = None) -> PointResult | None:
    return read_result(sweep / "points" / f"{name}-c{concurrency}")


def an_array(
    sweep: Path,
    jobs: Sequence[Path],
    *,
    token: str = "t1",
    nodes: int = 1,
    time_minutes: int = 30,
    max_parallel: int = 0,
    held: bool = False,
    partition: str | None = None,
    requeue: bool = True,
    directives: tuple[tuple[str, str | None], ...] = (),
    segment: int | None = None,
    exclusive: bool = True,
    gpus_per_node: int = 4,
    after: tuple[str, ...] = (),
) -> ArrayRequest:
    return ArrayRequest(
        token=token,
        name=f"sweep{next(_TOKENS)}",
        folder=sweep / "arrays" / token,
        jobs=tuple(jobs),
        parameters=SbatchParameters(
            nodes=nodes,
            time_minutes=time_minutes,
            partition=partition,
            gpus_per_node=gpus_per_node,
            requeue=requeue,
            directives=directives,
            segment=segment,
            exclusive=exclusive,
        ),
        comment=f"pdrecipe sweep {token}",
        max_parallel=max_parallel,
        held=held,
        after=after,
    )


def eventually(is_so: Callable[[], bool], seconds: float = 120, every: float = 0.1) -> bool:
    """Whether something came true within the time, which a loaded machine may need."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def all_over(cluster: Cluster, job_id: str) -> bool:
    """Whether the cluster has nothing left to run of an array."""
    report = cluster.states([job_id])
    return report.queue_answered and not any(s.phase.is_live for s in report.states.values())
