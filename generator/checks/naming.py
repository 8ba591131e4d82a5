"""NAM: names, folders and what siblings have in common."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache

from generator.checks.job import Job
from generator.checks.rule import Hit, Severity, rule
from generator.checks.siblings import NameUse, folder_of, role_kind
from generator.facts import gpu_names
from generator.recipe.recipe import Dialect

_ENGINES = ("vllm", "sglang", "trtllm")
_CHECKED_PREFIXES = ("NCCL_", "VLLM_")
_LEAST_SIBLINGS = 3
_WORD = re.compile(r"[a-z0-9]+")


def _other_uses(job: Job) -> Iterator[NameUse]:
    """Other files whose job has this one's name; the two layouts of a recipe may share it."""
    own = job.file.source.name
    for use in job.siblings.names.get(job.form.variant.name, ()):
        if use.source != own and use.is_v2 is (job.form.dialect is Dialect.V2):
            yield use


@rule("NAM001", Severity.ERROR)
def name_taken_in_folder(job: Job) -> Iterator[Hit]:
    """Another recipe of the folder has the same name.

    ## What it does
    Compares the names of all recipes that are checked together.

    ## Why is this bad?
    Results are filed by name: one run overwrites or passes for the other.

    ## Example
    Two files, copied, with `name: bs256-1p6d-h200-fp8`.
    """
    folder = folder_of(job.file.source.name)
    for use in _other_uses(job):
        if folder_of(use.source) == folder:
            yield _taken(job, use)
            return


@rule("NAM002", Severity.WARNING)
def name_taken_elsewhere(job: Job) -> Iterator[Hit]:
    """A recipe of another folder has the same name.

    ## What it does
    As NAM001, across folders. The v1 and the v2 layout of one recipe may share a name.

    ## Why is this bad?
    Results of different models, GPUs or lengths become hard to tell apart.

    ## Example
    `name: agg-tp4` in `B200/` and in `B300/`.
    """
    folder = folder_of(job.file.source.name)
    for use in _other_uses(job):
        if folder_of(use.source) != folder:
            yield _taken(job, use)
            return


def _taken(job: Job, use: NameUse) -> Hit:
    return job.hit(
        ("name",), f"{use.source}:{use.line} has this name, too", "give each recipe its own"
    )


@cache
def _words(path: str) -> frozenset[str]:
    return frozenset(_WORD.findall(path.lower()))


@rule("NAM003", Severity.WARNING)
def other_engine_than_folder(job: Job) -> Iterator[Hit]:
    """The path names another engine than the recipe.

    ## What it does
    Looks for vllm, sglang and trtllm among the words of the path.

    ## Why is this bad?
    Readers, and tables made from paths, take it for the other engine's.

    ## Example
    `H200/trtllm/1k1k/a.yaml` with `backend.type: sglang`.
    """
    named = [engine for engine in _ENGINES if engine in _words(job.file.source.name)]
    if job.form.engine in _ENGINES and named and job.form.engine not in named:
        message = f"the path says {named[0]}, the engine is {job.form.engine}"
        yield job.hit(("engine", "type"), message, "move the file, or name the engine")


@rule("NAM004", Severity.WARNING)
def other_gpu_than_folder(job: Job) -> Iterator[Hit]:
    """The path names another GPU than the recipe.

    ## What it does
    Looks for the names of GPUs among the words of the path.

    ## Why is this bad?
    Readers, and tables made from paths, take it for the other GPU's.

    ## Example
    `GB200/a.yaml` with `gpu_type: gb300`.
    """
    written = job.form.get("resources", "gpu_type")
    named = [gpu for gpu in gpu_names() if gpu in _words(job.file.source.name)]
    if isinstance(written, str) and named and written.lower() not in named:
        message = f"the path says {named[0]}, gpu_type is {written}"
        yield job.hit(("resources", "gpu_type"), message, "move the file, or correct gpu_type")


@rule("NAM005", Severity.WARNING)
def variable_nearly_a_siblings(job: Job) -> Iterator[Hit]:
    """An environment variable is spelled almost as in the sibling files.

    ## What it does
    Compares the NCCL_ and VLLM_ variables that this file alone has with those that at least three
    files of the folder have and this one lacks.

    ## Why is this bad?
    Nothing complains about a variable that nobody reads.

    ## Example
    `NCCL_MNVL_ENABLE` where the siblings have `NCCL_MNNVL_ENABLE`.
    """
    counts = job.siblings.variables.get(folder_of(job.file.source.name))
    if counts is None:
        return
    for workers in job.roles:
        own = job.environment(workers.role)
        for name in own:
            if not name.startswith(_CHECKED_PREFIXES) or counts[name] != 1:
                continue
            common = [
                other
                for other, files in counts.items()
                if files >= _LEAST_SIBLINGS and other not in own and _is_near(name, other)
            ]
            if common:
                yield job.hit(
                    ("roles", workers.role, "env", name),
                    f"only this file has {name}, {counts[common[0]]} files of the folder have"
                    f" {common[0]}",
                    f"did you mean {common[0]}?",
                )


@cache
def _is_near(one: str, other: str) -> bool:
    return abs(len(one) - len(other)) <= 2 and (
        difflib.SequenceMatcher(None, one, other).ratio() >= 0.93
    )


@rule("NAM006", Severity.INFO)
def flag_of_all_siblings_missing(job: Job) -> Iterator[Hit]:
    """A role lacks an engine flag that it has in all sibling files.

    ## What it does
    Compares the flags of a role with those of the same role in the other files of the folder with
    the same model, GPU and engine, of which there have to be at least three.

    ## Why is this bad?
    It need not be. Where a flag was added to all of them, it may have been forgotten in one.

    ## Example
    `kv-cache-dtype` in five recipes of a folder, and not in the sixth.
    """
    folder = folder_of(job.file.source.name)
    flags, files = job.siblings.flags.get(folder), job.siblings.files.get(folder)
    if flags is None or files is None:
        return
    for workers in job.roles:
        kind = role_kind(job.form, workers.role)
        others = files[kind] - 1
        if others < _LEAST_SIBLINGS:
            continue
        own = {flag.partition(".")[0] for flag in workers.flags}
        common = {flag for (of, flag), count in flags.items() if of == kind and count == others}
        for flag in sorted(common - own):
            if not _has_opposite(flag, own):
                path = ("roles", workers.role, "args")
                yield job.hit(path, f"{flag} is in all {others} sibling files")


def _has_opposite(flag: str, own: set[str]) -> bool:
    return (flag.removeprefix("no-") if flag.startswith("no-") else f"no-{flag}") in own
