"""Where step times come from, and whether prefill keeps up by them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from generator.checks.known_models import model_of
from generator.cli import main
from generator.collection.configuration import engine_pools
from generator.errors import InvalidInput
from generator.rehearsal.plan import RehearsalPlan, plan_rehearsal
from generator.rehearsal.step_times import MeasuredSteps, stand_in_of, timing_profile
from generator.rehearsal.timing import (
    MOCKERS_TIMING,
    Timing,
    measured_timing,
    phase_rates,
    roofline_timing,
)
from generator.rehearsal.verdict import Outcome, verdicts
from generator.results.point import MeasuredPoint, Origin
from generator.results.point_file import write_points
from tests.rehearsals import CC2560, form_of, rehearsed, topology_in
from tests.synthetic_points import Deployment, synthetic_point

FORM = form_of(CC2560)
PLAN = plan_rehearsal(topology_in(CC2560))


def point(concurrency: int, **changes: object) -> MeasuredPoint:
    """A point of the deployment; its step takes 5 ms and 0.1 ms more for each sequence."""
    found = synthetic_point(Deployment(configuration="x", capacity=10_000), concurrency, **changes)
    subject = replace(found.subject, pools=engine_pools(FORM))
    return replace(found, subject=subject, origin=Origin.MEASURED)


def roofline() -> Timing:
    model = model_of(FORM)
    assert model is not None
    return roofline_timing(FORM, model, PLAN)


def test_measured_steps_are_those_of_the_points() -> None:
    timing = measured_timing([point(256), point(64)], engine_pools(FORM), PLAN)
    assert isinstance(timing.steps, MeasuredSteps)
    # 64 and 256 sequences on four ranks
    told = timing.steps.decode_s(np.array([16.0, 64.0]), 8704)
    assert told == pytest.approx([0.0114, 0.0306])
    assert timing.steps.prompt_s == pytest.approx(0.2)
    assert "as measured at 64, 256" in timing.label


@pytest.mark.parametrize(
    "other",
    [
        synthetic_point(Deployment(configuration="x"), 64, origin=Origin.MEASURED),  # no engines
        replace(point(64), origin=Origin.REHEARSAL),
        replace(point(64), contract={"workload.isl": "1024", "workload.osl": "1024"}),
    ],
    ids=["other engines", "rehearsed", "other lengths"],
)
def test_points_of_something_else_say_nothing(other: MeasuredPoint) -> None:
    with pytest.raises(InvalidInput, match="no measured point of 4xTP2DP4"):
        measured_timing([other], engine_pools(FORM), PLAN)


def test_a_file_of_results_is_a_timing(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    write_points(results, [replace(point(64), origin=Origin.SYNTHETIC)])
    words = ["rehearse", str(CC2560), "--timing", str(results), "--cache", str(tmp_path)]
    told = CliRunner().invoke(main, words)
    assert told.exit_code == 3
    assert "no measured point of 4xTP2DP4+EP + 1xTP4DP4+EP" in told.stderr
    missing = CliRunner().invoke(main, ["rehearse", str(CC2560), "--timing", "guess"])
    assert (missing.exit_code, "guess: no such file" in missing.stderr) == (3, True)


def test_rates_at_full_size() -> None:
    steps = MeasuredSteps(
        sequences_per_rank=np.array([640.0]), tpot_s=np.array([0.025]), prompt_s=0.05
    )
    rates = phase_rates(PLAN.topology, steps, 2560)
    assert rates is not None
    assert rates.prefill_per_s == pytest.approx(16 / 0.05)  # ranks by seconds of a prompt
    assert rates.decode_per_s == pytest.approx(2560 / (1024 * 0.025))
    assert not rates.starves_decode
    slow = phase_rates(PLAN.topology, replace(steps, prompt_s=0.25), 2560)
    assert slow is not None
    assert slow.starves_decode
    assert phase_rates(replace(PLAN.topology, prefill=None), steps, 2560) is None


def judged(plan: RehearsalPlan, timing: Timing) -> str:
    (verdict,) = verdicts(plan, [rehearsed(plan, 0)], timing)
    return "; ".join(verdict.by_arithmetic)


def test_a_verdict_names_both_rates_where_steps_are_known() -> None:
    assert judged(PLAN, MOCKERS_TIMING) == ""
    said = judged(PLAN, roofline())
    assert "at these step times prefill gives" in said
    assert "requests/s and decode takes" in said


def test_a_lump_at_prefill_is_no_starved_decode() -> None:
    """By the bounds prefill keeps up with cc2560, though most of a small load is found there."""
    lump = rehearsed(PLAN, 0, mean_prefill_in_flight=29.0, mean_running=9.0)
    (by_bounds,) = verdicts(PLAN, [lump], roofline())
    (by_mock_alone,) = verdicts(PLAN, [lump])
    assert by_bounds.outcome is Outcome.HOLDS
    assert by_mock_alone.outcome is Outcome.DECODE_STARVED


def test_steps_are_slowed_until_two_cores_carry_a_full_decode() -> None:
    """A full mock of decode makes at most 2,000 tokens a second."""
    slow = measured_timing([point(2560)], engine_pools(FORM), PLAN)  # 261 ms a step
    assert (slow.slowdown, slow.name) == (1, "measured")
    bound = roofline()
    assert bound.steps is not None
    assert bound.profile is not None
    step_s = float(bound.steps.decode_s(np.array([716.0]), 8704)[0])
    assert bound.slowdown == max(1, math.ceil(44 / step_s / 2000))
    quick = replace(
        PLAN,
        topology=replace(
            PLAN.topology, decoding=replace(PLAN.topology.decoding, requests_per_rank=Fraction(1))
        ),
    )
    model = model_of(FORM)
    assert model is not None
    slowed = roofline_timing(FORM, model, quick)
    assert slowed.slowdown > 1
    assert slowed.name == f"roofline, slowed {slowed.slowdown} times"
    assert slowed.profile is not None
    again = timing_profile(bound.steps, stand_in_of(quick))
    assert slowed.profile.decode_itl == pytest.approx(again.decode_itl * slowed.slowdown)
    assert slowed.profile.prefill_ttft_ms == pytest.approx(again.prefill_ttft_ms * slowed.slowdown)
