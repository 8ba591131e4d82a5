"""How far beyond its last rung a recipe could go: sized for more, an engine holds less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from generator.capacity.capacity import evaluate_engine
from generator.derivation.derivation import derive_deployment, derive_probe
from generator.errors import InvalidInput, NothingFits
from generator.estimation import SizingBasis
from generator.spec.spec import DeploymentSpec, ProbeSpec

DOUBLING = 2
_TRIES = 8

Sized = DeploymentSpec | ProbeSpec


def room_beyond(basis: SizingBasis, recipe: Sized) -> int:
    """A concurrency, up to a doubling of its highest, that a recipe sized for it holds."""
    return highest_held(max(recipe.concurrencies), lambda load: _held(basis, recipe, load))


def highest_held(last: int, held: Callable[[int], float]) -> int:
    """A load above ``last``, up to a doubling, that is held when sized for; ``last`` without any.

    ``held`` says what is when sized for a load. It falls as that grows: what a load too high leaves
    is surely there for fewer.
    """
    wanted = DOUBLING * last
    for _ in range(_TRIES):
        room = held(wanted)
        if wanted <= room:
            return wanted
        wanted = int(room) if room > last else (wanted + last) // 2
        if wanted <= last:
            break
    return last


def _held(basis: SizingBasis, recipe: Sized, load: int) -> float:
    """Requests that the decode engine holds when sized for a load; none where it cannot start."""
    spec, architecture, defaults = basis.spec, basis.architecture, basis.defaults
    try:
        if isinstance(recipe, ProbeSpec):
            alone = replace(recipe, concurrencies=(load,), concurrency=load)
            engine = derive_probe(spec, alone, architecture, defaults).engine
        else:
            pair = replace(recipe, concurrencies=(load,), sizing_concurrency=load)
            engine = derive_deployment(spec, pair, architecture, defaults).decode
        workload = recipe.workload if isinstance(recipe, ProbeSpec) else spec.workload
        capacity = evaluate_engine(
            engine, architecture, basis.gpu, defaults, workload, basis.profiles
        )
    except (InvalidInput, NothingFits):
        return 0.0
    return float(capacity.pool_requests)
