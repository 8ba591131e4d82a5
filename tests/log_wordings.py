"""Every wording of vLLM's start-up lines, with what is to be read from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from generator.startup_log import GraphGroup, StartupLog, read_startup_log
from generator.units import parse_bytes
from tests.composed_logs import (
    RUN_TERMS,
    block_line,
    budget_line,
    compilation_config,
    engine_line,
    graph_pool_line,
    kv_cache_line,
    one_capacity_line,
    padding_line,
    refusal_line,
    weights_line,
)


def read(tmp_path: Path, *lines: str | bytes, ending: bytes = b"\n") -> StartupLog:
    """The log of these lines."""
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    file = tmp_path / "worker.log"
    file.write_bytes(ending.join(raw) + ending)
    return read_startup_log(file, "worker.log")


def gib(text: str) -> int:
    return parse_bytes(f"{text} GiB")


WORDINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "weights": (weights_line(107.51), {"weights_bytes": gib("107.51")}),
    "weights, second model runner": (
        "Model loading took 83.0 GiB and 12.345678 seconds",
        {"weights_bytes": gib("83")},
    ),
    "block size": (block_line(2112), {"block_tokens": 2112}),
    "padding": (padding_line(0.19), {"padding_percent": 0.19}),
    "graphs": (
        "Profiling CUDA graph memory: PIECEWISE=19 (largest=128), FULL=11 (largest=64)",
        {
            "graph_groups": (
                GraphGroup(kind="PIECEWISE", graphs=19, largest_tokens=128),
                GraphGroup(kind="FULL", graphs=11, largest_tokens=64),
            )
        },
    ),
    "graph estimate": (
        "Estimated CUDA graph memory: 33.06 GiB total",
        {"graph_estimate_bytes": gib("33.06")},
    ),
    "graph estimate subtracted": (
        "CUDA graph memory profiling is enabled (default since v0.21.0). The current",
        {"is_estimate_subtracted": True},
    ),
    "graph estimate not subtracted": (
        "CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0).",
        {"is_estimate_subtracted": False},
    ),
    "graph estimate not yet subtracted": (
        "In v0.19, CUDA graph memory profiling will be enabled by default",
        {"is_estimate_subtracted": False},
    ),
    "KV cache": (kv_cache_line(83.0), {"kv_cache_bytes": gib("83")}),
    "KV cache as given": (
        (
            "Initial free memory 31.17 GiB, reserved 1.62 GiB memory for KV Cache as specified by"
            " kv_cache_memory_bytes config and skipped memory profiling."
        ),
        {"kv_cache_as_given_bytes": gib("1.62")},
    ),
    "KV cache after a reserve": (
        (
            "Reserving 2.0 GiB of GPU memory for frontend multimodal decoding (1.0 GiB raw-frame"
            " semaphore budget); KV cache memory reduced to 81.0 GiB."
        ),
        {"kv_cache_reduced_bytes": gib("81")},
    ),
    "capacity in one line": (
        one_capacity_line(7402240, 10240, 722.875),
        {"kv_cache_tokens": 7402240, "max_model_len": 10240, "concurrency": 722.88},
    ),
    "capacity in one line, and a host pool": (
        (
            "GPU + host KV cache size: 9,000 tokens, Maximum concurrency for 900 tokens per"
            " request: 10.00x"
        ),
        {"max_model_len": 900, "concurrency": 10.0},
    ),
    "blocks overridden": (
        "Overriding num_gpu_blocks=5783 with num_gpu_blocks_override=512",
        {"num_blocks": 512},
    ),
    "graphs captured": (
        "Graph capturing finished in 23 secs, took 7.51 GiB",
        {"graph_used_bytes": gib("7.51")},
    ),
    "graph pool": (
        graph_pool_line(7.51, 8.29),
        {"graph_used_bytes": gib("7.51"), "graph_estimate_bytes": gib("8.29")},
    ),
    "graph pool that shrank": (
        graph_pool_line(-0.19, 2.43),
        {"graph_used_bytes": -gib("0.19"), "graph_estimate_bytes": gib("2.43")},
    ),
    "budget": (
        budget_line(RUN_TERMS[7], is_older=False),
        {
            "free_bytes": gib("273.49"),
            "total_bytes": gib("276.62"),
            "gpu_memory_utilization": 0.92,
            "requested_bytes": gib("254.49"),
            "consumed_bytes": gib("110.41"),
            "peak_with_graphs_bytes": gib("10.12"),
            "graph_used_bytes": gib("7.51"),
            "kv_cache_bytes": gib("133.96"),
            "suggested_kv_cache_bytes": 135617367245,
        },
    ),
    "budget, older": (
        budget_line(RUN_TERMS[7], is_older=True),
        {
            "free_bytes": gib("273.49"),
            "total_bytes": gib("276.62"),
            "gpu_memory_utilization": 0.92,
            "requested_bytes": gib("254.49"),
            "weights_bytes": gib("107.51"),
            "peak_activation_bytes": gib("1.83"),
            "non_torch_bytes": gib("2.90"),
            "graph_used_bytes": gib("7.51"),
            "kv_cache_bytes": gib("133.96"),
            "suggested_kv_cache_bytes": 144518686966,
        },
    ),
    "budget without suggestions": (
        (
            "Free memory on device (191.36/191.69 GiB) on startup. Desired GPU memory utilization"
            " is (0.9, 172.52 GiB). Actual usage is 11.88 GiB for consumed memory (weights +"
            " non-torch), 5.59 GiB for peak activation, and 3.9 GiB for CUDAGraph memory. Current"
            " kv cache memory in use is 155.04 GiB."
        ),
        {
            "free_bytes": gib("191.36"),
            "total_bytes": gib("191.69"),
            "gpu_memory_utilization": 0.9,
            "requested_bytes": gib("172.52"),
            "consumed_bytes": gib("11.88"),
            "peak_with_graphs_bytes": gib("5.59"),
            "graph_used_bytes": gib("3.9"),
            "kv_cache_bytes": gib("155.04"),
        },
    ),
    "too little free memory": (
        (
            "ValueError: Free memory on device cuda:0 (27.28/31.86 GiB) on startup is less than"
            " desired GPU memory utilization (0.97, 30.9 GiB). Decrease GPU memory utilization"
        ),
        {
            "free_bytes": gib("27.28"),
            "total_bytes": gib("31.86"),
            "gpu_memory_utilization": 0.97,
            "requested_bytes": gib("30.9"),
        },
    ),
    "refusal": (
        refusal_line(262144, 9.29, 9.28, 260800),
        {
            "refused_tokens": 262144,
            "needed_bytes": gib("9.29"),
            "kv_cache_bytes": gib("9.28"),
            "longest_request_tokens": 260800,
        },
    ),
    "refusal without an estimate": (
        refusal_line(262144, 62.0, 0.5, None).replace("model's", "models's"),
        {
            "refused_tokens": 262144,
            "needed_bytes": gib("62"),
            "kv_cache_bytes": gib("0.5"),
        },
    ),
}

CONFIG = engine_line(
    "0.26.0",
    model="'/models/m'",
    speculative_config="SpeculativeConfig(method='mtp', model='draft', num_spec_tokens=3)",
    max_seq_len=10240,
    tensor_parallel_size=4,
    pipeline_parallel_size=1,
    data_parallel_size=4,
    decode_context_parallel_size=1,
    kv_cache_dtype="fp8",
    enable_prefix_caching=False,
    compilation_config=compilation_config("FULL_AND_PIECEWISE", [4, 8, 16]),
)
ARGUMENTS = (
    "non-default args: {'model_tag': '/models/m', 'max_num_seqs': 528,"
    " 'gpu_memory_utilization': 0.9, 'enable_expert_parallel': True, 'max_model_len': 1,"
    " 'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 2}, 'seed': None,"
    " 'mamba_ssm_cache_dtype': 'bfloat16', 'compilation_config': {'cudagraph_mode': 'FULL'}}"
)
