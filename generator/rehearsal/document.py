"""A rehearsal as the document of ``pdrecipe rehearse --json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from generator.rehearsal.plan import MockEngines, RehearsalPlan
from generator.rehearsal.timing import Timing
from generator.rehearsal.verdict import RehearsedLoad, Verdict

VERSION = 1


def rehearsal_document(
    plan: RehearsalPlan,
    rehearsed: Sequence[RehearsedLoad],
    found: Sequence[Verdict],
    *,
    digest: str,
    timing: Timing,
    folder: str,
) -> dict[str, Any]:
    """Everything said of a rehearsal; speeds and times are simulated."""
    topology = plan.topology
    return {
        "version": VERSION,
        "origin": "rehearsal",
        "recipe": topology.recipe,
        "digest": digest,
        "folder": folder,
        "timing": str(timing.source),
        "slowdown": timing.slowdown,
        "scale": asdict(plan.scale),
        "lengths": {
            "recipe": {"isl": topology.isl, "osl": topology.osl},
            "rehearsed": asdict(plan.lengths),
        },
        "engines": [_engines(each) for each in plan.engines],
        "loads": [_load(each, verdict) for each, verdict in zip(rehearsed, found, strict=True)],
    }


def _engines(engines: MockEngines) -> dict[str, Any]:
    pool = engines.pool
    return {
        "role": pool.role,
        "layout": pool.layout,
        "workers": pool.workers,
        "data_ranks": pool.data_ranks,
        "recipe": {
            "requests_per_rank": float(pool.requests_per_rank),
            "basis": pool.basis,
            "block_tokens": pool.block_tokens,
            "max_num_seqs": pool.max_num_seqs,
            "max_num_batched_tokens": pool.max_num_batched_tokens,
        },
        "rehearsed": {
            "requests_per_rank": engines.requests_per_rank,
            "block_tokens": engines.block_tokens,
            "num_gpu_blocks": engines.num_gpu_blocks,
            "max_num_seqs": engines.max_num_seqs,
            "max_num_batched_tokens": engines.max_num_batched_tokens,
        },
    }


def _load(rehearsed: RehearsedLoad, verdict: Verdict) -> dict[str, Any]:
    load = rehearsed.load
    return {
        "concurrency": load.concurrency,
        "capacity": load.capacity,
        "in_flight": load.in_flight,
        "requests": load.requests,
        "measured": asdict(rehearsed.measured) if rehearsed.measured else None,
        "seen": asdict(rehearsed.seen),
        "verdict": {
            "outcome": str(verdict.outcome),
            "agrees_with_arithmetic": verdict.agrees_with_arithmetic,
            "reasons": list(verdict.reasons),
            "by_arithmetic": list(verdict.by_arithmetic),
        },
    }
