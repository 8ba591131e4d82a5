"""Proposed deployments as a spec, and what generate, capacity and check would say of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from generator.capacity.capacity import EngineCapacity, evaluate_engine
from generator.capacity.inverse import startup_fault
from generator.checks.rule import Severity
from generator.checks.run import check_recipes
from generator.derivation.derivation import Deployment, derive_deployment
from generator.documents import parse_document
from generator.enumeration.base_spec import composed_text
from generator.enumeration.subject import Subject
from generator.errors import InvalidInput, NothingFits, Problem
from generator.generation.rendering import render_recipe
from generator.planning.proposal import ProposedDeployment
from generator.recipe.inputs import RecipeFile, RecipeInputs
from generator.recipe.recipe import Dialect
from generator.recipe.sources import RecipeSource
from generator.spec.reader import spec_from_document
from generator.spec.rewriting import with_sections, write_new_spec, write_spec
from generator.spec.spec import DeploymentSpec, Spec
from generator.units import format_count
from generator.workload import prompts_per_concurrency, random_range_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidDeployment:
    """A proposed deployment that would be rendered, starts, holds its load and passes ``check``."""

    proposed: ProposedDeployment
    prefill: EngineCapacity
    decode: EngineCapacity
    warnings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedDeployment:
    """One that would not, and why."""

    proposed: ProposedDeployment
    problems: tuple[Problem, ...]


def proposed_text(subject: Subject, deployments: Sequence[ProposedDeployment], folder: Path) -> str:
    """The spec of a proposed sweep; relative names in a composed one start at ``folder``.

    A user's spec keeps everything but its groups; accuracy runs, probes and studies of others are
    left out.
    """
    dtype = deployments[0].points[0].kind.kv_cache_dtype
    groups = list(_groups_lines(subject, deployments))
    if subject.question is None:
        others = dict.fromkeys(("accuracy", "probe", "studies"))
        return with_sections(subject.spec, {**others, "groups": groups})
    return composed_text(subject.question, subject.architecture, subject.gpu, dtype, groups, folder)


def write_proposed(subject: Subject, valid: Sequence[ValidDeployment], path: Path) -> None:
    """Write the proposed sweep as a spec, once it has been read back.

    Raises InvalidInput where its relative names would lead elsewhere.
    """
    deployments = [each.proposed for each in valid]
    text = proposed_text(subject, deployments, path.parent)
    if subject.question is None:
        write_spec(path, text, subject.spec)
        return
    write_new_spec(path, text)


def _groups_lines(subject: Subject, deployments: Sequence[ProposedDeployment]) -> Iterator[str]:
    """One group for each deployment, sized for the highest of its own loads."""
    yield "  # Proposed by pdrecipe plan: predictions, not measurements, above each deployment."
    requests = prompts_per_concurrency(subject.spec.benchmark)
    for each in deployments:
        prefill, decode, kind = each.shape
        slow, fast = each.points[-1], each.points[0]
        loads = ", ".join(map(str, each.concurrencies))
        speeds = (
            f"{slow.tokens_per_s_per_user:.0f}"
            if slow is fast
            else f"{slow.tokens_per_s_per_user:.0f} to {fast.tokens_per_s_per_user:.0f}"
        )
        yield (
            f"  # {slow.total_tokens_per_s_per_gpu:,.0f} tokens/s per GPU on {slow.gpus} GPUs at"
            f" {slow.concurrency}, {speeds} tokens/s per user"
        )
        yield (
            f"  - {{decode: {decode}, mtp: {kind.speculative_tokens},"
            f' time_limit: "{each.time_limit(requests)}", deployments: ['
        )
        yield f"      {{file: {each.file}, prefill: {prefill}, concurrencies: [{loads}]}}]}}"


def validated(
    subject: Subject, deployments: Sequence[ProposedDeployment]
) -> list[ValidDeployment | RefusedDeployment]:
    """What the spec of these deployments comes to, one by one.

    Raises InvalidInput where the spec as a whole is none.
    """
    text = proposed_text(subject, deployments, Path())
    folder = Path() if subject.question else Path(subject.spec.document.source).parent
    spec = spec_from_document(parse_document(text, "the proposed spec"), folder=folder)
    return [
        _validated(subject, spec, written, proposed)
        for written, proposed in zip(spec.deployments, deployments, strict=True)
    ]


def _validated(
    subject: Subject, spec: Spec, written: DeploymentSpec, proposed: ProposedDeployment
) -> ValidDeployment | RefusedDeployment:
    workload = replace(
        spec.workload, random_range_ratio=random_range_ratio(spec.document.data["benchmark"])
    )
    try:
        deployment = derive_deployment(spec, written, subject.architecture, subject.defaults)
        prefill, decode = (
            evaluate_engine(
                engine,
                subject.architecture,
                subject.gpu,
                subject.defaults,
                workload,
                subject.profiles,
            )
            for engine in (deployment.prefill, deployment.decode)
        )
        findings = _findings(subject, deployment)
    except (InvalidInput, NothingFits) as error:
        return RefusedDeployment(proposed=proposed, problems=error.problems)
    problems = [*_capacity_problems(prefill, decode, written), *findings[Severity.ERROR]]
    if problems:
        return RefusedDeployment(proposed=proposed, problems=tuple(problems))
    return ValidDeployment(
        proposed=proposed,
        prefill=prefill,
        decode=decode,
        warnings=len(findings[Severity.WARNING]),
    )


def _capacity_problems(
    prefill: EngineCapacity, decode: EngineCapacity, written: DeploymentSpec
) -> Iterator[Problem]:
    for capacity in (prefill, decode):
        fault = startup_fault(capacity)
        if fault is not None and fault.is_certain:
            yield Problem(message=fault.message, hint=fault.hint)
    highest, held = max(written.concurrencies), decode.pool_requests
    if highest > held:
        yield Problem(
            message=f"the decode workers hold {format_count(float(held))} of {highest} requests"
        )


def _findings(subject: Subject, deployment: Deployment) -> dict[Severity, list[Problem]]:
    """What ``check`` finds in the recipe of a deployment."""
    name = f"{deployment.spec.file}.yaml"
    text = render_recipe(deployment.recipe, Dialect.V2)
    source = RecipeSource(name=name, relative_path=name, text=text, is_named=True)
    recipe = RecipeFile(source=source, document=parse_document(text, name))
    result = check_recipes(RecipeInputs(recipes=(recipe,)), model=subject.architecture)
    found: dict[Severity, list[Problem]] = {severity: [] for severity in Severity}
    for finding in result.findings:
        found[finding.rule.severity].append(
            Problem(message=f"{finding.rule.id}: {finding.message}", hint=finding.hint)
        )
    for problem in result.problems:
        found[Severity.ERROR].append(problem)
    return found
