"""pdrecipe calibrate --results: factors from points of one's own, and what reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generator.checks.known_models import chosen_model
from generator.efficiency.factor_file import read_factors
from generator.efficiency.factors import Phase
from generator.efficiency.measured_efficiency import EfficiencyCalibration, calibrated
from generator.errors import InvalidInput
from generator.results.engine_pool import EnginePool
from generator.results.point import Invalidity, Latencies, MeasuredPoint, Origin
from generator.results.point_file import write_points
from generator.validation import schema
from tests.measured_points import (
    MODEL,
    Truth,
    aggregated_point,
    decode_point,
    deployed,
    engine_pool,
    prefill_point,
)
from tests.run_outputs import sa_bench, write_run
from tests.small_specs import run, spec_folder

ROOFLINE = (
    *("roofline", "--model", "recipes/models/qwen3.8-2.4t-a95b-nvfp4", "--gpu", "gb300"),
    *("--layout", "TEP8", "--kv-cache-dtype", "fp8", "--mamba-ssm-cache-dtype", "bfloat16"),
)


def studies(truth: Truth) -> list[MeasuredPoint]:
    decode = [
        decode_point(truth, layout, load, drafts)
        for layout in ("TEP8", "TP4DP4+EP")
        for load in (1, 16, 256)
        for drafts in (0, 3)
    ]
    prefill = [
        prefill_point(truth, layout, load) for layout in ("TEP8", "TP2DP4+EP") for load in (1, 64)
    ]
    return [*decode, *prefill]


def fitted(points: Sequence[MeasuredPoint]) -> EfficiencyCalibration:
    return calibrated(
        points,
        lambda _: chosen_model(MODEL),
        collective_latency_s=1e-6,
        source="a test",
        as_of="2026-11-30",
    )


def made(points: Sequence[MeasuredPoint], folder: Path) -> str:
    path = folder / "results.jsonl"
    write_points(path, points)
    return str(path)


@settings(max_examples=10, deadline=None)
@given(
    decode=st.tuples(st.floats(1, 5), st.floats(0, 0.02)),
    prefill=st.tuples(st.floats(1, 5), st.floats(0, 0.1)),
)
def test_studies_give_back_what_made_them(
    decode: tuple[float, float], prefill: tuple[float, float]
) -> None:
    calibration = fitted(studies(Truth(decode=decode, prefill=prefill)))
    found = {each.phase: each for each in calibration.efficiencies}
    assert calibration.unused == ()
    for phase, (factor, fixed) in {Phase.DECODE: decode, Phase.PREFILL: prefill}.items():
        assert found[phase].factor == pytest.approx(factor, rel=1e-6)
        assert found[phase].fixed_s_per_step == pytest.approx(fixed, rel=1e-6, abs=1e-8)
        assert max(abs(each.relative) for each in found[phase].residuals) < 1e-6


@pytest.mark.parametrize("drafts", [0, 3])
def test_an_aggregated_engine_tells_both_phases(drafts: int) -> None:
    points = [aggregated_point(Truth(), "TP8", load, drafts) for load in (1, 8, 32, 128)]
    found = {each.phase: each for each in fitted(points).efficiencies}
    assert found[Phase.DECODE].factor == pytest.approx(1.5)
    assert found[Phase.DECODE].fixed_s_per_step == pytest.approx(0.006)
    assert found[Phase.DECODE].points == 5
    # Prompts cost the same in each point, so that a factor stands for both: 163 ms of 71.
    assert found[Phase.PREFILL].factor == pytest.approx(2.0 + 0.02 / 0.0713, rel=2e-3)
    assert "cannot tell a fixed cost from a factor" in found[Phase.PREFILL].note


def test_the_rate_of_a_pair_bounds_its_prefill_from_one_side() -> None:
    """Prompts of the study take 118 ms each when full; the pair's took 400 ms of waiting."""
    study = prefill_point(Truth(), "TP2DP4+EP", 64)
    roles = (engine_pool("TP2DP4+EP", role="prefill"), engine_pool("TEP8", role="decode"))
    pair = replace(
        deployed(study, "disaggregated", *roles),
        latencies=replace(study.latencies, tpot=GOOD.latencies.tpot),
        duration_s=study.duration_s * 4,
        factors={"prefill.max-num-batched-tokens": "16384"},
        run="runs/pair",
    )
    alone, both = fitted([study]), fitted([study, pair])
    (one,) = alone.efficiencies
    prefill = next(each for each in both.efficiencies if each.phase is Phase.PREFILL)
    assert prefill.factor == pytest.approx(one.factor)
    assert prefill.points == 1
    only = next(each for each in fitted([pair]).efficiencies if each.phase is Phase.PREFILL)
    assert only.factor == pytest.approx(4 * one.factor)
    assert "known from one side only" in only.note


