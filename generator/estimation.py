"""Capacity from what a person names: a spec file, or a model, a GPU, a layout and flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from generator.architecture import ModelArchitecture
from generator.capacity.capacity import EngineCapacity, capacity_of_engines, evaluate_engine
from generator.derivation.derivation import Derivation, Probe, derive
from generator.engine.options import options_from_flags
from generator.engine.plan import plan_engine
from generator.errors import InvalidInput, NothingFits, Problem
from generator.facts import (
    EngineDefaults,
    Gpu,
    MeasuredProfile,
    engine_defaults,
    gpu,
    gpu_names,
    read_profiles,
)
from generator.hf_config import load_architecture
from generator.parallel import WorkerPool, parse_layout
from generator.spec.reader import load_spec
from generator.spec.spec import FieldPath, Spec
from generator.studies.ladders import Studies, plan_studies
from generator.workload import Workload, random_range_ratio

T = TypeVar("T")

_ENGINE = "vllm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A spec with everything that follows from it: recipes, engines, capacities and studies."""

    spec: Spec
    derivation: Derivation
    capacities: Mapping[str, EngineCapacity]
    studies: Studies


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingBasis:
    """A spec and what its engines are sized with.

    ``profiles`` are the measured start-ups to look in before the package's own.
    """

    spec: Spec
    architecture: ModelArchitecture
    gpu: Gpu
    defaults: EngineDefaults
    profiles: tuple[MeasuredProfile, ...] = ()


def sizing_basis(spec: Spec, profiles: tuple[MeasuredProfile, ...] = ()) -> SizingBasis:
    """What a spec names; raises InvalidInput with every name that leads nowhere.

    ``profiles`` are looked in before those that the spec names.
    """
    architecture, accelerator, defaults = _named_by(spec)
    named = (profile for path in spec.profiles for profile in read_profiles(path))
    return SizingBasis(
        spec=spec,
        architecture=architecture,
        gpu=accelerator,
        defaults=defaults,
        profiles=(*profiles, *named),
    )


def estimate_spec(path: Path, profiles: tuple[MeasuredProfile, ...] = ()) -> Estimate:
    """Read a spec, derive its recipes and evaluate every engine of them.

    Memory is looked up in ``profiles``, then in those the spec names, then in the package's.
    Raises InvalidInput or NothingFits with every problem of the file that could be found.
    """
    spec = load_spec(path)
    basis = sizing_basis(spec, profiles)
    derivation = derive(spec, basis.architecture, basis.defaults)
    workload = replace(spec.workload, random_range_ratio=_random_range_ratio(spec))
    studies = planned_studies(basis)
    try:
        capacities = capacity_of_engines(
            derivation.engines,
            basis.architecture,
            basis.gpu,
            basis.defaults,
            workload,
            basis.profiles,
        )
    except NothingFits as error:
        raise NothingFits(_placed(spec, derivation, error)) from None
    return Estimate(spec=spec, derivation=derivation, capacities=capacities, studies=studies)


def study_probes(path: Path, profiles: tuple[MeasuredProfile, ...] = ()) -> tuple[Probe, ...]:
    """The engines of a spec's phase studies, of those that can run; errors as estimate_spec."""
    spec = load_spec(path)
    if not spec.studies:
        return ()
    studies = planned_studies(sizing_basis(spec, profiles))
    return tuple(study.probe for study in studies.planned)


def planned_studies(basis: SizingBasis) -> Studies:
    """The phase studies of a spec: those that can run, and those that cannot with the reason."""
    return plan_studies(basis.spec, basis.architecture, basis.gpu, basis.defaults, basis.profiles)


def _named_by(spec: Spec) -> tuple[ModelArchitecture, Gpu, EngineDefaults]:
    """What a spec names; raises InvalidInput with every name that leads nowhere."""
    problems: list[Problem] = []

    def found(path: FieldPath, find: Callable[[], T]) -> T | None:
        try:
            return find()
        except InvalidInput as error:
            problems.extend(_with_place(spec, path, problem) for problem in error.problems)
            return None

    engine = spec.engine
    if spec.cluster.gpu in gpu_names():
        problems += _domain_problems(spec, gpu(spec.cluster.gpu))
    architecture = found(("model", "config"), lambda: load_architecture(spec.model_config))
    accelerator = found(("cluster", "gpu"), lambda: gpu(spec.cluster.gpu))
    # Whether a version is known does not depend on the GPU: any serves beside an unknown one.
    beside = accelerator or gpu(gpu_names()[0])
    defaults = found(
        ("engine", "version"), lambda: engine_defaults(engine.type, engine.version, beside)
    )
    if problems or architecture is None or accelerator is None or defaults is None:
        raise InvalidInput(problems)
    return architecture, accelerator, defaults


def _domain_problems(spec: Spec, accelerator: Gpu) -> list[Problem]:
    """A cluster larger than one NVLink domain, where nodes have one at all."""
    domain, nodes = accelerator.nodes_per_nvlink_domain, spec.cluster.nodes
    if domain == 1 or nodes <= domain:
        return []
    return [
        spec.document.problem(
            ("cluster", "nodes"),
            f"{nodes} nodes are more than the {domain} of one NVLink domain of {accelerator.name}",
            f"a deployment stays inside one domain: write at most {domain}",
        )
    ]


def _with_place(spec: Spec, path: FieldPath, problem: Problem) -> Problem:
    """A problem with the spec's line, unless it is inside a file that the spec merely names."""
    if problem.line or problem.path:
        return problem
    message = f"{problem.source}: {problem.message}" if problem.source else problem.message
    return spec.document.problem(path, message, problem.hint)


def _placed(spec: Spec, derivation: Derivation, error: NothingFits) -> list[Problem]:
    """The problems of engines with the spec's lines, each once for all recipes of one engine."""
    places = {
        engine.name: deployment.spec.place_of(engine.role)
        for deployment in derivation.deployments
        for engine in (deployment.prefill, deployment.decode)
    }
    for probe in derivation.probes:
        places[probe.engine.name] = probe.spec.path
    placed = dict.fromkeys(
        spec.document.problem(places[problem.path], problem.message, problem.hint)
        for problem in error.problems
    )
    return sorted(placed, key=lambda problem: problem.line)


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
    if options.num_speculative_tokens and not architecture.draft_layers:
        raise InvalidInput(
            Problem(
                message=f"model {architecture.name} has no multi-token-prediction layers",
                hint="leave --mtp out",
            )
        )
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
