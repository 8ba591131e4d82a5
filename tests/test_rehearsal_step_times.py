"""Step times of a rehearsal: what the arrays say is what the bounds say of the real engines."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.bounds.decode import decode_step
from generator.bounds.numbers import Array
from generator.bounds.prefill import prefill_bound
from generator.documents import read_document
from generator.hf_config import load_architecture
from generator.normal_form import normal_form
from generator.recipe.expansion import variants
from generator.recipe_engines import recipe_engine
from generator.rehearsal.step_times import (
    MeasuredSteps,
    RooflineSteps,
    StandIn,
    TimingProfile,
    roofline_steps,
    timing_profile,
)
from generator.rehearsal_host.timing_file import write_timing_file

RECIPES = Path(__file__).parents[1] / "recipes"
DISAGG = RECIPES / "qwen3.8-2.4t/gb300/8k1k/vllm/disagg/v2"
MODEL = RECIPES / "models/qwen3.8-2.4t-a95b-nvfp4"
ISL, REQUEST = 8192, 9216
REAL = StandIn(
    tokens=1,
    requests=1,
    isl=ISL,
    request_tokens=REQUEST,
    most_requests_per_rank=640,
    most_prefill_tokens=4 * ISL,
)
SMALL = StandIn(
    tokens=32,
    requests=16,
    isl=ISL // 32,
    request_tokens=REQUEST // 32,
    most_requests_per_rank=60,
    most_prefill_tokens=4 * ISL // 32,
)


@pytest.fixture(scope="module")
def steps() -> RooflineSteps:
    """Return those of the deployment that the article runs at 2,560 requests."""
    return steps_of("4xtp2dep4-1xtp4dep4-cc2560.yaml")


def steps_of(name: str) -> RooflineSteps:
    form = normal_form(next(variants(read_document(DISAGG / name))))
    architecture = load_architecture(MODEL)
    decode, prefill = (recipe_engine(form, role, architecture) for role in ("decode", "prefill"))
    return roofline_steps(decode, prefill, architecture, ISL, collective_latency_s=1e-6)


def itl_ms(profile: TimingProfile, sequences: float, context: float) -> float:
    """What a mocker makes of the arrays: interpolated along both axes."""
    load = sequences * context
    rows = [np.interp(context, profile.decode_context_length, row) for row in profile.decode_itl]
    return float(np.interp(load, profile.decode_active_kv_tokens, rows))


def prefill_ms(profile: TimingProfile, tokens: float) -> float:
    return float(np.interp(tokens, profile.prefill_isl, profile.prefill_ttft_ms))


@pytest.mark.parametrize("sequences", [1, 7, 160, 640])
@pytest.mark.parametrize("context", [ISL, 8_700, REQUEST])
def test_at_full_size_a_mocker_decodes_as_long_as_the_bound(
    steps: RooflineSteps, sequences: int, context: int
) -> None:
    bound = decode_step(steps.decode, np.array([float(sequences)]), context, 1e-6)
    told = itl_ms(timing_profile(steps, REAL), sequences, context)
    assert told == pytest.approx(float(bound.total_s[0]) * 1000, rel=0.02)


@pytest.mark.parametrize("prompts", [1, 2, 4])
def test_at_full_size_a_mocker_prefills_as_long_as_the_bound(
    steps: RooflineSteps, prompts: int
) -> None:
    bound = prefill_bound(steps.prefill, ISL, prompts * ISL, 1e-6)
    told = replace(steps, prefill_batch_tokens=prompts * ISL)
    ms = prefill_ms(timing_profile(told, REAL), prompts * ISL)
    assert ms == pytest.approx(bound.batch_s * 1000, rel=0.02)


@pytest.mark.parametrize("sequences", [1, 10, 40])
def test_a_small_decode_step_lasts_as_long_as_the_real_one(
    steps: RooflineSteps, sequences: int
) -> None:
    small, real = timing_profile(steps, SMALL), timing_profile(steps, REAL)
    told = itl_ms(small, sequences, 8704 / 32)
    assert told == pytest.approx(itl_ms(real, 16 * sequences, 8704), rel=0.02)


def test_scaling_keeps_the_load_of_prefill_by_that_of_decode(steps: RooflineSteps) -> None:
    """Seconds that prefill ranks work for each second in which decode ranks make their requests."""

    def share(stand_in: StandIn) -> float:
        profile = timing_profile(steps, stand_in)
        sequences, output = 160 / stand_in.requests, 1024 / stand_in.tokens
        batch_s = output * itl_ms(profile, sequences, 8704 / stand_in.tokens)
        return sequences * prefill_ms(profile, stand_in.isl) / batch_s

    assert share(SMALL) == pytest.approx(share(REAL), rel=0.02)


def test_speculation_counts_with_every_draft_accepted(steps: RooflineSteps) -> None:
    assert steps.tokens_per_step == 1
    speculating = steps_of("1xtp2dep4-1xtp4dep4-mtp-cc128.yaml")
    assert speculating.tokens_per_step == 1 + speculating.decode.speculative_tokens
    step = decode_step(speculating.decode, np.array([8.0]), ISL, 1e-6)
    assert speculating.decode_s(np.array([8.0]), ISL) * speculating.tokens_per_step == step.total_s


@given(
    tokens=st.sampled_from([1, 2, 8, 32]),
    requests=st.sampled_from([1, 4, 64]),
    osl=st.sampled_from([1, 2, 1024]),
    held=st.integers(1, 1000),
)
def test_axes_rise_and_times_grow_with_the_load(
    tokens: int, requests: int, osl: int, held: int
) -> None:
    steps = MeasuredSteps(
        sequences_per_rank=np.array([1.0, 64.0]), tpot_s=np.array([0.01, 0.05]), prompt_s=0.5
    )
    isl = ISL // tokens
    stand_in = StandIn(
        tokens=tokens,
        requests=requests,
        isl=isl,
        request_tokens=isl + max(1, osl // tokens),
        most_requests_per_rank=held,
        most_prefill_tokens=isl // 2,
    )
    profile = timing_profile(steps, stand_in)
    for axis in (profile.prefill_isl, profile.decode_active_kv_tokens):
        assert (np.diff(axis) > 0).all()
    assert (np.diff(profile.decode_context_length) > 0).all()
    assert (np.diff(profile.prefill_ttft_ms) > 0).all()
    assert (np.diff(profile.decode_itl, axis=0) >= 0).all()
    assert profile.decode_itl.shape == (
        len(profile.decode_active_kv_tokens),
        len(profile.decode_context_length),
    )
    assert prefill_ms(profile, isl) == pytest.approx(500 * requests / tokens)


def test_measured_points_are_taken_between_and_held_outside() -> None:
    steps = MeasuredSteps(
        sequences_per_rank=np.array([1.0, 5.0]), tpot_s=np.array([0.010, 0.030]), prompt_s=0.5
    )
    told = steps.decode_s(np.array([0.5, 1.0, 3.0, 9.0]), context_tokens=8704)
    assert told.tolist() == pytest.approx([0.010, 0.010, 0.020, 0.030])


def test_the_file_holds_five_arrays_of_64_bit_floats(tmp_path: Path, steps: RooflineSteps) -> None:
    profile = timing_profile(steps, SMALL)
    write_timing_file(tmp_path / "steps.npz", profile.arrays())
    with np.load(io.BytesIO((tmp_path / "steps.npz").read_bytes()), allow_pickle=False) as read:
        assert sorted(read) == [
            "decode_active_kv_tokens",
            "decode_context_length",
            "decode_itl",
            "prefill_isl",
            "prefill_ttft_ms",
        ]
        for name, array in profile.arrays().items():
            stored: Array = read[name]
            assert stored.dtype == np.float64
            assert (stored == array).all()