@pytest.mark.parametrize(("tokens", "rate"), [(1.0, 0.0), (1.875, 0.5), (4.0, 1.0)])
def test_what_was_accepted_of_drafts(tokens: float, rate: float) -> None:
    """1 + a + a^2 + a^3 tokens a step; points without drafts say nothing."""
    truth = Truth(tokens_per_step=tokens)
    points = [decode_point(truth, "TEP8", load, 3) for load in (1, 16)]
    (found,) = fitted([*points, GOOD]).acceptance
    assert (found.speculative_tokens, found.points) == (3, 2)
    assert found.acceptance_rate == pytest.approx(rate, abs=1e-6)
    assert fitted([GOOD]).acceptance == ()


def test_releases_are_fitted_apart() -> None:
    old, new = Truth(decode=(3, 0.01)), Truth(decode=(2, 0.005))
    loads = (1, 16, 256)
    points = [decode_point(old, "TEP8", load) for load in loads]
    for load in loads:
        point = decode_point(new, "TEP8", load)
        points.append(replace(point, contract={**point.contract, "vllm.version": "0.28.0"}))
    found = {each.engine_version: each.factor for each in fitted(points).efficiencies}
    assert found == {"0.26.0": pytest.approx(3), "0.28.0": pytest.approx(2)}


GOOD = decode_point(Truth(), "TEP8", 16)


POOL = engine_pool("TEP8", 3)


