"""Phase studies of Qwen3.8-2.4T from a stated model; none of it was measured.

The model is made to agree with what the GB300 article says in words of its figures 1 and 2.

Prefill: an engine reads ``most x c / (c + half)`` prompts a second with c of them at its door.
Decode: a step takes ``fixed + experts x (1 - (1 - 10/512)^tokens) + each x c`` ms, where tokens is
c x (1 + MTP) and 10 of 512 experts serve a token; with MTP 3 it yields 2.3 tokens a request.
A ladder ends where the committed spec's studies end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from generator.documents import parse_document
from generator.estimation import estimate_spec
from generator.generation.rendering import render_recipe
from generator.recipe.recipe import Dialect
from generator.results.distribution import Distribution
from generator.results.engine_pool import EnginePool
from generator.results.point import (
    AllocatedGpus,
    Latencies,
    MeasuredPoint,
    Origin,
    Requests,
    Subject,
    Tokens,
)
from generator.sweep.points import recipe_digest

TOKENS_PER_STEP = {0: 1.0, 3: 2.3}

# most requests/s, requests at half of it
PREFILL = {
    "TP4DP2+EP": (6.6, 2),
    "TP2DP4+EP": (8.6, 8),
    "TP4DP4+EP": (13.0, 8),
    "TP2DP8+EP": (16.4, 20),
    "DEP16": (15.0, 40),
    "TP1PP8+EP": (7.2, 6),
    "TEP8": (5.2, 1.6),
    "TEP16": (7.0, 3),
}
# ms: fixed, experts, each
DECODE = {
    ("TP2DP4+EP", 0): (20, 26, 0.06),
    ("TP2DP4+EP", 3): (18, 26, 0.36),
    ("TP4DP8+EP", 0): (26, 6.5, 0.018),
    ("TP4DP8+EP", 3): (28, 6.5, 0.055),
    ("TEP8", 0): (14, 26, 0.056),
    ("TEP8", 3): (10.7, 26, 0.31),
    ("TEP16", 0): (20, 13, 0.05),
    ("TEP16", 3): (16, 13, 0.3),
    ("TP4DP4+EP", 0): (18, 13, 0.0255),
    ("TP4DP4+EP", 3): (22, 13, 0.09),
}


def prefill_rate(layout: str, concurrency: int) -> float:
    """Prompts a second."""
    most, half = PREFILL[layout]
    return most * concurrency / (concurrency + half)


def tpot_ms(layout: str, tokens: int, concurrency: int) -> float:
    """Milliseconds of an output token."""
    fixed, experts, each = DECODE[layout, tokens]
    touched = 1 - (1 - 10 / 512) ** (concurrency * (1 + tokens))
    return (fixed + experts * touched + each * concurrency) / TOKENS_PER_STEP[tokens]


def synthetic_studies(spec: Path) -> Iterator[MeasuredPoint]:
    """A point for every rung of every study that the spec plans."""
    for study in estimate_spec(spec).studies.planned:
        engine = study.probe.spec
        layout, tokens = str(engine.pool.layout), engine.speculative_tokens
        digest = recipe_digest(
            parse_document(render_recipe(study.probe.recipe, Dialect.V2, ()), engine.name).data
        )
        for concurrency in engine.concurrencies:
            completed = concurrency * 8
            isl, osl = engine.workload.isl, engine.workload.osl
            if engine.role == "prefill":
                rate = prefill_rate(layout, concurrency)
                latencies = Latencies(ttft=_constant(1000 * concurrency / rate, completed))
            else:
                tpot = tpot_ms(layout, tokens, concurrency)
                rate = 1000 * concurrency / (tpot * osl)
                latencies = Latencies(tpot=_constant(tpot, completed))
            yield MeasuredPoint(
                origin=Origin.SYNTHETIC,
                subject=Subject(
                    recipe=engine.name,
                    digest=digest,
                    configuration=f"1x{layout}{f' MTP{tokens}' if tokens else ''}",
                    phase=engine.role,
                    concurrency=concurrency,
                    pools=(
                        EnginePool(
                            role="agg",
                            workers=1,
                            gpus_per_worker=engine.pool.gpus,
                            engine="vllm",
                            layout=layout,
                            num_speculative_tokens=tokens,
                        ),
                    ),
                ),
                gpus=AllocatedGpus(type="gb300", aggregated=engine.pool.gpus),
                requests=Requests(completed=completed, offered=completed, failed=0),
                tokens=Tokens(input=completed * isl, output=completed * osl),
                duration_s=round(completed / rate, 3),
                run="synthetic",
                client="synthetic",
                latencies=latencies,
                sources={"figures": "synthetic: tests/synthetic_studies.py"},
            )


def _constant(value: float, samples: int) -> Distribution:
    return Distribution(
        mean=round(value, 3), samples=samples, percentiles=((50.0, round(value, 3)),)
    )
