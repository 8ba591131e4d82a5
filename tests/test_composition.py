"""From phase studies to deployments, on synthetic rates that agree with the article's words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generator.collection.ran_recipe import read_ran_recipe
from generator.composition.compose import Composition, compose
from generator.composition.explanation import choice_reasons
from generator.composition.grouping import group_candidates
from generator.composition.pairs import PairCapacity
from generator.composition.phase_frontier import decode_at, frontier, prefill_at
from generator.composition.phase_points import EngineKind, PhasePoint, Phases, read_phases
from generator.composition.proposals import Candidate, Choice
from generator.composition.rate_matching import RateMatch, match_rates
from generator.errors import NothingFits
from generator.estimation import SizingBasis, sizing_basis
from generator.results.point import Invalidity, MeasuredPoint, Origin
from generator.results.point_file import points_text, read_points
from generator.spec.reader import load_spec
from generator.spec.rewriting import with_sections
from generator.spec.spec import Spec
from generator.workload import Workload
from tests.conftest import REPOSITORY
from tests.small_specs import SPEC, run, spec_folder
from tests.synthetic_studies import PREFILL, synthetic_studies

QWEN38 = REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
RESULTS = REPOSITORY / "tests/data/studies/qwen38_synthetic.jsonl"
ARTICLE = json.loads((REPOSITORY / "tests/data/studies/article.json").read_text("utf-8"))
PUBLISHED = json.loads((REPOSITORY / "tests/data/published/qwen38_article.json").read_text("utf-8"))
WORKLOAD = Workload(isl=8192, osl=1024)


def points() -> tuple[MeasuredPoint, ...]:
    return read_points(RESULTS)


def phases(spec: Spec) -> Phases:
    return read_phases(points(), spec.workload, spec.cluster.gpu)


def target(spec: Spec) -> SizingBasis:
    return sizing_basis(spec)


@pytest.fixture(scope="module")
def qwen38() -> Composition:
    spec = load_spec(QWEN38)
    return compose(phases(spec), target(spec), against=spec.deployments)


def test_the_committed_results_are_the_stated_model_s() -> None:
    assert RESULTS.read_text("utf-8") == points_text(synthetic_studies(QWEN38))
    assert {point.origin for point in points()} == {Origin.SYNTHETIC}


# --- the article's method -----------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["v1", "v2"])
def test_labels_are_those_that_collect_gives_the_study_recipes(dialect: str) -> None:
    folder = REPOSITORY / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg" / dialect
    ran = [read_ran_recipe(path) for path in folder.glob("study-*/*.yaml")]
    assert len(ran) == 18
    assert {each.name: (each.configuration, each.phase) for each in ran} == {
        point.subject.recipe: (point.subject.configuration, point.subject.phase)
        for point in points()
    }


def test_leads_are_the_article_s(qwen38: Composition) -> None:
    assert ARTICLE["studies"]["prefill"]["best"] == {
        "concurrency <= 16": "TP4DP2+EP", "above": "TP2DP4+EP",
    }  # fmt: skip
    assert list(map(str, qwen38.prefill_leads)) == ["TP4DP2+EP (1-16)", "TP2DP4+EP (32-512)"]
    assert ARTICLE["studies"]["decode"]["best"] == {
        "low": "TEP8 with MTP 3", "512 and 1024": "TEP8", "high": "TP4DP4+EP",
    }  # fmt: skip
    assert list(map(str, qwen38.decode_leads)) == [
        "TEP8 MTP3 (1-256)", "TEP8 (512-1024)", "TP4DP4+EP (2048-2560)",
    ]  # fmt: skip


def rows(row: dict[str, Any]) -> tuple[str, str, int, tuple[int, ...]]:
    loads = tuple(map(int, row["concurrencies"].split("x")))
    return row["prefill"], row["decode"], row["mtp"], loads


def test_the_article_s_eight_shapes_but_for_the_smallest_prefill(qwen38: Composition) -> None:
    composed = [
        (
            deployment.prefill,
            f"1x{group.decode.name}",
            group.decode.num_speculative_tokens,
            deployment.concurrencies,
        )
        for group in qwen38.groups
        for deployment in group.deployments
    ]
    published = list(map(rows, PUBLISHED["recipes"]))
    assert composed[0] == ("1xTP4DP2+EP", "1xTEP8", 3, (1, 2, 4))
    assert published[0] == ("1xTEP8", "1xTEP8", 3, (1, 2, 4))
    assert composed[1:] == published[1:]
    assert [group.name for group in qwen38.groups] == [
        "cc1-4", "cc8-16", "cc32-64", "cc128-256", "cc512-1024", "cc2560",
    ]  # fmt: skip


def test_the_ends_are_near_the_article_s_headline(qwen38: Composition) -> None:
    chosen = [choice.chosen for choice in qwen38.choices if choice.chosen]
    headline = ARTICLE["headline"]
    assert chosen[-1].tokens_per_s_per_gpu == pytest.approx(
        headline["total_tokens_per_s_per_gpu"], rel=0.02
    )
    assert chosen[0].tokens_per_s_per_user == pytest.approx(
        headline["generated_tokens_per_s_per_user"], rel=0.02
    )


# Concurrency, prefill workers, supplied and needed requests/s, GPUs.
MATCHES = [
    (16, 1, 5.28, 1.05, 16),
    (64, 1, 6.88, 2.55, 16),
    (128, 1, 7.28, 6.18, 24),
    (256, 2, 14.57, 9.91, 32),
    (512, 2, 14.57, 14.18, 32),
    (1024, 3, 21.85, 18.09, 40),
    (2560, 4, 29.14, 25.97, 48),
]


@pytest.mark.parametrize(("load", "workers", "supplied", "needed", "gpus"), MATCHES)
def test_rates(
    load: int, workers: int, supplied: float, needed: float, gpus: int, qwen38: Composition
) -> None:
    (chosen,) = [choice.chosen for choice in qwen38.choices if choice.concurrency == load]
    assert chosen is not None
    assert (chosen.match.workers, chosen.gpus) == (workers, gpus)
    assert chosen.match.supplied == pytest.approx(supplied, abs=0.005)
    assert chosen.match.needed == pytest.approx(needed, abs=0.005)


@pytest.mark.parametrize(
    ("load", "leader", "reason", "instead"),
    [
        (
            256, EngineKind(name="TEP8", num_speculative_tokens=3),
            "holds 172.35 of 256 requests",
            "and with 2xTEP8 1,902 tokens/s per GPU, this one 2,853",
        ),
        (
            512, EngineKind(name="TEP8"),
            "block size forced from 1056 to 2112", "and with 2xTEP8 2,796 tokens/s per GPU",
        ),
        (1024, EngineKind(name="TEP8"), "holds 393.25 of 1024 requests of 9216 tokens", ""),
    ],
)  # fmt: skip
def test_what_wins_the_study_may_not_hold_the_workload(
    load: int, leader: EngineKind, reason: str, instead: str, qwen38: Composition
) -> None:
    (choice,) = [choice for choice in qwen38.choices if choice.concurrency == load]
    assert choice.measured[0].kind == leader
    (first, *_) = choice_reasons(choice)
    assert first.startswith(f"{leader} does more")
    assert reason in first
    assert instead in first
    assert bool(instead) is not (leader in {each.decode.kind for each in choice.rejected})
    assert choice.chosen is not None
    assert choice.chosen.decode.kind == EngineKind(name="TP4DP4+EP", num_speculative_tokens=3)


def test_differences_to_the_published_set_are_explained(qwen38: Composition) -> None:
    agreed = [each.concurrency for each in qwen38.comparisons if each.agrees]
    assert agreed == [8, 16, 32, 64, 128, 256, 512, 1024, 2560]
    reasons = {each.concurrency: each.reasons for each in qwen38.comparisons}
    rates, blocks = reasons[4]
    assert rates == "prefill TP4DP2+EP reads 0.550 requests/s per GPU, TEP8 0.464 (+18%)"
    assert blocks == (
        "TEP8 would keep decode blocks of 1088 tokens, not 2176: room for 317 requests, not 196,"
        " of which 4 run"
    )
    assert reasons[512][0].startswith("TEP8 does more (0.910 requests/s per GPU), but with")
    assert reasons[128][0].endswith("with 1xTP2DP4+EP 2,168 tokens/s per GPU, this one 2,373")


def test_their_prefill_is_judged_before_the_decode_engine_proposed() -> None:
    """Where their decode engine differs too, its blocks are no reason for the prefill."""
    spec = load_spec(QWEN38)
    kept = [
        point
        for point in points()
        if point.subject.phase == "prefill" or point.subject.configuration == "1xTEP8"
    ]
    read = read_phases(kept, spec.workload, spec.cluster.gpu)
    made = compose(read, target(spec), concurrencies=(4, 512), against=spec.deployments)
    reasons = {each.concurrency: each.reasons for each in made.comparisons}
    assert reasons[4][1:] == (
        "prefill TP4DP2+EP reads 0.550 requests/s per GPU, TEP8 0.464 (+18%)",
        (
            "TEP8 would keep decode blocks of 1056 tokens, not 2112: room for 524 requests, not"
            " 393, of which 4 run"
        ),
    )
    assert reasons[512][1:] == (
        "prefill TEP8 reads 0.619 requests/s per GPU, TP2DP4+EP 1.012 (-39%)",
        (
            "TEP8 with 2xTP2DP4+EP: it holds 393.25 of 512 requests of 9216 tokens (KV cache"
            " assumed, block size forced from 1056 to 2112)"
        ),
    )


def test_saving(qwen38: Composition) -> None:
    saving = qwen38.saving
    assert saving.phases.points == len(points()) == 172
    assert saving.phases.starts == 18
    assert saving.phases.gpu_hours == pytest.approx(
        sum(point.gpus.total * point.duration_s for point in points()) / 3600
    )
    assert (saving.composed.points, saving.composed.starts) == (12, 8)
    assert saving.composed.gpu_hours == pytest.approx(24.3, abs=0.05)
    assert (saving.product.points, saving.refused) == (2470, 986)
    assert saving.share_saved == pytest.approx(0.977, abs=0.001)


def test_the_order_of_results_changes_nothing(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text(points_text(reversed(points())), encoding="utf-8")
    told = [run("compose", str(each), str(QWEN38), "--json").stdout for each in (RESULTS, results)]
    assert told[0] == told[1]


def test_that_nothing_is_saved_is_told(tmp_path: Path) -> None:
    """One pair and one load: the product is one point, the studies were all rungs of both."""
    results = tmp_path / "results.jsonl"
    kept = [point for point in points() if point.subject.configuration == "1xTEP8"]
    results.write_text(points_text(kept), encoding="utf-8")
    told = run("compose", str(results), str(QWEN38), "--concurrencies", "1").stdout
    assert re.search(r"Nothing saved: [\d,]+% more\.", " ".join(told.split()))


def test_a_load_between_two_rungs_is_told_as_the_one_below() -> None:
    result = run("compose", str(RESULTS), str(QWEN38), "--concurrencies", "256x300")
    told = result.stdout.splitlines()
    assert (
        "300  TP4DP4+EP MTP3 leads decode: 0.619 requests/s per GPU at 256, the rung below" in told
    )
    assert not any(line.startswith("256") and "rung below" in line for line in told)


@pytest.mark.parametrize(("margin", "workers"), [(0.0, 2), (0.1, 2), (0.2, 3)])
def test_margin_is_an_input(margin: float, workers: int) -> None:
    spec = load_spec(QWEN38)
    (choice,) = compose(phases(spec), target(spec), margin=margin, concurrencies=(512,)).choices
    assert choice.chosen is not None
    assert choice.chosen.match.workers == workers


# --- other rates ----------------------------------------------------------------------------------

# Of the stated model: most requests/s, requests at half of it. Every other rate stays.
OTHER_RATES = [
    pytest.param(
        {"TP1PP8+EP": (20.0, 1.0)}, 16, "1xTP4DP2+EP + 1xTEP8 MTP3",
        "another prefill reads more, but with 1xTP1PP8+EP roles cannot pair: pipeline parallelism",
        id="pipelines read the most but cannot pair",
    ),
    pytest.param(
        {"DEP16": (30.0, 0.2)}, 1, "1xTP4DP2+EP + 1xTEP8 MTP3",
        "prefill DEP16 reads more (1.562 requests/s per GPU, TP4DP2+EP 0.275), but with 1xDEP16"
        " 66 tokens/s per GPU, this one 100",
        id="the best per GPU is more than the load needs",
    ),
    pytest.param(
        {"DEP16": (30.0, 0.2)}, 2560, "1xDEP16 + 1xTP4DP4+EP", "TP4DP4+EP leads decode",
        id="data parallelism reads the most",
    ),
    pytest.param(
        {name: (most / 20, half) for name, (most, half) in PREFILL.items()}, 64,
        "8xTP4DP2+EP + 1xTEP8", "but needs more prefill workers than the cluster holds",
        id="eight workers are each at a low load, where another layout is best",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rates", "load", "expected", "reason"), OTHER_RATES)
def test_other_prefill_rates(
    rates: dict[str, tuple[float, float]], load: int, expected: str, reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("tests.synthetic_studies.PREFILL", PREFILL | rates)
    spec = load_spec(QWEN38)
    read = read_phases(synthetic_studies(QWEN38), spec.workload, spec.cluster.gpu)
    (choice,) = compose(read, target(spec), concurrencies=(load,)).choices
    assert str(choice.chosen) == expected
    assert reason in "; ".join(choice_reasons(choice))


def test_of_engines_that_take_the_same_nodes_the_one_with_more_room_is_explained() -> None:
    """An engine of two GPUs takes a node of four: better per GPU, it has less to give."""

    def before_tep8(name: str, rate: float) -> Candidate:
        match = RateMatch(workers=1, prefill=phase_point(rate, name=name), needed=1, margin=0.1)
        return Candidate(
            concurrency=1, prefill=EngineKind(name=name), decode=phase_point(1), match=match,
            gpus=12, capacity=PairCapacity(refusal=""), request_tokens=9216,
        )  # fmt: skip

    choice = Choice(
        concurrency=1, measured=(phase_point(1),), chosen=before_tep8("TP4", 8),
        others=(before_tep8("TP2", 5),), rejected=(),
    )  # fmt: skip
    assert [*choice_reasons(choice)][1] == (
        "prefill TP2 reads more (2.500 requests/s per GPU, TP4 2.000), but 1xTP2 on as many GPUs"
        " supplies 4.50 requests/s, this one 7.20"
    )


def test_a_layout_measured_with_and_without_drafts_is_one_prefill_layout() -> None:
    """MTP decode gets the rates of MTP prefill, the other those without; the product counts one."""
    spec = load_spec(QWEN38)
    plain = points()
    drafting = [
        replace(
            point,
            duration_s=2 * point.duration_s,
            subject=replace(
                point.subject, pools=(replace(point.subject.pools[0], num_speculative_tokens=3),)
            ),
        )
        for point in plain
        if point.subject.phase == "prefill"
    ]
    read = read_phases([*plain, *drafting], spec.workload, spec.cluster.gpu)
    made = compose(read, target(spec), concurrencies=(16, 2560))
    rates = [each.chosen.match.prefill.requests_per_s for each in made.choices if each.chosen]
    single = compose(phases(spec), target(spec), concurrencies=(16, 2560))
    alone = [each.chosen.match.prefill.requests_per_s for each in single.choices if each.chosen]
    assert rates == [pytest.approx(alone[0] / 2, rel=1e-3), alone[1]]
    assert made.saving.product.points + made.saving.refused == (
        single.saving.product.points + single.saving.refused
    )


def test_the_only_pair_that_holds_the_load_is_found_behind_the_frontier() -> None:
    """TP4DP2+EP reads more, but forces TEP8 to blocks with which it holds 393 requests."""
    kept = [
        point
        for point in points()
        if point.subject.phase == "prefill" or point.subject.configuration == "1xTEP8"
    ]
    spec = load_spec(QWEN38)
    read = read_phases(kept, spec.workload, spec.cluster.gpu)
    (choice,) = compose(read, target(spec), concurrencies=(512,)).choices
    assert str(choice.chosen) == "2xTEP8 + 1xTEP8"
    assert choice.chosen is not None
    assert choice.chosen.capacity.held == pytest.approx(524.42, abs=0.01)


def test_engines_with_one_reason_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {name: (most / 100, half) for name, (most, half) in PREFILL.items()}
    monkeypatch.setattr("tests.synthetic_studies.PREFILL", slow)
    spec = load_spec(QWEN38)
    read = read_phases(synthetic_studies(QWEN38), spec.workload, spec.cluster.gpu)
    with pytest.raises(NothingFits) as caught:
        compose(read, target(spec), concurrencies=(2560,))
    (problem,) = caught.value.problems
    assert problem.message == (
        "nothing serves concurrency 2560: TP4DP4+EP, TP4DP8+EP MTP3, TP4DP8+EP, TEP16:"
        " needs more prefill workers than the cluster holds"
    )


def test_prefill_that_was_measured_above_the_load_only_is_told() -> None:
    kept = [
        point
        for point in points()
        if point.subject.phase == "decode" or point.subject.concurrency >= 4
    ]
    spec = load_spec(QWEN38)
    read = read_phases(kept, spec.workload, spec.cluster.gpu)
    low, high = compose(read, target(spec), concurrencies=(2, 8)).choices
    assert low.chosen is None
    assert low.refusal.endswith(": no prefill engine was measured at as few as 2")
    assert high.chosen is not None


# --- frontiers and rates --------------------------------------------------------------------------


def phase_point(
    rate: float, wait_ms: float | None = None, concurrency: int = 1, name: str = "TEP8"
) -> PhasePoint:
    return PhasePoint(
        kind=EngineKind(name=name),
        concurrency=concurrency,
        requests_per_s=rate,
        wait_ms=wait_ms,
        gpus=8,
        duration_s=1,
        origin=Origin.SYNTHETIC,
    )


def values(point: PhasePoint) -> tuple[float, float, int]:
    wait = point.wait_ms or float("inf")
    return point.requests_per_s_per_gpu, -wait, -point.kind.gpus


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from(["TEP8", "TEP16"])),
        min_size=1,
    )
)
def test_frontier_is_what_nothing_beats(rows: list[tuple[int, int, str]]) -> None:
    listed = [phase_point(rate, wait, name=name) for rate, wait, name in rows]
    kept = frontier(listed)
    assert kept
    for point in listed:
        beaten = any(
            values(other) != values(point)
            and all(a >= b for a, b in zip(values(other), values(point), strict=True))
            for other in listed
        )
        assert (point in kept) is not beaten


@given(
    st.dictionaries(st.integers(1, 64), st.floats(0.1, 10), min_size=1),
    st.floats(0.1, 50),
    st.integers(1, 256),
    st.floats(0, 0.5),
)
def test_fewest_workers_that_feed(
    rates: dict[int, float], needed: float, load: int, margin: float
) -> None:
    curve = {rung: phase_point(rates[rung], concurrency=rung) for rung in sorted(rates)}
    match = match_rates(curve, needed, load, margin, 6)
    supplies = []
    for workers in range(1, 7):
        point = prefill_at(curve, -(-load // workers))
        if point is None:
            break
        supplies.append(workers * point.requests_per_s * (1 - margin))
    enough = [index + 1 for index, supplied in enumerate(supplies) if supplied >= needed]
    assert (match.workers if match else None) == (enough[0] if enough else None)


def test_what_was_measured_is_not_stretched() -> None:
    curve = {2: phase_point(1, 10, 2), 8: phase_point(3, 20, 8)}
    decode = {load: decode_at(curve, load) for load in (1, 2, 7, 8, 16)}
    assert {load: point and point.requests_per_s for load, point in decode.items()} == {
        1: None, 2: 1, 7: 1, 8: 3, 16: None,
    }  # fmt: skip
    prefill = {load: prefill_at(curve, load) for load in (1, 7, 8, 16)}
    waits = {
        load: point and (point.requests_per_s, point.wait_ms) for load, point in prefill.items()
    }
    assert waits == {1: None, 7: (1, 10), 8: (3, 20), 16: (3, 40)}


def test_repeats_count_by_their_median_and_invalid_ones_not_at_all() -> None:
    (first, *_) = [point for point in points() if point.subject.phase == "prefill"]
    decode = next(point for point in points() if point.subject.phase == "decode")
    repeats = [replace(first, duration_s=first.duration_s * factor) for factor in (1, 2, 3)]
    broken = replace(first, duration_s=1e-6, invalid=(Invalidity(code="x", message="y"),))
    phases = read_phases([*repeats, broken, decode], WORKLOAD, "gb300")
    (curve,) = phases.prefill.values()
    assert curve[first.subject.concurrency].requests_per_s == pytest.approx(
        first.requests_per_s / 2
    )
    assert phases.notes == ("1 invalid result is left out.",)
    assert len(phases.paid) == 4


def test_several_engines_side_by_side_count_as_one_at_its_share() -> None:
    decode = next(point for point in points() if point.subject.phase == "decode")
    one = next(
        point
        for point in points()
        if point.subject.phase == "prefill" and point.subject.concurrency == 16
    )
    (pool,) = one.subject.pools
    pair = replace(one.subject, concurrency=32, pools=(replace(pool, workers=2),))
    two = replace(one, subject=pair, duration_s=one.duration_s / 2)
    (alone,) = read_phases([one, decode], WORKLOAD, "gb300").prefill.values()
    (beside,) = read_phases([two, decode], WORKLOAD, "gb300").prefill.values()
    assert list(beside) == list(alone) == [16]
    assert beside[16].requests_per_s == pytest.approx(alone[16].requests_per_s)


def test_rates_are_of_the_workload_s_requests() -> None:
    phases = read_phases(points(), Workload(isl=4096, osl=500), "gb300")
    prefill = phases.prefill[EngineKind(name="TP2DP4+EP")][128]
    assert prefill.requests_per_s == pytest.approx(2 * 8.6 * 128 / 136, rel=1e-3)
    decode = phases.decode[EngineKind(name="TEP8")][1]
    assert decode.requests_per_s == pytest.approx(1000 / ((14 + 26 * 10 / 512 + 0.056) * 500), 1e-3)
    assert phases.notes[0].startswith("Prefill was measured with prompts of 8192 tokens, not 4096")


def test_groups_of_no_choice_are_none() -> None:
    assert group_candidates([]) == ()


# --- the command ----------------------------------------------------------------------------------


def test_written_spec_is_taken_by_generate_and_passes_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = spec_folder(tmp_path, REPOSITORY, QWEN38.read_text("utf-8"))
    monkeypatch.chdir(folder)
    spec = Path("spec.yaml")
    moved = spec.read_text("utf-8").replace("../models/qwen3.8-2.4t-a95b-nvfp4  ", "model  ")
    spec.write_text(moved, encoding="utf-8")
    result = run("compose", str(RESULTS), "spec.yaml", "--write", "next.yaml")
    assert result.exit_code == 0
    assert result.stderr == (
        "wrote next.yaml; render it: pdrecipe generate next.yaml --out FOLDER; without --out it"
        " replaces recipes of spec.yaml\n"
    )
    assert result.stdout.startswith("Synthetic results: these rates were not measured.\n")
    assert "TP4DP4+EP MTP3" in result.stdout
    written = Path("next.yaml").read_text("utf-8")
    assert "from synthetic phase studies" in written
    assert written.count("\n") - moved.count("\n") == 10
    assert run("generate", "next.yaml", "--out", "out").exit_code == 0
    assert Path("out/3xtp2dep4-1xtp4dep4-mtp3-cc1024.yaml").exists()
    report = json.loads(run("check", "out", "--format", "json").stdout)
    assert [each for each in report["findings"] if each["severity"] == "error"] == []


def test_accuracy_runs_of_replaced_deployments_are_of_all_composed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SPEC.replace("name: tiny", "name: qwen38") + (
        'accuracy: {file: "{file}-acc", benchmark: {type: gsm8k, repeat: 5}, of: [a]}\n'
    )
    monkeypatch.chdir(spec_folder(tmp_path, REPOSITORY, text))
    result = run("compose", str(RESULTS), "spec.yaml", "--write", "next.yaml")
    assert result.exit_code == 0
    written = load_spec(Path("next.yaml"))
    assert {each.file for each in written.deployments} == {
        "1xtp4dep2-1xtep8-mtp3-cc4", "1xtp4dep2-1xtep8-mtp3-cc4-acc",
    }  # fmt: skip


def test_json() -> None:
    result = run("compose", str(RESULTS), str(QWEN38), "--against", str(QWEN38), "--json")
    document = json.loads(result.stdout)
    schema = json.loads((REPOSITORY / "schemas/compose.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)
    assert document["origins"] == ["synthetic"]
    assert [each["agrees"] for each in document["comparisons"]] == [False] * 3 + [True] * 9


def test_a_load_that_nothing_serves_is_told_and_stops_no_other() -> None:
    loads = ("--concurrencies", "4096x64")
    result = run("compose", str(RESULTS), str(QWEN38), *loads)
    assert result.exit_code == 0
    assert "nothing serves it: no decode engine was measured at it" in result.stdout
    alone = run("compose", str(RESULTS), str(QWEN38), "--concurrencies", "4096")
    assert alone.exit_code == 4
    assert "nothing serves concurrency 4096: no decode engine was measured at it" in alone.stderr


def test_without_deployments_all_measured_loads_are_composed(tmp_path: Path) -> None:
    text = SPEC.partition("groups:")[0] + (
        "studies: {decode: {workload: {isl: 1, osl: 1000}, layouts: [TEP8]}}\n"
    )
    folder = spec_folder(tmp_path, REPOSITORY, text)
    spec = load_spec(folder / "spec.yaml")
    composition = compose(phases(spec), target(spec))
    assert [choice.concurrency for choice in composition.choices] == [
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 2560,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('"type": "gb300"', "results are of gb200, the spec is for gb300"),
        ('"layout": "TEP16"', "of synthetic: layout 'TEPP'"),
        ('"draft_method": null', "it drafts by eagle3, not MTP"),
        ('"phase": "decode"', "no valid result of a decode study"),
        ('"output": 8000,', "its result counts no tokens of its phase"),
    ],
)
def test_results_that_cannot_be_used(change: str, message: str, tmp_path: Path) -> None:
    changed = {
        '"type": "gb300"': '"type": "gb200"',
        '"layout": "TEP16"': '"layout": "TEPP"',
        '"draft_method": null': '"draft_method": "eagle3"',
        '"phase": "decode"': '"phase": "disaggregated"',
        '"output": 8000,': '"output": 0,',
    }[change]
    results = tmp_path / "results.jsonl"
    results.write_text(RESULTS.read_text("utf-8").replace(change, changed), encoding="utf-8")
    result = run("compose", str(results), str(QWEN38))
    assert result.exit_code == 3
    assert all(message in line for line in result.stderr.splitlines())


def test_results_of_recipes_that_changed_are_told(tmp_path: Path) -> None:
    (first, second, *others) = points()
    stale = [
        replace(each, subject=replace(each.subject, digest="f" * 16)) for each in (first, second)
    ]
    other = replace(others[0], subject=replace(others[0].subject, recipe="x", digest="f" * 16))
    results = tmp_path / "results.jsonl"
    results.write_text(points_text([*stale, other, *others[1:]]), encoding="utf-8")
    notes = json.loads(run("compose", str(results), str(QWEN38), "--json").stdout)["notes"]
    assert notes == [f"CHANGED: 2 results of recipes that changed since: {first.subject.recipe}."]
    assert json.loads(run("compose", str(RESULTS), str(QWEN38), "--json").stdout)["notes"] == []


OF_DECODE = {"vllm.version": "0.26.0", "workload.isl": "1"}
OF_PREFILL = {"vllm.version": "0.26.0", "workload.isl": "8192"}


@pytest.mark.parametrize(
    ("prefill", "decode", "odd", "key"),
    [
        pytest.param(OF_PREFILL, OF_DECODE, {}, None, id="a workload for each phase"),
        pytest.param(
            OF_PREFILL, OF_DECODE | {"vllm.version": "0.27.0"}, {}, "vllm.version",
            id="another engine for the other phase",
        ),
        pytest.param(
            OF_PREFILL, OF_DECODE, {"vllm.version": "0.27.0"}, "vllm.version",
            id="one point of another engine",
        ),
        pytest.param(
            OF_PREFILL, OF_DECODE, {"workload.isl": "2"}, "workload.isl",
            id="one point of another workload",
        ),
        pytest.param(
            OF_PREFILL, OF_DECODE, {"model.path": "hf:other/model"}, "model.path",
            id="one point that states more",
        ),
    ],
)  # fmt: skip
def test_results_of_different_contracts(
    prefill: dict[str, str], decode: dict[str, str], odd: dict[str, str], key: str | None,
    tmp_path: Path,
) -> None:  # fmt: skip
    of_phase = {"prefill": prefill, "decode": decode}
    stated = [replace(each, contract=of_phase[each.subject.phase]) for each in points()]
    first = next(index for index, each in enumerate(stated) if each.subject.phase == "decode")
    stated[first] = replace(stated[first], contract=decode | odd)
    results = tmp_path / "results.jsonl"
    results.write_text(points_text(stated), encoding="utf-8")
    asked = run("compose", str(results), str(QWEN38))
    if key is None:
        assert asked.exit_code == 0
        assert "MIXED" not in asked.stdout
        return
    assert asked.exit_code == 3
    assert f"runs of different contracts, {key}: " in asked.stderr
    mixed = run("compose", str(results), str(QWEN38), "--mix")
    assert f"MIXED: these runs do not share one contract, {key}: " in mixed.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--write", "elsewhere/next.yaml"], 3, "is in another folder than the spec"),
        (["--write", str(QWEN38)], 3, "is the spec itself"),
        (["--concurrencies", "1,2"], 2, "is no list such as 1x2x64"),
        (["--concurrencies", "0"], 2, "is no list such as 1x2x64"),
        (["--margin", "1"], 2, "margin"),
    ],
)
def test_mistakes_of_the_command_line(arguments: list[str], exit_code: int, message: str) -> None:
    result = run("compose", str(RESULTS), str(QWEN38), *arguments)
    assert result.exit_code == exit_code
    assert message in result.stderr


@pytest.mark.parametrize(
    "spec", sorted((REPOSITORY / "recipes/specs").glob("*.yaml")), ids=lambda spec: spec.stem
)
def test_rewriting_nothing_changes_nothing(spec: Path) -> None:
    read = load_spec(spec)
    assert with_sections(read, {}) == read.document.text
    assert with_sections(read, {"missing": None}) == read.document.text
