"""Layouts in the field's notation, and what is wrong with those that are not."""

from __future__ import annotations

import pytest

from generator.errors import InvalidInput
from generator.parallel import ParallelLayout, parse_layout, parse_pool


@pytest.mark.parametrize(
    ("text", "workers", "layout", "expert", "ranks", "canonical"),
    [
        ("TEP8", 1, ParallelLayout(tensor=8, expert_parallel=True), 8, 8, "1xTEP8"),
        ("DEP16", 1, ParallelLayout(data=16, expert_parallel=True), 16, 16, "1xDEP16"),
        (
            "TP2DP4+EP",
            1,
            ParallelLayout(tensor=2, data=4, expert_parallel=True),
            8,
            8,
            "1xTP2DP4+EP",
        ),
        ("TP1PP6+EP", 1, ParallelLayout(pipeline=6, expert_parallel=True), 1, 6, "1xTP1PP6+EP"),
        (
            "2xTP2DP4+EP",
            2,
            ParallelLayout(tensor=2, data=4, expert_parallel=True),
            8,
            8,
            "2xTP2DP4+EP",
        ),
        (
            "4xtp2dep4",
            4,
            ParallelLayout(tensor=2, data=4, expert_parallel=True),
            8,
            8,
            "4xTP2DP4+EP",
        ),
        ("TP8", 1, ParallelLayout(tensor=8), 1, 8, "1xTP8"),
        ("TP8+EP", 1, ParallelLayout(tensor=8, expert_parallel=True), 8, 8, "1xTEP8"),
        ("DP16+EP", 1, ParallelLayout(data=16, expert_parallel=True), 16, 16, "1xDEP16"),
        ("8xDEP2", 8, ParallelLayout(data=2, expert_parallel=True), 2, 2, "8xDEP2"),
        (
            " 1xTP4DP4+EP ",
            1,
            ParallelLayout(tensor=4, data=4, expert_parallel=True),
            16,
            16,
            "1xTP4DP4+EP",
        ),
    ],
)
def test_notation(
    text: str, workers: int, layout: ParallelLayout, expert: int, ranks: int, canonical: str
) -> None:
    pool = parse_pool(text)
    assert (pool.workers, pool.layout) == (workers, layout)
    assert (layout.expert, layout.ranks, pool.gpus) == (expert, ranks, workers * ranks)
    assert str(pool) == canonical
    assert parse_pool(canonical) == pool


def test_context_ranks_are_tensor_ranks() -> None:
    layout = parse_layout("TP8DCP2")
    assert (layout.decode_context, layout.ranks, str(layout)) == (2, 8, "TP8DCP2")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("2x", "it is one worker's layout and takes no worker count"),
        ("TP", "cannot read 'TP'"),
        ("TP8TP4", "TP is given twice"),
        ("TEP8TP2", "TP is given twice"),
        ("TP0", "a parallel size must be at least 1"),
        ("0xTP2", "the worker count must be at least 1"),
        ("TP8+TP", "only +EP may follow the sizes, not '+TP'"),
        ("TEP8+EP", "+EP is already part of TEP and DEP"),
        ("TP8 DP2", "cannot read ' DP2'"),
        ("FOO8", "cannot read 'FOO8'"),
        ("+EP", "it has no sizes"),
    ],
)
def test_wrong_notation(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_pool(text)
    (problem,) = error.value.problems
    assert reason in problem.message
    assert "write it like TEP8" in problem.hint


def test_ranks_text_names_only_what_multiplies() -> None:
    assert parse_layout("TP2DP4+EP").ranks_text == "TP2 x DP4"
    assert ParallelLayout().ranks_text == "TP1"
