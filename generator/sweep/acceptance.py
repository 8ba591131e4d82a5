"""What a cluster would refuse of a plan, or take for something else: known before it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from generator.cluster.protocol import ClusterFeatures
from generator.errors import Problem
from generator.sweep.planning import PlannedJob

_MOST_NAMED = 8


def acceptance_problems(
    jobs: Iterable[PlannedJob], features: ClusterFeatures, root: Path
) -> Iterator[Problem]:
    """Every reason why these jobs cannot run from the sweep at ``root`` on this cluster."""
    listed = list(jobs)
    if listed:
        yield from _path_problems(features, root)
    if features.partitions:
        yield from dict.fromkeys(
            problem for job in listed for problem in _partition_problems(job, features)
        )


def _path_problems(features: ClusterFeatures, root: Path) -> Iterator[Problem]:
    found = sorted({each for each in str(root) if each in features.expands_in_paths})
    if found:
        message = f"has {' '.join(found)} in its path, which Slurm replaces in the names of logs"
        hint = "put the sweep elsewhere with --sweep, or rename the folder it is in"
        yield Problem(message=message, hint=hint, source=str(root))


def _partition_problems(job: PlannedJob, features: ClusterFeatures) -> Iterator[Problem]:
    """Sbatch takes several partitions, separated by commas."""
    named = ", ".join(features.partitions[:_MOST_NAMED])
    more = ", ..." if len(features.partitions) > _MOST_NAMED else ""
    for partition in (job.parameters.partition or "").split(","):
        if partition and partition not in features.partitions:
            yield Problem(
                message=f"this Slurm has no partition {partition!r}",
                hint=f"it has {named}{more}",
                source=job.recipe.file if job.recipe.partition else "the site",
                path="slurm.partition",
            )
