"""One engine of a deployment: its flags, what it makes of them, and how it cuts its KV cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

from generator.architecture import ModelArchitecture
from generator.engine.options import EngineOptions
from generator.engine.resolution import ResolvedEngine, kv_cache_options, resolve_engine
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults
from generator.kv_cache.kv_cache import KvCacheLayout, align_mode_problem, plan_kv_cache
from generator.parallel import WorkerPool
from generator.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One kind of worker, as it will be started.

    ``unforced_kv_cache`` is the layout the engine would choose by itself where a block size is
    forced on it, None where none is.
    """

    name: str
    role: str
    pool: WorkerPool
    options: EngineOptions
    resolved: ResolvedEngine
    kv_cache: KvCacheLayout
    unforced_kv_cache: KvCacheLayout | None


def plan_engine(
    name: str,
    role: str,
    pool: WorkerPool,
    options: EngineOptions,
    architecture: ModelArchitecture,
    defaults: EngineDefaults,
) -> Engine:
    """An engine with its limits resolved and its KV cache laid out.

    Raises InvalidInput where the engine would refuse these options.
    """
    resolved = resolve_engine(architecture, options, defaults)
    flags = kv_cache_options(architecture, options, defaults)
    kv_cache = plan_kv_cache(architecture, flags)
    problem = align_mode_problem(kv_cache, resolved.max_num_batched_tokens)
    if problem is not None:
        raise InvalidInput(problem)
    return Engine(
        name=name,
        role=role,
        pool=pool,
        options=options,
        resolved=resolved,
        kv_cache=kv_cache,
        unforced_kv_cache=(
            plan_kv_cache(architecture, replace(flags, block_size=None))
            if options.block_size is not None
            else None
        ),
    )


def check_request_fits(
    options: EngineOptions, workload: Workload, architecture: ModelArchitecture
) -> None:
    """Raise InvalidInput where a request of the workload is longer than the engine accepts."""
    needed = workload.request_tokens
    limit = options.max_model_len or architecture.max_position_embeddings
    if needed > limit:
        label = "max-model-len" if options.max_model_len else "the model's context"
        raise InvalidInput(
            Problem(
                message=(
                    f"{label} {limit} is below ISL + OSL ="
                    f" {workload.isl} + {workload.osl} = {needed}"
                ),
                hint="raise max-model-len, with room for the chat template, or shorten the load",
                path="max-model-len",
            )
        )
