"""What a spec plans: a ladder of concurrencies for each recipe, and where its capacity ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from generator.capacity.capacity import EngineCapacity
from generator.estimation import Estimate, SizingBasis, sizing_basis
from generator.facts import MeasuredProfile
from generator.recipe.recipe import Recipe
from generator.spec.spec import DeploymentSpec, ProbeSpec
from generator.stopping.room import room_beyond
from generator.sweep.rendered_recipes import rendered_digests
from generator.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The requests that a decode worker, or an engine alone, has slots and KV cache for."""

    slots: int
    held: float
    request_tokens: int
    basis: str

    @property
    def limit(self) -> int:
        """The highest concurrency that neither waits for a slot nor for blocks."""
        return min(self.slots, int(self.held))

    def lack(self, concurrency: int) -> str:
        """What there is too little of for as many requests; empty where there is enough."""
        if concurrency > self.slots:
            return f"{self.slots} slots"
        if concurrency > self.held:
            held = format_count(self.held)
            return f"KV cache ({self.basis}) for {held} requests of {self.request_tokens} tokens"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """One recipe and its concurrencies, ascending. ``digests`` are those of both layouts.

    ``room`` is a concurrency, at most a doubling of the highest, that it holds when sized for it.
    """

    spec: DeploymentSpec | ProbeSpec
    name: str
    phase: str
    digests: frozenset[str]
    concurrencies: tuple[int, ...]
    capacity: Capacity
    room: int

    @property
    def file(self) -> str:
        return self.spec.file


def planned_ladders(
    estimate: Estimate, profiles: tuple[MeasuredProfile, ...] = ()
) -> Iterator[Ladder]:
    """The recipes of a spec that sweep a load: deployments, then phase studies.

    Accuracy runs and probes are no ladders: they run for what they print. ``profiles`` are those
    of the estimate.
    """
    basis = sizing_basis(estimate.spec, profiles)
    for deployment in estimate.derivation.deployments:
        if deployment.spec.concurrencies:
            yield _ladder(
                basis,
                deployment.spec,
                deployment.recipe,
                "disaggregated",
                estimate.capacities[deployment.decode.name],
            )
    for study in estimate.studies.planned:
        spec = study.probe.spec
        yield _ladder(basis, spec, study.probe.recipe, study.spec.phase, study.capacity)


def _ladder(
    basis: SizingBasis,
    spec: DeploymentSpec | ProbeSpec,
    recipe: Recipe,
    phase: str,
    capacity: EngineCapacity,
) -> Ladder:
    engine = capacity.engine
    return Ladder(
        spec=spec,
        name=recipe.name,
        phase=phase,
        digests=rendered_digests(recipe),
        concurrencies=tuple(sorted(spec.concurrencies)),
        capacity=Capacity(
            slots=engine.pool.data_ranks * engine.resolved.max_num_seqs,
            held=float(capacity.pool_requests),
            request_tokens=capacity.at_workload.tokens,
            basis=capacity.memory.kv_cache.basis.value,
        ),
        room=room_beyond(basis, spec),
    )
