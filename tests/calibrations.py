"""Logs of the article's runs and the engines they are of, for the tests of calibration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generator.calibration import (
    Calibration,
    EngineDescription,
    calibration_of,
    subject_of_description,
)
from generator.startup_log import StartupLog, read_startup_log
from generator.workload import Workload
from tests.composed_logs import (
    RUN_TERMS,
    RUNS,
    Terms,
    budget_line,
    graph_pool_line,
    kv_cache_line,
    tagged,
    weights_line,
)

REPOSITORY = Path(__file__).resolve().parent.parent
MODEL = "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
SPEC = "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
VERSION = "0.26.1rc1.dev1177+ga9a17e709"
LAYOUTS = {"TP8": "TEP8", "TP4DP4": "TP4DP4+EP"}


def log_of(tmp_path: Path, *lines: str) -> StartupLog:
    file = tmp_path / "worker.log"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_startup_log(file, "worker.log")


def start_up(terms: Terms, *, is_older: bool, tag: str = "Worker_TP0_EP0") -> Iterator[str]:
    """A worker's lines from loading to the budget."""
    messages = [
        weights_line(terms.weights),
        f"Estimated CUDA graph memory: {terms.graph_reserved:.2f} GiB total",
        kv_cache_line(terms.kv_cache),
        graph_pool_line(terms.graph_used, terms.graph_reserved),
        budget_line(terms, is_older=is_older),
    ]
    return (tagged(tag, "gpu_worker.py:1", message) for message in messages)


def described(
    repository: Path, layout: str | None = "TEP8", workload: Workload | None = None, **flags: Any
) -> EngineDescription:
    concurrency = flags.pop("concurrency", None)
    version = flags.pop("engine_version", VERSION)
    return EngineDescription(
        model=repository / MODEL,
        gpu="gb300",
        layout=layout,
        engine_version=version,
        workload=workload,
        concurrency=concurrency,
        flags={
            "kv_cache_dtype": "fp8",
            "mamba_ssm_cache_dtype": "bfloat16",
            "cudagraph_mode": "FULL_DECODE_ONLY",
            "enable_prefix_caching": False,
            "max_model_len": 10240,
            **flags,
        },
    )


def of_run(
    repository: Path,
    tmp_path: Path,
    number: int,
    *more: str,
    terms: Terms | None = None,
    **flags: Any,
) -> Calibration:
    """An article run's log under its own settings."""
    run = RUNS[number]
    log = log_of(tmp_path, *start_up(terms or RUN_TERMS[number], is_older=False), *more)
    return calibration_of(
        log, subject_of_description(run_description(repository, run, **flags), log)
    )


def run_description(repository: Path, run: dict[str, Any], **flags: Any) -> EngineDescription:
    settings = {
        "speculative_config.num_speculative_tokens": run["mtp"],
        "max_num_seqs": run["max_num_seqs"],
        "max_num_batched_tokens": run["max_num_batched_tokens"],
        "max_cudagraph_capture_size": run["max_num_seqs"] * (1 + run["mtp"]),
        "language_model_only": True,
        "all2all_backend": "flashinfer_nvlink_one_sided",
    }
    return described(repository, LAYOUTS[run["layout"]], **{**settings, **flags})


def findings_of(calibration: Calibration) -> dict[str, str]:
    return {finding.kind: finding.message for finding in calibration.findings}
