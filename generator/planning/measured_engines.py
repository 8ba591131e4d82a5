"""The engines behind a measured point, from what its record says of flags and versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from generator.architecture import ModelArchitecture
from generator.engine_options import EngineOptions, options_from_flags
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, engine_defaults, gpu
from generator.parallel import WorkerPool, parse_pool
from generator.planning.engine_work import EngineWork
from generator.planning.planned_work import planned_work
from generator.resolution import resolve_engine
from generator.results.point import MeasuredPoint

_ENGINE = "vllm"
_CONFIGURATION = re.compile(
    r"(?P<first>\S+)(?: \+ (?P<second>\S+))?(?: MTP(?P<drafts>[0-9]+)(?:/(?P<decoded>[0-9]+))?)?\Z"
)
_CACHE_FLAGS = ("kv-cache-dtype", "mamba-ssm-cache-dtype", "mamba-cache-dtype")
_FLAGS = ("all2all-backend", "max-num-batched-tokens")
_OF_ROLE = re.compile(r"(prefill|decode|agg) (\S+)\Z")
_MTP = "speculative_config.num_speculative_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEngine:
    """One kind of worker of a measured deployment; ``batch_tokens`` are those of a step."""

    pool: WorkerPool
    work: EngineWork
    batch_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEngines:
    """Who prefilled and who decoded: one and the same kind of worker where it did both."""

    prefill: MeasuredEngine
    decode: MeasuredEngine


def measured_engines(point: MeasuredPoint, architecture: ModelArchitecture) -> MeasuredEngines:
    """The engines of a point of this model.

    Raises InvalidInput, saying what is unknown, for GPUs, versions and configurations that cannot
    be read from the record.
    """
    match = _CONFIGURATION.match(point.subject.configuration)
    if match is None:
        raise InvalidInput(
            Problem(message="its configuration is not of vLLM layouts, with MTP or without drafts")
        )
    drafts = int(match["drafts"] or 0)
    decoded = int(match["decoded"] or drafts)
    if match["second"] is None:
        engine = _engine(point, architecture, "agg", match["first"], drafts)
        return MeasuredEngines(prefill=engine, decode=engine)
    return MeasuredEngines(
        prefill=_engine(point, architecture, "prefill", match["first"], drafts),
        decode=_engine(point, architecture, "decode", match["second"], decoded),
    )


def engine_version_of(point: MeasuredPoint) -> str | None:
    """The release that ran; None where the record does not say."""
    return point.contract.get("vllm.version")


def _engine(
    point: MeasuredPoint, architecture: ModelArchitecture, role: str, layout: str, drafts: int
) -> MeasuredEngine:
    pool = parse_pool(layout)
    accelerator = gpu(point.gpus.type.lower())
    defaults = engine_defaults(_ENGINE, engine_version_of(point), accelerator)
    options = replace(options_from_flags(_flags(point, role, drafts)), layout=pool.layout)
    return MeasuredEngine(
        pool=pool,
        work=planned_work(architecture, accelerator, options, defaults),
        batch_tokens=_batch_tokens(architecture, options, defaults),
    )


def _flags(point: MeasuredPoint, role: str, drafts: int) -> dict[str, Any]:
    """The flags that decide what a pass takes; a record keeps them as text."""
    said = {flag: _of_role(point.contract, f"engine.{flag}", role) for flag in _CACHE_FLAGS}
    said |= {flag: point.factors.get(f"{role}.{flag}") for flag in _FLAGS}
    flags: dict[str, Any] = {flag: value for flag, value in said.items() if value is not None}
    return {**flags, _MTP: drafts} if drafts else flags


def _of_role(contract: Mapping[str, str], key: str, role: str) -> str | None:
    """A role's part of ``prefill fp8, decode auto``; the whole where roles agree."""
    said = contract.get(key)
    parts = [_OF_ROLE.match(part) for part in said.split(", ")] if said else []
    if any(part is None for part in parts):
        return said
    return next((part[2] for part in parts if part and part[1] == role), None)


def _batch_tokens(
    architecture: ModelArchitecture, options: EngineOptions, defaults: EngineDefaults
) -> int:
    """Tokens of a step at most: the flag, or what the engine does without it."""
    return resolve_engine(architecture, options, defaults).max_num_batched_tokens
