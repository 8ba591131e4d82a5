"""From a spec file to the recipe files it gives, and what that changes on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from generator import __version__
from generator.capacity.capacity import deployment_notices
from generator.capacity.inverse import StartupFault, startup_fault
from generator.derivation.derivation import Deployment, Probe
from generator.engine.plan import Engine
from generator.errors import InvalidInput, Problem
from generator.estimation import Estimate, estimate_spec
from generator.facts import MeasuredProfile
from generator.files import keep_inputs, write_text_atomically
from generator.generation.drift import FileDrift, find_drift, stale_files
from generator.generation.rendering import render_recipe
from generator.recipe.recipe import Dialect
from generator.spec.spec import DeploymentSpec, FieldPath, ProbeSpec, Spec
from generator.studies.ladders import RefusedStudy
from generator.wording import dotted_path

_SEQUENCES = "max-num-seqs"
_ROLES = {"agg": "probe", "prefill": "prefill", "decode": "decode"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What a spec gives in one dialect: its files beside those on disk.

    ``notices`` are warnings, each with the recipes it holds for; ``refused`` are the layouts of
    phase studies that cannot be measured.
    """

    files: tuple[FileDrift, ...]
    stale: tuple[Path, ...]
    notices: Mapping[str, tuple[str, ...]]
    refused: tuple[RefusedStudy, ...]

    @property
    def changed(self) -> tuple[FileDrift, ...]:
        return tuple(drift for drift in self.files if not drift.is_unchanged)


def plan_generation(
    spec_path: Path,
    dialect: Dialect,
    out: Path | None,
    on_rendered: Callable[[str], None] = lambda _: None,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> Generation:
    """Derive, size and render every recipe of a spec; writes nothing.

    ``out`` defaults to the spec's output folder, one subfolder a dialect. ``on_rendered`` is told
    each file name, for progress. ``profiles`` are measured start-ups to look in first. Raises
    InvalidInput or NothingFits with all problems.
    """
    estimate = estimate_spec(spec_path, profiles)
    spec = estimate.spec
    _require_start_up(estimate)
    folder = _output_folder(spec, dialect, out)
    header = _header_lines(spec, dialect)
    rendered: dict[Path, str] = {}
    problems: list[Problem] = []
    derivation = estimate.derivation
    studies = [study.probe for study in estimate.studies.planned]
    derived: list[Deployment | Probe] = [*derivation.deployments, *derivation.probes, *studies]
    for item in derived:
        path = folder / item.spec.folder / f"{item.spec.file}.yaml"
        try:
            rendered[path] = render_recipe(item.recipe, dialect, header)
        except InvalidInput as error:
            problems += _placed(spec, item.spec, dialect, error)
        on_rendered(path.name)
        keep_inputs(path, spec_path)
    if problems:
        raise InvalidInput(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
    return Generation(
        files=find_drift(rendered),
        stale=stale_files(folder, rendered, _mark(spec), f"srt-slurm layout {dialect}"),
        notices=_notices(estimate),
        refused=estimate.studies.refused,
    )


def _placed(
    spec: Spec, described: DeploymentSpec | ProbeSpec, dialect: Dialect, error: InvalidInput
) -> Iterator[Problem]:
    """What srt-slurm's schema refuses in a recipe, where the spec says it.

    Most sections of a recipe have the spec's own names; what has none is placed at the deployment.
    """
    benchmark = ".".join(described.benchmark_path)
    written = {dotted_path(path): path for path in spec.document.lines}
    for problem in error.problems:
        names = (
            problem.path.replace("benchmark", benchmark, 1),
            f"sections.{problem.path}",
        )
        place = next((written[name] for name in names if name in written), None)
        where = "" if place else f"{problem.path}: "
        yield spec.document.problem(
            place or described.path, f"{where}{problem.message} in layout {dialect}", problem.hint
        )


def write_generation(generation: Generation) -> None:
    """Write the files that differ, each whole or not at all."""
    for drift in generation.changed:
        write_text_atomically(drift.path, drift.after)


def _startup_faults(
    estimate: Estimate,
) -> Iterator[tuple[Deployment | Probe, Engine, StartupFault]]:
    """Every engine with more sequences than its KV cache lets it start with, and its recipe."""
    derivation = estimate.derivation
    engines: list[tuple[Deployment | Probe, Engine]] = [
        *(
            (each, engine)
            for each in derivation.deployments
            for engine in (each.prefill, each.decode)
        ),
        *((probe, probe.engine) for probe in derivation.probes),
    ]
    for item, engine in engines:
        fault = startup_fault(estimate.capacities[engine.name])
        if fault is not None:
            yield item, engine, fault


def _require_start_up(estimate: Estimate) -> None:
    """Raise InvalidInput, where the spec says how many sequences, for what surely cannot start."""
    problems = [
        estimate.spec.document.problem(
            _place_of_sequences(estimate.spec, item, engine), fault.message, fault.hint
        )
        for item, engine, fault in _startup_faults(estimate)
        if fault.is_certain
    ]
    if problems:
        raise InvalidInput(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))


def _place_of_sequences(spec: Spec, item: Deployment | Probe, engine: Engine) -> FieldPath:
    """The flag or rule of an engine's max-num-seqs, else where the spec describes the engine."""
    if isinstance(item, Probe):
        return spec.place_of_flag(_SEQUENCES, item.spec.role, ()) or item.spec.path
    group = item.spec.path[:2]
    return spec.place_of_flag(_SEQUENCES, engine.role, group) or item.spec.place_of(engine.role)


def _notices(estimate: Estimate) -> dict[str, tuple[str, ...]]:
    """Each warning once, with the files of the recipes it holds for."""
    said = [
        *(
            (notice, deployment.spec.file)
            for deployment in estimate.derivation.deployments
            for notice in deployment_notices(deployment, estimate.capacities)
        ),
        *(
            (f"{_ROLES[engine.role]}: {fault.message}", item.spec.file)
            for item, engine, fault in _startup_faults(estimate)
        ),
        *(
            (f"study: {fault.message}", study.probe.spec.file)
            for study in estimate.studies.planned
            if (fault := startup_fault(study.capacity)) is not None
        ),
    ]
    files: dict[str, tuple[str, ...]] = {}
    for notice, file in said:
        files[notice] = (*files.get(notice, ()), file)
    return files


def _output_folder(spec: Spec, dialect: Dialect, out: Path | None) -> Path:
    if out is not None:
        return out
    if spec.output is None:
        raise InvalidInput(
            Problem(
                source=spec.document.source,
                message="the spec names no output folder",
                hint="add 'output: <folder>' to the spec, or give --out",
            )
        )
    return spec.output / dialect


def _mark(spec: Spec) -> str:
    """How every file of a spec starts, whatever its version or digest."""
    return f"# Generated by pdrecipe from {spec.file_name};"


def _header_lines(spec: Spec, dialect: Dialect) -> tuple[str, ...]:
    return (
        f"{_mark(spec)[2:]} edit the spec, not this file.",
        f"spec digest {spec.digest}, pdrecipe {__version__}, srt-slurm layout {dialect}",
    )
