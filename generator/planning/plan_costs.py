"""The factors and rates that a plan predicts with: given ones before those of public points."""

from __future__ import annotations

from generator.efficiency.cited_efficiency import cited_acceptance_rate, cited_efficiencies
from generator.efficiency.factors import NO_FACTORS, EfficiencyTable, Factors, Phase
from generator.efficiency.plan_facts import collective_latency
from generator.planning.phases import Costs
from generator.wording import plural


def chosen_costs(
    gpu: str,
    engine_version: str,
    factors: Factors = NO_FACTORS,
    acceptance_rate: float | None = None,
) -> tuple[Costs, tuple[str, ...]]:
    """The costs for engines of a release on a GPU, and what is not known well of them.

    A phase of which there are factors takes the nearest of them, whatever the public points. The
    acceptance rate is the one given, that of the factors, or that of the one public point with MTP.
    """
    given = EfficiencyTable(factors.efficiencies)
    has = {each.phase for each in factors.efficiencies}
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
    if acceptance_rate is None:
        acceptance_rate, origin = _acceptance(factors)
        notes.append(origin)
    costs = Costs(
        prefill=chosen[Phase.PREFILL].efficiency,
        decode=chosen[Phase.DECODE].efficiency,
        acceptance_rate=acceptance_rate,
        collective_latency_s=collective_latency().value / 1e6,
    )
    return costs, tuple(notes)


def _acceptance(factors: Factors) -> tuple[float, str]:
    """The rate nobody gave, and where it is from."""
    measured = factors.best_known_acceptance
    if measured is None:
        rate = cited_acceptance_rate()
        return (
            rate,
            f"acceptance rate: not published; {rate:.2f} is what the one point with MTP asks for",
        )
    return measured.acceptance_rate, (
        f"acceptance rate: median of {plural(measured.points, 'point')} with MTP"
        f" {measured.speculative_tokens}"
    )
