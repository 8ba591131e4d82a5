"""Points: what follows from their figures, and the file they are kept in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import InvalidInput
from generator.results.distribution import distribution
from generator.results.engine_pool import EnginePool
from generator.results.point import (
    Accuracy,
    Goodput,
    Invalidity,
    Latencies,
    MeasuredPoint,
    Requests,
)
from generator.results.point_file import (
    point_document,
    points_text,
    read_points,
    write_points,
)
from tests.synthetic_points import Deployment, synthetic_point

DEPLOYMENT = Deployment(configuration="1xTEP8 + 1xTEP8 MTP3")
POINT = synthetic_point(DEPLOYMENT, 4)
POOL = EnginePool(role="agg", workers=1, gpus_per_worker=8, layout="TEP8")


def test_what_follows_from_the_figures() -> None:
    assert POINT.subject.point_id == "0123456789abcdef-c4"
    assert POINT.gpus.total == 16
    assert POINT.tokens_per_s_per_user == pytest.approx(1000 / 5.4)
    assert POINT.total_tokens_per_s == pytest.approx(
        POINT.input_tokens_per_s + POINT.output_tokens_per_s
    )
    assert POINT.total_tokens_per_s_per_gpu == pytest.approx(POINT.total_tokens_per_s / 16)
    assert replace(POINT, latencies=Latencies()).tokens_per_s_per_user is None


def test_points_come_back_as_written(tmp_path: Path) -> None:
    full = replace(
        POINT,
        accuracy=Accuracy(benchmark="gsm8k", score=0.95, threshold=0.94),
        goodput=Goodput(ttft_ms=250, max_gap_ms=50, requests_per_s=2, tokens_per_s=4),
        invalid=(Invalidity(code="duplicate", message="measured twice"),),
        preemptions=3,
    )
    other = synthetic_point(DEPLOYMENT, 2)
    path = tmp_path / "results.jsonl"
    write_points(path, [full, other])
    assert read_points(path) == (other, full)
    before = path.read_bytes()
    write_points(path, [other, full])
    assert path.read_bytes() == before


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50))
def test_percentiles_are_ordered_and_within_the_values(values: list[float]) -> None:
    figures = distribution(values)
    found = [value for _, value in figures.percentiles]
    assert found == sorted(found)
    assert figures.minimum == min(values) <= found[0]
    assert found[-1] <= max(values) == figures.maximum
    assert figures.median is not None


def test_percentiles_need_samples() -> None:
    few, many = distribution([1.0] * 100), distribution([1.0] * 1000)
    assert few.supports(90)
    assert not few.supports(99)
    assert many.supports(99)


def with_percentiles(percentiles: object) -> str:
    """The line of a point with these percentiles of its TTFT."""
    document = point_document(POINT)
    document["latencies"]["ttft"]["percentiles"] = percentiles
    return json.dumps(document)


def changed(**changes: Any) -> str:
    """The line of a point with these fields instead."""
    return points_text([replace(POINT, **changes)]).rstrip()


def read(folder: Path, text: str) -> tuple[MeasuredPoint, ...]:
    """The points of a file of results with this text."""
    path = folder / "results.jsonl"
    path.write_text(text)
    return read_points(path)


def test_whole_numbers_are_numbers_too(tmp_path: Path) -> None:
    (point,) = read(tmp_path, with_percentiles([[50, 1.5], [90, 2]]))
    assert point.latencies.ttft is not None
    assert point.latencies.ttft.percentiles == ((50.0, 1.5), (90.0, 2.0))


def test_names_that_are_no_text_come_back(tmp_path: Path) -> None:
    """A folder's name may hold any byte; JSON has such a byte as half a pair of characters."""
    point = replace(POINT, run="runs/caf\udce9")
    assert read(tmp_path, points_text([point])) == (point,)


def test_lines_another_tool_has_written_are_read(tmp_path: Path) -> None:
    document = json.loads(points_text([POINT]))
    reordered = dict(reversed(document.items()), added_by_somebody=[1])
    assert read(tmp_path, json.dumps(reordered, separators=(",", ":"))) == (POINT,)


def test_a_byte_order_mark_is_no_part_of_a_result(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff" + points_text([POINT])) == (POINT,)


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\xff\n",
        "{}".encode("utf-16"),
        points_text([POINT]).encode().replace(b'"prefill"', b'"pre\xffill"'),
    ],
    ids=["an image", "UTF-16", "a name with a damaged byte"],
)
def test_what_is_no_text_is_called_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="not UTF-8 text"):
        read_points(path)


