"""SCH: what srt-slurm and the engine's command line accept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from generator.checks.job import Job, flag_path
from generator.checks.rule import Hit, QuoteText, Severity, rule
from generator.checks.workers import Workers
from generator.documents import Document
from generator.errors import Problem
from generator.facts.vllm_flags import (
    in_words,
    is_unknown,
    known_release,
    nearest_flag,
    nearest_releases,
)
from generator.normal_form.neutral_paths import V1_ENGINES
from generator.recipe.dialects import V1_ROLE_NAMES
from generator.spec.flags import OWNED_BY_SRTCTL
from generator.validation import problems
from generator.wording import FieldPath, did_you_mean, dotted_path, shown

_ENGINE_CONFIGS = frozenset(f"{engine}_config" for engine in V1_ENGINES)
_TEXT_SECTIONS: tuple[FieldPath, ...] = (
    ("environment",),
    ("sbatch_directives",),
    ("srun_options",),
    ("container_mounts",),
    ("benchmark", "env"),
    ("frontend", "env"),
    *(("backend", f"{name}_environment") for name in V1_ROLE_NAMES.values()),
    *(("roles", role, "env") for role in V1_ROLE_NAMES),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Structure(Document):
    """A recipe's data without a file, that keeps the paths of what is wrong with it."""

    paths: dict[str, FieldPath]

    def problem(self, path: FieldPath, message: str, hint: str = "") -> Problem:
        found = Document.problem(self, path, message, hint)
        self.paths[found.path] = path
        return found


@lru_cache(1024)
def _refused(structure: str, layout: str) -> tuple[tuple[FieldPath, Problem], ...]:
    """What a layout refuses of a recipe in JSON; most points of a grid share the answer."""
    document = _Structure(source="", text="", data=json.loads(structure), lines={}, paths={})
    found = problems(document, f"recipe-{layout}")
    return tuple((document.paths[problem.path], problem) for problem in found)