def of_pools(*pools: EnginePool) -> MeasuredPoint:
    return deployed(GOOD, "decode", *pools)


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        (replace(GOOD, origin=Origin.SYNTHETIC), "is synthetic: no speed in it was measured"),
        (replace(GOOD, origin=Origin.REHEARSAL), "is rehearsal: no speed in it was measured"),
        (replace(GOOD, invalid=(Invalidity(code="short", message="m"),)), "is invalid: short"),
        (of_pools(), "its record says no engines (collect its run again)"),
        (of_pools(replace(POOL, role="decode")), "its record says no prefill engine"),
        (of_pools(replace(POOL, engine="sglang", layout=None)), "agg engine is sglang, not vllm"),
        (of_pools(replace(POOL, layout=None)), "the layout of its agg engine is not recorded"),
        (of_pools(replace(POOL, draft_method="eagle3")), "drafts by eagle3, not by MTP"),
        (replace(GOOD, gpus=replace(GOOD.gpus, type="gb999")), "gb999"),
        (replace(GOOD, contract={**GOOD.contract, "vllm.version": "main"}), "engine version"),
        (replace(GOOD, latencies=Latencies()), "it has no TPOT"),
        (replace(GOOD, tokens=replace(GOOD.tokens, output=0)), "counts no requests or no tokens"),
        (decode_point(Truth(tokens_per_step=0.5), "TEP8", 16, 3), "its chunks of 0.50 tokens"),
        (decode_point(Truth(tokens_per_step=4.5), "TEP8", 16, 3), "its chunks of 4.50 tokens"),
        (aggregated_point(Truth(), "TP4DP4+EP", 16), "its data-parallel ranks overlap"),
        (decode_point(Truth(decode=(0.9, 0)), "TEP8", 16), "is faster than its bound of"),
    ],
)
def test_a_point_that_says_nothing_is_left_out_with_its_reason(
    point: MeasuredPoint, reason: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        fitted([point])
    assert reason in str(caught.value)
    mixed = fitted([GOOD, point])
    assert [each.count for each in mixed.unused] == [1]
    assert reason in mixed.unused[0].reason


def test_no_points_at_all() -> None:
    with pytest.raises(InvalidInput, match="there are no points"):
        fitted([])


# --- the command ------------------------------------------------------------------------------


def answer(*arguments: str) -> dict[str, Any]:
    result = run("calibrate", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    Draft202012Validator(schema("efficiency")).validate(document)
    return document


def test_the_answer_is_the_file_that_roofline_reads(tmp_path: Path) -> None:
    results, out = made(studies(Truth()), tmp_path), tmp_path / "factors.json"
    document = answer("--results", results, "--out", str(out))
    assert json.loads(out.read_text(encoding="utf-8")) == document
    assert [each.phase for each in read_factors(out).efficiencies] == [Phase.PREFILL, Phase.DECODE]
    predicted = json.loads(run(*ROOFLINE, "--efficiency", str(out), "--json").stdout)
    Draft202012Validator(schema("roofline")).validate(predicted)
    expected = 1.5 * predicted["step_ms"] + 6
    assert predicted["prediction"]["step_ms"] == pytest.approx(expected)
    assert predicted["prediction"]["note"] == ""
    page = run(*ROOFLINE, "--efficiency", str(out)).stdout
    assert "prediction" in page
    assert max(map(len, page.splitlines())) <= 100


def test_a_page_fits_and_shows_every_residual(tmp_path: Path) -> None:
    points = [*studies(Truth()), replace(GOOD, origin=Origin.SYNTHETIC, run="other")]
    result = run("calibrate", "--results", made(points, tmp_path))
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert result.stdout.count("+0.0%") + result.stdout.count("-0.0%") == len(points) - 1
    assert "not used: 1 point" in result.stdout
    assert "MTP 3: 0.64 of drafted tokens accepted" in result.stdout


def ran(folder: Path, recipe: Path, concurrency: int, chunk_s: float, chunks: int) -> None:
    """A run of a published recipe: 1024 tokens of each request in so many gaps between chunks."""
    requests, ttft_s = 4 * concurrency, 0.4
    report = sa_bench(
        concurrency,
        num_prompts=requests,
        completed=requests,
        duration=4 * (ttft_s + chunk_s * chunks),
        total_input_tokens=8192 * requests,
        total_output_tokens=1024 * requests,
        input_lens=[8192] * requests,
        output_lens=[1024] * requests,
        ttfts=[ttft_s] * requests,
        itls=[[chunk_s] * chunks] * requests,
        errors=[""] * requests,
        **{f"{kind}_{name}_ms": ... for kind in ("mean", "median") for name in ("ttft", "tpot")},
        mean_e2el_ms=(ttft_s + chunk_s * chunks) * 1000,
        p99_tpot_ms=...,
    )
    write_run(folder, report, recipe=recipe.read_text(encoding="utf-8"))


def test_what_collect_wrote_of_published_recipes(tmp_path: Path, repository: Path) -> None:
    recipes = repository / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg/v2"
    names = ("1xtp8-1xtp8-mtp-cc1-4", "4xtp2dep4-1xtp4dep4-cc2560")
    mtp, plain = (recipes / f"{name}.yaml" for name in names)
    ran(tmp_path / "runs/a", mtp, 1, chunk_s=0.0115, chunks=445)
    ran(tmp_path / "runs/b", plain, 64, chunk_s=0.02, chunks=1023)
    results = tmp_path / "results.jsonl"
    collected = run("collect", str(tmp_path / "runs"), "--out", str(results))
    assert collected.exit_code == 0, collected.stderr
    document = answer("--results", str(results))
    assert (document["points_used"], document["unused"]) == (2, [])
    times = {
        (each["point"], each["what"]): each["measured_s"]
        for fit in document["efficiencies"]
        for each in fit["residuals"]
    }
    assert {each["engine_version"] for each in document["efficiencies"]} == {
        "0.26.1rc1.dev1177+ga9a17e709"
    }
    assert times == {
        ("1xTEP8 + 1xTEP8 MTP3 disaggregated c1", "step"): pytest.approx(0.0115),
        ("1xTEP8 + 1xTEP8 MTP3 disaggregated c1", "prompt alone"): pytest.approx(0.4),
        ("4xTP2DP4+EP + 1xTP4DP4+EP disaggregated c64", "step"): pytest.approx(0.02),
    }


def test_the_model_of_a_spec(tmp_path: Path, repository: Path) -> None:
    folder = spec_folder(tmp_path, repository)
    point = replace(GOOD, contract={**GOOD.contract, "model.path": "/models/ours"})
    results = made([point], tmp_path)
    refused = run("calibrate", "--results", results)
    assert refused.exit_code == 3
    assert "its model '/models/ours' is not known (give it with --model)" in refused.stderr
    for given_by in (("--spec", str(folder / "spec.yaml")), ("--model", str(folder / "model"))):
        assert answer("--results", results, *given_by)["points_used"] == 1


def test_a_given_model_is_of_all_points_or_of_none(tmp_path: Path) -> None:
    other = replace(GOOD, contract={**GOOD.contract, "model.path": "hf:other/model"}, run="other")
    document = answer("--results", made([GOOD, other], tmp_path), "--model", MODEL)
    assert [each["count"] for each in document["unused"]] == [1]
    assert "is of model" in document["unused"][0]["reason"]


def test_nothing_usable_is_invalid_input(tmp_path: Path) -> None:
    results = made([replace(GOOD, origin=Origin.SYNTHETIC)], tmp_path)
    out = tmp_path / "factors.json"
    result = run("calibrate", "--results", results, "--out", str(out))
    assert result.exit_code == 3
    assert "1 point, such as 1xTEP8 decode c16: is synthetic" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--out", "x.json", "log.txt"),
        ("--results", "r.jsonl", "log.txt"),
        ("--results", "r.jsonl", "--layout", "TEP8"),
        ("--results", "r.jsonl", "--spec", "s.yaml", "--model", "m"),
        ("--results", "r.jsonl", "--write", "p.yaml"),
    ],
)
def test_usage(options: tuple[str, ...]) -> None:
    assert run("calibrate", *options).exit_code == 2


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"factor": 0.9}, "factor"),
        ({"fixed_s_per_step": -1}, "fixed_s_per_step"),
        ({"phase": "both"}, "phase"),
        ({"engine_version": "main"}, "'main' is not an engine version"),
        ({"gpu": 5}, "gpu"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, edit: dict[str, Any], message: str) -> None:
    path = tmp_path / "factors.json"
    run("calibrate", "--results", made(studies(Truth()), tmp_path), "--out", str(path))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["efficiencies"][0] |= edit
    path.write_text(json.dumps(document), encoding="utf-8")
    result = run(*ROOFLINE, "--efficiency", str(path))
    assert result.exit_code == 3
    assert message in result.stderr
    assert str(path) in result.stderr


def test_two_factors_of_one_phase(tmp_path: Path) -> None:
    path = tmp_path / "factors.json"
    run("calibrate", "--results", made([GOOD], tmp_path), "--out", str(path))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["efficiencies"] *= 2
    path.write_text(json.dumps(document), encoding="utf-8")
    result = run(*ROOFLINE, "--efficiency", str(path))
    assert "same GPU, release and phase as efficiencies[0]" in result.stderr
    assert result.exit_code == 3


def test_a_file_without_decode_predicts_no_step(tmp_path: Path) -> None:
    path = tmp_path / "factors.json"
    points = [prefill_point(Truth(), "TEP8", 1)]
    run("calibrate", "--results", made(points, tmp_path), "--out", str(path))
    result = run(*ROOFLINE, "--efficiency", str(path))
    assert result.exit_code == 3
    assert "there are no factors of decode" in result.stderr
