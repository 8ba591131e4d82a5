"""What would have to change where no deployment fits, or none keeps the limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from generator.errors import InvalidInput, NothingFits, Problem
from generator.facts import gpu_names
from generator.parallel import WorkerPool
from generator.placement import nodes_for_pool
from generator.planning.base_spec import subject_of_model
from generator.planning.candidate import Candidate
from generator.planning.engines import Judge, enumerate_engines
from generator.planning.latency import Limits
from generator.planning.legal_engine import ROLES, Engines
from generator.planning.phases import Costs
from generator.planning.rejection import Reason, Rejection, refused_by_reason
from generator.planning.search import DeploymentSpace, candidate_at, search
from generator.planning.subject import Subject, require_plannable
from generator.wording import plural

_OF_MEMORY = (Reason.MEMORY, Reason.REQUEST)


def nothing_fits(subject: Subject, engines: Engines, costs: Costs) -> NothingFits:
    """The error of a plan without a deployment, with the smallest change that would give one."""
    missing = [role for role in ROLES if not any(each.role == role for each in engines.legal)]
    what = f"no {' and no '.join(missing)} engine" if missing else "no pair of engines"
    workload = subject.workload
    message = (
        f"{what} of {subject.architecture.name} fits on {plural(subject.nodes, 'node')} of"
        f" {subject.gpus_per_node} {subject.gpu.name} for {workload.isl} + {workload.osl} tokens"
    )
    hint = _more_nodes(subject, costs) or _other_gpus(subject)
    if nearest := _nearest(engines.rejections):
        message += f"; nearest: {nearest.problem.message}"
        hint = hint or nearest.problem.hint
    return NothingFits(Problem(message=message, hint=hint))


def _nearest(rejections: Iterable[Rejection]) -> Rejection | None:
    """The rejection for memory that lacks the smallest share, else that which came furthest."""
    refused = refused_by_reason(rejections)
    short = [each.nearest for each in refused if each.reason in _OF_MEMORY]
    if short:
        return min(short, key=lambda each: each.shortage)
    return refused[-1].nearest if refused else None


def _more_nodes(subject: Subject, costs: Costs) -> str:
    """The fewest nodes on which there is a deployment, in one domain; empty where no number is."""
    domain = subject.gpu.nodes_per_nvlink_domain
    most = 2 * subject.nodes if domain == 1 else domain
    wide = enumerate_engines(Judge(_on_nodes(subject, most)))
    least = max(subject.nodes + 1, _nodes_of_smallest(subject, wide))
    for nodes in range(least, most + 1):
        here = _on_nodes(subject, nodes)
        kept = tuple(each for each in wide.legal if each.layout.ranks <= here.gpus_per_engine)
        space = DeploymentSpace(here, Engines(legal=kept, rejections=()), costs, Limits())
        if frontier := search(here, space).frontier:
            return f"plan for {nodes} nodes: {frontier[-1].text} would fit"
    return ""


def _nodes_of_smallest(subject: Subject, engines: Engines) -> int:
    """The nodes of the smallest engine of each role; a deployment has both."""
    nodes = 0
    for role in ROLES:
        pools = [
            WorkerPool(workers=1, layout=each.layout) for each in engines.legal if each.role == role
        ]
        per_node = subject.gpus_per_node
        nodes += min((nodes_for_pool(pool, per_node).value for pool in pools), default=1)
    return nodes


def _other_gpus(subject: Subject) -> str:
    """GPUs on as many nodes of which both roles have an engine; empty where none is known."""
    question = subject.question
    if question is None:
        return ""
    fitting = []
    for name in gpu_names():
        try:
            there = subject_of_model(replace(question, gpu=name, nodes=subject.nodes))
            require_plannable(there)
        except InvalidInput:
            continue
        if {each.role for each in enumerate_engines(Judge(there)).legal} == {*ROLES}:
            fitting.append(name)
    return f"use a GPU that holds it: {', '.join(fitting)}" if fitting else ""


def _on_nodes(subject: Subject, nodes: int) -> Subject:
    specs = {
        dtype: replace(spec, cluster=replace(spec.cluster, nodes=nodes))
        for dtype, spec in subject.specs.items()
    }
    return replace(subject, specs=specs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The deployments nearest to limits that none keeps: each keeps one and misses the other.

    None where none keeps even that one.
    """

    within_tpot: Candidate | None
    within_ttft: Candidate | None


def nearest_to(subject: Subject, space: DeploymentSpace) -> Nearest:
    """The least TTFT within the TPOT limit, and the least TPOT within the TTFT limit."""
    limits = space.latency
    within_tpot = within_ttft = None
    tokens = subject.workload.request_tokens
    for pairing in space.pairings():
        for block in space.blocks(pairing):
            point = block.point
            tpot = np.broadcast_to(point.tpot_s, block.exists.shape)
            for kept, other in (
                (tpot <= limits.tpot_s, point.ttft_s),
                (point.ttft_s <= limits.ttft_s, tpot),
            ):
                figures = np.where(block.exists & kept, other, np.inf)
                index = int(figures.argmin())
                if not np.isfinite(figures.flat[index]):
                    continue
                prefill, decode, column = map(int, np.unravel_index(index, figures.shape))
                found = candidate_at(block, (prefill, decode, column), tokens)
                if other is tpot:
                    if within_ttft is None or found.tpot_s < within_ttft.tpot_s:
                        within_ttft = found
                elif within_tpot is None or found.ttft_s < within_tpot.ttft_s:
                    within_tpot = found
    return Nearest(within_tpot=within_tpot, within_ttft=within_ttft)


def no_limits_kept(limits: Limits, nearest: Nearest) -> NothingFits:
    """The error of limits that nothing keeps, with the nearest deployment on each side."""
    asked = " and ".join(
        f"{name} <= {value * 1000:g} ms"
        for name, value in (("TTFT", limits.ttft_s), ("TPOT", limits.tpot_s))
        if np.isfinite(value)
    )
    sides = [
        f"{each.text} has TTFT {each.ttft_s * 1000:,.0f} ms and TPOT {each.tpot_s * 1000:.2f} ms"
        for each in (nearest.within_tpot, nearest.within_ttft)
        if each is not None
    ]
    return NothingFits(
        Problem(
            message=f"no deployment is predicted to keep {asked}; nearest: "
            + ("; ".join(dict.fromkeys(sides)) or "none keeps either"),
            hint="allow what the nearest needs, or shorten the workload",
        )
    )
