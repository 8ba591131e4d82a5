"""Prefill pools before decode pools at every concurrency, as arrays: rates and latencies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generator.planning.numbers import Array
from generator.planning.pools import DecodePools, PrefillPools
from generator.workload import Workload

_MOST_AT_ONCE = 1_000_000
"""Deployments evaluated at once: a few arrays of 8 bytes for each stay well below 100 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPoint:
    """What a deployment does at a concurrency in a closed loop, elementwise over arrays.

    Requests a second are the least of what prefill reads, what decode completes, and
    concurrency / latency; TTFT is then what Little's law leaves to it.
    """

    requests_per_s: Array
    ttft_s: Array
    tpot_s: Array


def serving_point(
    workload: Workload,
    *,
    prompts_per_s: Array,
    alone_s: Array,
    transfer_s: Array,
    tpot_s: Array,
    concurrency: NDArray[np.int64] | Array,
) -> ServingPoint:
    """A closed loop in its steady state; every request is taken to decode at once for ``tpot_s``.

    A prompt waits where prefill is the slowest: concurrency = rate x (TTFT + the rest) gives how
    long. Otherwise it is alone in a worker and then travels.
    """
    rest = (workload.osl - 1) * tpot_s
    least = alone_s + transfer_s
    requests = np.minimum(prompts_per_s, concurrency / (least + rest))
    return ServingPoint(
        requests_per_s=requests,
        ttft_s=np.maximum(least, concurrency / requests - rest),
        tpot_s=tpot_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Deployments of all prefill pools with some decode pools: axes prefill, decode, concurrency.

    ``exists`` is where a decode pool holds the concurrency and both fit on the nodes. ``decode``
    are the decode pools of the second axis.
    """

    prefill: PrefillPools
    pools: DecodePools
    decode: NDArray[np.int64]
    exists: NDArray[np.bool_]
    point: ServingPoint
    gpus: NDArray[np.int64]

    @property
    def gpu_s(self) -> float:
        """GPU-seconds in which all that exist complete as many requests as run at once."""
        concurrency = self.pools.concurrency[self.decode][None]
        each = self.gpus[:, :, None] * concurrency / self.point.requests_per_s
        return float(each.sum(where=self.exists))


def blocks(
    prefill: PrefillPools,
    decode: DecodePools,
    workload: Workload,
    *,
    most_nodes: int,
    gpus_per_node: int,
) -> Iterator[Block]:
    """Every combination, in blocks that bound the memory they take."""
    width = len(prefill.phase) * decode.tpot_s.shape[1]
    count = max(1, _MOST_AT_ONCE // max(1, width))
    for start in range(0, len(decode.phase), count):
        some = np.arange(start, min(start + count, len(decode.phase)))
        tpot = decode.tpot_s[some][None]
        transfer = np.maximum(prefill.transfer_s[:, None], decode.transfer_s[some])
        nodes = prefill.nodes[:, None] + decode.nodes[some]
        finite = np.where(np.isfinite(tpot), tpot, 1.0)
        yield Block(
            prefill=prefill,
            pools=decode,
            decode=some,
            exists=(nodes <= most_nodes)[:, :, None] & np.isfinite(tpot),
            point=serving_point(
                workload,
                prompts_per_s=prefill.prompts_per_s[:, None, None],
                alone_s=prefill.alone_s[:, None, None],
                transfer_s=transfer[:, :, None],
                tpot_s=finite,
                concurrency=decode.concurrency[some][None],
            ),
            gpus=nodes * gpus_per_node,
        )


def combinations(prefill: PrefillPools, decode: DecodePools, most_nodes: int) -> int:
    """How many deployments and concurrencies there were before any was left out."""
    up_to = np.cumsum(prefill.count_by_nodes)
    nodes = np.flatnonzero(decode.count_by_nodes)
    return int(np.sum(decode.count_by_nodes[nodes] * up_to[most_nodes - nodes]))
