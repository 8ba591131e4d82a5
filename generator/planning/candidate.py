"""One deployment at one concurrency: what it is predicted to do, and what it does at best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from generator.bounds.closed_loop import serving_point
from generator.enumeration.engines import Judge
from generator.enumeration.legal_engine import Kind, LegalEngine
from generator.enumeration.rejection import Rejection
from generator.errors import InvalidInput
from generator.parallel import WorkerPool
from generator.planning.phases import Costs, decode_phase, prefill_phase
from generator.spec.placement import nodes_for_pool

Shape: TypeAlias = tuple[WorkerPool, WorkerPool, Kind]
"""What is deployed, whatever the load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One deployment at one concurrency, with what it is predicted to do.

    ``prefill_load`` is the share of what its prefill workers could read that it asks for.
    """

    prefill: WorkerPool
    decode: WorkerPool
    kind: Kind
    concurrency: int
    gpus: int
    requests_per_s: float
    ttft_s: float
    tpot_s: float
    prefill_load: float
    total_tokens_per_s_per_gpu: float

    @property
    def tokens_per_s_per_user(self) -> float:
        return 1 / self.tpot_s

    @property
    def text(self) -> str:
        """The deployment as people say it, with its concurrency."""
        drafts = self.kind.speculative_tokens
        mtp = f" MTP {drafts}" if drafts else ""
        return f"{self.prefill} / {self.decode}{mtp} at {self.concurrency}"

    @property
    def shape(self) -> Shape:
        return self.prefill, self.decode, self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A deployment as somebody names it, with its concurrency."""

    prefill: WorkerPool
    decode: WorkerPool
    kind: Kind
    concurrency: int


def choice_of(candidate: Candidate) -> Choice:
    """What a candidate deploys."""
    return Choice(
        prefill=candidate.prefill,
        decode=candidate.decode,
        kind=candidate.kind,
        concurrency=candidate.concurrency,
    )


def candidate_of(judge: Judge, choice: Choice, costs: Costs) -> Candidate:
    """A single deployment by the same arithmetic as the search's.

    Raises InvalidInput with why an engine of it is refused. Whether it holds its concurrency is
    not asked.
    """
    subject = judge.subject
    reading = _engine(judge, "prefill", choice)
    generating = _engine(judge, "decode", choice)
    prefill = prefill_phase(subject, reading, costs)
    per_worker = np.array([choice.concurrency / choice.decode.workers])
    decode = decode_phase(subject, generating, per_worker, costs)
    rate = prefill.prompts_per_s * choice.prefill.workers
    point = serving_point(
        subject.workload,
        prompts_per_s=np.array([rate]),
        alone_s=np.array([prefill.alone_s]),
        transfer_s=np.array([max(prefill.transfer_s, decode.transfer_s)]),
        tpot_s=decode.tpot_s,
        concurrency=np.array([choice.concurrency]),
    )
    per_node = subject.gpus_per_node
    nodes = sum(nodes_for_pool(pool, per_node).value for pool in (choice.prefill, choice.decode))
    requests = float(point.requests_per_s[0])
    return Candidate(
        prefill=choice.prefill,
        decode=choice.decode,
        kind=choice.kind,
        concurrency=choice.concurrency,
        gpus=nodes * per_node,
        requests_per_s=requests,
        ttft_s=float(point.ttft_s[0]),
        tpot_s=float(point.tpot_s[0]),
        prefill_load=requests / rate,
        total_tokens_per_s_per_gpu=requests * subject.workload.request_tokens / (nodes * per_node),
    )


def bounded(judge: Judge, candidate: Candidate, costs: Costs) -> Candidate:
    """The same deployment at its bound: steps take the least, and all drafted tokens hold."""
    ideal = {
        phase: replace(getattr(costs, phase), factor=1.0, fixed_s_per_step=0.0)
        for phase in ("prefill", "decode")
    }
    return candidate_of(judge, choice_of(candidate), replace(costs, acceptance_rate=1.0, **ideal))


def _engine(judge: Judge, role: str, choice: Choice) -> LegalEngine:
    verdict = judge.verdict(role, choice.kind, getattr(choice, role).layout)
    if isinstance(verdict, Rejection):
        raise InvalidInput(verdict.problem)
    return verdict
