"""A recipe as a job: its points, and what it asks of the cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.documents import Document
from generator.errors import InvalidInput, Problem
from generator.sweep.directives import directive_problems, value_problems
from generator.sweep.node_count import gpus_per_node, is_heterogeneous, node_count
from generator.sweep.points import Point, concurrencies, recipe_digest
from generator.sweep.time_limit import parse_time_limit
from generator.validation import problems as schema_problems
from generator.wording import FieldPath

_DEFAULT_TIME_LIMIT = "01:00:00"  # srtctl's, where neither recipe nor cluster file has one
_MOST_CONCURRENCY = 10_000_000
_ENGINE_CHARACTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptRecipe:
    """One job of a sweep: a recipe and the concurrencies it runs one after the other.

    ``text`` is the file as it was read, ``file`` its name to the user. ``time_limit_s`` covers the
    whole job. ``engine`` tells recipes apart that differ in model, image or engine.
    """

    name: str
    file: str
    text: str = field(repr=False)
    digest: str
    points: tuple[Point, ...]
    nodes: int
    gpus_per_node: int
    time_limit_s: int
    account: str | None
    partition: str | None
    directives: Mapping[str, str]
    engine: str

    @property
    def gpu_hours(self) -> float:
        """What the job costs if it takes all of its time."""
        return self.nodes * self.gpus_per_node * self.time_limit_s / 3600


def swept_recipe(document: Document) -> SweptRecipe:
    """The job that a recipe of either srt-slurm layout describes.

    Raises InvalidInput with everything that keeps it from being submitted.
    """
    data = document.data
    if found := _template_problems(document):
        raise InvalidInput(found)
    layout = "recipe-v2" if isinstance(data, dict) and "schema" in data else "recipe-v1"
    # What makes a recipe no job at all; `pdrecipe submit` also runs the check of reviews.
    if found := schema_problems(document, layout):
        raise InvalidInput(found)
    if found := list(_problems(document)):
        raise InvalidInput(found)
    slurm = data.get("slurm") or {}
    digest = recipe_digest(data)
    return SweptRecipe(
        name=data["name"],
        file=document.source,
        text=document.text,
        digest=digest,
        points=tuple(Point(digest=digest, concurrency=load) for load in concurrencies(data)),
        nodes=node_count(data),
        gpus_per_node=gpus_per_node(data),
        time_limit_s=parse_time_limit(slurm.get("time_limit") or _DEFAULT_TIME_LIMIT),
        account=slurm.get("account"),
        partition=slurm.get("partition"),
        directives=data.get("sbatch_directives") or {},
        engine=_engine(data),
    )


def _template_problems(document: Document) -> list[Problem]:
    """What must be expanded into one file a job first."""
    if not isinstance(document.data, dict):
        return []
    return [
        document.problem((key,), "several recipes in one file", "expand it, one file for each job")
        for key in ("sweep", "base")
        if document.data.get(key)
    ]


def _problems(document: Document) -> Iterator[Problem]:
    data: dict[str, Any] = document.data
    slurm = data.get("slurm") or {}
    if is_heterogeneous(data):
        hint = "remove het_jobs: prefill and decode then share one allocation"
        yield document.problem(("resources", "het_jobs"), "cannot be submitted", hint)
    if node_count(data) < 1:
        yield document.problem(("resources",), "takes no nodes")
    try:
        parse_time_limit(slurm.get("time_limit") or _DEFAULT_TIME_LIMIT)
    except ValueError as error:
        yield document.problem(("slurm", "time_limit"), str(error))
    yield from _load_problems(document)
    written = data.get("sbatch_directives") or {}
    found = [*directive_problems(written, "sbatch_directives")]
    for key in ("account", "partition"):
        found += value_problems(slurm.get(key) or "", f"slurm.{key}")
    for problem in found:
        path: FieldPath = tuple(problem.path.split(".", 1))
        yield document.problem(path, problem.message, problem.hint)


def _load_problems(document: Document) -> Iterator[Problem]:
    path = ("benchmark", "concurrencies")
    try:
        loads = concurrencies(document.data)
    except ValueError as error:
        yield document.problem(path, str(error))
        return
    if any(load is not None and load > _MOST_CONCURRENCY for load in loads):
        yield document.problem(path, f"a concurrency must be at most {_MOST_CONCURRENCY}")


def _engine(data: Mapping[str, Any]) -> str:
    """Model, image and engine in a few characters, equal for recipes that share all three."""
    model = data["model"]
    engine = data.get("engine") or data.get("backend")
    kind = engine.get("type") if isinstance(engine, Mapping) else engine
    text = repr((model.get("path"), model.get("container"), kind))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_ENGINE_CHARACTERS]
