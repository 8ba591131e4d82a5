"""The frontier and what is read from it; every figure is of the stated model, none was measured."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from generator.cli.main import main
from generator.errors import InvalidInput
from generator.pareto.area import area_under
from generator.pareto.axes import AXIS_NAMES, axis
from generator.pareto.document import pareto_csv, pareto_document
from generator.pareto.study import ParetoQuestion, ParetoStudy, study
from generator.results.distribution import distribution
from generator.results.point import Accuracy, Goodput, Latencies, MeasuredPoint, Origin
from generator.results.point_file import write_points
from generator.validation import schema
from tests.synthetic_points import CONTRACT, Deployment, synthetic_point
from tests.synthetic_study import serving_points, study_points

X, Y = axis("tokens_per_s_per_user"), axis("total_tokens_per_s_per_gpu")
POINT = synthetic_point(Deployment(configuration="1xTEP8 + 1xTEP8"), 64)


def asked(points: list[MeasuredPoint], **question: Any) -> ParetoStudy:
    return study(points, ParetoQuestion(**{"x": X, "y": Y, **question}))


# --- axes -------------------------------------------------------------------------------------

# By hand: decode steps of 5 + 0.1 x 64 = 11.4 ms, TTFT 200 ms, 512 requests of 8192 + 1024 tokens
# in 8 x (200 + 11.4 x 1023) ms = 94.8976 s, on 16 GPUs.
REQUESTS_PER_S = 512 / 94.8976
FIGURES = {
    "tokens_per_s_per_user": 1000 / 11.4,
    "total_tokens_per_s_per_gpu": REQUESTS_PER_S * 9216 / 16,
    "output_tokens_per_s_per_gpu": REQUESTS_PER_S * 1024 / 16,
    "input_tokens_per_s_per_gpu": REQUESTS_PER_S * 8192 / 16,
    "requests_per_s_per_gpu": REQUESTS_PER_S / 16,
    "concurrency": 64,
    "ttft_ms": 200,
    "tpot_ms": 11.4,
    "ttft_p90_ms": 200,
    "end_to_end_ms": 200 + 11.4 * 1023,
    "cost_per_million_tokens": 16 * 3.6 / 3600 / (REQUESTS_PER_S * 9216) * 1e6,
    "cost_per_million_output_tokens": 16 * 3.6 / 3600 / (REQUESTS_PER_S * 1024) * 1e6,
}


@pytest.mark.parametrize(("name", "value"), FIGURES.items(), ids=FIGURES)
def test_axis(name: str, value: float) -> None:
    assert axis(name, gpu_hour_price=3.6).value(POINT) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("goodput_tokens_per_s_per_gpu", 4 / 16), ("goodput_requests_per_s_per_gpu", 2 / 16)],
)
def test_goodput_axis_is_of_points_that_have_goodput(name: str, value: float) -> None:
    goodput = Goodput(ttft_ms=250, max_gap_ms=50, requests_per_s=2, tokens_per_s=4)
    assert axis(name).value(replace(POINT, goodput=goodput)) == value
    assert axis(name).value(POINT) is None


def test_percentile_without_samples_is_no_figure() -> None:
    """512 requests leave five beyond a p99; ten are asked for."""
    assert axis("ttft_p99_ms").value(POINT) is None
    many = replace(POINT, latencies=Latencies(ttft=distribution([3.0] * 1000)))
    assert axis("ttft_p99_ms").value(many) == 3.0


def test_every_named_axis_is_one() -> None:
    assert {axis(name, gpu_hour_price=1).name for name in AXIS_NAMES} == {*AXIS_NAMES}


@pytest.mark.parametrize(
    ("name", "message"),
    [("ttft", "no axis is called 'ttft'"), ("cost_per_million_tokens", "needs the price of a GPU")],
)
def test_axis_that_is_none(name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        axis(name)


# --- the study --------------------------------------------------------------------------------


def test_ties_are_all_kept() -> None:
    """Two prefill layouts before one decode engine: at 4 and 16 the model gives them the same."""
    answer = asked(list(serving_points()))
    tied = {each.subject.configuration for each in answer.frontier if each.concurrency == 16}
    assert tied == {"1xTP4DP2+EP + 1xTEP8 MTP3", "1xTP2DP4+EP + 1xTEP8 MTP3"}


def test_invalid_points_stand_nowhere_and_are_counted() -> None:
    answer = asked(list(serving_points()))
    assert [(len(each.points), each.reason) for each in answer.left_out] == [
        (1, "invalid: failed-requests")
    ]
    assert all(run.is_valid for each in answer.points for run in each.runs)


def test_repeated_runs_count_as_their_mean() -> None:
    answer = asked(list(serving_points()))
    (repeated,) = (each for each in answer.points if len(each.runs) == 3)
    values = [run.total_tokens_per_s_per_gpu for run in repeated.runs]
    assert repeated.y.mean == pytest.approx(sum(values) / 3)
    assert repeated.y.half_range == pytest.approx((max(values) - min(values)) / 2)


def test_concurrency_is_set_so_the_best_of_each_is_kept(tmp_path: Path) -> None:
    answer = asked(list(serving_points()), x=axis("concurrency"))
    best: dict[int, float] = {}
    for each in answer.points:
        best[each.concurrency] = max(each.y.mean, best.get(each.concurrency, 0))
    assert {each.concurrency: each.y.mean for each in answer.frontier} == best
    assert [each.concurrency for each in answer.frontier] == sorted(
        each.concurrency for each in answer.frontier
    )
    assert answer.area is None
    document = json.loads(json.dumps(pareto_document(answer)))
    assert document["x"]["better"] == "set"
    assert list(Draft202012Validator(schema("pareto")).iter_errors(document)) == []
    write_points(tmp_path / "results.jsonl", serving_points())
    shown = run(tmp_path / "results.jsonl", "--x", "concurrency").stdout
    assert "Concurrency (requests at once), the best y of each." in shown
    assert "No area under the frontier: concurrency is set, not reached." in shown


def test_phases_do_not_mix() -> None:
    points = study_points()
    assert {each.subject.phase for each in asked(points).points} == {"disaggregated"}
    assert {each.subject.phase for each in asked(points, phase="decode").points} == {"decode"}
    alone = [point for point in points if point.subject.phase in ("prefill", "decode")]
    with pytest.raises(InvalidInput, match="results of decode and prefill, which no curve"):
        asked(alone)
    with pytest.raises(InvalidInput, match="no result is of phase aggregated"):
        asked(points, phase="aggregated")


MIXES = {
    "another image": (
        {"contract": CONTRACT | {"container.image": "other"}},
        "container.image: other (1), vllm/vllm-openai:nightly-a9a17e7 (1)",
    ),
    "an unknown loop": (
        {"contract": {key: CONTRACT[key] for key in CONTRACT if key != "load.loop"}},
        "load.loop: closed (1), not stated (1)",
    ),
    "measured among synthetic": (
        {"origin": Origin.MEASURED},
        "origin: measured (1), synthetic (1)",
    ),
}


@pytest.mark.parametrize(("changes", "message"), MIXES.values(), ids=MIXES)
def test_contracts_do_not_mix_unless_told_to(changes: dict[str, Any], message: str) -> None:
    points = [POINT, replace(POINT, run="other", **changes)]
    with pytest.raises(InvalidInput) as caught:
        asked(points)
    assert [each.message for each in caught.value.problems] == [
        f"runs of different contracts, {message}"
    ]
    answer = asked(points, may_mix=True)
    assert len(answer.mixed) == 1
    assert [each.y.count for each in answer.points] == [1, 1]


def test_a_difference_of_many_long_values_is_one_readable_line() -> None:
    values = [f"{number}-{'x' * 5000}-{number}" for number in range(20)]
    points = [
        replace(POINT, run=value, contract=CONTRACT | {"container.image": value})
        for value in values
    ]
    with pytest.raises(InvalidInput) as caught:
        asked(points)
    message = caught.value.problems[0].message
    first = f"0-{'x' * 58}...{'x' * 58}-0 (1), 1-"
    assert message.startswith(f"runs of different contracts, container.image: {first}")
    assert message.endswith("-15 (1), 12 more")
    (mixed,) = asked(points, may_mix=True).mixed
    assert str(mixed).endswith("-15 or 12 more")


def test_a_rehearsal_repeats_no_measurement(tmp_path: Path) -> None:
    """Of one recipe at one concurrency: mixed, they stand beside each other, each as what it is."""
    measured = replace(POINT, origin=Origin.MEASURED, run="m", duration_s=60.0)
    rehearsed = replace(POINT, origin=Origin.REHEARSAL, run="r", duration_s=30.0)
    answer = asked([measured, rehearsed], may_mix=True, by="origin")
    figures = {str(each.point.origin): each.y.mean for each in answer.points}
    assert figures == {
        "measured": measured.total_tokens_per_s_per_gpu,
        "rehearsal": rehearsed.total_tokens_per_s_per_gpu,
    }
    document = pareto_document(answer)
    assert list(Draft202012Validator(schema("pareto")).iter_errors(document)) == []
    beaten = {each["origin"]: each["on_frontier"] for each in document["points"]}
    assert beaten == {"measured": False, "rehearsal": True}
    write_points(tmp_path / "results.jsonl", [measured, rehearsed])
    shown = run(tmp_path / "results.jsonl", "--mix").stdout
    assert shown.count("| rehearsal |") == 1 + 3  # the frontier, and the best at 10, 20 and 50


def test_goodput_of_other_limits_is_another_figure() -> None:
    def good(ttft_ms: float) -> Goodput:
        return Goodput(ttft_ms=ttft_ms, max_gap_ms=50, requests_per_s=2, tokens_per_s=4)

    points = [replace(POINT, goodput=good(250)), replace(POINT, goodput=good(500), run="other")]
    with pytest.raises(InvalidInput, match="TTFT 250 ms, gap 50 ms"):
        asked(points, y=axis("goodput_tokens_per_s_per_gpu"))
    assert len(asked(points).frontier) == 1


def test_accuracy_must_be_known_and_high_enough() -> None:
    def scored(score: float | None) -> MeasuredPoint:
        found = None if score is None else Accuracy(benchmark="gsm8k", score=score)
        return replace(POINT, accuracy=found, run=str(score))

    answer = asked([scored(0.95), scored(0.93), scored(None)], min_accuracy=0.94)
    assert [each.runs[0].run for each in answer.points] == ["0.95"]
    assert [each.reason for each in answer.left_out] == [
        "accuracy below 0.94",
        "no accuracy known",
    ]


def test_no_point_left() -> None:
    with pytest.raises(InvalidInput, match="no point stands on these axes: 1 no goodput"):
        asked([POINT], y=axis("goodput_tokens_per_s_per_gpu"))


def test_curves_by_a_factor() -> None:
    answer = asked(list(serving_points()), by="mtp")
    assert [curve.label for curve in answer.curves] == ["3", "0"]
    with pytest.raises(InvalidInput, match="did you mean 'mtp'"):
        asked(list(serving_points()), by="mtpp")


def test_best_measured_at_or_above() -> None:
    answer = asked(list(serving_points()), targets=(10.0, 150.0, 500.0))
    found = [each.best.concurrency if each.best else None for each in answer.best_at]
    assert found == [2560, 8, None]


@pytest.mark.parametrize(
    ("start", "stop", "area", "unreached"),
    [
        (0, 10, 10 * 4, 0),
        (10, 20, 10 * 2, 0),
        (5, 15, 5 * 4 + 5 * 2, 0),
        (0, 40, 10 * 4 + 10 * 2, 0.5),
        (30, 40, 0, 1),
    ],
)
def test_area_of_steps(start: float, stop: float, area: float, unreached: float) -> None:
    """Two points: 4 up to x = 10, 2 up to x = 20, nothing beyond."""
    found = area_under([(10, 4), (20, 2)], start, stop, more_x_is_better=True)
    assert (found.area, found.unreached_share) == (area, unreached)
    mirrored = area_under([(-10, 4), (-20, 2)], -stop, -start, more_x_is_better=False)
    assert (mirrored.area, mirrored.unreached_share) == (area, unreached)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_points(tmp_path / "results.jsonl", study_points())
    return tmp_path / "results.jsonl"


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(main, ["pareto", *map(str, arguments)])


def test_table_in_the_terminal(results: Path) -> None:
    shown = run(results).stdout
    assert shown.startswith("Figures: SYNTHETIC")
    assert "22 points of 7 curves, 1 left out; 16 on the frontier." in shown
    assert "| >= 150        |                     718 |        164 |     8 | 1xTP4DP2+EP" in shown
    assert "left out: 1 invalid: failed-requests" in shown


def test_json_is_what_the_schema_says(results: Path) -> None:
    document = json.loads(run(results, "--json").stdout)
    assert list(Draft202012Validator(schema("pareto")).iter_errors(document)) == []
    assert document == json.loads(json.dumps(pareto_document(asked(study_points()))))
    ids = {each["id"] for each in document["points"]}
    assert {*document["frontier"]} <= ids


def test_csv_has_every_point() -> None:
    answer = asked(study_points())
    rows = list(csv.DictReader(io.StringIO(pareto_csv(answer))))
    assert len(rows) == len(answer.points)
    assert sum(row["on_frontier"] == "yes" for row in rows) == len(answer.frontier)
    assert {row["origin"] for row in rows} == {"synthetic"}


def test_csv_holds_no_formula() -> None:
    subject = replace(POINT.subject, recipe="=HYPERLINK(1)")
    point = replace(POINT, subject=subject, run="+cmd|x")
    (row,) = csv.DictReader(io.StringIO(pareto_csv(asked([point]))))
    assert (row["recipe"], row["run"]) == ("'=HYPERLINK(1)", "'+cmd|x")


def test_names_reach_neither_terminal_nor_svg_as_control_characters(tmp_path: Path) -> None:
    subject = replace(POINT.subject, configuration="\x1b[31mred\nand | more")
    write_points(tmp_path / "results.jsonl", [replace(POINT, subject=subject)])
    shown = run(tmp_path / "results.jsonl").stdout
    assert "\x1b" not in shown
    assert r"\x1b[31mred\nand | more |" in shown
    for kind in ("curves", "frontier", "phase"):
        figure = tmp_path / f"{kind}.svg"
        assert run(tmp_path / "results.jsonl", "--figure", kind, "--out", figure).exit_code == 0
        assert "red" in "".join(ET.parse(figure).getroot().itertext())  # noqa: S314 - our own


def test_a_file_given_twice_is_no_repeated_run(results: Path) -> None:
    assert run(results, results).stdout == run(results).stdout


def test_a_run_collected_twice_with_other_options_is_no_repeated_run(tmp_path: Path) -> None:
    """It would show as two runs that vary by 0.0%."""
    goodput = Goodput(ttft_ms=250, max_gap_ms=50, requests_per_s=2, tokens_per_s=4)
    write_points(tmp_path / "a.jsonl", [POINT])
    sources = {**POINT.sources, "goodput": "the same report"}
    write_points(tmp_path / "b.jsonl", [replace(POINT, goodput=goodput, sources=sources)])
    refused = run(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert refused.exit_code == 3
    told = f"{POINT.run} at concurrency 64 is there twice, collected with other goodput ("
    assert refused.stderr.startswith(f"error: {told}")
    many = [replace(POINT, run=f"{number}") for number in range(3)]
    write_points(tmp_path / "c.jsonl", many)
    write_points(tmp_path / "d.jsonl", [replace(each, goodput=goodput) for each in many])
    (line,) = run(tmp_path / "c.jsonl", tmp_path / "d.jsonl").stderr.splitlines()
    assert "0 at concurrency 64 and 2 more points are there twice" in line
    write_points(tmp_path / "b.jsonl", [replace(POINT, sources={"figures": "a copy of it"})])
    assert run(tmp_path / "a.jsonl", tmp_path / "b.jsonl").exit_code == 0


@pytest.mark.parametrize("kind", ["curves", "frontier", "phase"])
def test_svg_is_the_same_bytes_again(results: Path, tmp_path: Path, kind: str) -> None:
    for name in ("one.svg", "two.svg"):
        assert run(results, "--figure", kind, "--out", tmp_path / name).exit_code == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.png", b"\x89PNG"),
        ("a.csv", b"origin,"),
        ("a.json", b"{\n"),
        ("a.html", b"<!doctype html>"),
    ],
)
def test_other_files(results: Path, tmp_path: Path, name: str, start: bytes) -> None:
    done = run(results, "--out", tmp_path / "new" / name)
    assert done.exit_code == 0
    assert (tmp_path / "new" / name).read_bytes().startswith(start)


def test_results_are_never_replaced_by_an_answer_about_them(tmp_path: Path) -> None:
    results, link = tmp_path / "results.json", tmp_path / "link.json"
    write_points(results, [POINT])
    link.symlink_to(results)
    before = results.read_bytes()
    for out in (results, link):
        done = run(results, "--out", out)
        assert (done.exit_code, "which it would replace" in done.stderr) == (3, True)
    assert results.read_bytes() == before


def test_a_phase_figure_asks_for_no_tpot(tmp_path: Path) -> None:
    """Prefill alone may answer with one token, which has none; the figure does not show it."""
    prefill = synthetic_point(Deployment(configuration="1xTP4DP2+EP", phase="prefill", osl=1), 8)
    latencies = replace(prefill.latencies, tpot=None)
    write_points(tmp_path / "results.jsonl", [replace(prefill, latencies=latencies)])
    figure = tmp_path / "phase.svg"
    assert run(tmp_path / "results.jsonl", "--figure", "phase", "--out", figure).exit_code == 0
    assert "against concurrency" in figure.read_text()


WRONG = {
    "a name of no length that is allowed": (["--out", f"{'a' * 300}.svg"], 3, "too long"),
    "a phase against something else": (
        ["--figure", "phase", "--out", "a.svg", "--x", "ttft_ms"],
        2,
        "--figure phase is against concurrency",
    ),
    "another suffix": (["--out", "a.gif"], 2, "ends in .svg, .png"),
    "a figure without a file": (["--figure", "curves"], 2, "--figure goes with --out"),
    "a range that falls": (["--x-range", "9:1"], 2, "not ascending"),
    "a range that is none": (["--x-range", "9"], 2, "not a range such as"),
    "an endless range": (["--x-range", "0:inf"], 2, "not ascending"),
    "targets that are none": (["--at", "a"], 2, "not a list of numbers"),
    "a target of NaN": (["--at", "nan"], 2, "not a list of numbers"),
    "a price of NaN": (["--gpu-hour-price", "nan"], 2, "nan is not a finite number"),
    "a price beyond all": (
        ["--y", "cost_per_million_tokens", "--gpu-hour-price", "1e300"],
        3,
        "a GPU hour for 1e+300 is no price",
    ),
    "an endless price": (["--gpu-hour-price", "inf"], 2, "inf is not a finite number"),
    "an accuracy of NaN": (["--min-accuracy", "nan"], 2, "nan is not a finite number"),
    "an axis that is none": (["--x", "speed"], 3, "no axis is called 'speed'"),
    "nothing to group by": (["--by", "colour"], 3, "these vary: configuration, recipe, phase"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG.values(), ids=WRONG)
def test_what_the_command_refuses(
    results: Path, arguments: list[str], code: int, message: str
) -> None:
    done = run(results, *arguments)
    assert done.exit_code == code
    assert message in done.stderr


def test_every_bad_line_of_every_file_is_named(results: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{\n[]\n")
    done = run(results, tmp_path / "bad.jsonl", tmp_path / "none.jsonl")
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 3
