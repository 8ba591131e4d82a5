"""Which points are invalid: every rule at its limit and beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from generator.collection.measurement import Timing
from generator.collection.validity import invalidities, with_duplicates
from generator.results.point import Accuracy, MeasuredPoint, Requests, Tokens
from tests.synthetic_points import Deployment, synthetic_point

DEPLOYMENT = Deployment(configuration="1xTEP8 + 1xTEP8 MTP3")
POINT = synthetic_point(DEPLOYMENT, 4)


def codes(timing: Timing | None = None, **changes: Any) -> list[str]:
    return [each.code for each in invalidities(replace(POINT, **changes), timing)]


def accuracy(score: float, threshold: float | None = 0.94) -> Accuracy:
    return Accuracy(benchmark="gsm8k", score=score, threshold=threshold)


RULES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "as it is": ({}, []),
    "no output": ({"tokens": Tokens(input=800, output=0)}, ["no-output"]),
    "one token": ({"tokens": Tokens(input=800, output=1)}, []),
    "5 % failed": ({"requests": Requests(completed=95, offered=100, failed=5)}, []),
    "more failed": (
        {"requests": Requests(completed=949, offered=1000, failed=51)},
        ["failed-requests"],
    ),
    "failures unknown": ({"requests": Requests(completed=95)}, []),
    "server has 5 % more output": (
        {"tokens": Tokens(input=100, output=95, server_input=100, server_output=100)},
        [],
    ),
    "server has yet more output": (
        {"tokens": Tokens(input=100, output=949, server_input=100, server_output=1000)},
        ["token-mismatch"],
    ),
    "server has less input": (
        {"tokens": Tokens(input=106, output=100, server_input=100, server_output=100)},
        ["token-mismatch"],
    ),
    "accuracy at the threshold": ({"accuracy": accuracy(0.94)}, []),
    "accuracy below": ({"accuracy": accuracy(0.9399)}, ["accuracy"]),
    "accuracy without threshold": ({"accuracy": accuracy(0.1, None)}, []),
    "as many requests": ({"requests": Requests(completed=4, offered=4, failed=0)}, []),
    "fewer requests": (
        {"requests": Requests(completed=3, offered=3, failed=0)},
        ["fewer-requests-than-concurrency"],
    ),
    "fewer by a rollup": (
        {"requests": Requests(completed=3)},
        ["fewer-requests-than-concurrency"],
    ),
    "two reasons": (
        {
            "requests": Requests(completed=0, offered=3, failed=3),
            "tokens": Tokens(input=0, output=0),
        },
        ["no-output", "failed-requests", "fewer-requests-than-concurrency"],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), RULES.values(), ids=RULES)
def test_rules(changes: dict[str, Any], expected: list[str]) -> None:
    assert codes(**changes) == expected


@pytest.mark.parametrize(
    ("summed_ms", "expected"),
    [
        (90.0, []),
        (110.0, []),
        (100 * 1.1, []),  # 110.00000000000001
        (89.99, ["latency-mismatch"]),
        (110.01, ["latency-mismatch"]),
    ],
)
def test_latencies_ten_percent_apart(summed_ms: float, expected: list[str]) -> None:
    assert codes(Timing(summed_ms=summed_ms, reported_ms=100.0)) == expected


def duplicates(*points: MeasuredPoint) -> Iterator[tuple[str, str]]:
    for point in with_duplicates(points):
        for each in point.invalid:
            yield point.run, each.message


OTHER_RUN = replace(POINT, run="runs/b")


def test_another_run_of_a_point_is_a_repetition() -> None:
    slower = replace(OTHER_RUN, duration_s=POINT.duration_s + 1)
    assert list(duplicates(POINT, slower)) == []


def test_a_copy_of_a_run_is_a_duplicate_whatever_comes_first() -> None:
    for points in ((POINT, OTHER_RUN), (OTHER_RUN, POINT)):
        ((run, message),) = duplicates(*points)
        assert run == OTHER_RUN.run
        assert message == "measured once already, in synthetic"


def test_a_second_report_in_one_run_is_a_duplicate() -> None:
    second = replace(POINT, duration_s=1.0, sources={"figures": "z.json"})
    ((_, message),) = duplicates(second, POINT)
    assert message == "measured once already, in synthetic"


AIPERF = replace(POINT, client="aiperf 0.13.0", started_at="2026-11-30T00:17:33")


def test_another_trial_of_aiperf_is_a_repetition() -> None:
    later = replace(AIPERF, started_at="2026-11-30T00:18:33", sources={"figures": "z.json"})
    assert list(duplicates(AIPERF, later)) == []


@pytest.mark.parametrize("started_at", [None, AIPERF.started_at])
def test_a_trial_that_does_not_say_another_start_is_a_duplicate(started_at: str | None) -> None:
    second = replace(AIPERF, started_at=started_at, duration_s=1.0, sources={"figures": "z.json"})
    assert [message for _, message in duplicates(AIPERF, second)] != []


def test_loads_are_no_duplicates() -> None:
    assert list(duplicates(POINT, synthetic_point(DEPLOYMENT, 8))) == []
