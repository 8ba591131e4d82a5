"""What would have to change where no deployment fits, or none keeps the limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from generator.bounds.numbers import Array
from generator.enumeration.base_spec import subject_of_model
from generator.enumeration.engines import Judge, enumerate_engines
from generator.enumeration.legal_engine import ROLES, Engines
from generator.enumeration.rejection import Reason, Rejection, refused_by_reason
from generator.enumeration.subject import Subject, require_plannable
from generator.errors import InvalidInput, NothingFits, Problem
from generator.facts import gpu_names
from generator.parallel import WorkerPool
from generator.planning.candidate import Candidate
from generator.planning.deployments import Block
from generator.planning.latency import Limits
from generator.planning.phases import Costs
from generator.planning.search import DeploymentSpace, candidate_at, search
from generator.spec.placement import nodes_for_pool
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
    """The deployments nearest to limits that none keeps: of the least TTFT, and of the least TPOT.

    Among those that keep the other limit, where any does.
    """

    of_ttft: Candidate
    of_tpot: Candidate


def nearest_to(subject: Subject, space: DeploymentSpace) -> Nearest:
    """The nearest on each side of the space's limits; it has at least one deployment."""
    limits, tokens = space.latency, subject.workload.request_tokens
    of_ttft: list[Candidate] = []
    of_tpot: list[Candidate] = []
    for pairing in space.pairings():
        for block in space.blocks(pairing):
            ttft = block.point.ttft_s
            tpot = np.broadcast_to(block.point.tpot_s, block.exists.shape)
            for keeps_tpot, keeps_ttft in (
                (tpot <= limits.tpot_s, ttft <= limits.ttft_s),
                (block.exists, block.exists),
            ):
                of_ttft += _least(block, (ttft, tpot), keeps_tpot, tokens)
                of_tpot += _least(block, (tpot, ttft), keeps_ttft, tokens)
    return Nearest(
        of_ttft=min(
            of_ttft, key=lambda each: (each.tpot_s > limits.tpot_s, each.ttft_s, each.tpot_s)
        ),
        of_tpot=min(
            of_tpot, key=lambda each: (each.ttft_s > limits.ttft_s, each.tpot_s, each.ttft_s)
        ),
    )


def _least(
    block: Block, figures: tuple[Array, Array], kept: NDArray[np.bool_], tokens: int
) -> Iterator[Candidate]:
    """Of the deployments of a block that are kept the one with the least first figure, if any.

    Of several the one with the least second.
    """
    first, second = figures
    found = np.where(block.exists & kept, first, np.inf)
    if not np.isfinite(found.min()):
        return
    index = int(np.where(found == found.min(), second, np.inf).argmin())
    prefill, decode, column = map(int, np.unravel_index(index, found.shape))
    yield candidate_at(block, (prefill, decode, column), tokens)


def no_limits_kept(limits: Limits, nearest: Nearest) -> NothingFits:
    """The error of limits that nothing keeps, with the nearest deployment on each side."""
    sides = [
        (f"{name} <= {limit * 1000:g} ms", candidate)
        for name, limit, candidate in (
            ("TTFT", limits.ttft_s, nearest.of_ttft),
            ("TPOT", limits.tpot_s, nearest.of_tpot),
        )
        if np.isfinite(limit)
    ]
    asked = " and ".join(name for name, _ in sides)
    found = dict.fromkeys(
        f"{each.text} has TTFT {each.ttft_s * 1000:,.0f} ms and TPOT {each.tpot_s * 1000:.4g} ms"
        for _, each in sides
    )
    return NothingFits(
        Problem(
            message=f"no deployment is predicted to keep {asked}; nearest: {'; '.join(found)}",
            hint="allow what the nearest needs, or shorten the workload",
        )
    )
