"""Run folders as srt-slurm leaves them, with figures of a stated model; none was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.swept_recipes import V2

REQUESTS = 8
TOKENS = 5
TTFT_S = 0.1
GAP_S = 0.01
DURATION_S = 2.0
SA_BENCH_FOLDER = "logs/sa-bench_isl_8192_osl_1024"


def sa_bench(concurrency: Any = 4, **changes: Any) -> dict[str, Any]:
    """A report in which the first of 5 tokens takes 100 ms and each other one 10 ms."""
    report = {
        "date": "20261130-001551",
        "backend": "dynamo",
        "tokenizer_id": "/model",
        "num_prompts": REQUESTS,
        "request_rate": "inf",
        "max_concurrency": concurrency,
        "duration": DURATION_S,
        "completed": REQUESTS,
        "total_input_tokens": 100 * REQUESTS,
        "total_output_tokens": TOKENS * REQUESTS,
        "input_lens": [100] * REQUESTS,
        "output_lens": [TOKENS] * REQUESTS,
        "ttfts": [TTFT_S] * REQUESTS,
        "itls": [[GAP_S] * (TOKENS - 1)] * REQUESTS,
        "errors": [""] * REQUESTS,
        "mean_ttft_ms": 100.0,
        "median_ttft_ms": 100.0,
        "mean_tpot_ms": 10.0,
        "median_tpot_ms": 10.0,
        "p99_tpot_ms": 10.0,
        "mean_e2el_ms": 140.0,
    }
    merged = {**report, **changes}
    return {key: value for key, value in merged.items() if value is not ...}


def without_lists(**changes: Any) -> dict[str, Any]:
    """A report that has the summary alone."""
    lists = ("input_lens", "output_lens", "ttfts", "itls", "errors")
    return sa_bench(**dict.fromkeys(lists, ...), **changes)


def aiperf(concurrency: Any = 16, **changes: Any) -> dict[str, Any]:
    """AIPerf's summary of 128 requests in 6 s; ``changes`` replace whole metrics."""
    figures = {
        "request_count": ("requests", 128.0),
        "request_error_rate": ("%", 0.0),
        "benchmark_duration": ("sec", 6.0),
        "total_isl": ("tokens", 34_816.0),
        "total_osl": ("tokens", 8_192.0),
        "total_usage_prompt_tokens": ("tokens", 34_816.0),
        "total_usage_completion_tokens": ("tokens", 8_192.0),
        "output_token_throughput_per_user": ("tokens/sec/user", 110.0),
        "time_to_first_token": ("ms", 120.0),
        "inter_token_latency": ("ms", 9.0),
        "inter_chunk_latency": ("ms", 9.0),
        "request_latency": ("ms", 687.0),
    }
    metrics = {name: {"unit": unit, "avg": mean} for name, (unit, mean) in figures.items()}
    metrics["inter_token_latency"] |= {"p50": 8.0, "count": 128}
    phases = [
        {"kind": "warmup", "type": "concurrency", "exclude_from_results": True},
        {"kind": "profiling", "type": "concurrency", "concurrency": concurrency},
    ]
    return {
        "aiperf_version": "0.13.0",
        "input_config": {"phases": phases, "tokenizer": {"name": "/model"}},
        "was_cancelled": False,
        "is_complete": True,
        "start_time": "2026-11-30T00:17:33.716990",
        "end_time": "2026-11-30T00:17:39.716677",
        **metrics,
        **changes,
    }


def aiperf_row(phase: str = "profiling", **changes: Any) -> dict[str, Any]:
    """One request of 3 tokens: 100 ms to the first, then 10 ms and 20 ms."""
    metrics = {
        "time_to_first_token": {"value": 100.0, "unit": "ms"},
        "request_latency": {"value": 130.0, "unit": "ms"},
        "output_sequence_length": {"value": 3, "unit": "tokens"},
        "inter_chunk_latency": {"value": [10.0, 20.0], "unit": "ms"},
    }
    metadata = {
        "benchmark_phase": phase,
        "request_start_ns": 1_000_000_000,
        "request_end_ns": 1_130_000_000,
        "was_cancelled": False,
    }
    return {"metadata": {**metadata, **changes}, "metrics": metrics}


def write_run(folder: Path, *reports: dict[str, Any], recipe: str = V2) -> Path:
    """A run folder with its recipe and a file for each report of sa-bench."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(recipe, encoding="utf-8")
    for report in reports:
        name = f"results_concurrency_{report.get('max_concurrency')}_gpus_16_ctx_8_gen_8.json"
        write_json(folder / SA_BENCH_FOLDER / name, report)
    return folder


def write_json(path: Path, document: object) -> Path:
    """A JSON file in a folder that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
