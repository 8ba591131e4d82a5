from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.engine.cuda_graphs import CudaGraphMode, plan_cuda_graphs
from generator.errors import InvalidInput

_CASES = json.loads(
    (Path(__file__).parent / "data" / "vllm_kv_cache_capture_sizes.json").read_text("utf-8")
)
_ROWS = [dict(zip(_CASES["columns"], row, strict=True)) for row in _CASES["rows"]]


def _sizes(runs: list[Any]) -> tuple[int, ...]:
    """Expand [first, last, step] runs."""
    return tuple(
        chain.from_iterable(
            [run] if isinstance(run, int) else range(run[0], run[1] + 1, run[2]) for run in runs
        )
    )


@pytest.mark.parametrize(
    "row", _ROWS, ids=lambda row: f"{row['row']}-{row['mode']}-{row['max_capture_size']}"
)
def test_vllm_captures_these_graphs(row: dict[str, Any]) -> None:
    plan = plan_cuda_graphs(
        CudaGraphMode(row["mode"]),
        max_num_seqs=row["max_num_seqs"],
        max_num_batched_tokens=row["max_num_batched_tokens"],
        default_max_size=512,
        max_capture_size=row["max_capture_size"],
        num_speculative_tokens=row["num_speculative_tokens"],
    )
    assert plan.listed_sizes == _sizes(row["listed"])
    assert plan.capture_sizes == _sizes(row["resolved"])
    assert plan.full_sizes == _sizes(row["full"])
    assert plan.piecewise_sizes == _sizes(row["piecewise"])
    assert plan.graphs == row["graphs"]


@pytest.mark.parametrize(
    ("run", "max_num_seqs", "max_num_batched_tokens", "mtp", "graphs"),
    [
        (1, 20, 96, 3, 11),
        (2, 32, 144, 3, 17),
        (3, 80, 336, 3, 37),
        (4, 272, 1104, 3, 85),
        (5, 80, 336, 3, 37),
        (6, 272, 1104, 3, 85),
        (7, 528, 544, 0, 52),
        (8, 656, 672, 0, 60),
    ],
)
def test_the_article_counted_these_graphs(
    run: int, max_num_seqs: int, max_num_batched_tokens: int, mtp: int, graphs: int
) -> None:
    plan = plan_cuda_graphs(
        CudaGraphMode.FULL_DECODE_ONLY,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        default_max_size=512,
        max_capture_size=max_num_seqs * (1 + mtp),
        num_speculative_tokens=mtp,
    )
    assert plan.graphs == graphs, f"run {run}"


def test_a_mode_says_which_kinds_are_captured() -> None:
    def plan(mode: CudaGraphMode) -> tuple[tuple[int, ...], tuple[int, ...]]:
        graphs = plan_cuda_graphs(
            mode,
            max_num_seqs=4,
            max_num_batched_tokens=64,
            default_max_size=512,
            max_capture_size=24,
            num_speculative_tokens=2,
        )
        return graphs.full_sizes, graphs.piecewise_sizes

    # Only where decode batches run as FULL graphs are sizes whole steps of 1 + 2 tokens; 24 is
    # beyond the 4 x 3 tokens of a decode batch.
    assert plan(CudaGraphMode.NONE) == ((), ())
    assert plan(CudaGraphMode.PIECEWISE) == ((), (1, 2, 4, 8, 16, 24))
    assert plan(CudaGraphMode.FULL) == ((3, 6, 9, 18, 24), ())
    assert plan(CudaGraphMode.FULL_DECODE_ONLY) == ((3, 6, 9), ())
    assert plan(CudaGraphMode.FULL_AND_PIECEWISE) == ((3, 6, 9), (3, 6, 9, 18, 24))


def test_a_size_rounded_beyond_the_largest_is_dropped() -> None:
    plan = plan_cuda_graphs(
        CudaGraphMode.FULL_DECODE_ONLY,
        max_num_seqs=16,
        max_num_batched_tokens=1024,
        default_max_size=512,
        max_capture_size=32,
        num_speculative_tokens=4,
    )
    assert plan.capture_sizes == (5, 10, 20, 25)


def test_the_token_budget_truncates_silently() -> None:
    plan = plan_cuda_graphs(
        CudaGraphMode.FULL_DECODE_ONLY,
        max_num_seqs=80,
        max_num_batched_tokens=100,
        default_max_size=512,
        max_capture_size=320,
        num_speculative_tokens=3,
    )
    assert plan.capture_sizes[-1] == 96


@pytest.mark.parametrize("largest", [512, 1024])
def test_a_size_nobody_set_has_a_ceiling_of_the_release_and_gpu(largest: int) -> None:
    plan = plan_cuda_graphs(
        CudaGraphMode.FULL_AND_PIECEWISE,
        max_num_seqs=1024,
        max_num_batched_tokens=8192,
        default_max_size=largest,
    )
    assert plan.capture_sizes[-1] == largest


@pytest.mark.parametrize(
    ("seqs", "tokens", "size", "mtp", "says"),
    [
        (0, 64, None, 0, "max-num-seqs must be at least 1, got 0"),
        (8, 0, None, 0, "max-num-batched-tokens must be at least 1, got 0"),
        (8, 64, -1, 0, "max-cudagraph-capture-size must be at least 1, got -1"),
        (8, 64, 2, 3, "no CUDA graph of at most 2 tokens holds one decode step of 4 tokens"),
    ],
)
def test_impossible_sizes_are_refused(
    seqs: int, tokens: int, size: int | None, mtp: int, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        plan_cuda_graphs(
            CudaGraphMode.FULL_DECODE_ONLY,
            max_num_seqs=seqs,
            max_num_batched_tokens=tokens,
            default_max_size=512,
            max_capture_size=size,
            num_speculative_tokens=mtp,
        )


@given(
    mode=st.sampled_from(CudaGraphMode),
    seqs=st.integers(1, 2048),
    tokens=st.integers(8, 16384),
    size=st.none() | st.integers(8, 4096),
    mtp=st.integers(0, 7),
)
def test_sizes_ascend_within_the_budget_in_whole_steps(
    mode: CudaGraphMode, seqs: int, tokens: int, size: int | None, mtp: int
) -> None:
    plan = plan_cuda_graphs(
        mode,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        default_max_size=512,
        max_capture_size=size,
        num_speculative_tokens=mtp,
    )
    sizes = plan.capture_sizes
    assert sizes == tuple(sorted(set(sizes)))
    assert all(captured <= min(tokens, size or tokens) for captured in sizes)
    assert set(plan.full_sizes) | set(plan.piecewise_sizes) <= set(sizes)
    assert all(captured % (1 + mtp) == 0 for captured in plan.full_sizes)
    if mode is CudaGraphMode.FULL_DECODE_ONLY:
        assert all(1 + mtp <= captured <= seqs * (1 + mtp) for captured in plan.full_sizes)
