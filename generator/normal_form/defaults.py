"""Default values written out: dropped, so that saying them or not makes no difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from generator.facts.fact import load_data
from generator.normal_form.consumer_types import ANY_STEP
from generator.normal_form.equal_spellings import COMMAND_LINE_ENGINES, with_equal_spellings
from generator.normal_form.form import NormalForm
from generator.wording import FieldPath


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeDefault:
    """What holds where a recipe does not say, for every engine and benchmark if none is named."""

    value: Any
    source: str
    as_of: str
    engines: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()


@cache
def recipe_defaults() -> Mapping[FieldPath, RecipeDefault]:
    """Every default known, by neutral path; ``*`` stands for any role."""
    return {
        tuple(path.split(".")): RecipeDefault(
            value=value,
            source=group["source"],
            as_of=group["as_of"],
            engines=tuple(group.get("engines", ())),
            benchmarks=tuple(group.get("benchmarks", ())),
        )
        for group in load_data("recipe_defaults.yaml")
        for path, value in group["values"].items()
    }


def default_value(form: NormalForm, path: FieldPath) -> Any:
    """What srt-slurm or the engine takes where a form has nothing at a path; None if unknown."""
    if len(path) == 3 and path[0] == "roles" and path[2] == "gpus":
        return _default_gpus(form, str(path[1]))
    default = _applicable(form, path)
    return None if default is None else default.value


def canonical(form: NormalForm) -> NormalForm:
    """The form without values that hold anyway, empty sections and a lock file's record.

    Values that their reader takes for the same are spelled the same.
    """
    form = with_equal_spellings(form)
    kept = {
        path: found
        for path, found in form.values.items()
        if not _is_redundant(form, path, found.value)
    }
    return replace(form, values=kept)


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same to whoever reads them: true is not 1, but 1 is 1.0."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _is_redundant(form: NormalForm, path: FieldPath, value: Any) -> bool:
    if path[0] == "lock":
        return True
    is_role = path[0] == "roles" and len(path) > 2
    if is_role and len(path) > 3 and path[2] == "args":
        if len(path) == 4 and _is_left_out(form, path, value):
            return True
    elif value == {}:
        return path[0] != "services"  # a service that is only named is still started
    if is_role and path[2:] == ("gpus",):
        return same_value(_default_gpus(form, str(path[1])), value)
    default = _applicable(form, path)
    return default is not None and same_value(default.value, value)


def _is_left_out(form: NormalForm, path: FieldPath, value: Any) -> bool:
    engine = form.engine_of(str(path[1]))
    return engine in COMMAND_LINE_ENGINES and (value is None or value is False)


def _applicable(form: NormalForm, path: FieldPath) -> RecipeDefault | None:
    general = (path[0], ANY_STEP, *path[2:]) if path[0] == "roles" else path
    default = recipe_defaults().get(general)
    if default is None:
        return None
    engine = form.engine_of(str(path[1])) if path[0] == "roles" else form.engine
    if default.engines and engine not in default.engines:
        return None
    if default.benchmarks and form.get("benchmark", "type") not in default.benchmarks:
        return None
    return default


def _default_gpus(form: NormalForm, role: str) -> int | None:
    """GPUs of one worker where the recipe does not say: its nodes' GPUs shared out."""
    per_node = form.get("resources", "gpus_per_node")
    per_node = 4 if per_node is None else per_node
    nodes, workers = form.get("roles", role, "nodes"), form.get("roles", role, "workers")
    if nodes == "colocate" and workers:
        return _gpus(form, "prefill")
    if not isinstance(per_node, int):
        return None
    if nodes is None or workers is None:
        return per_node
    if not (isinstance(nodes, int) and isinstance(workers, int) and nodes > 0 and workers > 0):
        return None
    return nodes * per_node // workers


def _gpus(form: NormalForm, role: str) -> int | None:
    written = form.get("roles", role, "gpus")
    if isinstance(written, int):
        return written
    return _default_gpus(form, role) if written is None else None
