"""The ``srtctl`` launcher: srt-slurm's orchestrator, started as its own job script starts it.

Sources: the job script template and the submission of srt-slurm 1.0 and 2.0
(``templates/job_script_minimal.j2``, ``cli/submit.py``), as read in November 2026.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from generator.cluster.allocation import Allocation
from generator.cluster.job_file import JobFile, JobPoint, SrtctlLauncher
from generator.cluster.launching import Launch
from generator.documents import read_document
from generator.files import write_text_atomically
from generator.yaml_text.writing import quoted_yaml

_SA_BENCH = "sa-bench"
_ROLES = ("prefill", "decode", "agg")
_GPUS_PER_NODE = 4  # where a recipe leaves it out


def srtctl_launch(
    launcher: SrtctlLauncher,
    job: JobFile,
    points: Sequence[JobPoint],
    allocation: Allocation,
    output: Path,
) -> Launch:
    """Prepare the output folder and return the orchestrator's process.

    Raises InvalidInput for a recipe that cannot be read.
    """
    recipe = read_document(job.recipe).data
    (output / "logs").mkdir(parents=True, exist_ok=True)
    _write_config(job.recipe, recipe, points, output / "config.yaml")
    metadata = run_metadata(recipe, allocation.job_id)
    write_text_atomically(output / f"{allocation.job_id}.json", json.dumps(metadata, indent=2))
    return Launch(
        argv=(str(launcher.python), "-m", "srtctl.cli.do_sweep", str(output / "config.yaml")),
        folder=launcher.checkout,
        output=output,
        log=output / "logs" / f"sweep_{allocation.job_id}.log",
        environment={**_environment(launcher, recipe, output), **dict(launcher.environment)},
        signals_group=False,
    )


def _environment(
    launcher: SrtctlLauncher, recipe: Mapping[str, Any], output: Path
) -> dict[str, str]:
    """The orchestrator's environment; its checkout comes first, before a recipe's own PATH."""
    checkout = launcher.checkout
    told = {
        **os.environ,
        "SRTCTL_OUTPUT_DIR": str(output),
        "SRTCTL_SOURCE_DIR": str(checkout),
        **({"SRTSLURM_CONFIG": str(launcher.config)} if launcher.config else {}),
        **{name: str(value) for name, value in (recipe.get("environment") or {}).items()},
    }
    for name, folder in (("PATH", checkout / "bin"), ("PYTHONPATH", checkout / "src")):
        told[name] = os.pathsep.join(filter(None, (str(folder), told.get(name, ""))))
    return told


def _write_config(
    source: Path, recipe: Mapping[str, Any], points: Sequence[JobPoint], target: Path
) -> None:
    """The recipe as it is, or with only those concurrencies that are still missing."""
    wanted = [point.concurrency for point in points if point.concurrency is not None]
    benchmark = recipe.get("benchmark") or {}
    if not wanted or sorted(wanted) == sorted(_loads(benchmark.get("concurrencies"))):
        shutil.copyfile(source, target)
        return
    rest = {**recipe, "benchmark": {**benchmark, "concurrencies": "x".join(map(str, wanted))}}
    write_text_atomically(target, quoted_yaml(rest))


def _loads(written: object) -> Iterator[int]:
    """The concurrencies of a benchmark: a list, one number or ``64x128``."""
    for item in written if isinstance(written, list) else str(written or "").split("x"):
        if str(item).strip().isdigit():
            yield int(item)


def run_metadata(recipe: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    """What srtctl notes about a job when it submits it; per-GPU figures are read from here."""
    model, benchmark = recipe.get("model") or {}, recipe.get("benchmark") or {}
    engine = recipe.get("engine", recipe.get("backend")) or {}
    frontend = recipe.get("frontend") or {}
    return {
        "version": "2.0",
        "orchestrator": True,
        "job_id": job_id,
        "job_name": recipe.get("name"),
        "generated_at": datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "model": {name: model.get(name) for name in ("path", "container", "precision")},
        "resources": _resources(recipe),
        "backend_type": engine if isinstance(engine, str) else engine.get("type"),
        "frontend_type": frontend.get("type"),
        "benchmark": {name: benchmark.get(name) for name in ("type", "isl", "osl")},
    }


def _resources(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What srtctl has of the resources once its defaults are in.

    Source: the properties of its ``ResourceConfig``, srt-slurm 1.0.68.
    """
    resources = recipe.get("resources") or {}
    per_node = _count(resources.get("gpus_per_node")) or _GPUS_PER_NODE
    answer: dict[str, Any] = {"gpu_type": resources.get("gpu_type"), "gpus_per_node": per_node}
    for role in _ROLES:
        part = (recipe.get("roles") or {}).get(role) or {}
        nodes = _count(part.get("nodes", resources.get(f"{role}_nodes")))
        workers = _count(part.get("workers", resources.get(f"{role}_workers"))) or 0
        gpus = _count(part.get("gpus", resources.get(f"gpus_per_{role}")))
        if gpus is None and workers and nodes:
            gpus = nodes * per_node // workers
        elif gpus is None and workers and role == "decode" and nodes == 0:
            gpus = answer["gpus_per_prefill"]  # it shares the nodes of prefill
        answer[f"{role}_nodes"] = nodes
        answer[f"{role}_workers"] = workers
        answer[f"gpus_per_{role}"] = per_node if gpus is None else gpus
    return answer


def _count(value: object) -> int | None:
    """A count as the schema takes it: a number, digits, ``colocate`` (0), or nothing."""
    if value is None:
        return None
    return 0 if value == "colocate" else int(str(value))


def missing_result(output: Path, point: JobPoint) -> str:
    """Why a point failed although the orchestrator ended well; empty when it did not.

    Only sa-bench names its files by concurrency; other benchmarks are judged by the exit code.
    """
    if not _names_its_results(output, point):
        return ""
    name = re.compile(rf"results_concurrency_{point.concurrency}_.*\.json")
    found = [path for path in (output / "logs").rglob("results_*.json") if name.match(path.name)]
    if not found:
        return f"the benchmark left no result for concurrency {point.concurrency}"
    if not any(_completed(path) for path in found):
        return f"no request of concurrency {point.concurrency} was completed"
    return ""


def has_result(output: Path, point: JobPoint) -> bool:
    """Whether a point was surely measured, however the orchestrator ended."""
    return _names_its_results(output, point) and not missing_result(output, point)


def _names_its_results(output: Path, point: JobPoint) -> bool:
    recipe = read_document(output / "config.yaml").data
    return (
        point.concurrency is not None and (recipe.get("benchmark") or {}).get("type") == _SA_BENCH
    )


def _completed(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")).get("completed"))
    except (OSError, ValueError, AttributeError):
        return False
