"""The whole way from phase results to proposed deployments, their cost, and another spec's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from generator.composition.explanation import Comparison, compare
from generator.composition.grouping import ComposedGroup, group_candidates
from generator.composition.pairs import PairChecker
from generator.composition.phase_frontier import Lead, decode_at, leads, prefill_at
from generator.composition.phase_points import Phases
from generator.composition.proposals import Choice, Rules, choose
from generator.composition.saving import Saving, estimate_saving
from generator.errors import NothingFits, Problem
from generator.estimation import SizingBasis
from generator.spec.spec import DeploymentSpec

DEFAULT_MARGIN = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """What follows from phase results: a choice for each concurrency, in groups, and its cost.

    ``target`` is what deployments are composed for: cluster, engine, sizing and workload.
    """

    target: SizingBasis
    phases: Phases
    margin: float
    prefill_leads: tuple[Lead, ...]
    decode_leads: tuple[Lead, ...]
    choices: tuple[Choice, ...]
    groups: tuple[ComposedGroup, ...]
    saving: Saving
    comparisons: tuple[Comparison, ...]


def compose(
    phases: Phases,
    target: SizingBasis,
    *,
    margin: float = DEFAULT_MARGIN,
    concurrencies: tuple[int, ...] = (),
    against: Iterable[DeploymentSpec] = (),
    on_load: Callable[[str], None] = lambda _: None,
) -> Composition:
    """Deployments of one decode worker each for the target's workload.

    ``concurrencies`` are those to serve: the loads of the spec's own deployments where empty, and
    where it has none all that decode was measured at. ``against`` are deployments to compare with;
    ``on_load`` is told each concurrency, for progress.
    Raises NothingFits where no load can be served.
    """
    spec = target.spec
    loads = concurrencies or _loads(target, phases)
    checker = PairChecker(target=target)
    rules = Rules(
        margin=margin,
        gpus_per_node=spec.cluster.gpus_per_node,
        most_nodes=spec.cluster.nodes,
    )
    tokens = spec.workload.request_tokens
    choices: list[Choice] = []
    for load in loads:
        on_load(str(load))
        choices.append(choose(phases, load, checker, rules, tokens))
    chosen = [choice.chosen for choice in choices if choice.chosen is not None]
    if not chosen:
        raise NothingFits(_unserved(choices))
    groups = group_candidates(chosen)
    return Composition(
        target=target,
        phases=phases,
        margin=margin,
        prefill_leads=tuple(leads(phases.prefill, prefill_at)),
        decode_leads=tuple(leads(phases.decode, decode_at)),
        choices=tuple(choices),
        groups=groups,
        saving=estimate_saving(
            phases, chosen, sum(len(each.deployments) for each in groups), loads, checker, rules
        ),
        comparisons=tuple(compare(choices, against, phases, checker)),
    )


def _loads(target: SizingBasis, phases: Phases) -> tuple[int, ...]:
    planned = {load for each in target.spec.deployments for load in each.concurrencies}
    measured = {rung for curve in phases.decode.values() for rung in curve}
    return tuple(sorted(planned or measured))


def _unserved(choices: Iterable[Choice]) -> list[Problem]:
    """Why none of the loads can be served."""
    return [
        Problem(
            message=f"nothing serves concurrency {choice.concurrency}: {choice.refusal}",
            hint="measure other layouts, or ask for other --concurrencies",
        )
        for choice in choices
    ]
