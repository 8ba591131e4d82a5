"""From an engine's flags to its work on a rank."""

from __future__ import annotations

from generator.architecture import ModelArchitecture
from generator.bounds.engine_work import EngineWork, engine_work
from generator.engine.options import EngineOptions
from generator.engine.resolution import kv_cache_options, uses_sequence_parallel_moe
from generator.facts import EngineDefaults, Gpu
from generator.kv_cache.kv_cache import plan_kv_cache


def planned_work(
    architecture: ModelArchitecture, gpu: Gpu, options: EngineOptions, defaults: EngineDefaults
) -> EngineWork:
    """The work of an engine with these flags; its scheduling limits do not matter to it.

    Raises InvalidInput as ``kv_cache_options``, ``plan_kv_cache`` and ``engine_work`` do.
    """
    return engine_work(
        architecture,
        gpu,
        options.layout,
        plan_kv_cache(architecture, kv_cache_options(architecture, options, defaults)),
        sequence_parallel_moe=uses_sequence_parallel_moe(options, defaults),
    )
