"""Which points are worth running: the rules, their inputs, suggestions and the reduced spec."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generator.documents import read_document
from generator.errors import InvalidInput
from generator.estimation import estimate_spec, planned_studies, sizing_basis
from generator.results.distribution import Distribution
from generator.results.point import (
    Goodput,
    Invalidity,
    Latencies,
    MeasuredPoint,
    Origin,
    Requests,
    Tokens,
)
from generator.results.point_file import points_text
from generator.spec.reader import load_spec
from generator.stopping.ladders import Capacity, Ladder, planned_ladders
from generator.stopping.next_runs import Answer, NextRuns, next_runs
from generator.stopping.room import highest_held, room_beyond
from generator.stopping.rules import Rule, StopLimits
from generator.sweep.points import recipe_digest
from tests.conftest import REPOSITORY
from tests.small_specs import SPEC, edited, run, spec_folder
from tests.synthetic_points import Deployment, synthetic_point

DIGEST = "0123456789abcdef"
RESIZED = "its max-num-seqs must grow with it"
STUDIES = """\
studies:
  decode: {folder: alone, workload: {isl: 1, osl: 1000}, mtp: [0, 3], concurrencies: [1, 2, 4],
    layouts: [TEP8, TP2DP4+EP]}
probe: {engines: [{file: p, layout: TEP8, concurrency: 4}]}
accuracy: {file: "{file}-acc", folder: acc, benchmark: {type: gsm8k}}
"""
MORE = (
    "concurrencies: [4]}",
    "concurrencies: [1, 2, 4, 8, 16]}\n      - {file: b, prefill: 2xTEP8, concurrencies: [32, 64]}",
)


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    """The one recipe of the small spec with other concurrencies, capacity and digest."""
    folder = spec_folder(tmp_path_factory.mktemp("small"), REPOSITORY)
    (found,) = planned_ladders(estimate_spec(folder / "spec.yaml"))
    capacity = Capacity(slots=2000, held=1000.5, request_tokens=9216, basis="computed")
    return replace(
        found,
        digests=frozenset({DIGEST}),
        concurrencies=(1, 2, 4, 8, 16, 32),
        capacity=capacity,
        room=64,
    )


def point(concurrency: int, rate: float, **changes: Any) -> MeasuredPoint:
    """A point that serves 1,000 requests at so many tokens per second."""
    made = synthetic_point(Deployment(configuration="1xTEP8 + 1xTEP8"), concurrency, **changes)
    tokens = made.tokens.input + made.tokens.output
    return replace(made, duration_s=tokens / rate) if tokens else made


def growing(*concurrencies: int) -> list[MeasuredPoint]:
    return [point(each, 100.0 * each) for each in concurrencies]


def latency(median: float, p99: float, samples: int | None = 2000) -> Distribution:
    return Distribution(mean=median, samples=samples, percentiles=((50.0, median), (99.0, p99)))


def verdicts(
    ladder: Ladder, points: Sequence[MeasuredPoint], limits: StopLimits | None = None
) -> NextRuns:
    return next_runs(points, [ladder], limits or StopLimits())


def answers(runs: NextRuns) -> tuple[tuple[int, ...], ...]:
    """Measured, to run and to skip."""
    (found,) = runs.ladders
    return tuple(found.concurrencies(answer) for answer in Answer)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"contract": {"vllm.version": "0.27.0"}}, "vllm.version: 0.26.0 (2), 0.27.0 (1)"),
        ({"origin": Origin.MEASURED}, "origin: synthetic (2), measured (1)"),
        (
            {"goodput": Goodput(ttft_ms=250, max_gap_ms=50, requests_per_s=1, tokens_per_s=9)},
            "goodput limits: not stated (2), TTFT 250 ms, gap 50 ms (1)",
        ),
    ],
    ids=["engine", "origin", "goodput beside throughput"],
)
def test_results_of_different_contracts(ladder: Ladder, changes: dict[str, Any], key: str) -> None:
    contract = {"vllm.version": "0.26.0"}
    listed = [point(each, 100.0 * each, contract=contract) for each in (1, 2)]
    listed.append(point(4, 400.0, **{"contract": contract, **changes}))
    with pytest.raises(InvalidInput) as caught:
        verdicts(ladder, listed)
    assert f"runs of different contracts, {key}" in str(caught.value)
    assert str(caught.value).endswith(
        "(give fewer results, or --mix to take them together all the same)"
    )
    mixed = next_runs(listed, [ladder], StopLimits(), may_mix=True)
    assert "MIXED: these runs do not share one contract" in mixed.notes[0]
    assert answers(mixed)[0] == (1, 2, 4)
    # What ran under another recipe is left out anyway.
    other = point(4, 400.0, **{"contract": contract, **changes})
    stranger = replace(other, subject=replace(other.subject, digest="f" * 16))
    assert answers(verdicts(ladder, [*listed[:2], stranger])) == ((1, 2), (4, 8, 16, 32), ())


def only_stop(runs: NextRuns) -> tuple[Rule | None, str]:
    """The rule that every skipped point has, and its reason."""
    (found,) = {
        (verdict.rule, verdict.reason)
        for each in runs.ladders
        for verdict in each.verdicts
        if verdict.answer is Answer.SKIP
    }
    return found


# --- the rules ------------------------------------------------------------------------------------


def test_nothing_measured_is_all_to_run(ladder: Ladder) -> None:
    assert answers(verdicts(ladder, [])) == ((), (1, 2, 4, 8, 16, 32), ())


def test_a_ladder_goes_on_while_goodput_grows(ladder: Ladder) -> None:
    assert answers(verdicts(ladder, growing(1, 2, 4))) == ((1, 2, 4), (8, 16, 32), ())


def test_results_between_the_planned_loads_are_told_of(ladder: Ladder) -> None:
    """They end a ladder like any other, but are not among the points that are counted."""
    runs = verdicts(ladder, [point(load, 100.0 * load) for load in (1, 2, 3)])
    assert runs.notes == ("1 result at loads that the spec does not plan, which count too.",)
    assert runs.count(Answer.MEASURED) == 2


@pytest.mark.parametrize(
    ("capacity", "skipped", "reason"),
    [
        ({"slots": 8}, (16, 32), "8 slots"),
        ({"held": 16.5}, (32,), "KV cache (computed) for 16.50 requests of 9216 tokens"),
        ({"held": 31.99}, (32,), "KV cache (computed) for 31.99 requests of 9216 tokens"),
    ],
)
def test_capacity_end(
    capacity: dict[str, Any], skipped: tuple[int, ...], reason: str, ladder: Ladder
) -> None:
    small = replace(ladder, capacity=replace(ladder.capacity, **capacity))
    runs = verdicts(small, growing(1))
    assert answers(runs)[2] == skipped
    assert only_stop(runs) == (Rule.CAPACITY_END, reason)


STOPPED = [
    pytest.param(
        {"rate": 205}, {}, Rule.NO_GOODPUT_GAIN, "goodput +2.5% from 2 to 4", id="no gain"
    ),
    pytest.param({"rate": 150}, {}, Rule.NO_GOODPUT_GAIN, "goodput -25.0% from 2 to 4", id="loss"),
    pytest.param(
        {"rate": 210},
        {"variation": 0.06},
        Rule.NO_GOODPUT_GAIN,
        "variation assumed 6.0%",
        id="variation",
    ),
    pytest.param(
        {"goodput": Goodput(ttft_ms=1, max_gap_ms=1, requests_per_s=1, tokens_per_s=50)},
        {},
        Rule.NO_GOODPUT_GAIN,
        "goodput -75.0% from 2 to 4",
        id="recorded goodput",
    ),
    pytest.param(
        {"latencies": Latencies(ttft=latency(501, 900))},
        {"ttft_ms": 500},
        Rule.LATENCY_OBJECTIVE,
        "p50 TTFT 501.0 ms at 4, above 500 ms",
        id="median TTFT",
    ),
    pytest.param(
        {"latencies": Latencies(tpot=latency(20, 51))},
        {"tpot_ms": 50, "percentile": 99},
        Rule.LATENCY_OBJECTIVE,
        "p99 TPOT 51.0 ms at 4, above 50 ms",
        id="p99 TPOT",
    ),
    pytest.param(
        {"preemptions": 1},
        {},
        Rule.PERSISTENT_PREEMPTION,
        "3.1% of the requests at 4 were preempted",
        id="preempted",
    ),
    pytest.param(
        {"requests": Requests(completed=30, offered=32, failed=2)},
        {},
        Rule.FAILURES,
        "6% of the requests at 4 failed",
        id="failed",
    ),
    pytest.param(
        {"requests": Requests(completed=30, offered=32)},
        {"failure_share": 0},
        Rule.FAILURES,
        "6% of the requests at 4 failed",
        id="not completed",
    ),
    pytest.param(
        {"tokens": Tokens(input=1, output=0)},
        {},
        Rule.FAILURES,
        "100% of the requests at 4 failed",
        id="no token",
    ),
    pytest.param(
        {
            "requests": Requests(completed=0, offered=32, failed=32),
            "invalid": (Invalidity(code="a", message="b"),),
        },
        {},
        Rule.FAILURES,
        "100% of the requests at 4 failed",
        id="failed and invalid",
    ),
]
PASSED = [
    pytest.param({"rate": 206.5}, {}, id="gain"),
    pytest.param({"rate": 205.9}, {"variation": 0.02}, id="gain beyond variation"),
    pytest.param({"latencies": Latencies(ttft=latency(500, 900))}, {"ttft_ms": 500}, id="at limit"),
    pytest.param({"latencies": Latencies()}, {"ttft_ms": 500, "tpot_ms": 5}, id="no latencies"),
    pytest.param(
        {"latencies": Latencies(tpot=latency(20, 51, 999))}, {"tpot_ms": 50, "percentile": 99},
        id="too few samples",
    ),
    pytest.param({"preemptions": 0}, {}, id="not preempted"),
    pytest.param({"preemptions": 1}, {"preemption_share": 0.04}, id="rarely preempted"),
    pytest.param({"requests": Requests(completed=32)}, {}, id="offered not known"),
    pytest.param({"requests": Requests(completed=31, offered=32, failed=1)}, {}, id="few failed"),
]  # fmt: skip


def measured(changes: dict[str, Any]) -> list[MeasuredPoint]:
    """Rungs 1 and 2 that grow, and 4 with these changes; goodput is of all or of none."""
    fields = {key: value for key, value in changes.items() if key != "rate"}
    lower = growing(1, 2)
    if goodput := changes.get("goodput"):
        lower = [
            replace(each, goodput=replace(goodput, tokens_per_s=each.total_tokens_per_s))
            for each in lower
        ]
    return [*lower, point(4, changes.get("rate", 400), **fields)]


@pytest.mark.parametrize(("changes", "limits", "rule", "reason"), STOPPED)
def test_stops(
    changes: dict[str, Any], limits: dict[str, Any], rule: Rule, reason: str, ladder: Ladder
) -> None:
    runs = verdicts(ladder, measured(changes), StopLimits(**limits))
    assert answers(runs) == ((1, 2, 4), (), (8, 16, 32))
    found, why = only_stop(runs)
    assert found == rule
    assert reason in why
    (here,) = [each for each in runs.ladders[0].verdicts if each.concurrency == 4]
    assert here.rule == rule


@pytest.mark.parametrize(("changes", "limits"), PASSED)
def test_goes_on(changes: dict[str, Any], limits: dict[str, Any], ladder: Ladder) -> None:
    runs = verdicts(ladder, measured(changes), StopLimits(**limits))
    assert answers(runs) == ((1, 2, 4), (8, 16, 32), ())


def test_percentiles_without_the_samples_are_told(ladder: Ladder) -> None:
    few = {"latencies": Latencies(tpot=latency(20, 51, 999))}
    runs = verdicts(ladder, measured(few)[2:], StopLimits(tpot_ms=50, percentile=99))
    assert runs.notes == (
        "1 result with too few samples for a p99: no latency objective is judged by them.",
    )


def test_repeats_give_the_variation(ladder: Ladder) -> None:
    noisy = [*growing(1, 2), point(4, 190), point(4, 210), point(4, 230)]
    rule, reason = only_stop(verdicts(ladder, noisy))
    assert (rule, reason) == (
        Rule.NO_GOODPUT_GAIN, "goodput +5.0% from 2 to 4, variation of its repeats 19.0%",
    )  # fmt: skip
    steady = [*growing(1, 2), point(4, 202), point(4, 202), point(4, 202)]
    assert answers(verdicts(ladder, steady))[2] == ()


def test_a_loss_too_small_to_show_has_no_sign(ladder: Ladder) -> None:
    reason = only_stop(verdicts(ladder, [point(1, 100_000), point(2, 99_990)]))[1]
    assert reason == "goodput +0.0% from 1 to 2, variation assumed 3.0%"


def test_the_variation_is_that_of_goodput(ladder: Ladder) -> None:
    """Throughput repeats to the token; what of it met the limits does not."""
    limits = Goodput(ttft_ms=1, max_gap_ms=1, requests_per_s=1, tokens_per_s=100)
    lower = point(2, 200, goodput=limits)
    repeats = [point(4, 400, goodput=replace(limits, tokens_per_s=each)) for each in (80, 160)]
    rule, reason = only_stop(verdicts(ladder, [lower, *repeats]))
    assert (rule, reason) == (
        Rule.NO_GOODPUT_GAIN, "goodput +20.0% from 2 to 4, variation of its repeats 66.7%",
    )  # fmt: skip
    nothing = [point(4, 400, goodput=replace(limits, tokens_per_s=0)) for _ in range(2)]
    assert only_stop(verdicts(ladder, [lower, *nothing]))[1].startswith("goodput -100.0%")


SLOW = {"latencies": Latencies(ttft=latency(501, 900))}
QUICK = {"latencies": Latencies(ttft=latency(100, 200))}
CHANCE = [
    pytest.param({"rate": 150}, {}, Rule.NO_GOODPUT_GAIN, id="goodput"),
    pytest.param(SLOW, QUICK, Rule.LATENCY_OBJECTIVE, id="latency"),
    pytest.param(
        {"preemptions": 9}, {"preemptions": 0}, Rule.PERSISTENT_PREEMPTION, id="preempted"
    ),
    pytest.param(
        {"requests": Requests(completed=16, offered=32, failed=16)}, {}, Rule.FAILURES, id="failed"
    ),
]


@pytest.mark.parametrize(("changes", "above", "rule"), CHANCE)
def test_what_a_higher_rung_does_not_have_was_chance(
    changes: dict[str, Any], above: dict[str, Any], rule: Rule, ladder: Ladder
) -> None:
    limits = StopLimits(ttft_ms=500)
    stopped = verdicts(ladder, measured(changes), limits)
    assert only_stop(stopped)[0] == rule
    runs = verdicts(ladder, [*measured(changes), point(8, 800, **above)], limits)
    assert answers(runs) == ((1, 2, 4, 8), (16, 32), ())
    assert all(each.rule is None for each in runs.ladders[0].verdicts)


UNKNOWN = [
    pytest.param(SLOW, {"latencies": Latencies()}, id="latency"),
    pytest.param({"preemptions": 9}, {}, id="preempted"),
    pytest.param(
        {"requests": Requests(completed=16, offered=32, failed=16)},
        {"invalid": (Invalidity(code="truncated", message="the file ends early"),)},
        id="failed",
    ),
]


@pytest.mark.parametrize(("changes", "above"), UNKNOWN)
def test_a_higher_rung_that_cannot_tell_changes_nothing(
    changes: dict[str, Any], above: dict[str, Any], ladder: Ladder
) -> None:
    higher = point(8, 800, **above)
    runs = verdicts(ladder, [*measured(changes), higher], StopLimits(ttft_ms=500))
    assert answers(runs)[2][-2:] == (16, 32)


def with_goodput(concurrency: int, tokens_per_s: float) -> MeasuredPoint:
    """A point of which this much met its limits."""
    limits = Goodput(ttft_ms=1, max_gap_ms=1, requests_per_s=1, tokens_per_s=tokens_per_s)
    return point(concurrency, 100.0 * concurrency, goodput=limits)


def test_no_goodput_at_all_does_not_grow(ladder: Ladder) -> None:
    runs = verdicts(ladder, [with_goodput(1, 0), with_goodput(2, 0)])
    assert answers(runs) == ((1, 2), (), (4, 8, 16, 32))
    reasons = {each.reason for each in runs.ladders[0].verdicts if each.rule}
    assert reasons == {"goodput +0.0% from 1 to 2, variation assumed 3.0%"}


def test_goodput_out_of_nothing_grows(ladder: Ladder) -> None:
    runs = verdicts(ladder, [with_goodput(16, 0), with_goodput(32, 7)])
    assert [(each.concurrency, each.reason) for each in runs.suggestions] == [
        (64, "goodput still grows, up from nothing to 32")
    ]


def test_goodput_is_compared_with_the_best_below(ladder: Ladder) -> None:
    """It recovers from 150, but not to the 200 that 2 had."""
    runs = verdicts(ladder, [*growing(1, 2), point(4, 150), point(8, 160)])
    assert answers(runs) == ((1, 2, 4, 8), (), (16, 32))
    assert [each.reason for each in runs.ladders[0].verdicts if each.rule][:2] == [
        "goodput -25.0% from 2 to 4, variation assumed 3.0%",
        "goodput -20.0% from 2 to 8, variation assumed 3.0%",
    ]


def test_one_bad_repeat_is_not_persistent(ladder: Ladder) -> None:
    repeats = [*growing(1, 2, 4), point(4, 400, preemptions=32), point(4, 400, preemptions=0)]
    assert answers(verdicts(ladder, repeats))[2] == ()


def test_an_invalid_result_is_run_again_and_ends_nothing(ladder: Ladder) -> None:
    broken = point(2, 100, invalid=(Invalidity(code="truncated", message="the file ends early"),))
    runs = verdicts(ladder, [*growing(1), broken, *growing(4)])
    assert answers(runs) == ((1, 4), (2, 8, 16, 32), ())
    (again,) = [each for each in runs.ladders[0].verdicts if each.concurrency == 2]
    assert again.reason == "its result is invalid: the file ends early"


@given(st.dictionaries(st.sampled_from([1, 2, 4, 8, 16, 32]), st.floats(1, 1e6)))
def test_every_planned_point_has_one_verdict_and_skips_are_the_end(
    ladder: Ladder, rates: dict[int, float]
) -> None:
    runs = verdicts(ladder, [point(each, rate) for each, rate in rates.items()])
    done, to_run, skipped = answers(runs)
    assert sorted([*done, *to_run, *skipped]) == list(ladder.concurrencies)
    assert set(done) == set(rates)
    assert not to_run or not skipped or max(to_run) < min(skipped)


# --- suggestions ----------------------------------------------------------------------------------


def suggested(runs: NextRuns) -> list[tuple[int, str]]:
    return [(each.concurrency, each.reason) for each in runs.suggestions]


def test_the_rung_between_kept_and_violated(ladder: Ladder) -> None:
    slow = point(16, 1600, latencies=Latencies(ttft=latency(900, 999)))
    planned = verdicts(ladder, [*growing(1, 4), slow], StopLimits(ttft_ms=500))
    assert answers(planned) == ((1, 4, 16), (2, 8), (32,))
    assert suggested(planned) == []
    unplanned = replace(ladder, concurrencies=(1, 4, 16))
    assert suggested(verdicts(unplanned, [*growing(1, 4), slow], StopLimits(ttft_ms=500))) == [
        (2, "goodput +300.0% from 1 to 4, variation assumed 3.0%"),
        (8, "the ladder ends above 4: latency-objective, p50 TTFT 900.0 ms at 16, above 500 ms"),
    ]


def test_a_wide_gap_where_goodput_moves(ladder: Ladder) -> None:
    wide = replace(ladder, concurrencies=(1, 2, 32))
    assert suggested(verdicts(wide, [*growing(1, 2), point(32, 500)]))[0] == (
        8, "goodput +150.0% from 2 to 32, variation assumed 3.0%",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("room", "slots", "expected"),
    [
        (64, 2000, [(64, "goodput still grows, +100.0% to 32")]),
        (40, 2000, [(40, "goodput still grows, +100.0% to 32")]),
        (32, 2000, []),
        (64, 48, [(64, f"goodput still grows, +100.0% to 32; {RESIZED}")]),
    ],
)
def test_beyond_the_last_rung(
    room: int, slots: int, expected: list[tuple[int, str]], ladder: Ladder
) -> None:
    larger = replace(ladder, room=room, capacity=replace(ladder.capacity, slots=slots))
    assert suggested(verdicts(larger, growing(1, 2, 4, 8, 16, 32))) == expected


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param(lambda _: 1000.0, 64, id="room enough"),
        pytest.param(lambda _: 40.9, 40, id="ends between"),
        pytest.param(lambda _: 32.9, 32, id="ends at the last"),
        pytest.param(lambda _: 3.0, 32, id="less than it has"),
        pytest.param(lambda load: 70.0 - load / 2, 38, id="sized for more it holds less"),
        pytest.param(lambda load: 0.0 if load > 50 else 99.0, 48, id="too large does not start"),
        pytest.param(lambda _: 0.0, 32, id="nothing starts"),
    ],
)
def test_room_is_what_an_engine_sized_for_it_holds(
    held: Callable[[int], float], expected: int
) -> None:
    found = highest_held(32, held)
    assert found == expected
    assert found == 32 or held(found) >= found


def test_what_is_suggested_is_planned_where_it_is_asked_for() -> None:
    """TEP8 sized for 1,024 holds 1,573 requests; sized for 1,573 it does not."""
    spec = load_spec(REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml")
    (study,) = [each for each in spec.studies if each.engine.file == "decode-tep8"]
    basis = sizing_basis(spec)
    for rungs, planned in (((1024, 1573), (1024,)), ((1024, 1552), (1024, 1552))):
        asked = replace(spec, studies=(replace(study, concurrencies=rungs, highest=None),))
        (found,) = planned_studies(replace(basis, spec=asked)).planned
        assert found.probe.spec.concurrencies == planned
    last = replace(study.engine, concurrency=1024, concurrencies=(1024,))
    assert room_beyond(basis, last) == 1552


def test_no_rung_beyond_what_another_recipe_beats(ladder: Ladder) -> None:
    better = replace(ladder, digests=frozenset({"f" * 16}), concurrencies=(1,))
    fast = synthetic_point(
        Deployment(configuration="2xTEP8 + 1xTEP8", digest="f" * 16, base_ms=0.1, capacity=1), 1
    )
    fast = replace(fast, duration_s=fast.duration_s / 1000)
    runs = next_runs([*growing(1, 2, 4, 8, 16, 32), fast], [ladder, better], StopLimits())
    assert suggested(runs) == []


def test_what_a_prefill_study_s_user_waits_for_is_the_first_token(ladder: Ladder) -> None:
    """Two output tokens have a TPOT, the same everywhere: it tells no engine from another."""
    alone = replace(ladder, phase="prefill")
    better = replace(alone, digests=frozenset({"f" * 16}), concurrencies=(1,))

    def read(made: MeasuredPoint, ttft_ms: float, digest: str = DIGEST) -> MeasuredPoint:
        spoken = Latencies(ttft=latency(ttft_ms, ttft_ms), tpot=latency(10, 10))
        subject = replace(made.subject, phase="prefill", digest=digest)
        return replace(made, subject=subject, latencies=spoken)

    slow = [read(each, 900) for each in growing(1, 2, 4, 8, 16, 32)]
    fast = read(point(1, 9000), 100, "f" * 16)
    assert suggested(next_runs(slow, [alone], StopLimits())) != []
    assert suggested(next_runs([*slow, fast], [alone, better], StopLimits())) == []


# --- whole specs ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    text = edited(MORE) + STUDIES
    monkeypatch.chdir(spec_folder(tmp_path, REPOSITORY, text))
    return tmp_path


def ladders_by_file(spec: str) -> dict[str, Ladder]:
    return {each.file: each for each in planned_ladders(estimate_spec(Path(spec)))}


def results(folder: Path, *points: MeasuredPoint) -> str:
    path = folder / "results.jsonl"
    path.write_text(points_text(points), encoding="utf-8")
    return str(path)


def of(ladder: Ladder, concurrency: int, rate: float) -> MeasuredPoint:
    made = point(concurrency, rate)
    subject = replace(made.subject, digest=min(ladder.digests), recipe=ladder.name)
    return replace(made, subject=replace(subject, phase=ladder.phase))


def test_digests_are_those_of_the_rendered_recipes(folder: Path) -> None:
    assert run("generate", "spec.yaml").exit_code == 0
    assert run("generate", "spec.yaml", "--dialect", "v1").exit_code == 0
    for file, ladder in ladders_by_file("spec.yaml").items():
        paths = sorted(folder.glob(f"recipes/v[12]/**/{file}.yaml"))
        assert len(paths) == 2
        assert {recipe_digest(read_document(path).data) for path in paths} == ladder.digests


def test_reduced_spec_holds_what_is_worth_running_and_keeps_the_recipes(folder: Path) -> None:
    before = ladders_by_file("spec.yaml")
    file = results(
        folder,
        of(before["a"], 1, 100), of(before["a"], 2, 200), of(before["a"], 4, 201),
        of(before["b"], 32, 100),
        of(before["decode-tep8"], 1, 100), of(before["decode-tep8"], 2, 101),
        of(before["decode-tep8-mtp3"], 4, 100),
    )  # fmt: skip
    result = run("next", file, "spec.yaml", "--write", "reduced.yaml")
    assert result.exit_code == 0
    assert result.stderr.startswith("wrote reduced.yaml, without accuracy runs and probes")
    assert "skip 8x16: no-goodput-gain, goodput +0.5% from 2 to 4" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("7 measured, 9 run, 3 skip;")
    after = ladders_by_file("reduced.yaml")
    assert {name: each.concurrencies for name, each in after.items()} == {
        "b": (64,),
        "decode-tep8-mtp3": (1, 2),
        "decode-tp2dep4": (1, 2, 4),
        "decode-tp2dep4-mtp3": (1, 2, 4),
    }
    assert all(each.digests == before[name].digests for name, each in after.items())
    assert "probe" not in Path("reduced.yaml").read_text("utf-8")


def test_results_of_a_changed_recipe_say_nothing(folder: Path) -> None:
    ladder = ladders_by_file("spec.yaml")["a"]
    changed = replace(
        of(ladder, 1, 100), subject=replace(of(ladder, 1, 100).subject, digest=DIGEST)
    )
    other = replace(changed, subject=replace(changed.subject, recipe="other"))
    document = json.loads(
        run("next", results(folder, changed, other), "spec.yaml", "--json").stdout
    )
    schema = json.loads((REPOSITORY / "schemas/next.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)
    assert document["notes"] == [
        "Left out: 1 result of recipes that changed since: tiny-a.",
        "Left out: 1 result of recipes that are not in this spec.",
    ]
    assert {each["answer"] for each in document["points"]} == {"run"}


def test_nothing_left_to_write(folder: Path) -> None:
    text = SPEC
    (folder / "one.yaml").write_text(text, encoding="utf-8")
    (ladder,) = ladders_by_file("one.yaml").values()
    result = run("next", results(folder, of(ladder, 4, 100)), "one.yaml", "--write", "none.yaml")
    assert result.exit_code == 10
    assert "no planned point is worth running" in result.stderr
    assert not Path("none.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--variation", "2"], 2, "variation"),
        (["--ttft-ms", "0"], 2, "ttft-ms"),
        (["--percentile", "42"], 2, "percentile"),
        (["--write", "/next.yaml"], 3, "is in another folder than the spec"),
    ],
)
def test_mistakes_of_the_command_line(
    arguments: list[str], exit_code: int, message: str, folder: Path
) -> None:
    result = run("next", results(folder), "spec.yaml", *arguments)
    assert result.exit_code == exit_code
    assert message in result.stderr


def test_a_file_that_is_no_result_is_named(folder: Path) -> None:
    (folder / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    result = run("next", "bad.jsonl", "spec.yaml")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: bad.jsonl:1: not a result")
