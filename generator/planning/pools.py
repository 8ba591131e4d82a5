"""Worker pools of each role as arrays, without those that others beat in everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generator.planning.latency import Limits
from generator.planning.numbers import Array
from generator.planning.phases import DecodePhase, PrefillPhase
from generator.units import ceil_div

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPools:
    """Pools of prefill workers that pair with the same decode engines.

    Pool i has ``workers[i]`` of ``phases[phase[i]]`` on ``nodes[i]`` nodes. ``count_by_nodes`` is
    of all pools there were, also those that others beat.
    """

    phases: tuple[PrefillPhase, ...]
    phase: Indices
    workers: Indices
    nodes: Indices
    prompts_per_s: Array
    alone_s: Array
    transfer_s: Array
    count_by_nodes: Indices


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePools:
    """The same of decode workers; ``tpot_s[i, j]`` is at ``concurrency[i, j]``.

    It is infinite where a worker does not hold so much, or a data rank would have nothing to do.
    ``count_by_nodes`` counts a pool once for each of its concurrencies.
    """

    phases: tuple[DecodePhase, ...]
    phase: Indices
    workers: Indices
    nodes: Indices
    concurrency: Indices
    tpot_s: Array
    transfer_s: Array
    count_by_nodes: Indices


def prefill_pools(
    phases: Sequence[PrefillPhase], most_nodes: int, gpus_per_node: int
) -> PrefillPools:
    """Every count of workers of every engine on at most so many nodes.

    Pools that others beat, and engines before them, are left out: with no more nodes another is as
    fast for a prompt alone and at least as fast in all.
    """
    everything = _Counted.of(
        [each.engine.layout.ranks for each in phases], most_nodes, gpus_per_node
    )
    rates = np.array([each.prompts_per_s for each in phases])
    alone = np.array([each.alone_s for each in phases])
    transfer = np.array([each.transfer_s for each in phases])
    size = [_nodes_per_worker(each.engine.layout.ranks, gpus_per_node) for each in phases]
    engines = unbeaten(np.column_stack([size, -rates, alone, transfer]))
    counted = everything.kept(np.flatnonzero(np.isin(everything.phase, engines)))
    pool_rates = rates[counted.phase] * counted.workers
    counted = counted.kept(
        unbeaten(
            np.column_stack(
                [counted.nodes, -pool_rates, alone[counted.phase], transfer[counted.phase]]
            )
        )
    )
    return PrefillPools(
        phases=tuple(phases),
        phase=counted.phase,
        workers=counted.workers,
        nodes=counted.nodes,
        prompts_per_s=rates[counted.phase] * counted.workers,
        alone_s=alone[counted.phase],
        transfer_s=transfer[counted.phase],
        count_by_nodes=np.bincount(everything.nodes, minlength=most_nodes + 1),
    )


def decode_pools(
    phases: Sequence[DecodePhase],
    limits: Sequence[int],
    per_worker: Indices,
    most_nodes: int,
    gpus_per_node: int,
    latency: Limits,
) -> DecodePools:
    """Every count of workers of every engine on at most so many nodes.

    ``limits`` are the most requests of one worker, ``per_worker`` the concurrencies of
    ``DecodePhase.tpot_s``. An engine that another beats is left out, in any number: one that takes
    no more nodes, holds as much, and is as fast at every concurrency. Not where TTFT is limited:
    of the same concurrency, faster decode leaves more to wait for prefill.
    """
    ranks = [each.engine.layout.ranks for each in phases]
    fastest = np.array(
        [
            np.where(
                (per_worker >= each.engine.layout.data) & (per_worker <= most), each.tpot_s, np.inf
            )
            for each, most in zip(phases, limits, strict=True)
        ]
    )
    transfer = np.array([each.transfer_s for each in phases])
    everything = _Counted.of(ranks, most_nodes, gpus_per_node)
    concurrencies = np.isfinite(fastest).sum(axis=1)
    size = [_nodes_per_worker(each, gpus_per_node) for each in ranks]
    counted = everything
    if not latency.bounds_ttft:
        engines = unbeaten(np.column_stack([size, transfer, fastest]))
        counted = everything.kept(np.flatnonzero(np.isin(everything.phase, engines)))
    return DecodePools(
        phases=tuple(phases),
        phase=counted.phase,
        workers=counted.workers,
        nodes=counted.nodes,
        concurrency=counted.workers[:, None] * per_worker,
        tpot_s=fastest[counted.phase],
        transfer_s=transfer[counted.phase],
        count_by_nodes=np.bincount(
            everything.nodes, weights=concurrencies[everything.phase], minlength=most_nodes + 1
        ).astype(np.int64),
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """Engines in every number: which, how many, and on how many nodes."""

    phase: Indices
    workers: Indices
    nodes: Indices

    @classmethod
    def of(cls, ranks: Sequence[int], most_nodes: int, gpus_per_node: int) -> _Counted:
        """By placement's rule: whole nodes each, or as many on one node as go on it."""
        phase, workers, nodes = [], [], []
        for index, size in enumerate(ranks):
            on_node = max(1, gpus_per_node // size)
            of_worker = ceil_div(size, gpus_per_node)
            count = np.arange(1, most_nodes * on_node // of_worker + 1)
            phase.append(np.full_like(count, index))
            workers.append(count)
            nodes.append(-(-count // on_node) * of_worker)
        return cls(np.concatenate(phase), np.concatenate(workers), np.concatenate(nodes))

    def kept(self, indices: Indices) -> _Counted:
        return _Counted(self.phase[indices], self.workers[indices], self.nodes[indices])


def _nodes_per_worker(ranks: int, gpus_per_node: int) -> float:
    """Nodes of a worker, or the share of one where several go on it."""
    return ceil_div(ranks, gpus_per_node) / max(1, gpus_per_node // ranks)


def unbeaten(rows: Array) -> Indices:
    """The rows that no other is at most equal to in every column; of equal rows the first."""
    kept = np.zeros(len(rows), dtype=np.int64)
    count = 0
    for index in np.lexsort(rows.T[::-1]):
        # What beats a row sorts before it, and so does what beats that: those kept are enough.
        if not np.any(np.all(rows[kept[:count]] <= rows[index], axis=1)):
            kept[count] = index
            count += 1
    return np.sort(kept[:count])
