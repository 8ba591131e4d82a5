"""Deployments that somebody chose, beside a plan's frontier: what beats them, if anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.efficiency.plan_facts import CitedPoint, cited_points
from generator.enumeration.engines import Judge
from generator.enumeration.legal_engine import Kind
from generator.enumeration.limits import most_sequences
from generator.enumeration.rejection import Rejection
from generator.enumeration.subject import Subject
from generator.errors import InvalidInput
from generator.facts.fact import DATA
from generator.hf_config import load_architecture
from generator.planning.candidate import Candidate, Choice, bounded, candidate_of
from generator.planning.phases import Costs

_KV_CACHE_DTYPE = "kv-cache-dtype"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A deployment of the spec at one of its concurrencies, or a published one.

    ``beaten_by`` is the point of the frontier with the most tokens per GPU among those at least as
    fast for a user; None where the frontier has nothing better. ``measured`` is a published point
    of just this. ``held_requests`` of full length fit its decode workers at once; with fewer than
    its concurrency it is no candidate, though it may run.
    """

    file: str
    held_requests: int
    predicted: Candidate
    bound: Candidate
    beaten_by: Candidate | None
    measured: CitedPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedReference:
    """One that has an engine which is no candidate."""

    file: str
    reason: str


def references(
    judge: Judge, costs: Costs, frontier: Sequence[Candidate]
) -> Iterator[Reference | RefusedReference]:
    """The spec's own deployments; where the spec was composed, what was published of its question.

    After the first load of a deployment that is refused its others are left out.
    """
    subject = judge.subject
    chosen = _chosen_by_spec(subject) if subject.question is None else _published(subject)
    refused = set()
    for name, choice in chosen:
        if name in refused:
            continue
        try:
            predicted = candidate_of(judge, choice, costs)
            held = _held(judge, choice)
        except InvalidInput as error:
            refused.add(name)
            yield RefusedReference(file=name, reason=error.problems[0].message)
            continue
        yield Reference(
            file=name,
            held_requests=held,
            predicted=predicted,
            bound=bounded(judge, predicted, costs),
            beaten_by=better_on(frontier, predicted),
            measured=measured_at(subject, predicted),
        )


def _chosen_by_spec(subject: Subject) -> Iterator[tuple[str, Choice]]:
    """Each deployment at each concurrency; a repetition under an accuracy benchmark has none."""
    for spec in subject.spec.deployments:
        kind = Kind(
            kv_cache_dtype=next(iter(subject.specs)),
            speculative_tokens=spec.speculative_tokens.decode,
        )
        for concurrency in spec.concurrencies:
            yield (
                spec.file,
                Choice(
                    prefill=spec.prefill, decode=spec.decode, kind=kind, concurrency=concurrency
                ),
            )


def _published(subject: Subject) -> Iterator[tuple[str, Choice]]:
    """The deployments of public points of the subject's model, GPU and workload."""
    for point in cited_points():
        dtype = point.flags[_KV_CACHE_DTYPE]
        if point.prefill is None or dtype not in subject.specs or not _is_of(point, subject):
            continue
        kind = Kind(kv_cache_dtype=dtype, speculative_tokens=point.speculative_tokens)
        yield (
            point.name,
            Choice(
                prefill=point.prefill,
                decode=point.decode,
                kind=kind,
                concurrency=point.concurrency,
            ),
        )


def _held(judge: Judge, choice: Choice) -> int:
    """How many requests the decode workers hold at once at full length.

    Raises InvalidInput with why their engine is refused.
    """
    engine = judge.verdict("decode", choice.kind, choice.decode.layout)
    if isinstance(engine, Rejection):
        raise InvalidInput(engine.problem)
    return choice.decode.data_ranks * most_sequences(judge.subject, engine, engine.kv_cache)


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
            point.prefill == candidate.prefill
            and point.decode == candidate.decode
            and point.speculative_tokens == candidate.kind.speculative_tokens
            and point.concurrency == candidate.concurrency
        )
        if is_here and _is_of(point, subject):
            return point
    return None


def _is_of(point: CitedPoint, subject: Subject) -> bool:
    """Whether a point is of the subject's GPU, workload and model."""
    return (
        point.gpu == subject.gpu.name
        and (point.workload.isl, point.workload.osl) == (subject.workload.isl, subject.workload.osl)
        and _signature(point) == subject.architecture.signature
    )


def _signature(point: CitedPoint) -> str:
    return load_architecture(DATA / "models" / point.model).signature
