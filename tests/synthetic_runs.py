"""The runs in tests/data/runs: folders as srt-slurm leaves them, figures of a stated model.

None was measured. The model is that of synthetic_points; sa-bench's summaries are written without
their raw lists. One point failed too many of its requests, as such things happen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.results.distribution import Distribution
from generator.results.point import MeasuredPoint
from tests.synthetic_points import Deployment, synthetic_point

RECIPES = Path("recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg/v2")
FAILED_SHARE = 0.09


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job: its recipe, its loads, what its engines do, and the load that failed, if one did."""

    recipe: str
    loads: tuple[int, ...]
    base_ms: float
    per_sequence_ms: float
    failed: int | None = None


RUNS = {
    9001: Run(
        recipe="1xtp4dep2-1xtp8-mtp-cc8-16", loads=(8, 16), base_ms=5.2, per_sequence_ms=0.11
    ),
    9002: Run(
        recipe="1xtp2dep4-1xtp8-mtp-cc32-64", loads=(32, 64), base_ms=5.2, per_sequence_ms=0.11
    ),
    9003: Run(
        recipe="1xtp2dep4-1xtp4dep4-mtp-cc128", loads=(128,), base_ms=6.4, per_sequence_ms=0.052
    ),
    9004: Run(
        recipe="3xtp2dep4-1xtp4dep4-mtp-cc1024", loads=(1024,), base_ms=6.4,
        per_sequence_ms=0.052, failed=1024,
    ),
    9005: Run(
        recipe="4xtp2dep4-1xtp4dep4-cc2560", loads=(2560,), base_ms=11.5, per_sequence_ms=0.018
    ),
}  # fmt: skip


def run_files(repository: Path) -> Iterator[tuple[Path, str]]:
    """Every file of the runs, by its path below tests/data/runs."""
    for job, run in RUNS.items():
        recipe = repository / RECIPES / f"{run.recipe}.yaml"
        yield Path(str(job), "config.yaml"), recipe.read_text("utf-8")
        for load in run.loads:
            report = _report(run, load)
            name = f"results_concurrency_{load}_gpus_0_ctx_0_gen_0.json"
            path = Path(str(job), "logs", "sa-bench_isl_8192_osl_1024", name)
            yield path, json.dumps(report, indent=1) + "\n"


def _report(run: Run, load: int) -> dict[str, Any]:
    deployment = Deployment(
        configuration="",
        base_ms=run.base_ms,
        per_sequence_ms=run.per_sequence_ms,
        prefill_ms=400,
        capacity=2880,
    )
    point = synthetic_point(deployment, load)
    completed = point.requests.completed
    failed = round(completed * FAILED_SHARE) if load == run.failed else 0
    return {
        "date": "20261130-120000",
        "backend": "dynamo",
        "tokenizer_id": "/model",
        "num_prompts": completed + failed,
        "request_rate": "inf",
        "max_concurrency": load,
        "duration": round(point.duration_s, 3),
        "completed": completed,
        "total_input_tokens": point.tokens.input,
        "total_output_tokens": point.tokens.output,
        **_latencies(point),
    }


def _latencies(point: MeasuredPoint) -> dict[str, float]:
    named = {
        "ttft": point.latencies.ttft,
        "tpot": point.latencies.tpot,
        "e2el": point.latencies.end_to_end,
    }
    return {
        f"{figure}_{name}_ms": round(value, 3)
        for name, latency in named.items()
        if latency is not None
        for figure, value in _figures(latency)
    }


def _figures(latency: Distribution) -> Iterator[tuple[str, float]]:
    yield "mean", latency.mean
    for figure, percent in (("median", 50), ("p99", 99)):
        value = latency.percentile(percent)
        if value is not None:
            yield figure, value
