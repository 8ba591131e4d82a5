"""A plan: every deployment judged, the frontier of predictions, and the sweep to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.planning.candidate import Candidate, Shape, bounded
from generator.planning.efficiency import Efficiency
from generator.planning.engines import Judge, enumerate_engines
from generator.planning.latency import Limits
from generator.planning.legal_engine import Engines
from generator.planning.nothing_fits import nearest_to, no_limits_kept, nothing_fits
from generator.planning.phases import Costs
from generator.planning.plan_costs import chosen_costs
from generator.planning.plan_facts import CitedPoint
from generator.planning.proposal import ProposedDeployment, propose
from generator.planning.proposed_spec import RefusedDeployment, ValidDeployment, validated
from generator.planning.references import (
    Reference,
    RefusedReference,
    measured_at,
    references,
)
from generator.planning.search import DeploymentSpace, Search, search
from generator.planning.subject import Subject, require_plannable
from generator.planning.sweep_cost import SweepCost, sweep_cost

_MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPoint:
    """A point of the proposed sweep: predicted, at its bound, and measured where it was."""

    predicted: Candidate
    bound: Candidate
    measured: CitedPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was found for a subject. ``refused`` were on the frontier but do not hold or start."""

    subject: Subject
    costs: Costs
    engines: Engines
    search: Search
    proposed: tuple[ValidDeployment, ...]
    points: tuple[PlannedPoint, ...]
    refused: tuple[RefusedDeployment, ...]
    references: tuple[Reference | RefusedReference, ...]
    cost: SweepCost
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How a subject is to be planned: limits on latency, recipes to run, factors to predict with.

    Without an acceptance rate it is that of the public points.
    """

    limits: Limits
    most_deployments: int
    efficiencies: tuple[Efficiency, ...] = ()
    acceptance_rate: float | None = None


def question_problems(question: Question) -> Iterator[Problem]:
    """Every number of a question that none can be planned with."""
    limits = question.limits
    for name, seconds in (("--ttft-ms", limits.ttft_s), ("--tpot-ms", limits.tpot_s)):
        if not seconds > 0:
            yield Problem(message=f"{name} must be above 0, got {seconds * 1000:g}")
    if question.most_deployments < 1:
        yield Problem(message=f"--top must be at least 1, got {question.most_deployments}")
    rate = question.acceptance_rate
    if rate is not None and not 0 <= rate <= 1:
        yield Problem(message=f"--acceptance-rate must be from 0 to 1, got {rate:g}")


def make_plan(
    subject: Subject,
    question: Question,
    on_step: Callable[[str], None] = lambda _: None,
) -> Plan:
    """The plan; ``on_step`` is told what is looked at, for progress.

    Raises InvalidInput for what rules out every candidate, and NothingFits where no deployment
    fits or keeps the limits.
    """
    require_plannable(subject)
    costs, notes = chosen_costs(
        subject.gpu.name,
        subject.spec.engine.version,
        question.efficiencies,
        question.acceptance_rate,
    )
    limits = question.limits
    judge = Judge(subject)
    on_step("layouts")
    engines = enumerate_engines(judge)
    space = DeploymentSpace(subject, engines, costs, limits)
    found = search(subject, space, on_step)
    if not found.evaluated:
        raise nothing_fits(subject, engines, costs)
    if not found.frontier:
        raise no_limits_kept(limits, nearest_to(subject, space))
    on_step("the sweep")
    proposed, refused = _valid(subject, found, question.most_deployments)
    predicted = [point for each in proposed for point in each.proposed.points]
    return Plan(
        subject=subject,
        costs=costs,
        engines=engines,
        search=found,
        proposed=proposed,
        points=tuple(
            PlannedPoint(
                predicted=each,
                bound=bounded(judge, each, costs),
                measured=measured_at(subject, each),
            )
            for each in predicted
        ),
        refused=refused,
        references=tuple(references(judge, costs, found.frontier)),
        cost=sweep_cost(subject, engines, space, found, predicted),
        notes=notes,
    )


def _valid(
    subject: Subject, found: Search, most: int
) -> tuple[tuple[ValidDeployment, ...], tuple[RefusedDeployment, ...]]:
    """Proposals until all are valid: what generate or check refuse gives way to its neighbours."""
    refused: dict[Shape, RefusedDeployment] = {}
    for _ in range(_MOST_ROUNDS):
        proposals: tuple[ProposedDeployment, ...] = propose(found.frontier, most, refused)
        if not proposals:
            break
        outcomes = validated(subject, proposals)
        valid = tuple(each for each in outcomes if isinstance(each, ValidDeployment))
        if len(valid) == len(outcomes):
            return valid, tuple(refused.values())
        for each in outcomes:
            if isinstance(each, RefusedDeployment):
                refused[each.proposed.shape] = each
    problems = [problem for each in refused.values() for problem in each.problems]
    raise InvalidInput(dict.fromkeys(problems))
