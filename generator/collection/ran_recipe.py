"""The recipe of a run: what makes its points the points they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from generator.collection.allocated import allocated_gpus
from generator.collection.configuration import engine_pools, factors, phase, running_roles
from generator.collection.contract import pinned_versions, recipe_contract
from generator.collection.lock_file import Lock, lock_of
from generator.collection.unusable import Unusable
from generator.documents import Document, parse_document
from generator.errors import InvalidInput
from generator.files import read_text
from generator.normal_form import NormalForm, normal_form
from generator.recipe.expansion import variants
from generator.recipe.inputs import is_recipe
from generator.results.engine_pool import EnginePool, configuration_label
from generator.results.point import AllocatedGpus
from generator.sweep.points import recipe_digest
from generator.wording import shown

_KEPT = 1024
_SCHEMAS = (None, 2, "2")  # v1 has none
_SECTIONS_OF_A_DEPLOYMENT = frozenset({"roles", "engine", "model", "identity", "dynamo"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RanRecipe:
    """What the points of a run have in common.

    ``deployment`` is equal for recipes that differ in name, benchmark and cluster only: what an
    accuracy run and a load run of one deployment share. ``is_template`` says that it stands for
    several jobs, so that it tells nothing about one.
    """

    name: str
    digest: str
    is_template: bool = False
    pools: tuple[EnginePool, ...] = ()
    phase: str = ""
    deployment: str = ""
    gpus: AllocatedGpus = field(default_factory=lambda: AllocatedGpus(type="unknown"))
    contract: Mapping[str, str] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    @property
    def configuration(self) -> str:
        """The deployment in words."""
        return configuration_label(self.pools)


def read_ran_recipe(path: Path) -> RanRecipe:
    """The recipe in a file of a run; raises Unusable for others, and for what cannot have run."""
    try:
        return _ran_recipe(read_text(path, path.name))
    except InvalidInput as error:
        raise Unusable(error.problems[0].statement) from error


def read_locked(path: Path) -> RanRecipe:
    """The identity of the recipe in a lock file, and its lock; its deployment is not looked into.

    That is all there is to say where ``config.yaml`` has the same recipe, and half the time.
    """
    try:
        return _outline(_parsed(read_text(path, path.name)))
    except InvalidInput as error:
        raise Unusable(error.problems[0].statement) from error


@lru_cache(_KEPT)
def _ran_recipe(text: str) -> RanRecipe:
    """The recipe of a text; runs of one sweep share it, so that it is read once."""
    document = _parsed(text)
    outline = _outline(document)
    return outline if outline.is_template else _with_deployment(outline, _form(document))


def _parsed(text: str) -> Document:
    document = parse_document(text, "")
    if not is_recipe(document.data):
        raise Unusable("is not an srt-slurm recipe")
    schema = document.data.get("schema")
    if schema not in _SCHEMAS:
        raise Unusable(f"is of schema {shown(schema)}, which this pdrecipe does not know")
    return document


def _outline(document: Document) -> RanRecipe:
    data = document.data
    return RanRecipe(
        name=str(data.get("name") or "unnamed"),
        digest=recipe_digest(data),
        is_template=bool(data.get("sweep")) or "base" in data,
        lock=lock_of(data),
    )


def _form(document: Document) -> NormalForm:
    return normal_form(next(iter(variants(document))))


def _with_deployment(outline: RanRecipe, form: NormalForm) -> RanRecipe:
    gpus = allocated_gpus(form)
    roles = running_roles(form)
    pools = engine_pools(form)
    isl, osl = (form.get("benchmark", each) for each in ("isl", "osl"))
    return replace(
        outline,
        pools=pools,
        phase=phase(form, _length(isl), _length(osl)),
        deployment=_deployment_digest(form),
        gpus=gpus,
        contract={**recipe_contract(form, roles), "gpu.type": gpus.type},
        pins=pinned_versions(form),
        factors=factors(form, configuration_label(pools)),
    )


def _length(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _deployment_digest(form: NormalForm) -> str:
    """One word for all values of the sections that make a deployment."""
    values = sorted(
        (".".join(map(str, path)), repr(value))
        for path, value in form.plain().items()
        if path[0] in _SECTIONS_OF_A_DEPLOYMENT
    )
    return hashlib.sha256(json.dumps(values).encode("ascii")).hexdigest()
