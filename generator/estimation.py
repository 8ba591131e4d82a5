"""Capacity from what a person names: a spec file, or a model, a GPU, a layout and flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.capacity import EngineCapacity, capacity_of_engines, evaluate_engine
from generator.derivation import Derivation, derive, plan_engine
from generator.engine_options import options_from_flags
from generator.facts import engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.parallel import WorkerPool, parse_layout
from generator.spec import Spec
from generator.spec_reader import load_spec
from generator.workload import Workload

_ENGINE = "vllm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A spec with everything that follows from it: recipes, engines and their capacities."""

    spec: Spec
    derivation: Derivation
    capacities: Mapping[str, EngineCapacity]


def estimate_spec(path: Path) -> Estimate:
    """Read a spec, derive its recipes and evaluate every engine of them.

    Raises InvalidInput or NothingFits with every problem of the file that could be found.
    """
    spec = load_spec(path)
    architecture = load_architecture(spec.model_config)
    accelerator = gpu(spec.cluster.gpu)
    defaults = engine_defaults(spec.engine.type, spec.engine.version, accelerator)
    derivation = derive(spec, architecture, defaults)
    return Estimate(
        spec=spec,
        derivation=derivation,
        capacities=capacity_of_engines(
            derivation.engines, architecture, accelerator, defaults, spec.workload
        ),
    )


def estimate_engine(
    model: Path,
    gpu_name: str,
    layout: str,
    flags: Mapping[str, Any],
    engine_version: str,
    workload: Workload | None,
) -> EngineCapacity:
    """Capacity of one aggregated engine described by flags in vLLM's spelling.

    Without a workload requests are as long as max-model-len. Raises InvalidInput or NothingFits.
    """
    pool = WorkerPool(workers=1, layout=parse_layout(layout))
    accelerator = gpu(gpu_name)
    architecture = load_architecture(model)
    defaults = engine_defaults(_ENGINE, engine_version, accelerator)
    options = replace(options_from_flags(flags), layout=pool.layout)
    engine = plan_engine(str(pool.layout), "agg", pool, options, architecture, defaults)
    return evaluate_engine(engine, architecture, accelerator, defaults, workload)
