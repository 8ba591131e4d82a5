"""Deployments that somebody chose, beside a plan's frontier: what beats them, if anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.errors import InvalidInput
from generator.facts.fact import DATA
from generator.hf_config import load_architecture
from generator.planning.candidate import Candidate, Choice, bounded, candidate_of
from generator.planning.engines import Judge
from generator.planning.legal_engine import Kind
from generator.planning.phases import Costs
from generator.planning.plan_facts import CitedPoint, cited_points
from generator.planning.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A deployment of the spec at one of its concurrencies.

    ``beaten_by`` is the point of the frontier with the most tokens per GPU among those at least as
    fast for a user; None where the frontier has nothing better. ``measured`` is a published point
    of just this.
    """

    file: str
    predicted: Candidate
    bound: Candidate
    beaten_by: Candidate | None
    measured: CitedPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedReference:
    """A deployment of the spec that has an engine which is no candidate."""

    file: str
    reason: str


def references(
    judge: Judge, costs: Costs, frontier: Sequence[Candidate]
) -> Iterator[Reference | RefusedReference]:
    """The spec's own deployments; none where the spec was composed."""
    subject = judge.subject
    if subject.question is not None:
        return
    for spec in subject.spec.deployments:
        if not spec.concurrencies:
            continue  # a repetition under an accuracy benchmark
        kind = Kind(
            kv_cache_dtype=next(iter(subject.specs)),
            speculative_tokens=spec.speculative_tokens.decode,
        )
        for concurrency in spec.concurrencies:
            choice = Choice(
                prefill=spec.prefill, decode=spec.decode, kind=kind, concurrency=concurrency
            )
            try:
                predicted = candidate_of(judge, choice, costs)
            except InvalidInput as error:
                yield RefusedReference(file=spec.file, reason=error.problems[0].message)
                break
            yield Reference(
                file=spec.file,
                predicted=predicted,
                bound=bounded(judge, predicted, costs),
                beaten_by=better_on(frontier, predicted),
                measured=measured_at(subject, predicted),
            )


def better_on(frontier: Sequence[Candidate], candidate: Candidate) -> Candidate | None:
    """What of a frontier beats a deployment; None where nothing does."""
    as_fast = [
        each
        for each in frontier
        if each.tokens_per_s_per_user >= candidate.tokens_per_s_per_user
        and each.total_tokens_per_s_per_gpu > candidate.total_tokens_per_s_per_gpu
    ]
    return max(as_fast, key=lambda each: each.total_tokens_per_s_per_gpu, default=None)


def measured_at(subject: Subject, candidate: Candidate) -> CitedPoint | None:
    """The published measurement of a deployment of this model, GPU and workload."""
    for point in cited_points():
        is_here = (
            point.gpu == subject.gpu.name
            and (point.workload.isl, point.workload.osl)
            == (subject.workload.isl, subject.workload.osl)
            and point.prefill == candidate.prefill
            and point.decode == candidate.decode
            and point.speculative_tokens == candidate.kind.speculative_tokens
            and point.concurrency == candidate.concurrency
        )
        if is_here and _signature(point) == subject.architecture.signature:
            return point
    return None


def _signature(point: CitedPoint) -> str:
    return load_architecture(DATA / "models" / point.model).signature
