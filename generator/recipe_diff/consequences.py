"""What a change of a recipe does: cluster, memory and requests of both sides, like for like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from generator.architecture import ModelArchitecture
from generator.capacity.capacity import EngineCapacity, Setting, capacity_in_memory
from generator.capacity.engine_memory import (
    Basis,
    EngineMemory,
    MemoryItem,
    StartupTerms,
    account_engine_memory,
)
from generator.capacity.memory_terms import engine_memory, estimated_terms
from generator.errors import PdrecipeError
from generator.facts import MeasuredProfile
from generator.normal_form import NormalForm
from generator.recipe_engines import RecipeEngine, allocation, recipe_engine
from generator.units import ceil_div

ModelOf: TypeAlias = Callable[[NormalForm], ModelArchitecture | None]
"""The model that a recipe runs, None where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """What one role of a recipe holds. Requests are of ``request_tokens``.

    ``slots`` are sequences that all workers schedule at once, ``concurrency`` is the benchmark's
    highest. ``headroom_bytes_per_rank`` is KV cache beyond what that concurrency fills; both are
    None for a prefill role and for a recipe without a load.
    """

    layout: str
    num_speculative_tokens: int
    kv_cache_bytes_per_rank: int
    basis: Basis
    uncertainty_bytes: int
    block_tokens: int
    graphs: int
    request_tokens: int
    requests_per_rank: float
    requests_per_endpoint: float
    slots: int
    concurrency: int | None
    headroom_bytes_per_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleConsequence:
    """One role on both sides; ``refusals`` say why a side has no figures."""

    role: str
    before: EngineFigures | None
    after: EngineFigures | None
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequences:
    """What follows for one job: GPUs and nodes, and the engines where the model is known.

    ``models`` are the names of the models that were computed with, None where a side's is not
    known.
    """

    models: tuple[str | None, ...]
    gpus: tuple[int | None, int | None]
    nodes: tuple[int | None, int | None]
    roles: tuple[RoleConsequence, ...] = ()


def consequences(
    before: NormalForm | None,
    after: NormalForm | None,
    model_of: ModelOf,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> Consequences:
    """The derived figures of both sides; a side that is None has none.

    Where a start-up was measured on one side only, the other side is that measurement moved by
    the difference of the estimates, so that two kinds of figures are not compared.
    """
    forms = [form for form in (before, after) if form is not None]
    models = [model_of(form) for form in forms]
    sizes = [allocation(form) if form else None for form in (before, after)]
    roles = dict.fromkeys(role for form in forms for role in form.roles)
    return Consequences(
        models=tuple(dict.fromkeys(model.name if model else None for model in models)),
        gpus=(sizes[0].gpus if sizes[0] else None, sizes[1].gpus if sizes[1] else None),
        nodes=(sizes[0].nodes if sizes[0] else None, sizes[1].nodes if sizes[1] else None),
        roles=tuple(
            _role_consequence(role, before, after, model_of, profiles)
            for role in roles
            if any(models)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    engine: RecipeEngine
    memory: EngineMemory
    setting: Setting
    estimate: StartupTerms

    @property
    def is_measured(self) -> bool:
        return self.memory.terms.weights.basis is Basis.MEASURED


def _role_consequence(
    role: str,
    before: NormalForm | None,
    after: NormalForm | None,
    model_of: ModelOf,
    profiles: tuple[MeasuredProfile, ...],
) -> RoleConsequence:
    refusals: list[str] = []

    def side(form: NormalForm | None) -> _Side | None:
        architecture = model_of(form) if form else None
        if form is None or architecture is None or role not in form.roles:
            return None
        try:
            return _side(form, role, architecture, profiles)
        except PdrecipeError as error:
            refusals.extend(problem.message for problem in error.problems)
            return None

    def figures(of: _Side | None, other: _Side | None) -> EngineFigures | None:
        if of is None:
            return None
        try:
            return _figures(of, _comparable(of, other))
        except PdrecipeError as error:
            refusals.extend(problem.message for problem in error.problems)
            return None

    old, new = side(before), side(after)
    return RoleConsequence(
        role=role,
        before=figures(old, new),
        after=figures(new, old),
        refusals=tuple(dict.fromkeys(refusals)),
    )


def _side(
    form: NormalForm,
    role: str,
    architecture: ModelArchitecture,
    profiles: tuple[MeasuredProfile, ...],
) -> _Side:
    found = recipe_engine(form, role, architecture)
    options, resolved = found.engine.options, found.engine.resolved
    return _Side(
        engine=found,
        memory=engine_memory(architecture, found.gpu, options, resolved, found.defaults, profiles),
        setting=Setting(
            architecture=architecture,
            gpu=found.gpu,
            defaults=found.defaults,
            workload=found.workload,
        ),
        estimate=estimated_terms(architecture, found.gpu, options, resolved, found.defaults),
    )


def _comparable(side: _Side, other: _Side | None) -> EngineMemory:
    """The memory of a side that was not measured, taken from the other side's measurement."""
    if other is None or side.is_measured or not other.is_measured:
        return side.memory
    if (side.engine.gpu, side.setting.architecture) != (
        other.engine.gpu,
        other.setting.architecture,
    ):
        return side.memory
    moved = {
        field.name: _moved(
            getattr(other.memory.terms, field.name),
            getattr(other.estimate, field.name),
            getattr(side.estimate, field.name),
        )
        for field in fields(StartupTerms)
    }
    options, resolved = side.engine.engine.options, side.engine.engine.resolved
    return account_engine_memory(
        StartupTerms(**moved), resolved.gpu_memory_utilization, options.kv_cache_memory_bytes
    )


def _moved(measured: MemoryItem, there: MemoryItem, here: MemoryItem) -> MemoryItem:
    """A measured term moved by what the estimate says is different here."""
    size = max(0, measured.bytes_per_rank + here.bytes_per_rank - there.bytes_per_rank)
    return replace(here, bytes_per_rank=size)


def _figures(side: _Side, memory: EngineMemory) -> EngineFigures:
    engine = side.engine.engine
    capacity = capacity_in_memory(engine, memory, side.setting)
    is_loaded = engine.role != "prefill" and side.engine.workload is not None
    concurrency = side.engine.concurrency if is_loaded else None
    return EngineFigures(
        layout=str(engine.options.layout),
        num_speculative_tokens=engine.options.num_speculative_tokens,
        kv_cache_bytes_per_rank=memory.kv_cache.bytes_per_rank,
        basis=memory.kv_cache.basis,
        uncertainty_bytes=memory.kv_cache.uncertainty_bytes,
        block_tokens=engine.kv_cache.block_tokens,
        graphs=engine.resolved.graphs.graphs,
        request_tokens=capacity.at_workload.tokens,
        requests_per_rank=float(capacity.at_workload.per_rank),
        requests_per_endpoint=float(capacity.at_workload.per_endpoint),
        slots=engine.pool.data_ranks * engine.resolved.max_num_seqs,
        concurrency=concurrency,
        headroom_bytes_per_rank=_headroom(capacity, concurrency),
    )


def _headroom(capacity: EngineCapacity, concurrency: int | None) -> int | None:
    """KV cache of a rank that its even share of the load leaves; below zero: that it lacks."""
    if concurrency is None:
        return None
    engine = capacity.engine
    requests = ceil_div(concurrency, engine.pool.data_ranks)
    needed = engine.kv_cache.bytes_for_requests(requests, capacity.at_workload.tokens)
    return capacity.memory.kv_cache.bytes_per_rank - needed
