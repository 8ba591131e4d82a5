"""The article's three studies as the model of synthetic_points computes them: shapes, no speeds.

Layouts and concurrencies are the article's; every figure follows from the constants below.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from generator.results.point import AllocatedGpus, Invalidity, MeasuredPoint
from tests.synthetic_points import CONTRACT, Deployment, synthetic_point

# prefill, GPUs of it, decode, GPUs of it, base ms, ms per sequence, capacity, concurrencies
_SERVING = (
    ("1xTEP8", 8, "1xTEP8 MTP3", 8, 5.2, 0.11, 112, (1, 2, 4)),
    ("1xTP4DP2+EP", 8, "1xTEP8 MTP3", 8, 5.2, 0.11, 112, (4, 8, 16)),
    ("1xTP2DP4+EP", 8, "1xTEP8 MTP3", 8, 5.2, 0.11, 112, (16, 32, 64)),
    ("1xTP2DP4+EP", 8, "1xTP4DP4+EP MTP3", 16, 6.4, 0.052, 720, (64, 128, 192)),
    ("2xTP2DP4+EP", 16, "1xTP4DP4+EP MTP3", 16, 6.4, 0.052, 720, (192, 256, 384)),
    ("3xTP2DP4+EP", 24, "1xTP4DP4+EP MTP3", 16, 6.4, 0.052, 720, (256, 512, 768)),
    ("4xTP2DP4+EP", 32, "1xTP4DP4+EP", 16, 11.5, 0.018, 2880, (1024, 1536, 2048, 2560)),
)
# layout, GPUs, base ms, ms per sequence, capacity
_PREFILL = (
    ("TP4DP2+EP", 8, 240, 26.0),
    ("TP2DP4+EP", 8, 330, 20.5),
    ("TP4DP4+EP", 16, 300, 12.9),
    ("TP2DP8+EP", 16, 390, 11.6),
    ("DP16+EP", 16, 620, 11.9),
    ("TP1PP8+EP", 8, 900, 23.0),
    ("TP8+EP", 8, 200, 31.0),
    ("TP16+EP", 16, 190, 19.5),
)
_DECODE = (
    ("TEP8 MTP3", 8, 5.2, 0.060, 900),
    ("TEP8", 8, 8.4, 0.038, 1600),
    ("TEP16 MTP3", 16, 4.9, 0.041, 1500),
    ("TP2DP4+EP", 8, 12.6, 0.030, 1900),
    ("TP4DP4+EP MTP3", 16, 7.2, 0.029, 2900),
    ("TP4DP4+EP", 16, 11.8, 0.016, 5700),
)


def serving_points() -> Iterator[MeasuredPoint]:
    """The points of the article's figure 3, one of them run three times and one invalid."""
    for prefill, prefill_gpus, decode, decode_gpus, base, slope, capacity, run_at in _SERVING:
        configuration = f"{prefill} + {decode}"
        deployment = Deployment(
            configuration=configuration,
            digest=_digest(configuration),
            prefill_gpus=prefill_gpus,
            decode_gpus=decode_gpus,
            base_ms=base,
            per_sequence_ms=slope,
            capacity=capacity,
            factors={"mtp": "3" if "MTP3" in decode else "0"},
        )
        yield from (synthetic_point(deployment, each) for each in run_at)
    repeated = synthetic_point(deployment, 1024)
    for number, share in ((2, 1.02), (3, 0.985)):
        yield replace(
            repeated, duration_s=repeated.duration_s * share, run=f"{repeated.run}-{number}"
        )
    broken = synthetic_point(replace(deployment, digest=_digest("broken")), 1024)
    reason = Invalidity(code="failed-requests", message="9.1 % of the requests failed")
    yield replace(broken, invalid=(reason,), run=f"{broken.run}-broken")


def prefill_points() -> Iterator[MeasuredPoint]:
    """Prefill alone, 8192 tokens in and 2 out, as the article's figure 1."""
    for layout, gpus, base, slope in _PREFILL:
        deployment = Deployment(
            configuration=f"1x{layout}",
            digest=_digest(f"prefill {layout}"),
            phase="prefill",
            base_ms=base,
            per_sequence_ms=slope * 8,
            capacity=4096,
            osl=2,
        )
        for concurrency in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            yield _alone(synthetic_point(deployment, concurrency), gpus, isl=8192, osl=2)


def decode_points() -> Iterator[MeasuredPoint]:
    """Decode alone, 1 token in and 1000 out, as the article's figure 2."""
    for layout, gpus, base, slope, capacity in _DECODE:
        deployment = Deployment(
            configuration=f"1x{layout}",
            digest=_digest(f"decode {layout}"),
            phase="decode",
            base_ms=base,
            per_sequence_ms=slope,
            prefill_ms=20,
            capacity=capacity,
            isl=1,
            osl=1000,
        )
        for concurrency in (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096):
            yield _alone(synthetic_point(deployment, concurrency), gpus, isl=1, osl=1000)


def study_points() -> list[MeasuredPoint]:
    """All three studies."""
    return [*prefill_points(), *decode_points(), *serving_points()]


def _alone(point: MeasuredPoint, gpus: int, *, isl: int, osl: int) -> MeasuredPoint:
    load = {"workload.isl": str(isl), "workload.osl": str(osl)}
    return replace(
        point,
        gpus=AllocatedGpus(type="gb300", aggregated=gpus),
        contract={**CONTRACT, **load},
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
