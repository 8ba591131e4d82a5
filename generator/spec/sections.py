"""Single sections of a spec as dataclasses: pools, sizing rules, the engine, and the digest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.parallel import WorkerPool, parse_pool
from generator.spec.spec import EngineSpec, FieldPath, SizingRules


def pool_of(value: str | Mapping[str, Any]) -> WorkerPool:
    """A pool in short or long form; the long form's GPU count must agree with its layout."""
    if isinstance(value, str):
        return parse_pool(value)
    pool = parse_pool(value["layout"])
    gpus = value.get("gpus")
    if gpus is not None and gpus != pool.layout.ranks:
        layout = pool.layout
        raise InvalidInput(
            Problem(
                message=(
                    f"layout '{layout}' takes DP{layout.data} x TP{layout.tensor} x"
                    f" PP{layout.pipeline} = {layout.ranks} GPUs per worker, but gpus says {gpus}"
                ),
                hint=f"write gpus: {layout.ranks}, or change the layout",
            )
        )
    return pool


def sizing_of(*layers: Mapping[str, Any]) -> SizingRules:
    """Sizing rules, later layers (a group's) over earlier ones (the spec's)."""
    merged: dict[str, Any] = {"prefill": {}, "decode": {}}
    for layer in layers:
        for key, value in layer.items():
            merged[key] = {**merged[key], **value} if isinstance(value, dict) else value
    return SizingRules(**merged)


def engine_of(section: Mapping[str, Any]) -> EngineSpec:
    """The engine section, flags and environment of each role merged with the shared ones."""
    return EngineSpec(
        type=section["type"],
        version=section["version"],
        has_connector="connector" in section,
        connector=section.get("connector"),
        environment=_by_role(section, "environment"),
        args=_by_role(section, "args"),
    )


def _by_role(section: Mapping[str, Any], key: str) -> Mapping[str, Mapping[str, Any]]:
    """What both roles share, with each role's own additions on top."""
    shared = section.get(key, {})
    return {role: {**shared, **section.get(f"{role}_{key}", {})} for role in ("prefill", "decode")}


def non_finite(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, float]]:
    """Every .nan and .inf: neither has a digest, and .nan does not equal what is read back."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from non_finite(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from non_finite(item, (*path, index))


def digest_of(data: Mapping[str, Any]) -> str:
    """Twelve hex digits of what a spec means; comments, order and layout do not change them."""
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
