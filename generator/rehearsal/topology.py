"""What a recipe deploys: its pools of engines, and what each rank holds by the arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from generator.architecture import ModelArchitecture
from generator.capacity.capacity import evaluate_engine
from generator.errors import InvalidInput, Problem
from generator.normal_form import NormalForm
from generator.recipe_engines import recipe_engine
from generator.workload import Workload, parse_concurrencies

DECODING = ("decode", "agg")
_ROLES = ("prefill", *DECODING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCapacity:
    """The workers of a role and what they hold: ``requests_per_rank`` computed, from ``basis``.

    ``request_tokens`` are of one request at its longest: a prefill worker holds the prompt and one
    token, the others the output as well.
    """

    role: str
    layout: str
    workers: int
    data_ranks: int
    request_tokens: int
    requests_per_rank: Fraction
    basis: str
    block_tokens: int
    max_num_seqs: int
    max_num_batched_tokens: int

    @property
    def ranks(self) -> int:
        return self.workers * self.data_ranks

    @property
    def whole_requests_per_rank(self) -> int:
        return math.floor(self.requests_per_rank)

    @property
    def requests(self) -> int:
        """Requests that the ranks hold whole: a request lives on one of them."""
        return self.whole_requests_per_rank * self.ranks

    @property
    def slots(self) -> int:
        """Requests that the engines' max-num-seqs let run at once."""
        return self.ranks * self.max_num_seqs


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A recipe's deployment and load. ``prefill`` is None for aggregated engines.

    ``random_range_ratio`` is the shortest request as a share of the longest; a rehearsal sends the
    longest alone.
    """

    recipe: str
    decoding: PoolCapacity
    prefill: PoolCapacity | None
    isl: int
    osl: int
    random_range_ratio: float
    concurrencies: tuple[int, ...]

    @property
    def pools(self) -> tuple[PoolCapacity, ...]:
        return (self.decoding,) if self.prefill is None else (self.prefill, self.decoding)


def topology_of(form: NormalForm, architecture: ModelArchitecture) -> Topology:
    """The deployment of a recipe, its capacity by the same arithmetic as ``pdrecipe capacity``.

    Raises InvalidInput where it has no engines that are modelled or no request lengths, and
    NothingFits where an engine would not start.
    """
    roles = [role for role in _ROLES if role in form.roles and form.get("roles", role, "workers")]
    if "agg" in roles and len(roles) > 1:
        roles = ["agg"]
    decoding = next((role for role in roles if role in DECODING), None)
    if decoding is None:
        hint = "rehearse a recipe with decode or aggregated workers"
        raise InvalidInput(Problem(message="no role decodes", path="roles", hint=hint))
    pools = {role: _pool(form, role, architecture) for role in roles}
    workload = recipe_engine(form, decoding, architecture).workload
    if workload is None:
        message = "has no isl and osl that the engines take"
        hint = "rehearse a recipe of a load: both, and together within max-model-len"
        raise InvalidInput(Problem(message=message, path="benchmark", hint=hint))
    return Topology(
        recipe=str(form.get("name") or "unnamed"),
        decoding=pools[decoding],
        prefill=pools.get("prefill"),
        isl=workload.isl,
        osl=workload.osl,
        random_range_ratio=workload.random_range_ratio,
        concurrencies=_concurrencies(form),
    )


def _pool(form: NormalForm, role: str, architecture: ModelArchitecture) -> PoolCapacity:
    found = recipe_engine(form, role, architecture)
    workload = _held(found.workload, role)
    capacity = evaluate_engine(found.engine, architecture, found.gpu, found.defaults, workload)
    engine = found.engine
    return PoolCapacity(
        role=role,
        layout=str(engine.pool.layout),
        workers=engine.pool.workers,
        data_ranks=engine.pool.layout.data,
        request_tokens=capacity.at_workload.tokens,
        requests_per_rank=capacity.at_workload.per_rank,
        basis=str(capacity.memory.kv_cache.basis),
        block_tokens=engine.kv_cache.block_tokens,
        max_num_seqs=engine.resolved.max_num_seqs,
        max_num_batched_tokens=engine.resolved.max_num_batched_tokens,
    )


def _held(workload: Workload | None, role: str) -> Workload | None:
    return replace(workload, osl=1) if workload is not None and role == "prefill" else workload


def _concurrencies(form: NormalForm) -> tuple[int, ...]:
    levels = form.get("benchmark", "concurrencies")
    if levels is None:
        return ()
    numbers = levels if isinstance(levels, tuple) else parse_concurrencies(levels)
    return tuple(sorted({int(each) for each in numbers}))
