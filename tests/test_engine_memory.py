"""The memory account: its sum, how sure it is of it, and which term does not fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.capacity.engine_memory import (
    Basis,
    MemoryItem,
    StartupTerms,
    account_engine_memory,
    utilization_for,
)
from generator.errors import NothingFits
from generator.units import GIB, gib, parse_bytes

ARTICLE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "published" / "qwen38_article.json").read_text()
)
RUNS: list[dict[str, Any]] = ARTICLE["runs"]


def item(size_gib: float, basis: Basis = Basis.MEASURED, more: float = 0) -> MemoryItem:
    return MemoryItem(
        bytes_per_rank=parse_bytes(f"{size_gib} GiB"),
        basis=basis,
        uncertainty_bytes=parse_bytes(f"{more} GiB"),
    )


# 100 GiB at 0.9 are 90 GiB; 60 + 4 + 5 + 1 of it are spent, which leaves 20.
TERMS = StartupTerms(
    total=item(100),
    cuda_context=item(3),
    weights=item(60),
    non_torch=item(4),
    peak_activation=item(5),
    cuda_graphs=item(1),
)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"run {run['run']}")
def test_terms_of_the_article_leave_its_kv_cache(run: dict[str, Any]) -> None:
    terms = StartupTerms(
        total=item(ARTICLE["gpu"]["total_gib"]),
        cuda_context=item(run["cuda_context"]),
        weights=item(run["weights"]),
        non_torch=item(run["non_torch"]),
        peak_activation=item(run["peak_activation"]),
        cuda_graphs=item(run["graph_reserved"]),
    )
    memory = account_engine_memory(terms, ARTICLE["gpu"]["gpu_memory_utilization"])
    assert gib(memory.kv_cache.bytes_per_rank) == pytest.approx(run["kv_cache"], abs=0.02)
    assert memory.kv_cache.basis is Basis.COMPUTED


def test_account_closes_to_the_byte() -> None:
    memory = account_engine_memory(TERMS, 0.9)
    spent = sum(term.bytes_per_rank for term in TERMS.spent.values())
    assert memory.requested_bytes_per_rank == 90 * GIB
    assert memory.kv_cache.bytes_per_rank + spent == memory.requested_bytes_per_rank
    assert memory.kv_cache.bytes_per_rank == 20 * GIB


def test_context_is_no_part_of_the_engines_share() -> None:
    larger = replace(TERMS, cuda_context=item(9))
    assert account_engine_memory(larger, 0.9).kv_cache == account_engine_memory(TERMS, 0.9).kv_cache


def test_request_is_rounded_up_to_a_byte() -> None:
    odd = replace(TERMS, total=MemoryItem(bytes_per_rank=100 * GIB + 1, basis=Basis.MEASURED))
    assert account_engine_memory(odd, 0.9).requested_bytes_per_rank == 90 * GIB + 1


# --- how it is known --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "basis", "expected"),
    [
        ("weights", Basis.COMPUTED, Basis.COMPUTED),
        ("weights", Basis.ASSUMED, Basis.ASSUMED),
        ("non_torch", Basis.ASSUMED, Basis.ASSUMED),
        ("peak_activation", Basis.ASSUMED, Basis.ASSUMED),
        ("cuda_graphs", Basis.ASSUMED, Basis.ASSUMED),
        ("total", Basis.ASSUMED, Basis.ASSUMED),
        ("cuda_context", Basis.ASSUMED, Basis.COMPUTED),
    ],
)
def test_kv_cache_is_as_sure_as_its_terms(term: str, basis: Basis, expected: Basis) -> None:
    before = getattr(TERMS, term)
    terms = replace(TERMS, **{term: replace(before, basis=basis)})
    assert account_engine_memory(terms, 0.9).kv_cache.basis is expected


def test_uncertainties_add_up() -> None:
    terms = replace(
        TERMS,
        cuda_context=item(3, Basis.ASSUMED, 9),
        peak_activation=item(5, Basis.ASSUMED, 2),
        cuda_graphs=item(1, Basis.ASSUMED, 0.5),
    )
    assert account_engine_memory(terms, 0.9).kv_cache.uncertainty_bytes == 2.5 * GIB


def test_given_kv_cache_replaces_the_remainder() -> None:
    memory = account_engine_memory(TERMS, 0.9, kv_cache_bytes_per_rank=7)
    assert memory.kv_cache == MemoryItem(bytes_per_rank=7, basis=Basis.MEASURED)


def test_given_kv_cache_needs_no_room_for_the_terms() -> None:
    heavy = replace(TERMS, weights=item(1000))
    assert account_engine_memory(heavy, 0.9, kv_cache_bytes_per_rank=7).terms == heavy


# --- what does not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("utilization", "terms", "crossing"),
    [
        (0.6, TERMS, "weights"),
        (0.64, TERMS, "non-torch memory"),
        (0.69, TERMS, "peak activation"),
        (0.7, TERMS, "CUDA graphs"),
        (0.9, replace(TERMS, weights=item(90)), "weights"),
        (0.9, replace(TERMS, cuda_graphs=item(21)), "CUDA graphs"),
        (1.0, replace(TERMS, peak_activation=item(50)), "peak activation"),
    ],
)
def test_term_that_does_not_fit(utilization: float, terms: StartupTerms, crossing: str) -> None:
    with pytest.raises(NothingFits) as error:
        account_engine_memory(terms, utilization)
    (problem,) = error.value.problems
    assert problem.message.startswith(
        f"no room for {crossing}: 100.00 GiB x {utilization:g} = {100 * utilization:.2f} GiB"
    )
    for name, term in terms.spent.items():
        assert f"{name} {gib(term.bytes_per_rank):.2f} GiB" in problem.message


def test_one_byte_is_a_kv_cache() -> None:
    left = replace(TERMS.cuda_graphs, bytes_per_rank=21 * GIB - 1)
    assert account_engine_memory(replace(TERMS, cuda_graphs=left), 0.9).kv_cache.bytes_per_rank == 1


# --- the way back -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kv_cache_gib", "utilization"), [(20, 0.9), (20.5, 0.905), (1, 0.71), (30, 1.0)]
)
def test_least_utilization_for_a_kv_cache(kv_cache_gib: float, utilization: float) -> None:
    terms = replace(TERMS, cuda_context=item(0))
    wanted = parse_bytes(f"{kv_cache_gib} GiB")
    assert utilization_for(terms, wanted) == utilization
    assert account_engine_memory(terms, utilization).kv_cache.bytes_per_rank >= wanted
    assert account_engine_memory(terms, utilization - 0.0001).kv_cache.bytes_per_rank < wanted


def test_no_utilization_takes_the_context_away() -> None:
    assert utilization_for(TERMS, 27 * GIB) == 0.97
    assert utilization_for(TERMS, 27 * GIB + GIB // 100) is None
