"""Why one layout is in a plan, or is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from generator.parallel import ParallelLayout
from generator.planning.candidate import Candidate
from generator.planning.engines import Judge, enumerate_engines
from generator.planning.latency import Limits
from generator.planning.legal_engine import ROLES, Engines, LegalEngine
from generator.planning.limits import most_sequences
from generator.planning.phases import Costs, decode_phase, prefill_phase
from generator.planning.plan import Question
from generator.planning.plan_costs import chosen_costs
from generator.planning.plan_document import candidate_document, rejection_document
from generator.planning.references import better_on
from generator.planning.rejection import Rejection
from generator.planning.search import DeploymentSpace, search
from generator.planning.subject import Subject, require_plannable
from generator.units import format_gib

Table: TypeAlias = tuple[Sequence[str], list[list[str]]]
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalVerdict:
    """A legal engine in its phase.

    ``most_sequences`` are of one data rank. ``alone_s`` is a prompt alone in the worker, or a token
    with one sequence on each rank; ``full_per_s`` prompts, or tokens at the most sequences.
    """

    engine: LegalEngine
    most_sequences: int
    alone_s: float
    full_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BestWith:
    """The best deployments that have a layout in a role, and what of all others beats each."""

    role: str
    best: Candidate
    beaten_by: Candidate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Verdicts on a layout in each role, count of drafts and KV-cache dtype."""

    layout: ParallelLayout
    verdicts: tuple[LegalVerdict | Rejection, ...]
    best: tuple[BestWith, ...]


def why(
    subject: Subject,
    question: Question,
    layout: ParallelLayout,
    on_step: Callable[[str], None] = lambda _: None,
) -> Why:
    """The verdicts on a layout, and where the best deployments with it stand.

    Raises InvalidInput for what rules out every candidate.
    """
    require_plannable(subject)
    costs, _ = chosen_costs(
        subject.gpu.name,
        subject.spec.engine.version,
        question.efficiencies,
        question.acceptance_rate,
    )
    judge = Judge(subject)
    verdicts = [
        each if isinstance(each, Rejection) else _legal(subject, each, costs)
        for each in judge.verdicts(layout)
    ]
    best: tuple[BestWith, ...] = ()
    if any(isinstance(each, LegalVerdict) for each in verdicts):
        on_step("all deployments")
        best = tuple(_best(subject, enumerate_engines(judge), costs, question.limits, layout))
    return Why(layout=layout, verdicts=tuple(verdicts), best=best)


def _legal(subject: Subject, engine: LegalEngine, costs: Costs) -> LegalVerdict:
    most = most_sequences(subject, engine, engine.kv_cache)
    if engine.role == "prefill":
        prefill = prefill_phase(subject, engine, costs)
        alone_s, full_per_s = prefill.alone_s, prefill.prompts_per_s
    else:
        data = engine.layout.data
        loads = np.array([float(data), float(data * max(1, most))])
        one, full = decode_phase(subject, engine, loads, costs).tpot_s
        alone_s, full_per_s = float(one), float(loads[1] / full)
    return LegalVerdict(engine=engine, most_sequences=most, alone_s=alone_s, full_per_s=full_per_s)


def _best(
    subject: Subject, engines: Engines, costs: Costs, limits: Limits, layout: ParallelLayout
) -> Iterator[BestWith]:
    """Both ends of the frontier of what has the layout in a role."""
    whole = search(subject, DeploymentSpace(subject, engines, costs, limits))
    for role in ROLES:
        kept = [each for each in engines.legal if each.role != role or each.layout == layout]
        if not any(each.role == role for each in kept):
            continue
        only = Engines(legal=tuple(kept), rejections=())
        found = search(subject, DeploymentSpace(subject, only, costs, limits)).frontier
        for best in dict.fromkeys((*found[:1], *found[-1:])):
            yield BestWith(role=role, best=best, beaten_by=better_on(whole.frontier, best))


def why_table(answer: Why) -> Table:
    """A row for each legal engine with its figures."""
    headers = [str(answer.layout), "weights GiB", "block", "most/rank", "alone ms", "full /s"]
    rows: list[list[str]] = []
    for each in answer.verdicts:
        if isinstance(each, Rejection):
            continue
        engine, kind = each.engine, each.engine.kind
        rows.append(
            [
                f"{engine.role} {_kind(kind.speculative_tokens, kind.kv_cache_dtype)}",
                format_gib(engine.weights_bytes_per_rank).removesuffix(" GiB"),
                str(engine.kv_cache.block_tokens),
                str(each.most_sequences) if engine.role == "decode" else "-",
                f"{each.alone_s * 1000:,.2f}",
                f"{each.full_per_s:,.2f}",
            ]
        )
    return headers, rows


def refusal_rows(answer: Why) -> list[tuple[str, str]]:
    """Why engines are refused, those together that are for the same reason."""
    refused = [each for each in answer.verdicts if isinstance(each, Rejection)]
    rows = []
    for problem in dict.fromkeys(each.problem for each in refused):
        alike = [each for each in refused if each.problem == problem]
        roles = dict.fromkeys(each.role or "both roles" for each in alike)
        drafts = dict.fromkeys(
            f"MTP {each.speculative_tokens}"
            for each in alike
            if each.speculative_tokens is not None
        )
        hint = f" ({problem.hint})" if problem.hint else ""
        rows.append((f"refused: {', '.join((*roles, *drafts))}", f"{problem.message}{hint}"))
    return rows


def _kind(tokens: int, dtype: str) -> str:
    return f"MTP {tokens} KV {dtype}"


def why_sentences(answer: Why) -> Iterator[str]:
    """How to read the table, and where the layout stands."""
    if any(isinstance(each, LegalVerdict) for each in answer.verdicts):
        yield (
            "Predicted. alone: a prompt in an idle worker, or a token with one sequence on each"
            " rank; full: prompts, or tokens at the most sequences, of one worker."
        )
    for each in answer.best:
        head = (
            f"Best with it for {each.role}: {each.best.text},"
            f" {each.best.tokens_per_s_per_user:,.1f} tokens/s per user,"
            f" {each.best.total_tokens_per_s_per_gpu:,.0f} per GPU"
        )
        better = each.beaten_by
        if better is None:
            yield f"{head}: on the frontier."
        else:
            yield (
                f"{head}; {better.text} has {better.tokens_per_s_per_user:,.1f} and"
                f" {better.total_tokens_per_s_per_gpu:,.0f}."
            )


def why_document(answer: Why) -> dict[str, Any]:
    """The same with numbers, valid against schemas/plan.schema.json."""
    return {
        "version": VERSION,
        "layout": str(answer.layout),
        "verdicts": [_verdict_document(each) for each in answer.verdicts],
        "best": [
            {
                "role": each.role,
                "best": candidate_document(each.best),
                "beaten_by": candidate_document(each.beaten_by) if each.beaten_by else None,
            }
            for each in answer.best
        ],
    }


def _verdict_document(each: LegalVerdict | Rejection) -> dict[str, Any]:
    if isinstance(each, Rejection):
        return rejection_document(each)
    engine = each.engine
    return {
        "legal": True,
        "role": engine.role,
        **asdict(engine.kind),
        "weights_bytes_per_rank": engine.weights_bytes_per_rank,
        "block_tokens": engine.kv_cache.block_tokens,
        "most_sequences_per_rank": each.most_sequences,
        "alone_s": each.alone_s,
        "full_per_s": each.full_per_s,
    }
