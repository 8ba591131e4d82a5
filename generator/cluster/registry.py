"""The clusters by the name a user gives; submitit is loaded here and not before."""

from __future__ import annotations

from pathlib import Path

from generator.cluster.protocol import Cluster

CLUSTERS = ("slurm", "local", "debug")


def connect(name: str, folder: Path) -> Cluster:
    """The cluster of that name; ``folder`` holds the folders of its arrays, one a token."""
    if name == "slurm":
        from generator.cluster.slurm import SlurmCluster  # noqa: PLC0415 - submitit takes 0.2 s

        return SlurmCluster()
    if name == "debug":
        from generator.cluster.debug import DebugCluster  # noqa: PLC0415

        return DebugCluster(folder)
    from generator.cluster.local import LocalCluster  # noqa: PLC0415

    return LocalCluster(folder)
