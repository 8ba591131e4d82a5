"""A recipe as a job: its points, and what it asks of the cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generator.documents import Document
from generator.errors import InvalidInput, Problem
from generator.recipe.expansion import Variant, all_variants
from generator.sweep.directives import directive_problems, value_problems
from generator.sweep.node_count import gpus_per_node, is_heterogeneous, node_count
from generator.sweep.points import Point, concurrencies, recipe_digest
from generator.sweep.time_limit import parse_time_limit
from generator.validation import problems as schema_problems
from generator.wording import FieldPath
from generator.yaml_text.writing import quoted_yaml

_DEFAULT_TIME_LIMIT = "01:00:00"  # srtctl's, where neither recipe nor cluster file has one
_MOST_CONCURRENCY = 10_000_000
_ENGINE_CHARACTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptRecipe:
    """One job of a sweep: a recipe and the concurrencies it runs one after the other.

    ``text`` is the recipe as its file has it, or as expanded, ``file`` that file's name to the
    user. ``time_limit_s`` covers the whole job. ``engine`` tells recipes apart that differ in
    model, image or engine.
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

    def on_one_node(self) -> SweptRecipe:
        """The same points as a job without GPUs on one node, as a rehearsal needs it."""
        return replace(self, nodes=1, gpus_per_node=0)


def swept_recipes(document: Document) -> list[SweptRecipe]:
    """The jobs of a recipe file: one, or as many as its overrides and its grid make.

    Raises InvalidInput with everything that keeps any of them from being submitted.
    """
    problems: list[Problem] = []
    recipes = []
    for variant in all_variants(document):
        try:
            recipes.append(swept_recipe(_own_document(variant)))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(dict.fromkeys(problems))
    if not recipes:
        raise InvalidInput(document.problem((), "makes no jobs", "add an override, or a value"))
    return recipes


def swept_recipe(document: Document) -> SweptRecipe:
    """The job that a recipe of either srt-slurm layout describes.

    Raises InvalidInput with everything that keeps it from being submitted.
    """
    data = document.data
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


def _own_document(variant: Variant) -> Document:
    """A variant as a recipe of its own, with the lines of the file that it comes from.

    What srtctl fills in is text, so all text is quoted and stays so. Raises InvalidInput for a
    variant that srtctl does not agree with itself about.
    """
    whole = variant.document
    if variant.data is whole.data:
        return whole
    if variant.kept_deletions:
        message = "null removes it for srtctl validate, while srtctl apply keeps it"
        hint = "use override_* for what removes keys"
        raise InvalidInput(variant.problem(path, message, hint) for path in variant.kept_deletions)
    return Document(
        source=whole.source,
        text=quoted_yaml(variant.data),
        data=variant.data,
        lines={path: variant.line(path) for path in _paths(variant.data, ())},
    )


def _paths(node: Any, path: FieldPath) -> Iterator[FieldPath]:
    yield path
    items = node.items() if isinstance(node, Mapping) else ()
    for key, below in enumerate(node) if isinstance(node, list) else items:
        yield from _paths(below, (*path, key))


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
