"""What srtctl notes of a job: ``<jobid>.json`` and ``resource_snapshot.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.collection.lock_file import snapshot_gpus
from generator.collection.unusable import read_json_object

SNAPSHOT_FILE = "resource_snapshot.json"
_ROLES = ("prefill", "decode", "agg")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMetadata:
    """A job as it was submitted; ``worker_gpus`` is None where it does not say."""

    job_id: str
    gpu_type: str
    worker_gpus: int | None


def read_job_metadata(path: Path) -> JobMetadata:
    """The metadata in a file; raises Unusable for a file that is not JSON."""
    document = read_json_object(path)
    resources = document.get("resources")
    resources = resources if isinstance(resources, dict) else {}
    return JobMetadata(
        job_id=str(document.get("job_id") or ""),
        gpu_type=str(resources.get("gpu_type") or ""),
        worker_gpus=_worker_gpus(resources),
    )


def read_snapshot(path: Path) -> int | None:
    """The GPUs that a job held, by its nodes; raises Unusable for a file that is not JSON."""
    return snapshot_gpus(read_json_object(path))


def _worker_gpus(resources: Mapping[str, Any]) -> int | None:
    """GPUs of the nodes that workers have, shared or not."""
    per_node = resources.get("gpus_per_node")
    nodes = [resources.get(f"{role}_nodes") for role in _ROLES]
    counts = [each for each in nodes if isinstance(each, int)]
    if not isinstance(per_node, int) or not sum(counts):
        return None
    return sum(counts) * per_node
