"""The engines that a recipe starts: each role's flags on its GPU under its release, planned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from generator.architecture import ModelArchitecture
from generator.engine.options import options_from_flags
from generator.engine.plan import Engine, plan_engine
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, Gpu, engine_defaults, gpu
from generator.normal_form import NormalForm, default_value, pinned_vllm_version
from generator.parallel import WorkerPool
from generator.workload import Workload, random_range_ratio

ENGINE = "vllm"
"""The engine whose memory is modelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeEngine:
    """An engine of a recipe with all it takes to evaluate it.

    ``concurrency`` is the highest of the benchmark; None where it has none.
    """

    engine: Engine
    gpu: Gpu
    defaults: EngineDefaults
    workload: Workload | None
    concurrency: int | None


def recipe_engine(form: NormalForm, role: str, architecture: ModelArchitecture) -> RecipeEngine:
    """The engine of a role.

    Raises InvalidInput where its memory is not modelled, a flag cannot be read, or the engine
    would refuse its flags.
    """
    name = form.engine_of(role)
    if name != ENGINE:
        raise InvalidInput(
            Problem(message=f"the memory of {name or 'this engine'} is not modelled")
        )
    gpu_type = form.get("resources", "gpu_type")
    if not isinstance(gpu_type, str):
        raise InvalidInput(Problem(message="the recipe names no GPU", path="resources.gpu_type"))
    accelerator = gpu(gpu_type.lower())
    defaults = engine_defaults(ENGINE, pinned_vllm_version(form), accelerator)
    options = options_from_flags(_numbers(form.args(role)))
    workers = form.get("roles", role, "workers")
    pool = WorkerPool(
        workers=workers if isinstance(workers, int) and workers > 0 else 1, layout=options.layout
    )
    engine = plan_engine(role, role, pool, options, architecture, defaults)
    return RecipeEngine(
        engine=engine,
        gpu=accelerator,
        defaults=defaults,
        workload=_workload(form, engine.resolved.max_model_len),
        concurrency=_highest_concurrency(form),
    )


def _numbers(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags with the numbers that a sweep made text of as numbers again, to be computed with."""
    return {
        flag: float(value) if isinstance(value, str) and _is_decimal(value) else value
        for flag, value in flags.items()
    }


def _is_decimal(text: str) -> bool:
    return re.fullmatch(r"[0-9]+\.[0-9]+", text) is not None


def _workload(form: NormalForm, longest: int) -> Workload | None:
    """The benchmark's request lengths; None where it has none or the engine takes none as long."""
    isl, osl = form.get("benchmark", "isl"), form.get("benchmark", "osl")
    if not (_is_count(isl) and _is_count(osl)) or isl + osl > longest:
        return None
    workload = Workload(isl=isl, osl=osl)
    benchmark = {key: form.get("benchmark", key) for key in ("type", "random_range_ratio")}
    try:
        return replace(workload, random_range_ratio=random_range_ratio(benchmark))
    except ValueError:
        return workload


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _highest_concurrency(form: NormalForm) -> int | None:
    levels = form.get("benchmark", "concurrencies")
    if not isinstance(levels, tuple) or not all(isinstance(each, int) for each in levels):
        return None
    return max(levels, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What a job takes of the cluster. ``gpus`` work; nodes of services have idle ones, too."""

    gpus: int
    nodes: int


def allocation(form: NormalForm) -> Allocation | None:
    """GPUs at work and nodes of a recipe; None where a role's size is not a number."""
    gpus = nodes = 0
    for role in form.roles:
        role_nodes, workers = form.get("roles", role, "nodes"), form.get("roles", role, "workers")
        each = form.get("roles", role, "gpus")
        each = default_value(form, ("roles", role, "gpus")) if each is None else each
        if role_nodes == "colocate":
            role_nodes = 0
        if not workers and not role_nodes:
            continue  # only its flags are there, for other jobs
        if not all(isinstance(value, int) for value in (role_nodes, workers, each)):
            return None
        gpus += workers * each
        nodes += role_nodes
    return Allocation(gpus=gpus, nodes=nodes + reserved_nodes(form))


def reserved_nodes(form: NormalForm) -> int:
    """Nodes for services, frontend and client that ask for one of their own.

    As srt-slurm counts them: services share one, and all three do unless the benchmark says
    ``colocate_with_frontend: false``.
    """
    asked = (
        any(
            path[1:] == ("placement", "node") and node == "dedicated"
            for path, node in form.below("services").items()
        ),
        *(
            form.get(section, "placement", "node") == "dedicated"
            for section in ("frontend", "benchmark")
        ),
    )
    is_shared = form.get("benchmark", "colocate_with_frontend") is not False
    return min(sum(asked), 1) if is_shared else sum(asked)
