"""A prefill and decode deployment under a fixed number of requests: its rate and its latencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generator.bounds.numbers import Array
from generator.workload import Workload


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
