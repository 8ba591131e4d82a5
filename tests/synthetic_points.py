"""Points from a stated model, for tests of what is done with points; none of it was measured.

A deployment takes ``base_ms`` for a decode step and ``per_sequence_ms`` more for each sequence, up
to ``capacity`` sequences; what exceeds it waits in front of the first token.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from generator.results.distribution import distribution
from generator.results.point import (
    AllocatedGpus,
    Latencies,
    MeasuredPoint,
    Origin,
    Requests,
    Subject,
    Tokens,
)

CONTRACT = {
    "model.path": "hf:Inferact/Qwen3.8-2.4T-A95B-NVFP4",
    "container.image": "vllm/vllm-openai:nightly-a9a17e7",
    "gpu.type": "gb300",
    "workload.isl": "8192",
    "workload.osl": "1024",
    "load.loop": "closed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What the model of this file takes to be a deployment."""

    configuration: str
    digest: str = "0123456789abcdef"
    prefill_gpus: int = 8
    decode_gpus: int = 8
    base_ms: float = 5.0
    per_sequence_ms: float = 0.1
    prefill_ms: float = 200.0
    capacity: int = 256
    isl: int = 8192
    osl: int = 1024
    phase: str = "disaggregated"
    factors: dict[str, str] = field(default_factory=dict)


def synthetic_point(deployment: Deployment, concurrency: int, **changes: Any) -> MeasuredPoint:
    """The point of a deployment at a concurrency; ``changes`` replace its fields."""
    running = min(concurrency, deployment.capacity)
    tpot_ms = deployment.base_ms + deployment.per_sequence_ms * running
    generation_ms = tpot_ms * (deployment.osl - 1)
    waiting_ms = generation_ms * (concurrency - running) / running
    ttft_ms = deployment.prefill_ms + waiting_ms
    request_s = (ttft_ms + generation_ms) / 1000
    completed = concurrency * 8
    point = MeasuredPoint(
        origin=Origin.SYNTHETIC,
        subject=Subject(
            recipe=f"synthetic-{deployment.digest[:4]}",
            digest=deployment.digest,
            configuration=deployment.configuration,
            phase=deployment.phase,
            concurrency=concurrency,
        ),
        gpus=AllocatedGpus(
            type="gb300", prefill=deployment.prefill_gpus, decode=deployment.decode_gpus
        ),
        requests=Requests(completed=completed, offered=completed, failed=0),
        tokens=Tokens(input=completed * deployment.isl, output=completed * deployment.osl),
        duration_s=8 * request_s,
        run=f"runs/{deployment.digest}",
        client="synthetic",
        latencies=Latencies(
            ttft=distribution([ttft_ms] * completed),
            tpot=distribution([tpot_ms] * completed),
            inter_chunk=distribution([tpot_ms] * completed),
            end_to_end=distribution([ttft_ms + generation_ms] * completed),
        ),
        contract=CONTRACT,
        factors={"configuration": deployment.configuration, **deployment.factors},
        sources={"figures": "synthetic"},
    )
    return replace(point, **changes)
