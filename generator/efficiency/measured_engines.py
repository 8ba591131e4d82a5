"""The engines behind a measured point, from what its record says of flags and versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from generator.architecture import ModelArchitecture
from generator.bounds.engine_work import EngineWork
from generator.bounds.planned_work import planned_work
from generator.engine.options import EngineOptions, options_from_flags
from generator.engine.resolution import resolve_engine
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, engine_defaults, gpu
from generator.parallel import ParallelLayout, WorkerPool, parse_layout
from generator.results.engine_pool import EnginePool
from generator.results.point import MeasuredPoint

_ENGINE = "vllm"
_AGGREGATED, _PAIR = "agg", ("prefill", "decode")
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
    """The engines of a point of this model, from the pools of its record.

    Raises InvalidInput, saying what is unknown, for GPUs, versions and engines that the record
    does not say enough of.
    """
    pools = {pool.role: pool for pool in point.subject.pools}
    if not pools:
        raise InvalidInput(
            Problem(message="its record says no engines", hint="collect its run again")
        )
    if _AGGREGATED in pools:
        engine = _engine(point, architecture, pools[_AGGREGATED])
        return MeasuredEngines(prefill=engine, decode=engine)
    if missing := [role for role in _PAIR if role not in pools]:
        raise InvalidInput(Problem(message=f"its record says no {' and no '.join(missing)} engine"))
    prefill, decode = (_engine(point, architecture, pools[role]) for role in _PAIR)
    return MeasuredEngines(prefill=prefill, decode=decode)


def engine_version_of(point: MeasuredPoint) -> str | None:
    """The release that ran; None where the record does not say."""
    return point.contract.get("vllm.version")


def _engine(
    point: MeasuredPoint, architecture: ModelArchitecture, pool: EnginePool
) -> MeasuredEngine:
    layout = _layout(pool)
    accelerator = gpu(point.gpus.type.lower())
    defaults = engine_defaults(_ENGINE, engine_version_of(point), accelerator)
    flags = _flags(point, pool.role, pool.num_speculative_tokens)
    options = replace(options_from_flags(flags), layout=layout)
    return MeasuredEngine(
        pool=WorkerPool(workers=pool.workers, layout=layout),
        work=planned_work(architecture, accelerator, options, defaults),
        batch_tokens=_batch_tokens(architecture, options, defaults),
    )


def _layout(pool: EnginePool) -> ParallelLayout:
    """The layout of a worker; raises InvalidInput for an engine whose work is not known."""
    if pool.engine not in (None, _ENGINE):
        raise InvalidInput(
            Problem(message=f"its {pool.role} engine is {pool.engine}, not {_ENGINE}")
        )
    if pool.layout is None:
        raise InvalidInput(Problem(message=f"the layout of its {pool.role} engine is not recorded"))
    if pool.num_speculative_tokens and not pool.is_mtp:
        raise InvalidInput(
            Problem(message=f"its {pool.role} engine drafts by {pool.draft_method}, not by MTP")
        )
    return parse_layout(pool.layout)


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
