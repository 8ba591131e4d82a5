"""One recipe file as the jobs srt-slurm makes of it: override files and sweep grids expanded.

Read from srt-slurm 1.0.68 (``core/config.py``, ``core/sweep.py``). Variants share what they have
in common with their file and with each other: their data is to be read, never changed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.documents import Document
from generator.errors import InvalidInput, Problem
from generator.recipe.override_files import OverrideFile, override_problems
from generator.wording import FieldPath, kind_of

MAX_VARIANTS = 20_000
"""Jobs of one file: a grid beyond it is a slip, and would take minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One job of a recipe file, without ``base``, ``override_*`` and ``sweep``.

    ``suffix`` is what srt-slurm appends to the name; empty for a file that is one job.
    ``parameters`` are the grid point, as written. ``moved`` says where in the document the parts
    come from that do not stand at their own path. ``kept_deletions`` are the keys that a null in
    a zip section removes here and in ``srtctl validate``, though ``srtctl apply`` keeps them.
    """

    document: Document = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    suffix: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    moved: Mapping[FieldPath, FieldPath] = field(default_factory=dict, repr=False)
    kept_deletions: tuple[FieldPath, ...] = ()

    @property
    def name(self) -> str:
        """The job's name; empty where the recipe has none."""
        name = self.data.get("name")
        return name if isinstance(name, str) else ""

    def origin(self, path: FieldPath) -> FieldPath:
        """Where in the document the value at a path of the variant is written."""
        for length in range(len(path), -1, -1):
            origin = self.moved.get(path[:length])
            if origin is not None:
                return (*origin, *path[length:])
        return path

    def line(self, path: FieldPath) -> int:
        """The line of a field of the variant, or of its nearest ancestor."""
        return self.document.line(self.origin(path))

    def problem(self, path: FieldPath, message: str, hint: str = "") -> Problem:
        """A Problem of a field of the variant, at the place in the document it comes from."""
        return self.document.problem(self.origin(path), message, hint)


def variants(document: Document) -> Iterator[Variant]:
    """Every job of a recipe file in srt-slurm's order, one after the other.

    A file with ``base`` gives its overrides, then its zip groups, both by name; ``base`` alone is
    no job. Any of them may be a grid in turn: srt-slurm means to expand that, too, though 1.0.68
    refuses the ``sweep`` of an override as an unknown field.

    Raises InvalidInput, at once and with every problem, where the file's own structure or its
    overrides cannot be read; a faulty ``sweep`` inside an override raises when it is reached.
    """
    data = document.data
    if not isinstance(data, dict):
        message = f"a recipe is a mapping, not {kind_of(data)}"
        raise InvalidInput(document.problem((), message))
    if "base" not in data:
        return _grid(Variant(document=document, data=data))
    if problems := list(override_problems(document)):
        raise InvalidInput(problems)
    return itertools.chain.from_iterable(map(_grid, _overrides(document)))


def all_variants(document: Document) -> tuple[Variant, ...]:
    """Every job of a recipe file; errors as ``variants``, and for more than MAX_VARIANTS jobs."""
    count = variant_count(document)
    if count > MAX_VARIANTS:
        message = f"makes {count:,} jobs, and at most {MAX_VARIANTS:,} are looked at"
        raise InvalidInput(document.problem(("sweep",), message, "split the sweep"))
    return tuple(variants(document))


def variant_count(document: Document) -> int:
    """How many jobs a recipe file makes, without making them; errors as ``variants``."""
    data = document.data
    if isinstance(data, dict) and "base" not in data:
        return _grid_size(Variant(document=document, data=data))
    variants(document)
    return sum(map(_grid_size, _overrides(document)))


def _overrides(document: Document) -> Iterator[Variant]:
    for part in OverrideFile(document.data).parts():
        yield Variant(
            document=document,
            data=part.data,
            suffix=part.suffix,
            moved=part.moved,
            kept_deletions=part.kept_deletions,
        )


# --- grids ------------------------------------------------------------------------------------


def _grid_size(variant: Variant) -> int:
    if "sweep" not in variant.data:
        return 1
    return math.prod(map(len, _grid_values(variant).values()))


def _grid(variant: Variant) -> Iterator[Variant]:
    """The variant itself, or one variant for every point of its ``sweep``."""
    if "sweep" not in variant.data:
        return iter((variant,))
    return _points(variant, _grid_values(variant))


def _grid_values(variant: Variant) -> Mapping[str, list[Any]]:
    sweep = variant.data["sweep"]
    if not isinstance(sweep, dict):
        message = f"must be a mapping of names to lists, not {kind_of(sweep)}"
        raise InvalidInput(variant.problem(("sweep",), message))
    problems = [
        variant.problem(("sweep", key), f"must be a list of values, not {kind_of(values)}")
        for key, values in sweep.items()
        if not isinstance(values, list)
    ]
    if problems:
        raise InvalidInput(problems)
    return sweep


def _points(variant: Variant, grid: Mapping[str, list[Any]]) -> Iterator[Variant]:
    template = {key: value for key, value in variant.data.items() if key != "sweep"}
    plan = _plan(template, tuple(f"{{{name}}}" for name in grid))
    for values in itertools.product(*grid.values()):
        parameters = dict(zip(grid, values, strict=True))
        label = "_".join(f"{name}{value}" for name, value in parameters.items())
        data = _filled(template, plan, parameters)
        if "name" in template:
            data = {**data, "name": f"{template['name']}_{label}"}
        yield Variant(
            document=variant.document,
            data=data,
            suffix=f"{variant.suffix}_{label}" if variant.suffix else label,
            parameters=parameters,
            moved=variant.moved,
            kept_deletions=variant.kept_deletions,
        )


def _plan(node: Any, placeholders: tuple[str, ...]) -> Any:
    """The parts of a template that hold placeholders: the rest is shared by all points."""
    if isinstance(node, str):
        return node if any(each in node for each in placeholders) else None
    if isinstance(node, dict):
        below = {key: _plan(value, placeholders) for key, value in node.items()}
    elif isinstance(node, list):
        below = dict(enumerate(_plan(item, placeholders) for item in node))
    else:
        return None
    return {key: plan for key, plan in below.items() if plan is not None} or None


def _filled(node: Any, plan: Any, parameters: Mapping[str, Any]) -> Any:
    if plan is None:
        return node
    if isinstance(plan, str):
        return _substituted(plan, parameters)
    copy = node.copy()
    for key, part in plan.items():
        copy[key] = _filled(node[key], part, parameters)
    return copy


def _substituted(text: str, parameters: Mapping[str, Any]) -> Any:
    """Text with its placeholders filled in, one after the other, always as text.

    Only a list that fills the whole text stays a list; inside text it is joined by commas.
    """
    for name, value in parameters.items():
        placeholder = f"{{{name}}}"
        if not isinstance(value, list):
            text = text.replace(placeholder, str(value))
        elif text == placeholder:
            return value
        else:
            text = text.replace(placeholder, ",".join(map(str, value)))
    return text
