"""What the recipes of one run say together: names, and what a folder's files have in common."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from generator.normal_form import NormalForm, normal_form
from generator.recipe.expansion import Variant
from generator.recipe.inputs import RecipeFile


@dataclass(frozen=True, slots=True, kw_only=True)
class NameUse:
    """A file that gives a name to a job, and the line it does it on."""

    source: str
    line: int
    is_v2: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleKind:
    """What roles of sibling files have to share before their flags are compared."""

    model: str
    gpu: str
    engine: str
    role: str


def role_kind(form: NormalForm, role: str) -> RoleKind:
    """The kind of a role of a job; a model is what its path says."""
    return RoleKind(
        model=str(form.get("model", "path")),
        gpu=str(form.get("resources", "gpu_type")),
        engine=form.engine_of(role),
        role=role,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """``names`` are the uses of each job name. Counts are files of a folder, by folder.

    ``flags`` counts by kind of role and flag, ``files`` by kind of role.
    """

    names: Mapping[str, tuple[NameUse, ...]] = field(default_factory=dict)
    variables: Mapping[str, Counter[str]] = field(default_factory=dict)
    flags: Mapping[str, Counter[tuple[RoleKind, str]]] = field(default_factory=dict)
    files: Mapping[str, Counter[RoleKind]] = field(default_factory=dict)


def folder_of(source: str) -> str:
    """The folder of a file by its name in messages."""
    return posixpath.dirname(source)


def gather_siblings(files: Iterable[tuple[RecipeFile, tuple[Variant, ...]]]) -> Siblings:
    """What all recipes of a run, each with its jobs, have between them.

    Of the points of a grid the first stands for all but their names.
    """
    names: defaultdict[str, dict[str, NameUse]] = defaultdict(dict)
    variables: defaultdict[str, Counter[str]] = defaultdict(Counter)
    flags: defaultdict[str, Counter[tuple[RoleKind, str]]] = defaultdict(Counter)
    count: defaultdict[str, Counter[RoleKind]] = defaultdict(Counter)
    for file, jobs in files:
        source, folder = file.source.name, folder_of(file.source.name)
        for variant in jobs:
            if variant.name:
                use = NameUse(
                    source=source, line=variant.line(("name",)), is_v2="schema" in variant.data
                )
                names[variant.name].setdefault(source, use)
        forms = [normal_form(each) for each in jobs if not each.parameters or each is jobs[0]]
        variables[folder].update(set[str]().union(*map(_variables, forms)))
        flags[folder].update(set[tuple[RoleKind, str]]().union(*map(_flags, forms)))
        count[folder].update({role_kind(form, role) for form in forms for role in form.roles})
    return Siblings(
        names={name: tuple(uses.values()) for name, uses in names.items()},
        variables=variables,
        flags=flags,
        files=count,
    )


def _variables(form: NormalForm) -> set[str]:
    found = {str(path[0]) for path in form.below("environment")}
    for role in form.roles:
        found |= {str(path[0]) for path in form.below("roles", role, "env")}
    return found


def _flags(form: NormalForm) -> set[tuple[RoleKind, str]]:
    return {
        (role_kind(form, role), flag.partition(".")[0])
        for role in form.roles
        for flag in form.args(role)
    }
