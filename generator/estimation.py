"""Capacity from what a person names: a spec file, or a model, a GPU, a layout and flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.capacity import EngineCapacity, capacity_of_engines, evaluate_engine
from generator.derivation import Derivation, derive, plan_engine
from generator.engine_options import options_from_flags
from generator.errors import InvalidInput, Problem
from generator.facts import MeasuredProfile, engine_defaults, gpu, read_profiles
from generator.hf_config import load_architecture
from generator.parallel import WorkerPool, parse_layout
from generator.spec import Spec
from generator.spec_reader import load_spec
from generator.workload import Workload, random_range_ratio

_ENGINE = "vllm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A spec with everything that follows from it: recipes, engines and their capacities."""

    spec: Spec
    derivation: Derivation
    capacities: Mapping[str, EngineCapacity]


def estimate_spec(path: Path, profiles: tuple[MeasuredProfile, ...] = ()) -> Estimate:
    """Read a spec, derive its recipes and evaluate every engine of them.

    Memory is looked up in ``profiles``, then in those the spec names, then in the package's.
    Raises InvalidInput or NothingFits with every problem of the file that could be found.
    """
    spec = load_spec(path)
    architecture = load_architecture(spec.model_config)
    accelerator = gpu(spec.cluster.gpu)
    defaults = engine_defaults(spec.engine.type, spec.engine.version, accelerator)
    derivation = derive(spec, architecture, defaults)
    workload = replace(spec.workload, random_range_ratio=_random_range_ratio(spec))
    return Estimate(
        spec=spec,
        derivation=derivation,
        capacities=capacity_of_engines(
            derivation.engines,
            architecture,
            accelerator,
            defaults,
            workload,
            (*profiles, *_profiles_of(spec)),
        ),
    )


def _profiles_of(spec: Spec) -> tuple[MeasuredProfile, ...]:
    """The measured start-ups in the files that a spec names."""
    return tuple(profile for path in spec.profiles for profile in read_profiles(path))


def _random_range_ratio(spec: Spec) -> float:
    """The ratio of the spec's load; raises InvalidInput with its line where it is no share."""
    try:
        return random_range_ratio(spec.document.data.get("benchmark", {}))
    except ValueError as error:
        path = ("benchmark", "random_range_ratio")
        raise InvalidInput(spec.document.problem(path, str(error))) from None


def estimate_engine(  # noqa: PLR0913 - one parameter for each thing that a command names
    model: Path,
    gpu_name: str,
    layout: str,
    flags: Mapping[str, Any],
    engine_version: str,
    workload: Workload | None,
    *,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> EngineCapacity:
    """Capacity of one aggregated engine described by flags in vLLM's spelling.

    Without a workload requests are as long as max-model-len. ``profiles`` are measured start-ups
    to look in before the package's own. Raises InvalidInput or NothingFits.
    """
    pool = WorkerPool(workers=1, layout=parse_layout(layout))
    accelerator = gpu(gpu_name)
    architecture = load_architecture(model)
    defaults = engine_defaults(_ENGINE, engine_version, accelerator)
    options = replace(options_from_flags(flags), layout=pool.layout)
    engine = plan_engine(str(pool.layout), "agg", pool, options, architecture, defaults)
    limit = engine.resolved.max_model_len
    if workload and workload.request_tokens > limit:
        raise InvalidInput(
            Problem(
                message=(
                    f"max-model-len {limit} is below ISL + OSL ="
                    f" {workload.isl} + {workload.osl} = {workload.request_tokens}"
                ),
                hint="raise max-model-len, or shorten the load",
            )
        )
    return evaluate_engine(engine, architecture, accelerator, defaults, workload, profiles)