OUT_OF_RANGE = {
    "tokens.input": 10**400,
    "tokens.server_output": -1,
    "requests.completed": 10**400,
    "requests.failed": -1,
    "gpus.prefill": -8,
    "gpus.other": 10**400,
    "subject.concurrency": 10**400,
    "preemptions": -1,
    "client_tokens_per_s_per_user": -1.0,
    "latencies.tpot.samples": 10**400,
    "latencies.tpot.std": -1.0,
    "latencies.ttft.maximum": 1e300,
    "goodput.tokens_per_s": -4.0,
    "goodput.ttft_ms": 1e300,
    "accuracy.score": 95.0,
    "accuracy.threshold": -0.1,
}


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE.items(), ids=OUT_OF_RANGE)
def test_a_figure_that_no_run_measures_is_named(tmp_path: Path, name: str, value: float) -> None:
    goodput = Goodput(ttft_ms=250, max_gap_ms=50, requests_per_s=2, tokens_per_s=4)
    accuracy = Accuracy(benchmark="gsm8k", score=0.95, threshold=0.93)
    document = point_document(replace(POINT, goodput=goodput, accuracy=accuracy))
    *path, last = name.split(".")
    within = document
    for key in path:
        within = within[key]
    within[last] = value
    with pytest.raises(InvalidInput, match=f"{name} has .* from 0 to 1"):
        read(tmp_path, json.dumps(document))


def test_lines_with_one_fault_are_one_problem(tmp_path: Path) -> None:
    line = points_text([POINT]).replace('"pdrecipe_result": 1', '"pdrecipe_result": 2')
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, line * 3 + "{\n")
    assert [(each.line, each.message.partition(":")[0]) for each in caught.value.problems] == [
        (1, "not a result, as 2 more below it"),
        (4, "not a result"),
    ]


BROKEN = {
    "no JSON": ("{", "not JSON"),
    "another document": ("[1]", "lacks pdrecipe_result"),
    "a version of many digits": (f'{{"pdrecipe_result": {"7" * 5000}}}', "more than 400 digits"),
    "a duration that nothing is measured in": (
        json.dumps(point_document(POINT) | {"duration_s": 5e-324}),
        "no run is shorter",
    ),
    "nested too deeply": (
        json.dumps(point_document(POINT))[:-1] + ', "more": ' + "[" * 100_000 + "}",
        "nested too deeply",
    ),
    "another version": ('{"pdrecipe_result": 9}', "of version 9"),
    "a field of another type": (
        json.dumps(point_document(POINT) | {"duration_s": "long"}),
        r"Expected `float`, got `str` - at `\$\.duration_s`",
    ),
    "a percentile of three": (
        with_percentiles([[50, 1.0, 2.0]]),
        "Expected `array` of length 2",
    ),
    "a percentile of text": (with_percentiles([[50.0, "1"]]), "Expected `float`, got `str`"),
    "a percentile beyond all": (with_percentiles([[500.0, 1.0]]), "not one from 0 to 100"),
    "percentiles of no list": (with_percentiles([5.0]), "Expected `array`, got `float`"),
    "no duration": (json.dumps(point_document(POINT) | {"duration_s": 0}), "above 0"),
    "an endless duration": (
        json.dumps(point_document(POINT) | {"duration_s": 0.25}).replace("0.25,", "1e999,", 1),
        "duration_s has inf, not a number from 0 to 1e",
    ),
    "negative tokens": (
        json.dumps(point_document(POINT) | {"tokens": {"input": 1, "output": -5}}),
        "tokens.output has -5",
    ),
    "no workers": (
        changed(subject=replace(POINT.subject, pools=(replace(POOL, workers=0),))),
        "subject.pools has 0 workers",
    ),
    "less than no GPU": (
        changed(gpus=replace(POINT.gpus, prefill=-4, decode=POINT.gpus.total + 8)),
        "gpus.prefill has -4",
    ),
    "less than no draft": (
        changed(subject=replace(POINT.subject, pools=(replace(POOL, num_speculative_tokens=-1),))),
        "num_speculative_tokens has -1",
    ),
    "less than no failure": (changed(requests=Requests(completed=1, failed=-1)), "failed has -1"),
    "less than none offered": (
        changed(requests=Requests(completed=1, offered=-1)),
        "offered has -1",
    ),
    "less than no preemption": (changed(preemptions=-1), "preemptions has -1"),
    "negative goodput": (
        changed(goodput=Goodput(ttft_ms=1, max_gap_ms=1, requests_per_s=1, tokens_per_s=-1)),
        "goodput.tokens_per_s has -1",
    ),
    "a negative time": (with_percentiles([[50.0, -1.0]]), "latencies.ttft has -1"),
    "an endless time": (with_percentiles([[50.0, 1e300]]), r"latencies.ttft has 1e\+300"),
    "less than light needs": (with_percentiles([[50.0, 1e-320]]), "a time below 1e-06 ms"),
    "NaN": (json.dumps(point_document(POINT) | {"duration_s": float("nan")}), "NaN is no number"),
}


@pytest.mark.parametrize(("line", "message"), BROKEN.values(), ids=BROKEN)
def test_lines_that_are_no_point(tmp_path: Path, line: str, message: str) -> None:
    good = points_text([POINT])
    with pytest.raises(InvalidInput, match=message) as caught:
        read(tmp_path, f"{good}{line}\n")
    assert [problem.line for problem in caught.value.problems] == [2]
