"""Plans: no frontier point is lost, figures agree with capacity, the article's shapes come out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.bounds.closed_loop import serving_point
from generator.capacity.capacity import evaluate_engine
from generator.capacity.inverse import startup_fault
from generator.engine.plan import plan_engine
from generator.enumeration.base_spec import subject_of_model
from generator.enumeration.engines import Judge, enumerate_engines
from generator.enumeration.layouts import layouts_within
from generator.enumeration.legal_engine import Engines, Kind, LegalEngine
from generator.enumeration.limits import most_sequences
from generator.enumeration.rejection import Reason, Rejection
from generator.enumeration.subject import Subject
from generator.errors import InvalidInput, NothingFits
from generator.estimation import estimate_spec
from generator.parallel import WorkerPool, parse_layout, parse_pool
from generator.planning import pools
from generator.planning.candidate import Candidate, bounded, candidate_of, choice_of
from generator.planning.latency import Limits
from generator.planning.nothing_fits import nearest_to
from generator.planning.plan import Plan, PlannedPoint, Question, make_plan
from generator.planning.pools import unbeaten
from generator.planning.proposal import propose
from generator.planning.proposed_spec import (
    RefusedDeployment,
    proposed_text,
    validated,
    write_proposed,
)
from generator.planning.references import Reference, references
from generator.planning.search import DeploymentSpace, Search, search
from generator.workload import Workload
from tests.plan_subjects import article_subject, costs, small_subject

MODELS = (
    "Qwen--Qwen3.5-397B-A17B",
    "nvidia--Qwen3-235B-A22B-NVFP4",
    "deepseek-ai--DeepSeek-R1",
    "Qwen--Qwen3.5-27B",
)


@cache
def small_engines(model: str, nodes: int, isl: int, osl: int) -> tuple[Subject, Engines]:
    subject = small_subject(model, nodes=nodes, isl=isl, osl=osl)
    return subject, enumerate_engines(Judge(subject))


def found_in(subject: Subject, engines: Engines, limits: Limits | None = None) -> Search:
    return search(subject, DeploymentSpace(subject, engines, costs(), limits or Limits()))


@cache
def article_plan() -> Plan:
    return make_plan(article_subject(), Question(limits=Limits(), most_deployments=10))


# --- the search -------------------------------------------------------------------------------


def places(frontier: tuple[Candidate, ...]) -> list[tuple[float, float]]:
    return [(each.tokens_per_s_per_user, each.total_tokens_per_s_per_gpu) for each in frontier]


@settings(max_examples=10)
@given(
    model=st.sampled_from(MODELS),
    nodes=st.integers(2, 4),
    isl=st.sampled_from([128, 8192, 30000]),
    osl=st.sampled_from([16, 1024]),
    ttft_ms=st.sampled_from([None, 300.0, 2000.0]),
)
def test_leaving_out_what_is_beaten_loses_no_frontier_point(
    model: str, nodes: int, isl: int, osl: int, ttft_ms: float | None
) -> None:
    subject, engines = small_engines(model, nodes, isl, osl)
    limits = Limits(ttft_s=np.inf if ttft_ms is None else ttft_ms / 1000)
    pruned = found_in(subject, engines, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "unbeaten", lambda rows: np.arange(len(rows)))
        everything = found_in(subject, engines, limits)
    assert places(pruned.frontier) == places(everything.frontier)
    assert everything.evaluated == everything.combinations == pruned.combinations
    assert pruned.evaluated <= everything.evaluated


def test_the_frontier_is_that_of_every_deployment_one_by_one() -> None:
    """Each deployment of a small space by the scalar arithmetic, and dominance by definition."""
    subject, engines = small_engines("Qwen--Qwen3.5-397B-A17B", 2, 8192, 1024)
    some = {"TEP4", "DEP4", "TP2DP2+EP", "TP4", "TP2"}
    kept = tuple(each for each in engines.legal if str(each.layout) in some)
    engines = Engines(legal=kept, rejections=())
    result = found_in(subject, engines)
    judge = Judge(subject)
    again = [candidate_of(judge, choice_of(each), costs()) for each in result.frontier]
    for mine, theirs in zip(result.frontier, again, strict=True):
        assert mine.shape == theirs.shape
        assert places((mine,))[0] == pytest.approx(places((theirs,))[0], rel=1e-12)
        assert (mine.ttft_s, mine.gpus) == pytest.approx((theirs.ttft_s, theirs.gpus))
    users = [each.tokens_per_s_per_user for each in result.frontier]
    rates = [each.total_tokens_per_s_per_gpu for each in result.frontier]
    assert users == sorted(users)
    assert rates == sorted(rates, reverse=True)


@given(
    prompts_per_s=st.floats(0.01, 1e4),
    alone_s=st.floats(1e-4, 10),
    transfer_s=st.floats(0, 1),
    tpot_s=st.floats(1e-4, 1),
    concurrency=st.integers(1, 10**6),
    osl=st.integers(1, 10**5),
)
def test_a_closed_loop_keeps_littles_law(
    prompts_per_s: float,
    alone_s: float,
    transfer_s: float,
    tpot_s: float,
    concurrency: int,
    osl: int,
) -> None:
    """Requests in flight are rate x latency, and nobody is faster than alone or than prefill."""
    one = np.ones(1)
    point = serving_point(
        Workload(isl=1, osl=osl),
        prompts_per_s=prompts_per_s * one,
        alone_s=alone_s * one,
        transfer_s=transfer_s * one,
        tpot_s=tpot_s * one,
        concurrency=concurrency * one,
    )
    latency = point.ttft_s + (osl - 1) * point.tpot_s
    assert float((point.requests_per_s * latency)[0]) == pytest.approx(concurrency, rel=1e-9)
    assert point.ttft_s[0] >= alone_s + transfer_s
    assert point.requests_per_s[0] <= prompts_per_s


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30))
def test_unbeaten_rows(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, dtype=float)
    kept = unbeaten(table)
    for index, row in enumerate(rows):
        beats = [
            other
            for other, theirs in enumerate(rows)
            if all(a <= b for a, b in zip(theirs, row, strict=True))
            and (theirs != row or other < index)
        ]
        assert (index in kept) == (not beats)


def test_every_limit_is_kept_and_is_what_ends_the_frontier() -> None:
    subject, engines = small_engines("Qwen--Qwen3.5-397B-A17B", 4, 8192, 1024)
    free = found_in(subject, engines)
    limits = Limits(ttft_s=0.4, tpot_s=0.02)
    within = found_in(subject, engines, limits)
    assert within.frontier
    assert all(each.ttft_s <= 0.4 and each.tpot_s <= 0.02 for each in within.frontier)
    assert within.frontier[0].tpot_s < free.frontier[0].tpot_s


def test_the_nearest_on_each_side_of_limits_that_nothing_keeps() -> None:
    subject, engines = small_engines("Qwen--Qwen3.5-397B-A17B", 2, 8192, 1024)
    limits = Limits(ttft_s=0.3, tpot_s=0.004)
    nearest = nearest_to(subject, DeploymentSpace(subject, engines, costs(), limits))
    assert nearest.of_tpot.ttft_s <= 0.3
    assert nearest.of_tpot.tpot_s > 0.004
    everything = found_in(subject, engines, Limits(ttft_s=0.3))
    assert nearest.of_tpot.tpot_s == min(each.tpot_s for each in everything.frontier)


def test_limits_of_which_nothing_keeps_either_have_a_nearest_on_each_side_too() -> None:
    subject, engines = small_engines("Qwen--Qwen3.5-397B-A17B", 2, 8192, 1024)
    limits = Limits(ttft_s=1e-3, tpot_s=1e-5)
    nearest = nearest_to(subject, DeploymentSpace(subject, engines, costs(), limits))
    everything = found_in(subject, engines).frontier
    assert nearest.of_tpot.tpot_s == min(each.tpot_s for each in everything)
    assert nearest.of_ttft.ttft_s <= min(each.ttft_s for each in everything)


# --- engines ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "reason", "needed", "available"),
    [
        ("DEP73", Reason.DOMAIN, 73, 72),
        ("TP3", Reason.PLACEMENT, 3, 4),
        ("TP1PP8", Reason.PIPELINE_TRANSFER, 8, 1),
        ("TP8DCP2", Reason.CONTEXT_TRANSFER, 2, 1),
        ("TP32", Reason.HEADS, None, None),
    ],
)
def test_a_refusal_has_its_reason_and_numbers(
    layout: str, reason: Reason, needed: int | None, available: int | None
) -> None:
    for each in Judge(article_subject()).verdicts(parse_layout(layout)):
        assert isinstance(each, Rejection)
        assert (each.reason, each.needed, each.available) == (reason, needed, available)


def test_weights_that_do_not_fit_are_refused_with_bytes() -> None:
    verdicts = list(Judge(article_subject()).verdicts(parse_layout("TEP4")))
    assert len(verdicts) == 8
    for each in verdicts:
        assert isinstance(each, Rejection)
        assert each.reason is Reason.MEMORY
        assert each.needed is not None
        assert each.available is not None
        assert each.needed > each.available > 250 * 2**30


@pytest.mark.parametrize(
    ("version", "layout", "legal"),
    [("0.28.0", "TP8DCP8", 0), ("0.29.0", "TP8DCP8", 8), ("0.29.0", "TP8DCP4", 0)],
)
def test_context_parallelism_with_latent_attention(version: str, layout: str, legal: int) -> None:
    subject = small_subject("deepseek-ai--DeepSeek-R1", nodes=4)
    question = subject.question
    assert question is not None
    subject = subject_of_model(replace(question, engine_version=version))
    verdicts = list(Judge(subject).verdicts(parse_layout(layout)))
    assert sum(isinstance(each, LegalEngine) for each in verdicts) == legal


def test_a_request_beyond_the_cache_is_told_how_long_it_may_be() -> None:
    """What is said to fit does, and a block more does not."""
    subject = small_subject("deepseek-ai--DeepSeek-R1", nodes=2, gpu="h200", isl=100_000)
    layout, kind = parse_layout("DEP8"), Kind(kv_cache_dtype="auto", speculative_tokens=1)
    refused = Judge(subject).verdict("prefill", kind, layout)
    assert isinstance(refused, Rejection)
    assert refused.reason is Reason.REQUEST
    assert (refused.needed, refused.available) == (6378, 5356)
    assert "to 85696 tokens" in refused.problem.hint
    shorter = small_subject("deepseek-ai--DeepSeek-R1", nodes=2, gpu="h200", isl=85696 - 2048)
    assert isinstance(Judge(shorter).verdict("prefill", kind, layout), LegalEngine)
    longer = small_subject("deepseek-ai--DeepSeek-R1", nodes=2, gpu="h200", isl=85696 - 2047)
    assert isinstance(Judge(longer).verdict("prefill", kind, layout), Rejection)


def test_more_racks_have_more_workers_and_no_larger_engines() -> None:
    subject = article_subject()
    (dtype,) = subject.specs
    spec = replace(subject.spec, cluster=replace(subject.spec.cluster, nodes=36))
    two = replace(subject, specs={dtype: spec})
    assert two.gpus_per_engine == subject.gpus_per_engine == 72
    one = article_plan()
    found = found_in(two, enumerate_engines(Judge(two)))
    assert found.combinations > 3 * one.search.combinations
    assert max(each.gpus for each in found.frontier) > 72
    best, before = found.frontier[0], one.search.frontier[0]
    assert best.total_tokens_per_s_per_gpu >= before.total_tokens_per_s_per_gpu


def test_pipelines_do_not_draft() -> None:
    verdicts = list(
        Judge(small_subject("deepseek-ai--DeepSeek-R1", nodes=4)).verdicts(parse_layout("TP4PP2"))
    )
    assert {each.kind.speculative_tokens for each in verdicts if isinstance(each, LegalEngine)} == {
        0
    }
    assert {each.reason for each in verdicts if isinstance(each, Rejection)} == {Reason.PIPELINE}


def test_all_layouts_are_looked_at_once() -> None:
    found = list(layouts_within(8, has_experts=True))
    assert len(found) == len(set(found))
    assert all(each.ranks <= 8 for each in found)
    for text in ("TP8", "TEP8", "DEP8", "TP2PP2DP2+EP", "TP4DCP2", "TP1PP8"):
        assert parse_layout(text) in found


@pytest.mark.parametrize(
    ("layout", "drafts"), [("TEP8", 3), ("TP4DP4+EP", 0), ("TP4DP4+EP", 3), ("TEP16", 1)]
)
def test_the_most_sequences_are_capacitys_own(layout: str, drafts: int) -> None:
    """An engine sized for the limit starts and holds it; sized for a sixteenth more it does not."""
    subject = article_subject()
    kind = Kind(kv_cache_dtype="fp8", speculative_tokens=drafts)
    engine = Judge(subject).verdict("decode", kind, parse_layout(layout))
    assert isinstance(engine, LegalEngine)
    most = most_sequences(subject, engine, engine.kv_cache)
    sizes = list(engine.sizes.sequences)
    assert holds(subject, engine, sizes.index(most))
    assert not holds(subject, engine, sizes.index(most) + 1)


def holds(subject: Subject, engine: LegalEngine, index: int) -> bool:
    options = replace(engine.sizes.options[index], layout=engine.layout)
    pool = WorkerPool(workers=1, layout=engine.layout)
    planned = plan_engine("e", "decode", pool, options, subject.architecture, subject.defaults)
    try:
        capacity = evaluate_engine(
            planned, subject.architecture, subject.gpu, subject.defaults, subject.workload
        )
    except NothingFits:
        return False
    return startup_fault(capacity) is None and bool(
        capacity.at_workload.per_rank >= int(engine.sizes.sequences[index])
    )


# --- the published rack -----------------------------------------------------------------------


def test_the_throughput_end_has_the_articles_shapes() -> None:
    """TP2DP4+EP before TP4DP4+EP without MTP, as 4xtp2dep4-1xtp4dep4-cc2560."""
    end = article_plan().search.frontier[0]
    assert end.prefill.layout == parse_layout("TP2DP4+EP")
    assert end.decode == parse_pool("1xTP4DP4+EP")
    assert end.kind.speculative_tokens == 0
    assert end.concurrency >= 2048


def test_what_beats_the_articles_low_latency_shape_is_said() -> None:
    own = [each for each in article_plan().references if isinstance(each, Reference)]
    (first,) = [each for each in own if each.predicted.concurrency == 1]
    assert first.file == "1xtp8-1xtp8-mtp-cc1-4"
    assert first.measured is not None
    assert first.predicted.tokens_per_s_per_user == pytest.approx(180, rel=1e-6)
    better = first.beaten_by
    assert better is not None
    assert better.kind.speculative_tokens == 3
    assert better.tokens_per_s_per_user > first.predicted.tokens_per_s_per_user
    assert better.total_tokens_per_s_per_gpu > first.predicted.total_tokens_per_s_per_gpu


def test_no_bound_is_slower_than_a_prediction_or_a_measurement() -> None:
    plan = article_plan()
    own = [each for each in plan.references if isinstance(each, Reference)]
    measured = 0
    shown: tuple[PlannedPoint | Reference, ...] = (*plan.points, *own)
    for each in shown:
        bound, predicted, point = each.bound, each.predicted, each.measured
        assert bound.tpot_s <= predicted.tpot_s
        assert bound.total_tokens_per_s_per_gpu >= predicted.total_tokens_per_s_per_gpu
        if point and point.tokens_per_s_per_user:
            measured += 1
            assert bound.tokens_per_s_per_user >= point.tokens_per_s_per_user
        if point and point.total_tokens_per_s_per_gpu:
            measured += 1
            assert bound.total_tokens_per_s_per_gpu >= point.total_tokens_per_s_per_gpu
    assert measured == 2


def test_the_sweep_costs_less_than_what_it_replaces() -> None:
    cost = article_plan().cost
    assert 0 < cost.proposed.gpu_hours < cost.phases.gpu_hours < cost.product.gpu_hours
    assert cost.requests_per_concurrency == 8
    by_hand = sum(
        each.predicted.gpus * each.predicted.concurrency * 8 / each.predicted.requests_per_s / 3600
        for each in article_plan().points
    )
    assert cost.proposed.gpu_hours == pytest.approx(by_hand)


def test_proposals_have_both_ends_and_no_more_than_asked() -> None:
    frontier = article_plan().search.frontier
    for most in (1, 2, 5, 100):
        proposed = propose(frontier, most)
        assert len(proposed) <= most
        shapes = [each.shape for each in proposed]
        assert len(shapes) == len(set(shapes))
        assert frontier[0] in proposed[0].points
        if most > 1:
            assert frontier[-1] in proposed[-1].points
    gone = propose(frontier, 5, {frontier[0].shape})
    assert all(each.shape != frontier[0].shape for each in gone)


def test_a_written_sweep_has_the_capacity_that_the_plan_says(
    tmp_path: Path, repository: Path
) -> None:
    plan = article_plan()
    folder = repository / "recipes/specs"
    text = proposed_text(plan.subject, [each.proposed for each in plan.proposed], folder)
    assert "accuracy:" not in text
    assert "# one NVLink domain of 72 GPUs" in text  # the rest of the spec stays as it is
    path = tmp_path / "spec.yaml"
    path.write_text(text.replace("../models", str(repository / "recipes/models")), "utf-8")
    estimate = estimate_spec(path)
    for valid, deployment in zip(plan.proposed, estimate.derivation.deployments, strict=True):
        capacity = estimate.capacities[deployment.decode.name]
        assert capacity.pool_requests == valid.decode.pool_requests
        assert max(deployment.spec.concurrencies) <= capacity.pool_requests


def test_what_does_not_hold_is_not_proposed() -> None:
    """A decode engine at a load beyond its cache is refused with the numbers."""
    subject = article_subject()
    (proposed,) = propose(article_plan().search.frontier, 1)
    beyond = replace(proposed, points=(replace(proposed.points[0], concurrency=100_000),))
    (refused,) = validated(subject, [beyond])
    assert isinstance(refused, RefusedDeployment)
    assert any("of 100000 requests" in each.message for each in refused.problems)


def test_bounds_take_every_draft() -> None:
    judge, point = Judge(article_subject()), article_plan().points[-1].predicted
    ideal = bounded(judge, point, replace(costs(), acceptance_rate=0.0))
    assert ideal.tpot_s == pytest.approx(article_plan().points[-1].bound.tpot_s)


def test_writing_a_users_spec_elsewhere_is_refused(tmp_path: Path) -> None:
    plan = article_plan()
    with pytest.raises(InvalidInput, match="another folder"):
        write_proposed(plan.subject, plan.proposed, tmp_path / "spec.yaml")


def test_published_deployments_stand_beside_the_plan_of_a_model() -> None:
    """Float32 states leave the article's throughput shape too little KV cache, which is said."""
    subject = small_subject("Qwen--Qwen3.8-2.4T-A95B-NVFP4", nodes=18)
    judge = Judge(subject)
    headline, fast = references(judge, costs(), ())
    assert isinstance(headline, Reference)
    assert (headline.file, headline.held_requests) == ("throughput headline", 1920)
    assert headline.predicted.concurrency == 2560
    assert isinstance(fast, Reference)
    assert fast.file == "interactivity headline"
    assert fast.measured is not None


def test_a_plan_shows_the_public_points_that_its_factors_are_fitted_to() -> None:
    """All fourteen published figures, each kept by its bound."""
    plan = article_plan()
    assert len(plan.public) == 14
    assert all(each.is_bounded for each in plan.public)


@pytest.mark.parametrize(
    ("model", "dtypes"),
    [("Qwen--Qwen3.5-27B", ("fp8", "auto")), ("nvidia--Qwen3-235B-A22B-NVFP4", ("fp8",))],
)
def test_a_cache_dtype_is_tried_once(model: str, dtypes: tuple[str, ...]) -> None:
    """The NVFP4 checkpoint has an FP8 KV scheme, so that auto would be the same again."""
    assert tuple(small_subject(model, nodes=2).specs) == dtypes