def _without_open_parts(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without its name and engine flags, of which a layout refuses nothing."""
    stripped = dict(data)
    if isinstance(data.get("name"), str):
        stripped["name"] = ""
    backend = data.get("backend")
    if isinstance(backend, dict):
        stripped["backend"] = {
            key: _emptied(value) if key in _ENGINE_CONFIGS else value
            for key, value in backend.items()
        }
    roles = data.get("roles")
    if isinstance(roles, dict):
        stripped["roles"] = {
            role: {**section, "args": {}} if _has_flags(section) else section
            for role, section in roles.items()
        }
    return stripped


def _emptied(flags_by_role: Any) -> Any:
    if not isinstance(flags_by_role, dict):
        return flags_by_role
    return {role: {} if isinstance(flags, dict) else flags for role, flags in flags_by_role.items()}


def _has_flags(section: Any) -> bool:
    return isinstance(section, dict) and isinstance(section.get("args"), dict)


@rule("SCH001", Severity.ERROR)
def refused_by_srt_slurm(job: Job) -> Iterator[Hit]:
    """A key or value is not part of srt-slurm's layout.

    ## What it does
    Validates each variant against the layout it is written in: v1 without a `schema` key, v2 with
    `schema: 2`. Engine flags are open, as they are to srt-slurm.

    ## Why is this bad?
    srt-slurm rejects unknown keys at every level, before anything runs.

    ## Example
    `resources.decode_node: 2` for `decode_nodes`.
    """
    variant = job.form.variant
    unquoted = {variant.origin(path) for path in _unquoted(variant.data)}
    structure = json.dumps(_without_open_parts(variant.data))
    for path, problem in _refused(structure, job.form.dialect):
        origin = variant.origin(path)
        if origin not in unquoted:
            yield Hit(
                line=variant.line(path),
                path=dotted_path(origin),
                message=problem.message,
                hint=problem.hint,
            )


@rule("SCH002", Severity.ERROR)
def unquoted_text(job: Job) -> Iterator[Hit]:
    """A value that has to be text is read as a number or a switch.

    ## What it does
    Looks for values without quotes in environments, sbatch directives, srun options and mounts.

    ## Why is this bad?
    srt-slurm takes strings there and rejects anything else.

    ## Example
    `NCCL_CUMEM_ENABLE: 1` for `"1"`.
    """
    variant = job.form.variant
    for path in _unquoted(variant.data):
        origin = variant.origin(path)
        value = _at(variant.data, path)
        yield Hit(
            line=variant.line(path),
            path=dotted_path(origin),
            message=f"{shown(value)} must be text",
            hint="put it in quotes",
            edit=QuoteText(path=origin),
        )


def _unquoted(data: Any) -> Iterator[FieldPath]:
    for section in _TEXT_SECTIONS:
        values = _at(data, section)
        if isinstance(values, dict):
            for key, value in values.items():
                if isinstance(value, bool | int | float):
                    yield (*section, key)


def _at(data: Any, path: FieldPath) -> Any:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data


@rule("SCH003", Severity.ERROR)
def unknown_flag(job: Job) -> Iterator[Hit]:
    """The pinned vLLM release has no such flag.

    ## What it does
    Looks up every engine flag in the flags of that very release, where they are known, and
    in those that Dynamo's worker adds.

    ## Why is this bad?
    The engine exits at once. Half of the failed jobs of one bring-up died of it.

    ## Example
    `max-num-batched-token: 8192` for `max-num-batched-tokens`.
    """
    exact = known_release(job.engine_version)
    if exact is not None:
        for workers, flag in _unknown_flags(job, (exact,)):
            yield _unknown(job, workers, flag, (exact,))


@rule("SCH004", Severity.WARNING)
def unfamiliar_flag(job: Job) -> Iterator[Hit]:
    """No vLLM release near the pinned one has such a flag.

    ## What it does
    As SCH003, for versions whose flags are not known: nightlies, other releases, none at all.
    The releases next to it are looked up.

    ## Why is this bad?
    If the flag is no flag of that version either, the engine exits at once.

    ## Example
    `max-num-batched-token: 8192` with vLLM 0.22.0.
    """
    if known_release(job.engine_version) is None:
        nearest = nearest_releases(job.engine_version)
        for workers, flag in _unknown_flags(job, nearest):
            yield _unknown(job, workers, flag, nearest)


def _unknown_flags(job: Job, releases: tuple[str, ...]) -> Iterator[tuple[Workers, str]]:
    for workers in job.roles:
        if workers.engine != "vllm":
            continue
        for flag in dict.fromkeys(each.partition(".")[0] for each in workers.flags):
            dashed = flag.replace("_", "-")
            if dashed not in OWNED_BY_SRTCTL and is_unknown(dashed, releases):
                yield workers, flag


def _unknown(job: Job, workers: Workers, flag: str, releases: tuple[str, ...]) -> Hit:
    near = nearest_flag(flag.replace("_", "-"), releases)
    verb = "has" if len(releases) == 1 else "have"
    return job.hit(
        flag_path(workers.role, flag),
        f"vLLM {in_words(releases)} {verb} no flag --{flag}",
        "" if near is None else did_you_mean(flag, [near]) or f"the nearest is {near}",
    )


@rule("SCH005", Severity.WARNING)
def flag_of_launcher(job: Job) -> Iterator[Hit]:
    """A flag is set that srt-slurm sets for each worker itself.

    ## What it does
    Looks for the flags of launching: host, port, headless, ranks and addresses.

    ## Why is this bad?
    The value is ignored, given twice, or stops the launch.

    ## Example
    `data-parallel-hybrid-lb: true`.
    """
    for workers in job.roles:
        for flag in OWNED_BY_SRTCTL if workers.engine == "vllm" else ():
            if flag in workers.flags:
                message = f"srt-slurm sets --{flag} for every worker"
                yield job.flag_hit(workers, flag, message, "remove it")


@rule("SCH006", Severity.WARNING)
def given_twice(job: Job) -> Iterator[Hit]:
    """The same setting is given in two spellings.

    ## What it does
    Reads dashes and underscores, dotted keys, mappings and JSON text as one spelling, and looks
    for settings that come twice.

    ## Why is this bad?
    Which one holds depends on the order of arguments.

    ## Example
    `max-num-seqs: 256` and `max_num_seqs: 512` in one role.
    """
    for path in job.form.repeated:
        yield job.hit(path, "is given more than once, in several spellings", "keep one of them")


@rule("SCH007", Severity.WARNING)
def deletion_not_applied(job: Job) -> Iterator[Hit]:
    """A null in a zip section deletes a key when the recipe is validated, not when it runs.

    ## What it does
    Looks for keys that a `zip_override_*` section removes from `base` by null.

    ## Why is this bad?
    `srtctl validate` and `srtctl apply` see different recipes.

    ## Example
    `zip_override_a: {slurm: null, benchmark: {concurrencies: ["64", "128"]}}`.
    """
    variant = job.form.variant
    for path in variant.kept_deletions:
        yield Hit(
            line=variant.line(path),
            path=dotted_path(path),
            message="null removes it for srtctl validate, while srtctl apply keeps it",
            hint="use override_* for what removes keys",
        )


@rule("SCH008", Severity.WARNING)
def grid_in_override(job: Job) -> Iterator[Hit]:
    """An override file has a sweep, which srt-slurm may refuse.

    ## What it does
    Looks for `sweep` in `base` or in an override.

    ## Why is this bad?
    srt-slurm 1.0.68 means to expand it, but refuses it as an unknown field.

    ## Example
    `override_a: {sweep: {concurrency: [64, 128]}}`.
    """
    variant = job.form.variant
    if variant.parameters and () in variant.moved:
        yield Hit(
            line=variant.line(("sweep",)),
            path=dotted_path(variant.origin(("sweep",))),
            message="srt-slurm 1.0.68 refuses a sweep inside an override file",
            hint="write zip_override_* or a file of its own",
        )
