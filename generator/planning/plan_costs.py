"""The factors and rates that a plan predicts with: given ones before those of public points."""

from __future__ import annotations

from collections.abc import Sequence

from generator.planning.cited_efficiency import cited_acceptance_rate, cited_efficiencies
from generator.planning.efficiency import Efficiency, EfficiencyTable, Phase
from generator.planning.phases import Costs
from generator.planning.plan_facts import collective_latency


def chosen_costs(
    gpu: str,
    engine_version: str,
    efficiencies: Sequence[Efficiency] = (),
    acceptance_rate: float | None = None,
) -> tuple[Costs, tuple[str, ...]]:
    """The costs for engines of a release on a GPU, and what is not known well of them.

    A phase of which efficiencies are given takes the nearest of them, whatever the public points.
    Without an acceptance rate it is that of the one public point with MTP.
    """
    given = EfficiencyTable(tuple(efficiencies))
    has = {each.phase for each in efficiencies}
    chosen = {
        phase: (given if phase in has else cited_efficiencies()).of(gpu, engine_version, phase)
        for phase in Phase
    }
    notes = [each.note for each in chosen.values() if each.note]
    notes += [
        f"{phase} factors: {each.efficiency.note}"
        for phase, each in chosen.items()
        if each.efficiency.note
    ]
    costs = Costs(
        prefill=chosen[Phase.PREFILL].efficiency,
        decode=chosen[Phase.DECODE].efficiency,
        acceptance_rate=cited_acceptance_rate() if acceptance_rate is None else acceptance_rate,
        collective_latency_s=collective_latency().value / 1e6,
    )
    return costs, tuple(notes)
