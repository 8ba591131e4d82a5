"""Efficiencies: the fit, the defaults from public points, and bounds against measurements."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.bounds.phase_work import PhaseWork
from generator.bounds.speculation import acceptance_rate_of, tokens_per_step
from generator.cli.output import table
from generator.efficiency.cited_comparison import Comparison, Quantity, cited_comparisons
from generator.efficiency.cited_efficiency import cited_acceptance_rate, cited_efficiencies
from generator.efficiency.cited_view import cited_document, cited_notes, cited_table
from generator.efficiency.factors import (
    Efficiency,
    EfficiencyTable,
    Factors,
    MeasuredAcceptance,
    Phase,
)
from generator.efficiency.fit import Observation, Says, fit_phases
from generator.efficiency.plan_facts import cited_points
from generator.planning.plan_costs import chosen_costs

factors = st.floats(1, 20)
fixed_costs = st.floats(0, 0.05)
bounds = st.floats(1e-3, 1)
times = st.floats(1e-3, 10)


def observed(
    bound_s: float, measured_s: float, *, phase: Phase = Phase.DECODE, says: Says = Says.EQUAL
) -> Observation:
    work = {phase: PhaseWork(bound_s=bound_s, steps=1)}
    return Observation(point="p", what="a step", measured_s=measured_s, work=work, says=says)


def efficiency(
    gpu: str = "gb300",
    version: str | None = "0.26.0",
    phase: Phase = Phase.DECODE,
    *,
    factor: float = 2.0,
    fixed: float = 0.001,
) -> Efficiency:
    return Efficiency(
        gpu=gpu,
        engine_version=version,
        phase=phase,
        factor=factor,
        fixed_s_per_step=fixed,
        residuals=(),
        source="a test",
        as_of="2026-11",
    )


# --- the fit ----------------------------------------------------------------------------------


@given(factor=factors, fixed=fixed_costs, least=bounds)
def test_the_fit_recovers_what_made_the_times(factor: float, fixed: float, least: float) -> None:
    steps = [least, 2 * least, 5 * least]
    fit = fit_phases([observed(each, factor * each + fixed) for each in steps])[Phase.DECODE]
    assert fit.has_fixed_cost
    assert fit.factor == pytest.approx(factor, rel=1e-6)
    assert fit.fixed_s_per_step == pytest.approx(fixed, rel=1e-6, abs=1e-6 * least)
    assert max(abs(each.relative) for each in fit.residuals) < 1e-6


@given(decode=st.tuples(factors, fixed_costs), prefill=factors)
def test_phases_that_take_turns_are_told_apart(decode: tuple[float, float], prefill: float) -> None:
    """As at an aggregated engine: steps grow with the load, prompts cost the same each."""
    loads = (1, 8, 64)
    step_bounds = (0.002, 0.006, 0.02)
    seen = [
        Observation(
            point=str(load),
            what="a request",
            measured_s=1000 * (decode[0] * step + decode[1]) + load * prefill * 0.05,
            work={
                Phase.DECODE: PhaseWork(bound_s=1000 * step, steps=1000),
                Phase.PREFILL: PhaseWork(bound_s=load * 0.05, steps=load),
            },
        )
        for load, step in zip(loads, step_bounds, strict=True)
    ]
    fits = fit_phases(seen)
    assert fits[Phase.DECODE].factor == pytest.approx(decode[0], rel=1e-4)
    assert fits[Phase.DECODE].fixed_s_per_step == pytest.approx(decode[1], rel=1e-4, abs=1e-6)
    assert fits[Phase.PREFILL].factor == pytest.approx(prefill, rel=1e-4)
    assert not fits[Phase.PREFILL].has_fixed_cost


@given(st.lists(st.tuples(bounds, times), min_size=1, max_size=6), st.lists(bounds, min_size=1))
def test_no_prediction_beats_its_bound(
    points: list[tuple[float, float]], asked: list[float]
) -> None:
    fit = fit_phases([observed(bound, time) for bound, time in points])[Phase.DECODE]
    fitted = efficiency(factor=fit.factor, fixed=fit.fixed_s_per_step)
    steps = np.array(asked)
    assert np.all(fitted.predicted_step_s(steps) >= steps)


@given(st.lists(st.tuples(bounds, times), min_size=2, max_size=6))
def test_no_other_allowed_pair_is_nearer(points: list[tuple[float, float]]) -> None:
    fit = fit_phases([observed(bound, time) for bound, time in points])[Phase.DECODE]

    def error(factor: float, fixed: float) -> float:
        return sum(((factor * bound + fixed) / time - 1) ** 2 for bound, time in points)

    found = error(fit.factor, fit.fixed_s_per_step)
    slack = 1e-9 * max(1.0, found)
    for scale in (0.9, 0.999, 1.001, 1.1):
        assert found <= error(max(1, fit.factor * scale), fit.fixed_s_per_step) + slack
        if fit.has_fixed_cost:
            assert found <= error(fit.factor, fit.fixed_s_per_step * scale) + slack


def test_one_point_allows_a_factor_only() -> None:
    fit = fit_phases([observed(0.01, 0.03)])[Phase.DECODE]
    assert fit.factor == pytest.approx(3)
    assert fit.fixed_s_per_step == 0
    assert not fit.has_fixed_cost
    assert [each.is_by_construction for each in fit.residuals] == [True]


def test_steps_alike_allow_a_factor_only() -> None:
    fit = fit_phases([observed(0.010, 0.03), observed(0.011, 0.05)])[Phase.DECODE]
    assert not fit.has_fixed_cost
    assert not any(each.is_by_construction for each in fit.residuals)


def test_a_point_that_alone_decides_something_is_matched_by_construction() -> None:
    alike = [observed(0.01, time) for time in (0.02, 0.021, 0.019)]
    fit = fit_phases([*alike, observed(0.1, 0.15)])[Phase.DECODE]
    assert [each.is_by_construction for each in fit.residuals] == [False, False, False, True]


def test_faster_than_the_bound_gives_the_bound() -> None:
    fit = fit_phases([observed(0.01, 0.005), observed(0.05, 0.02)])[Phase.DECODE]
    assert (fit.factor, fit.fixed_s_per_step) == (1, 0)


@pytest.mark.parametrize(
    ("limit_s", "factor", "points"),
    [(0.04, 3, 1), (0.03, 3, 2), (0.02, 30 / 13, 2)],
    ids=["slower than the fit", "as fast", "faster"],
)
def test_a_time_from_one_side_counts_where_the_fit_is_slower(
    limit_s: float, factor: float, points: int
) -> None:
    limit = observed(0.01, limit_s, says=Says.AT_MOST)
    fit = fit_phases([observed(0.01, 0.03), limit])[Phase.DECODE]
    assert fit.factor == pytest.approx(factor)
    assert len(fit.residuals) == points


def test_nothing_observed_fits_nothing() -> None:
    assert fit_phases([]) == {}


@pytest.mark.parametrize(("factor", "fixed"), [(0.99, 0), (1, -1e-9), (float("nan"), 0)])
def test_an_efficiency_that_beats_its_bound_is_refused(factor: float, fixed: float) -> None:
    with pytest.raises(ValueError, match="beat its bound"):
        efficiency(factor=factor, fixed=fixed)


# --- which factors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "chosen", "note"),
    [
        (("gb300", "0.26.0"), ("gb300", "0.26.0"), ""),
        (("gb300", "0.27.1"), ("gb300", "0.28.0"), "of vLLM 0.28.0, the nearest to 0.27.1"),
        (("gb300", "0.25.1"), ("gb300", "0.26.0"), "of vLLM 0.26.0, the nearest to 0.25.1"),
        (("gb300", "0.27.0"), ("gb300", "0.28.0"), "the nearest to 0.27.0"),
        (("h200", "0.20.0"), ("h200", None), "engine version was not published"),
        (("gb300", None), ("gb300", "0.28.0"), "of vLLM 0.28.0: no release is named"),
        (("b300", "0.28.0"), ("gb300", "0.28.0"), "of gb300: there are none of b300"),
    ],
)
def test_the_nearest_release_of_the_gpu_stands_in(
    asked: tuple[str, str | None], chosen: tuple[str, str | None], note: str
) -> None:
    table = EfficiencyTable(
        (
            efficiency(),
            efficiency(version="0.28.0"),
            efficiency("h200", None),
            efficiency(phase=Phase.PREFILL, version="0.27.1"),
        )
    )
    found = table.of(*asked, Phase.DECODE)
    assert (found.efficiency.gpu, found.efficiency.engine_version) == chosen
    assert note in found.note
    assert bool(note) == bool(found.note)


def test_no_factors_of_a_phase() -> None:
    with pytest.raises(LookupError, match="no factors of prefill"):
        EfficiencyTable((efficiency(),)).of("gb300", "0.26.0", Phase.PREFILL)


def test_own_factors_stand_before_the_public_points() -> None:
    """Even of another release; what none of them is of is taken from the public points."""
    own = efficiency(factor=3, version="0.20.0")
    costs, notes = chosen_costs("gb300", "0.26.0", Factors(efficiencies=(own,)))
    assert costs.decode == own
    assert costs.prefill == cited_efficiencies().of("gb300", "0.26.0", Phase.PREFILL).efficiency
    assert any("0.20.0" in note for note in notes)


def test_the_acceptance_rate_is_the_given_one_then_the_measured_then_the_public() -> None:
    """Of counts of drafts the one with the most points is best known."""
    measured = tuple(
        MeasuredAcceptance(speculative_tokens=drafts, acceptance_rate=rate, points=points)
        for drafts, rate, points in ((1, 0.8, 4), (3, 0.6, 9), (2, 0.7, 9))
    )
    factors = Factors(acceptance=measured)
    assert chosen_costs("gb300", "0.26.0", factors, 0.5)[0].acceptance_rate == 0.5
    costs, notes = chosen_costs("gb300", "0.26.0", factors)
    assert costs.acceptance_rate == 0.6
    assert "acceptance rate: median of 9 points with MTP 3" in notes
    public, notes = chosen_costs("gb300", "0.26.0")
    assert public.acceptance_rate == cited_acceptance_rate()
    assert any(note.startswith("acceptance rate: not published") for note in notes)


# --- public points ----------------------------------------------------------------------------


COMPARISONS = tuple(cited_comparisons())


@pytest.mark.parametrize(
    "compared", COMPARISONS, ids=[f"{each.point.name}, {each.quantity}" for each in COMPARISONS]
)
def test_a_bound_is_on_its_side_of_a_measurement(compared: Comparison) -> None:
    assert compared.is_bounded
    if compared.quantity.is_time:
        assert compared.bound <= compared.measured
        assert compared.bound <= compared.predicted
    else:
        assert compared.bound >= compared.measured
        assert compared.bound >= compared.predicted


def test_every_published_figure_is_compared() -> None:
    published = sum(
        figure is not None
        for point in cited_points()
        for figure in (
            point.tpot_ms,
            point.tokens_per_s_per_user,
            point.total_tokens_per_s_per_gpu,
        )
    )
    assert len(COMPARISONS) == published == 14


def test_the_points_are_those_of_the_source(shared: Path) -> None:
    truth = json.loads((shared / "truth/qwen38_article.json").read_text(encoding="utf-8"))
    aggregated = truth["aggregated_reference_points_gb300_tp8_8k1k_no_ep"]
    cited = {(each.point.concurrency, each.quantity): each.measured for each in COMPARISONS}
    for point in aggregated:
        load = point["concurrency"]
        assert cited[load, Quantity.TPOT_MS] == point["tpot_ms"]
        per_gpu = cited[load, Quantity.TOTAL_TOKENS_PER_S_PER_GPU]
        assert per_gpu == point["total_tokens_per_s_per_gpu"]
    headline = truth["headline"]
    figures = {each.point.name: each.measured for each in COMPARISONS}
    assert figures["throughput headline"] == headline["total_tokens_per_s_per_gpu"]
    assert figures["interactivity headline"] == headline["generated_tokens_per_s_per_user"]
    (version,) = {each.engine_version for each in cited_points() if each.engine_version is not None}
    assert version == truth["recipe_common"]["identity"]["frameworks"]["vllm"]


def test_no_number_of_a_ladder_is_cut_in_two() -> None:
    """1x...x1024x204 above 8x2560 read as two other loads."""
    loads = "x".join(str(2**power) for power in range(12)) + "x2560"
    text = table(["recipe", "run", "why"], [["decode-tp4dep4-mtp3", loads, "w" * 60]])
    cells = [line.split(" | ")[1].strip() for line in text.splitlines()[2:]]
    assert "".join(cells) == loads
    numbers = [number for cell in cells for number in cell.strip("x").split("x") if number]
    assert numbers == loads.split("x")


def test_the_table_fits_a_page_and_marks_what_is_no_evidence() -> None:
    text = table(*cited_table(COMPARISONS))
    assert len(text.splitlines()) == 2 + len(COMPARISONS)
    assert max(map(len, text.splitlines())) <= 100
    assert text.count(" *") == 2
    notes = " ".join(cited_notes(COMPARISONS))
    assert "matched by construction" in notes
    assert "0.56 is what the one point with MTP asks for" in notes
    entries = cited_document(COMPARISONS)
    assert json.loads(json.dumps(entries, allow_nan=False)) == entries
    assert [each["is_by_construction"] for each in entries].count(True) == 2


def test_what_is_matched_by_construction_is_said() -> None:
    constructed = {each.point.name for each in COMPARISONS if each.is_by_construction}
    assert constructed == {"throughput headline", "interactivity headline"}


@pytest.mark.parametrize(
    ("phase", "factor", "fixed_ms", "layouts"),
    [(Phase.PREFILL, 2.5, 82, "TP8 and TP2DP4+EP"), (Phase.DECODE, 1.0, 7.8, "TP8")],
)
def test_the_defaults_say_how_few_points_they_have(
    phase: Phase, factor: float, fixed_ms: float, layouts: str
) -> None:
    """The figures of generator/efficiency/README.md."""
    (found,) = [each for each in cited_efficiencies().efficiencies if each.phase is phase]
    assert found.factor == pytest.approx(factor, abs=0.05)
    assert found.fixed_s_per_step * 1000 == pytest.approx(fixed_ms, rel=0.01)
    assert found.points == 5
    assert f"fitted to 5 public times only, of {layouts};" in found.note
    assert found.engine_version == "0.26.1rc1.dev1177+ga9a17e709"
    assert max(abs(each.relative) for each in found.residuals) < 0.05


def test_throughput_of_aggregated_points_is_predicted_within_five_percent() -> None:
    residuals = [
        each.residual
        for each in COMPARISONS
        if each.point.prefill is None and each.quantity is Quantity.TOTAL_TOKENS_PER_S_PER_GPU
    ]
    assert len(residuals) == 4
    assert max(map(abs, residuals)) < 0.05


def test_the_acceptance_rate_makes_the_one_mtp_point_come_true() -> None:
    (point,) = [each for each in COMPARISONS if each.point.speculative_tokens]
    assert point.predicted == pytest.approx(180)
    assert 0.5 < cited_acceptance_rate() < 0.6


@given(st.integers(1, 8), st.floats(0, 1))
def test_an_acceptance_rate_comes_back(speculative_tokens: int, rate: float) -> None:
    tokens = tokens_per_step(speculative_tokens, rate)
    assert acceptance_rate_of(speculative_tokens, tokens) == pytest.approx(rate, abs=1e-9)


@pytest.mark.parametrize(("drafts", "tokens"), [(0, 1), (3, 0.9), (3, 4.1)])
def test_tokens_that_no_rate_gives(drafts: int, tokens: float) -> None:
    with pytest.raises(ValueError, match="cannot be of"):
        acceptance_rate_of(drafts, tokens)
