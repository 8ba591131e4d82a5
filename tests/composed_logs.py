"""Start-up logs composed in vLLM's line formats from figures: none of them is a real log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
LOGS = DATA / "logs"
CYAN, RESET = "\x1b[36m", "\x1b[0;0m"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The memory terms of one GPU in GiB, as the article's tables have them."""

    total: float
    utilization: float
    cuda_context: float
    non_torch: float
    weights: float
    peak_activation: float
    graph_reserved: float
    graph_used: float
    kv_cache: float

    @property
    def requested(self) -> float:
        return self.total * self.utilization


def article_terms(run: dict[str, Any], gpu: dict[str, Any]) -> Terms:
    names = (
        "cuda_context",
        "non_torch",
        "weights",
        "peak_activation",
        "graph_reserved",
        "graph_used",
        "kv_cache",
    )
    return Terms(
        total=gpu["total_gib"],
        utilization=gpu["gpu_memory_utilization"],
        **{name: run[name] for name in names},
    )


ARTICLE: dict[str, Any] = json.loads((DATA / "published" / "qwen38_article.json").read_text())
RUNS: dict[int, dict[str, Any]] = {run["run"]: run for run in ARTICLE["runs"]}
RUN_TERMS = {number: article_terms(run, ARTICLE["gpu"]) for number, run in RUNS.items()}


def gib(value: float) -> str:
    """As vLLM prints most sizes: rounded to two decimals, a trailing zero dropped."""
    return str(round(value, 2))


def tagged(tag: str, where: str, message: str, *, colour: bool = False) -> str:
    """One line of a process; an empty tag leaves it out."""
    start, end = (CYAN, RESET) if colour else ("", "")
    prefix = f"{start}({tag} pid={sum(map(ord, tag))}){end} " if tag else ""
    return f"{prefix}INFO 08-14 09:10:00 [{where}] {message}"


def weights_line(weights: float) -> str:
    return f"Model loading took {gib(weights)} GiB memory and 214.612345 seconds"


def block_line(tokens: int) -> str:
    return (
        f"Setting attention block size to {tokens} tokens to ensure that attention page size is"
        " >= mamba page size."
    )


def padding_line(percent: float) -> str:
    return (
        f"Padding mamba page size by {percent:.2f}% to ensure that mamba page size and attention"
        " page size are exactly equal."
    )


def kv_cache_line(size: float) -> str:
    return f"Available KV cache memory: {gib(size)} GiB"


def capacity_lines(tokens: int | None, length: int | None, requests: float | None) -> Iterator[str]:
    """Up to 0.32 the size and the concurrency are two lines."""
    if tokens is not None:
        yield f"GPU KV cache size: {tokens:,} tokens"
    if length is not None and requests is not None:
        yield f"Maximum concurrency for {length:,} tokens per request: {requests:.2f}x"


def one_capacity_line(tokens: int, length: int, requests: float) -> str:
    """The same from 0.33 on."""
    return ", ".join(capacity_lines(tokens, length, requests))


def refusal_line(length: int, needed: float, available: float, longest: int | None) -> str:
    estimate = (
        f"Based on the available memory, the estimated maximum model length is {longest}. "
        if longest
        else ""
    )
    return (
        f"ValueError: To serve at least one request with the model's max seq len ({length}),"
        f" ({gib(needed)} GiB KV cache is needed, which is larger than the available KV cache"
        f" memory ({gib(available)} GiB). {estimate}Try increasing `gpu_memory_utilization`."
    )


def graph_pool_line(used: float, estimate: float) -> str:
    difference = abs(estimate - used)
    return (
        f"CUDA graph pool memory: {gib(used)} GiB (actual), {gib(estimate)} GiB (estimated),"
        f" difference: {gib(difference)} GiB ({100 * difference / max(used, 0.01):.1f}%)."
    )


def budget_line(terms: Terms, *, is_older: bool) -> str:
    """The last line: up to 0.26 it lists weights and non-torch memory, later both together."""
    if is_older:
        usage = (
            f"{gib(terms.weights)} GiB for weight, {gib(terms.peak_activation)} GiB for peak"
            f" activation, {gib(terms.non_torch)} GiB for non-torch memory, and"
            f" {gib(terms.graph_used)} GiB for CUDAGraph memory."
        )
    else:
        usage = (
            f"{gib(terms.weights + terms.non_torch)} GiB for consumed memory (weights +"
            f" non-torch), {gib(terms.peak_activation + terms.graph_reserved)} GiB for peak"
            f" activation, and {gib(terms.graph_used)} GiB for CUDAGraph memory."
        )
    counted = terms.graph_used - terms.graph_reserved if is_older else terms.graph_used
    suggested = terms.kv_cache - counted - 150 / 1024
    return (
        f"Free memory on device ({gib(terms.total - terms.cuda_context)}/{gib(terms.total)} GiB)"
        f" on startup. Desired GPU memory utilization is ({terms.utilization},"
        f" {gib(terms.requested)} GiB). Actual usage is {usage} Replace gpu_memory_utilization"
        f" config with `--kv-cache-memory={round(suggested * 2**30)}` ({gib(suggested)} GiB) to"
        f" fit into requested memory, or `--kv-cache-memory={round((suggested + 19) * 2**30)}`"
        f" ({gib(suggested + 19)} GiB) to fully utilize gpu memory. Current kv cache memory in"
        f" use is {gib(terms.kv_cache)} GiB."
    )


def engine_line(version: str, **config: Any) -> str:
    """The engine's own description: ``config`` is what it says of itself, spelled as it does."""
    written = ", ".join(f"{name}={value}" for name, value in config.items())
    return f"Initializing a V1 LLM engine (v{version}) with config: {written}"


def compilation_config(mode: str, sizes: list[int]) -> str:
    """As ``compilation_config=`` prints it: a dict with enumeration members in it."""
    return (
        f"{{'mode': <CompilationMode.VLLM_COMPILE: 3>, 'cudagraph_mode': <CUDAGraphMode.{mode}:"
        f" (2, 0)>, 'cudagraph_capture_sizes': {sizes}, 'max_cudagraph_capture_size':"
        f" {max(sizes)}}}"
    )
