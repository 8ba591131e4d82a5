"""What is read of the workers, what it is called, and how it is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from generator.figures.drawing import draw_svg
from generator.rehearsal.chart import LoadOverTime, rehearsal_chart
from generator.rehearsal.document import rehearsal_document
from generator.rehearsal.observation import Sample, WorkerGauges, occupancy, worker_gauges
from generator.rehearsal.plan import RehearsalPlan, plan_rehearsal
from generator.rehearsal.timing import MOCKERS_TIMING
from generator.rehearsal.verdict import Outcome, RehearsedLoad, all_hold, verdicts
from generator.rehearsal.view import HEADERS, load_row, notes, summary_rows, verdict_lines
from generator.validation import schema
from tests.rehearsals import CC2560, TOPOLOGY, rehearsed, topology_in

# Two ranks hold 10 requests each: 16 fit, 30 are half as much again.
PLAN = plan_rehearsal(TOPOLOGY, (16, 30))

METRICS = """\
# TYPE vllm:num_requests_running gauge
dynamo_component_inflight_requests{dynamo_component="backend",worker_id="eb47"} 66
vllm:kv_cache_usage_perc{engine="0",model_name="rehearsal"} 0.9454545454545454
vllm:kv_cache_usage_perc{engine="1",model_name="rehearsal"} 1
vllm:num_preemptions_total{engine="0",model_name="rehearsal"} 7
vllm:num_preemptions_total{engine="1",model_name="rehearsal"} 9
vllm:num_requests_running{engine="0",model_name="rehearsal"} 8
vllm:num_requests_running{engine="1",model_name="rehearsal"} 12
vllm:num_requests_waiting{engine="0",model_name="rehearsal"} 7
vllm:num_requests_waiting{engine="1",model_name="rehearsal"} 4
"""


def test_the_gauges_of_a_decode_mocker() -> None:
    gauges = WorkerGauges(in_flight=66, running=20, waiting=11, preemptions=16, kv_usage=1.0)
    assert worker_gauges(METRICS) == gauges


def test_a_prefill_mocker_tells_its_requests_alone() -> None:
    line = 'dynamo_component_inflight_requests{dynamo_component="prefill"} 5\n'
    assert worker_gauges(line) == WorkerGauges(in_flight=5)


def sample(at: float, prefill: int = 0, **decode: int) -> Sample:
    return Sample(
        at=at,
        prefill={"prefill-0": WorkerGauges(in_flight=prefill)},
        decoding={"decode-0": WorkerGauges(**decode)},
    )


def test_requests_that_wait_for_blocks_to_receive_their_cache_in() -> None:
    assert sample(0, prefill=4, in_flight=66, running=21, waiting=3).waiting == 41
    assert sample(0, in_flight=5, running=1, waiting=4).waiting == 4
    assert not sample(0, prefill=1).is_idle
    assert sample(0).is_idle


def test_the_measured_interval_alone_counts() -> None:
    samples = [
        sample(0, preemptions=5, in_flight=9, running=9),  # the warm-up
        sample(10, preemptions=6, in_flight=4, running=4),
        sample(13, preemptions=6, in_flight=8, running=6, waiting=2),
        sample(14, preemptions=8, in_flight=2, running=2),
        sample(20, preemptions=9),
    ]
    seen = occupancy(samples, 9.0, 15.0, drained=True)
    assert (seen.samples, seen.preemptions) == (3, 4)
    assert seen.mean_running == (4 * 3 + 6 * 1) / 4  # each for the time until the next
    assert (seen.peak_running, seen.peak_waiting) == (6, 2)
    assert occupancy([], 0, 1, drained=False).samples == 0


OUTCOMES: dict[str, tuple[int, dict[str, float | bool], Outcome, bool | None]] = {
    "fits": (0, {}, Outcome.HOLDS, True),
    "preempts although it fits": (
        0,
        {"preemptions": 3},
        Outcome.FULL_WITHIN_CAPACITY,
        False,
    ),
    "waits although it fits": (
        0,
        {"mean_waiting": 8.0, "peak_kv_usage": 0.95},
        Outcome.FULL_WITHIN_CAPACITY,
        False,
    ),
    "waits for a step": (0, {"mean_waiting": 8.0, "peak_kv_usage": 0.3}, Outcome.HOLDS, True),
    "is handed over": (0, {"mean_waiting": 3.0}, Outcome.HOLDS, True),
    "beyond, with preemptions": (1, {"preemptions": 9}, Outcome.BEYOND_CAPACITY, True),
    "beyond, with a queue": (1, {"mean_waiting": 9.0}, Outcome.BEYOND_CAPACITY, True),
    "beyond, though all ran": (1, {"peak_running": 30}, Outcome.BEYOND_CAPACITY, False),
    "beyond, and never full": (1, {"peak_running": 9}, Outcome.BEYOND_CAPACITY, None),
    "prefill keeps it": (
        0,
        {"mean_prefill_in_flight": 12.0, "mean_running": 3.0},
        Outcome.DECODE_STARVED,
        True,
    ),
    "left over": (0, {"drained": False}, Outcome.NEVER_DRAINS, True),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_what_became_of_a_load(case: str) -> None:
    place, seen, outcome, agrees = OUTCOMES[case]
    (verdict,) = verdicts(PLAN, [rehearsed(PLAN, place, **seen)])
    assert (verdict.outcome, verdict.agrees_with_arithmetic) == (outcome, agrees)
    assert verdict.reasons
    # 30 have no slot in 2 ranks x 16 only above 32: nothing is said of slots here.
    assert verdict.by_arithmetic == ()
    assert all_hold([verdict]) == (outcome is Outcome.HOLDS)


def test_requests_that_fail_and_answers_that_never_end() -> None:
    load = rehearsed(PLAN, 0)
    assert load.measured is not None
    refused = replace(load, measured=replace(load.measured, completed=90, failed=6))
    assert verdicts(PLAN, [refused])[0].outcome is Outcome.REQUESTS_FAIL
    assert verdicts(PLAN, [replace(load, measured=None)])[0].outcome is Outcome.NEVER_DRAINS


def test_a_few_failures_are_none() -> None:
    load = rehearsed(PLAN, 0)
    assert load.measured is not None
    refused = replace(load, measured=replace(load.measured, completed=95, failed=5))
    assert verdicts(PLAN, [refused])[0].outcome is Outcome.HOLDS


def article() -> tuple[RehearsalPlan, list[RehearsedLoad]]:
    """cc2560 and half as much again as its capacity, with figures as measured on two cores."""
    plan = plan_rehearsal(topology_in(CC2560), (2560, 4296))
    fell = rehearsed(plan, 1, preemptions=65, mean_waiting=32.0, peak_running=44)
    assert fell.measured is not None
    slower = replace(fell.measured, output_tokens_per_s=300.0, ttft_p99_ms=2000.0)
    return plan, [rehearsed(plan, 0), replace(fell, measured=slower)]


def test_the_article_s_deployment_falls_over_with_its_reasons() -> None:
    plan, loads = article()
    holds, falls = verdicts(plan, loads)
    assert (holds.outcome, falls.outcome) == (Outcome.HOLDS, Outcome.BEYOND_CAPACITY)
    said = "; ".join(falls.reasons)
    assert "65 preemptions, 32 of 66 wait for KV blocks" in said
    assert "+69% load gives -40% throughput over concurrency 2,560" in said
    assert "TTFT p99 is 10.0 times as long" in said
    assert "at most 11 of a decode step to be prefilled again" in said
    # What max-num-seqs does is computed: the mock's is raised.
    assert falls.by_arithmetic == (
        "1,672 requests have no slot: 4 ranks x max-num-seqs 656 = 2,624",
    )


def test_slots_alone_are_a_no() -> None:
    plan = plan_rehearsal(topology_in(CC2560), (2700,))  # 2,624 slots, 2,864 requests of KV cache
    (verdict,) = verdicts(plan, [rehearsed(plan, 0)])
    assert verdict.outcome is Outcome.BEYOND_SLOTS
    assert "76 requests have no slot" in verdict.by_arithmetic[0]


def test_the_figures_fit_a_page() -> None:
    plan, loads = article()
    judged = verdicts(plan, loads)
    rows = [load_row(each, verdict) for each, verdict in zip(loads, judged, strict=True)]
    assert all(len(row) == len(HEADERS) for row in rows)
    assert [row[-1] for row in rows] == ["holds", "falls over"]
    lines = list(verdict_lines(loads, judged))
    assert lines[0].startswith("2,560 holds, as the KV arithmetic has it: no preemption")
    assert lines[2].startswith("4,296 by arithmetic, not rehearsed: 1,672 requests")
    assert dict(summary_rows(plan, "the mocker's own"))["holds"].startswith("2,864 requests")
    assert any("HTTP 503" in note for note in notes(plan))


def test_the_document_is_what_the_schema_says() -> None:
    plan, loads = article()
    unended = replace(loads[1], measured=None)
    for each in (loads, [loads[0], unended]):
        document = rehearsal_document(
            plan,
            each,
            verdicts(plan, each),
            digest="dcc7f7cca76d018b",
            timing=MOCKERS_TIMING,
            folder="out",
        )
        assert list(Draft202012Validator(schema("rehearsal")).iter_errors(document)) == []


def test_the_picture_shows_the_queue_and_the_preemptions() -> None:
    plan, loads = article()
    samples = (
        sample(100.0),  # before the first request
        sample(102.0, preemptions=1, in_flight=66, running=44),
        sample(103.0, preemptions=4, in_flight=66, running=40),
        sample(104.0, preemptions=4),
    )
    judged = verdicts(plan, loads)
    over_time = [
        LoadOverTime(rehearsed=each, verdict=verdict, samples=samples)
        for each, verdict in zip(loads, judged, strict=True)
    ]
    chart = rehearsal_chart(plan, over_time)
    named = {series.name: [(mark.x, mark.y) for mark in series.marks] for series in chart.series}
    assert named["concurrency 4,296, waiting"] == [(0.0, 22.0), (1.0, 26.0)]
    assert named["concurrency 4,296, preempted so far"] == [(0.0, 0.0), (1.0, 3.0)]
    assert len(named) == 4
    assert "REHEARSAL" in chart.origin
    assert "Concurrency 4,296, 66 in flight, falls over: 65 preemptions" in chart.description
    alone = rehearsal_chart(plan, over_time[1:])
    assert len(alone.series) == 2
    unseen = replace(over_time[0], samples=())
    assert draw_svg(rehearsal_chart(plan, [unseen])).startswith("<?xml")
