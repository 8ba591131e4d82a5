"""The formats of load generators: what each file gives, and what is refused in one sentence."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.collection import sa_bench as sa_bench_module
from generator.collection import streamed_json
from generator.collection.aiperf import read_aiperf, read_aiperf_sweep
from generator.collection.aiperf_rows import read_rows
from generator.collection.gsm8k import AccuracyRun, mean_score, read_gsm8k
from generator.collection.job_metadata import read_job_metadata, read_snapshot
from generator.collection.lock_file import lock_of
from generator.collection.measurement import Measurement, Timing
from generator.collection.request_times import spread
from generator.collection.rollup import disagreement, read_rollup
from generator.collection.sa_bench import read_sa_bench
from generator.collection.streamed_json import StreamedObject
from generator.collection.unusable import Unusable
from generator.documents import read_document
from generator.goodput.acceptance import Limits, assess, whole_window
from generator.goodput.trace import NS_PER_MS, NS_PER_S, Outcome
from generator.goodput.trace_file import read_trace
from generator.results.distribution import distribution
from generator.results.point import Goodput, Requests, Tokens
from tests.run_outputs import aiperf, aiperf_row, sa_bench, without_lists, write_json

SAMPLES = Path(__file__).resolve().parents[2] / "shared/samples"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="no ../shared/samples")


def written(folder: Path, document: object) -> Path:
    return write_json(folder / "profile_export_aiperf.json", document)


# --- sa-bench ---------------------------------------------------------------------------------


def test_latencies_are_recomputed_from_the_lists(tmp_path: Path) -> None:
    measured = read_sa_bench(written(tmp_path, sa_bench()))
    assert measured.requests == Requests(completed=8, offered=8, failed=0)
    assert measured.tokens == Tokens(input=800, output=40)
    assert measured.latencies.tpot is not None
    assert measured.latencies.tpot.median == pytest.approx(10)
    assert measured.latencies.tpot.is_recomputed
    assert measured.latencies.inter_chunk is not None
    assert measured.latencies.inter_chunk.samples == 32
    assert measured.latencies.end_to_end is not None
    assert measured.latencies.end_to_end.mean == pytest.approx(140)
    assert measured.timing is not None
    assert measured.timing.summed_ms == pytest.approx(140)
    assert measured.timing.reported_ms == 140
    assert str(measured.started) == "2026-11-30 00:15:49"


def test_without_lists_the_summary_counts_and_tpot_times_tokens(tmp_path: Path) -> None:
    """A chunk of MTP holds several tokens, so gaps times length would be something else."""
    measured = read_sa_bench(written(tmp_path, without_lists(mean_itl_ms=25.0)))
    assert measured.latencies.tpot is not None
    assert measured.latencies.tpot.percentiles == ((50, 10.0), (99, 10.0))
    assert not measured.latencies.tpot.is_recomputed
    assert measured.timing == Timing(summed_ms=140, reported_ms=140)


def test_failed_requests_are_in_no_distribution(tmp_path: Path) -> None:
    report = sa_bench(completed=7, total_output_tokens=35)
    report["errors"] = ["", "timeout", *[""] * 6]
    report["ttfts"] = [0.1, 0.0, *[0.1] * 6]
    report["output_lens"] = [5, 0, *[5] * 6]
    report["itls"] = [[0.01] * 4, [9.0], *[[0.01] * 4] * 6]
    measured = read_sa_bench(written(tmp_path, report))
    assert measured.requests == Requests(completed=7, offered=8, failed=1)
    assert measured.latencies.inter_chunk is not None
    assert measured.latencies.inter_chunk.samples == 28
    assert measured.latencies.inter_chunk.maximum == pytest.approx(10)


def test_goodput_of_the_lists(tmp_path: Path) -> None:
    # Of 8 requests of 5 tokens in 2 s one failed, one is late by 1 ms, one has a gap of 51 ms, and
    # one meets both limits to the nanosecond.
    report = sa_bench(
        ttfts=[0.1, 0.251, 0.1, 0.25, 0.1, 0.1, 0.1, 0.1],
        itls=[[0.01] * 4, [0.01] * 4, [0.01, 0.051, 0.01, 0.01], [0.05] * 4, *[[0.01] * 4] * 4],
        errors=["refused", *[""] * 7],
        output_lens=[0, *[5] * 7],
        completed=7,
        total_output_tokens=35,
        mean_e2el_ms=...,
    )
    measured = read_sa_bench(write_json(tmp_path / "results_1.json", report))
    limits = Limits(ttft_ns=250 * NS_PER_MS, max_gap_ns=50 * NS_PER_MS)
    found = measured.judged(limits)
    assert found.goodput == Goodput(
        ttft_ms=250, max_gap_ms=50, requests_per_s=5 / 2, tokens_per_s=25 / 2
    )
    assert measured.judged(None).goodput is None
    assert found.served is None


@pytest.mark.parametrize("num_prompts", [..., 8], ids=["not stated", "stated"])
def test_failures_that_only_the_errors_tell_of(tmp_path: Path, num_prompts: Any) -> None:
    report = sa_bench(
        num_prompts=num_prompts,
        completed=6 if num_prompts is ... else 8,
        errors=["boom"] * 2 + [""] * 6,
        output_lens=[0] * 2 + [5] * 6,
        total_output_tokens=30,
    )
    measured = read_sa_bench(written(tmp_path, report))
    assert measured.requests == Requests(completed=6, offered=8, failed=2)


def test_a_report_without_output_is_kept_whatever_its_lists_say(tmp_path: Path) -> None:
    report = sa_bench(total_output_tokens=0, output_throughput=20.0)
    assert read_sa_bench(written(tmp_path, report)).tokens.output == 0


def test_outputs_of_one_token_have_no_tpot(tmp_path: Path) -> None:
    report = sa_bench(output_lens=[1] * 8, itls=[[]] * 8, total_output_tokens=8)
    measured = read_sa_bench(written(tmp_path, report))
    assert measured.latencies.ttft is not None
    assert measured.latencies.tpot is None
    assert measured.latencies.inter_chunk is None


BROKEN_SA_BENCH: dict[str, tuple[dict[str, Any], str]] = {
    "another format": ({"hello": 1}, "is no sa-bench result: it lacks max_concurrency"),
    "no concurrency": (sa_bench(max_concurrency=0), "max_concurrency is 0"),
    "no duration": (sa_bench(duration=0), "duration is 0 s: nothing can be measured in that"),
    "negative duration": (sa_bench(duration=-2.0), "duration is negative: -2.0"),
    "text for a number": (sa_bench(duration="2"), "duration is '2', not a number"),
    "negative TTFT": (sa_bench(ttfts=[-0.1] * 8), "ttfts[0] is -0.1"),
    "backward clock": (sa_bench(itls=[[-0.01] * 4] * 8), "its clock ran backwards"),
    "backward stamps": (
        sa_bench(benchmark_start_time_unix=10.0, benchmark_end_time_unix=9.0),
        "is before its start: its clock ran backwards",
    ),
    "a gap of text": (sa_bench(itls=[["x"]] * 8), "the gaps of request 0 are not all numbers"),
    "lists cut short": (sa_bench(itls=[[0.01] * 4] * 7), "ttfts are of 8 requests, itls of 7"),
    "lists of another run": (sa_bench(total_output_tokens=41), "but output_lens add up to 40"),
    "more than offered": (sa_bench(num_prompts=7), "completed is 8 of 7 requests"),
    "a figure beyond all": (
        sa_bench(total_input_tokens=10**400),
        "total_input_tokens is over 1e+15",
    ),
    "a gap beyond all": (sa_bench(itls=[[1e300] * 4] * 8), "a gap is over 1e+15"),
    "a TTFT beyond all": (sa_bench(ttfts=[1e300] * 8), "ttfts[0] is 1e+300"),
    "next to no duration": (sa_bench(duration=1e-9), "duration is 1e-09 s"),
    "TTFTs of text": (sa_bench(ttfts=["0.1"] * 8), "ttfts are not all numbers"),
    "TTFTs of nothing": (sa_bench(ttfts=[None] * 8), "ttfts are not all numbers"),
    "a duration in milliseconds": (
        sa_bench(duration=2_000.0, total_token_throughput=420.0),
        "total_token_throughput is 420, but its 840 tokens in 2,000 s are 0.42: it mixes units",
    ),
    "a rate by the minute": (
        sa_bench(output_throughput=1_200.0),
        "40 tokens in 2 s are 20: it mixes units",
    ),
    "half a request": (sa_bench(completed=7.5), "completed is 7.5, not a whole number"),
}


@pytest.fixture(params=["whole", "streamed"])
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small and large files are read in different ways that must agree."""
    if request.param == "streamed":
        monkeypatch.setattr(sa_bench_module, "STREAMED_FROM_BYTES", 1)
        monkeypatch.setattr(streamed_json, "_CHUNK_BYTES", 64)


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize(("report", "message"), BROKEN_SA_BENCH.values(), ids=BROKEN_SA_BENCH)
def test_broken_sa_bench(tmp_path: Path, report: dict[str, Any], message: str) -> None:
    with pytest.raises(Unusable) as caught:
        read_sa_bench(written(tmp_path, report))
    assert message in str(caught.value)


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_nan_is_no_number(tmp_path: Path, word: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(sa_bench()).replace("2.0", word, 1), encoding="utf-8")
    with pytest.raises(Unusable, match=f"^{word} is no number"):
        read_sa_bench(path)


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_files_are_refused(tmp_path: Path, share: float) -> None:
    text = json.dumps(sa_bench(generated_texts=['a "quoted" [text]'] * 8))
    path = tmp_path / "results.json"
    path.write_text(text[: int(len(text) * share)], encoding="utf-8")
    with pytest.raises(Unusable, match="is not JSON"):
        read_sa_bench(path)


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize(
    "spoilt",
    [
        lambda text: f"{text}{text}",
        lambda text: f"{text}\n\n]",
        lambda text: f"{text[:-1]},}}",
        lambda text: text.replace('"errors": [', '"errors": [,'),
        lambda text: text.replace(", 0.1], ", ", 0.1,], "),
    ],
    ids=["twice", "more after it", "comma at the end", "comma first", "comma last"],
)
def test_what_is_no_json_is_refused_however_large(
    tmp_path: Path, spoilt: Callable[[str], str]
) -> None:
    text = json.dumps(sa_bench())
    assert spoilt(text) != text
    path = tmp_path / "results_x.json"
    path.write_text(spoilt(text), "utf-8")
    with pytest.raises(Unusable, match="is not JSON"):
        read_sa_bench(path)
    path.write_text(f"\n {text} \n\n", "utf-8")
    assert read_sa_bench(path).concurrency == 4


def test_both_ways_of_reading_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, sa_bench(generated_texts=['\\" ] } é'] * 8, nested={"a": [1, {}]}))
    whole = read_sa_bench(path)
    monkeypatch.setattr(sa_bench_module, "STREAMED_FROM_BYTES", 1)
    monkeypatch.setattr(streamed_json, "_CHUNK_BYTES", 7)
    assert read_sa_bench(path) == whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.text(), JSON), st.sets(st.integers(0, 5)), st.booleans())
def test_streamed_objects_are_what_json_reads(
    document: dict[str, Any], skipped: set[int], is_ascii: bool
) -> None:
    """Whatever of its members is passed over, the others come out as they are."""
    text = json.dumps(document, ensure_ascii=is_ascii, indent=1).encode("utf-8", "surrogatepass")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return
    stream = StreamedObject(io.BytesIO(text))
    found = {}
    for number, key in enumerate(stream.members()):
        if number not in skipped:
            is_list = isinstance(document[key], list)
            found[key] = list(stream.items()) if is_list else stream.value()
    assert found == {
        key: value for number, (key, value) in enumerate(document.items()) if number not in skipped
    }


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_spreads_are_the_distributions_of_results(values: list[float]) -> None:
    mine, theirs = spread(np.array(values)), distribution(values)
    assert mine is not None
    assert dict(mine.percentiles) == pytest.approx(dict(theirs.percentiles))
    assert mine.mean == pytest.approx(theirs.mean)
    assert mine.std == pytest.approx(theirs.std, abs=1e-6)
    assert (mine.samples, mine.minimum, mine.maximum) == (
        theirs.samples, theirs.minimum, theirs.maximum
    )  # fmt: skip


# --- AIPerf -----------------------------------------------------------------------------------


def test_aiperf_summary(tmp_path: Path) -> None:
    measured = read_aiperf(written(tmp_path, aiperf()))
    assert (measured.client, measured.concurrency) == ("aiperf 0.13.0", 16)
    assert measured.tokens == Tokens(
        input=34_816, output=8_192, server_input=34_816, server_output=8_192
    )
    assert measured.tokens_per_s_per_user == 110.0
    assert measured.latencies.tpot is not None
    assert measured.latencies.tpot.median == 8.0
    assert measured.timing == Timing(summed_ms=120 + 9 * 63, reported_ms=687)
    assert measured.conditions["load.loop"] == "closed"
    assert measured.conditions["load.warmup"] == "excluded"


def test_units_of_time_are_honoured(tmp_path: Path) -> None:
    latencies = {
        name: {"unit": "sec", "avg": seconds}
        for name, seconds in (
            ("time_to_first_token", 0.12),
            ("inter_token_latency", 0.009),
            ("inter_chunk_latency", 0.009),
            ("request_latency", 0.687),
        )
    }
    measured = read_aiperf(written(tmp_path, aiperf(**latencies)))
    assert measured.latencies.ttft is not None
    assert measured.latencies.ttft.mean == pytest.approx(120)


def test_failed_requests_of_a_share(tmp_path: Path) -> None:
    changes = {"request_error_rate": {"unit": "%", "avg": 20.0}}
    measured = read_aiperf(written(tmp_path, aiperf(**changes)))
    assert measured.requests == Requests(completed=128, offered=160, failed=32)


@pytest.mark.parametrize(
    ("said", "duration_s"),
    [
        ({"error_request_count": {"unit": "requests", "avg": 40.0}}, 5.999687),
        ({"completed_request_count": {"unit": "requests", "avg": 40.0}}, 5.999687),
        (
            {
                "error_request_count": {"unit": "requests", "avg": 40.0},
                "benchmark_duration": {"unit": "ms", "avg": 3000.0},
            },
            3.0,
        ),
    ],
    ids=["count of errors", "share alone", "duration stated"],
)
def test_a_run_of_nothing_but_errors(
    tmp_path: Path, said: dict[str, Any], duration_s: float
) -> None:
    """AIPerf leaves out whatever it takes from answers: counts, tokens, times."""
    whole = aiperf(request_error_rate={"unit": "%", "avg": 100.0})
    kept = ("input_config", "start_time", "end_time", "is_complete", "request_error_rate")
    report = {name: whole[name] for name in kept} | said
    measured = read_aiperf(written(tmp_path, report))
    assert measured.requests == Requests(completed=0, offered=40, failed=40)
    assert (measured.tokens, measured.duration_s) == (Tokens(input=0, output=0), duration_s)
    assert measured.concurrency == 16


@pytest.mark.parametrize(
    ("rate", "over_s"),
    [(1_024.0, 8.0), (8_192 / 6, None), (2_048.0, None), (None, None)],
)
def test_rates_are_over_what_the_client_divides_by(
    tmp_path: Path, rate: float | None, over_s: float | None
) -> None:
    said = {} if rate is None else {"output_token_throughput": {"unit": "tokens/sec", "avg": rate}}
    measured = read_aiperf(written(tmp_path, aiperf(**said)))
    assert (measured.duration_s, measured.rates_over_s) == (6.0, over_s)


def test_older_exports_have_rates_alone(tmp_path: Path) -> None:
    report = aiperf(
        output_token_throughput={"unit": "tokens/sec", "avg": 1_000.0},
        total_token_throughput={"unit": "tokens/sec", "avg": 5_000.0},
    )
    del report["total_isl"], report["total_osl"]
    measured = read_aiperf(written(tmp_path, report))
    assert (measured.tokens.input, measured.tokens.output) == (24_000, 6_000)


BROKEN_AIPERF: dict[str, tuple[dict[str, Any], str]] = {
    "another format": ({"hello": 1}, "is no AIPerf export: it lacks request_count"),
    "mixed units": (
        aiperf(request_latency={"unit": "sec", "avg": 0.7}),
        "mixes units: time_to_first_token in ms",
    ),
    "unknown unit of time": (
        aiperf(benchmark_duration={"unit": "fortnight", "avg": 1.0}),
        "benchmark_duration is in 'fortnight', not in a unit of time",
    ),
    "unknown unit of tokens": (
        aiperf(total_osl={"unit": "words", "avg": 1.0}),
        "total_osl is in 'words', not in tokens",
    ),
    "a duration in milliseconds": (
        aiperf(
            benchmark_duration={"unit": "sec", "avg": 6_000.0},
            output_token_throughput={"unit": "tokens/sec", "avg": 8_192 / 6},
        ),
        "output_token_throughput is 1,365.33, but its 8,192 tokens take 6,000 s: it mixes units",
    ),
    "cancelled": (aiperf(was_cancelled=True), "was cancelled before the end"),
    "backward clock": (aiperf(end_time="2026-11-30T00:17:00"), "its clock ran backwards"),
    "open loop": (
        aiperf(input_config={"phases": [{"kind": "profiling", "rate": 5}]}),
        "names no concurrency",
    ),
    "negative": (
        aiperf(time_to_first_token={"unit": "ms", "avg": -1.0}),
        "time_to_first_token.avg is negative: -1.0",
    ),
}


@pytest.mark.parametrize(("report", "message"), BROKEN_AIPERF.values(), ids=BROKEN_AIPERF)
def test_broken_aiperf(tmp_path: Path, report: dict[str, Any], message: str) -> None:
    with pytest.raises(Unusable) as caught:
        read_aiperf(written(tmp_path, report))
    assert message in str(caught.value)


def with_rows(folder: Path, rows: list[dict[str, Any]], cut: int = 0) -> Measurement:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "profile_export.jsonl").write_text(text[: len(text) - cut], encoding="utf-8")
    return read_aiperf(written(folder, aiperf(request_count={"unit": "requests", "avg": 2.0})))


def test_rows_give_latencies_without_warmup(tmp_path: Path) -> None:
    measured = with_rows(tmp_path, [aiperf_row("warmup"), aiperf_row(), aiperf_row()])
    assert measured.remarks == ()
    assert measured.latency_file == tmp_path / "profile_export.jsonl"
    assert measured.latencies.tpot is not None
    assert (measured.latencies.tpot.median, measured.latencies.tpot.samples) == (15.0, 2)
    assert measured.timing == Timing(summed_ms=130, reported_ms=130)


@pytest.mark.parametrize(
    ("failed", "outcome"),
    [
        (aiperf_row(was_cancelled=True), Outcome.CANCELLED),
        ({**aiperf_row(), "error": {"code": 429}}, Outcome.REJECTED),
        ({**aiperf_row(), "error": {"code": 500}}, Outcome.FAILED),
        ({**aiperf_row(), "error": {}, "metrics": {}}, Outcome.FAILED),
    ],
)
def test_both_readers_of_rows_take_the_same_requests_for_failed(
    tmp_path: Path, failed: dict[str, Any], outcome: Outcome
) -> None:
    measured = with_rows(tmp_path, [{**aiperf_row(), "error": None}, failed, aiperf_row()])
    assert measured.served is not None
    assert measured.served.ttft_ms.tolist() == [100.0, 100.0]
    requests = read_trace(tmp_path / "profile_export.jsonl").requests
    assert [each.outcome for each in requests] == [Outcome.COMPLETED, outcome, Outcome.COMPLETED]


@pytest.mark.parametrize("phase", ["warmup", "ramp"])
def test_only_the_measured_phase_counts_for_every_reader(tmp_path: Path, phase: str) -> None:
    rows = [aiperf_row(phase), aiperf_row(), aiperf_row()]
    measured = with_rows(tmp_path, rows)
    assert measured.latency_file is not None
    trace = read_trace(measured.latency_file)
    assert (len(trace.requests), trace.warm_up) == (2, 1)


def test_a_row_of_no_phase_is_named(tmp_path: Path) -> None:
    measured = with_rows(tmp_path, [aiperf_row(), aiperf_row(benchmark_phase=None)])
    assert "line 2: metadata.benchmark_phase is missing" in measured.remarks[0]


def test_an_answer_of_no_token_is_no_goodput_to_either_reader(tmp_path: Path) -> None:
    """AIPerf times a first chunk whose text is empty and counts no token of it."""
    empty = aiperf_row()
    empty["metrics"]["output_sequence_length"]["value"] = 0
    limits = Limits(ttft_ns=NS_PER_S, max_gap_ns=NS_PER_S)
    goodput = with_rows(tmp_path, [aiperf_row(), empty]).judged(limits).goodput
    assert goodput is not None
    assert goodput.requests_per_s == 1 / 6  # the summary's interval
    trace = read_trace(tmp_path / "profile_export.jsonl")
    window = whole_window(trace)
    assert window is not None
    assert assess(trace, limits, window).passed == 1


# aiperf_row: 100 ms to the first of three tokens, the longer gap is 20 ms; two requests in 6 s.
@pytest.mark.parametrize(
    ("ttft_ms", "max_gap_ms", "passed"),
    [
        pytest.param(100, 20, 2, id="a limit itself is met"),
        pytest.param(99, 20, 0, id="first token late"),
        pytest.param(100, 19, 0, id="gap too long"),
    ],
)
def test_goodput_of_rows(tmp_path: Path, ttft_ms: int, max_gap_ms: int, passed: int) -> None:
    limits = Limits(ttft_ns=ttft_ms * NS_PER_MS, max_gap_ns=max_gap_ms * NS_PER_MS)
    measured = with_rows(tmp_path, [aiperf_row("warmup"), aiperf_row(), aiperf_row()])
    assert measured.judged(limits).goodput == Goodput(
        ttft_ms=ttft_ms,
        max_gap_ms=max_gap_ms,
        requests_per_s=passed / 6,
        tokens_per_s=passed * 3 / 6,
    )
    assert measured.latency_file is not None
    trace = read_trace(measured.latency_file)
    window = whole_window(trace)
    assert window is not None
    assert assess(trace, limits, window).passed == passed


def test_rows_without_gaps_say_nothing_of_gaps(tmp_path: Path) -> None:
    row = aiperf_row()
    del row["metrics"]["inter_chunk_latency"]
    measured = with_rows(tmp_path, [row, row])
    assert measured.latencies.end_to_end is not None
    assert (measured.latencies.end_to_end.mean, measured.latencies.inter_chunk) == (130, None)
    assert measured.timing is not None
    assert measured.timing.reported_ms == 687  # the summary's, whose TPOT adds up to it
    assert measured.judged(Limits(ttft_ns=NS_PER_S, max_gap_ns=1)).goodput is None


def test_an_answer_in_one_chunk_has_no_gap(tmp_path: Path) -> None:
    row = aiperf_row()
    del row["metrics"]["inter_chunk_latency"]
    row["metrics"]["request_latency"]["value"] = 100.0
    measured = with_rows(tmp_path, [row, aiperf_row()])
    assert measured.timing == Timing(summed_ms=115, reported_ms=115)


@pytest.mark.parametrize(
    ("rows", "cut", "remark"),
    [
        pytest.param(1, 0, "it has 1 of 2 requests", id="fewer"),
        pytest.param(2, 9, "line 3 is not JSON: it ends early", id="truncated"),
        pytest.param(0, 0, "has no row of the measured phase", id="none"),
    ],
)
def test_damaged_rows_leave_the_summary(tmp_path: Path, rows: int, cut: int, remark: str) -> None:
    measured = with_rows(tmp_path, [aiperf_row("warmup"), *[aiperf_row()] * rows], cut)
    assert remark in measured.remarks[0]
    assert measured.latency_file is None
    assert measured.latencies.tpot is not None
    assert not measured.latencies.tpot.is_recomputed


def test_rows_of_a_backward_clock_spoil_the_summary(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"line 2: request_end_ns is before .*ran backwards"):
        with_rows(tmp_path, [aiperf_row(), aiperf_row(request_end_ns=1)])


def sweep(*combinations: object) -> dict[str, Any]:
    return {"metadata": {"num_trials_per_value": 1}, "per_combination_metrics": [*combinations]}


def test_failed_runs_of_a_sweep_are_named(tmp_path: Path) -> None:
    good = {"parameters": {"concurrency": 2}, "metrics": aiperf()}
    path = written(tmp_path, {**sweep(good), "failed_runs": [{"label": "concurrency_8"}]})
    problem, measured = read_aiperf_sweep(path)
    assert str(problem) == "1 run of this sweep failed and left no figures"
    assert isinstance(measured, Measurement)


def test_every_load_of_an_aiperf_sweep_stands_alone(tmp_path: Path) -> None:
    good = {"parameters": {"concurrency": 2}, "metrics": aiperf()}
    path = written(tmp_path, sweep(good, {"parameters": {}, "metrics": aiperf()}, 5))
    first, *others = read_aiperf_sweep(path)
    assert isinstance(first, Measurement)
    assert first.concurrency == 2
    assert [type(each) for each in others] == [Unusable, Unusable]


@st.composite
def mutilated(draw: st.DrawFn, document: Any) -> Any:
    """A document with one of its parts replaced by any other JSON."""
    copy: Any = json.loads(json.dumps(document))
    here, steps = copy, draw(st.integers(1, 5))
    for step in range(steps):
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if step < steps - 1 and isinstance(here[key], dict | list):
            here = here[key]
            continue
        here[key] = draw(JSON)
        break
    return copy


READERS: dict[str, tuple[Any, Any]] = {
    "sa-bench": (read_sa_bench, sa_bench()),
    "summary": (read_sa_bench, without_lists()),
    "aiperf": (read_aiperf, aiperf()),
    "sweep": (
        lambda path: list(read_aiperf_sweep(path)),
        sweep({"parameters": {"concurrency": 2}, "metrics": aiperf()}),
    ),
    "gsm8k": (read_gsm8k, {"accuracy": 0.9, "num_questions": 10}),
    "rollup": (lambda path: list(read_rollup(path)), {"runs": [{"concurrency": 4}]}),
    "row": (read_rows, aiperf_row()),
    "metadata": (read_job_metadata, {"job_id": "1", "resources": {"gpus_per_node": 4}}),
    "snapshot": (read_snapshot, {"nodes": {"count": 1}, "gpus": {"configured_per_node": 4}}),
}


@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize(("read", "document"), READERS.values(), ids=READERS)
@given(data=st.data())
def test_nonsense_is_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, read: Any, document: Any, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "nonsense.json"
    path.write_text(json.dumps(data.draw(mutilated(document))), encoding="utf-8")
    with suppress(Unusable):
        read(path)


# --- the rest ---------------------------------------------------------------------------------

ROLLUP_RUN = {
    "concurrency": 4,
    "throughput_toks": 20.0,
    "ttft_mean_ms": 100.0,
    "tpot_mean_ms": 10.0,
    "tpot_p99_ms": 11.0,
    "e2el_mean_ms": 140.0,
    "completed_requests": 8,
    "total_input_tokens": 800,
    "total_output_tokens": 40,
}


def rollups(folder: Path, *runs: object) -> Iterator[Measurement | Unusable]:
    return read_rollup(write_json(folder / "benchmark-rollup.json", {"runs": [*runs]}))


def test_rollup_with_medians_of_the_csv(tmp_path: Path) -> None:
    header = "Concurrency,Median TTFT,Median TPOT,Median ITL,Total Token Throughput per GPU"
    (tmp_path / "benchmark-rollup.csv").write_text(f"{header}\n4,99.0,9.5,,1e9\n", "utf-8")
    (measured,) = rollups(tmp_path, ROLLUP_RUN)
    assert isinstance(measured, Measurement)
    assert measured.duration_s == 2.0
    assert measured.latencies.tpot is not None
    assert measured.latencies.tpot.percentiles == ((50.0, 9.5), (99.0, 11.0))
    assert measured.timing == Timing(summed_ms=140, reported_ms=140)


EMPTY = {**ROLLUP_RUN, "total_output_tokens": 0, "throughput_toks": 0.0}


def test_rollup_without_a_duration_spoils_no_other_load(tmp_path: Path) -> None:
    first, second = rollups(tmp_path, EMPTY, ROLLUP_RUN)
    assert str(first) == "concurrency 4 has no rate of tokens or requests, so no duration"
    assert isinstance(second, Measurement)


def test_rollup_without_tokens_is_kept_by_its_requests(tmp_path: Path) -> None:
    (measured,) = rollups(tmp_path, {**EMPTY, "request_throughput": 4.0})
    assert isinstance(measured, Measurement)
    assert (measured.tokens.output, measured.duration_s) == (0, 2.0)


def test_a_broken_csv_costs_the_medians_alone(tmp_path: Path) -> None:
    (tmp_path / "benchmark-rollup.csv").write_text("Concurrency,Median TPOT\n4,fast\n", "utf-8")
    problem, measured = rollups(tmp_path, ROLLUP_RUN)
    assert "benchmark-rollup.csv beside it cannot be read" in str(problem)
    assert isinstance(measured, Measurement)
    assert measured.latencies.tpot is not None
    assert measured.latencies.tpot.median is None


def test_rollup_that_differs_from_the_report(tmp_path: Path) -> None:
    (measured,) = rollups(tmp_path, ROLLUP_RUN)
    assert isinstance(measured, Measurement)
    report = replace(measured, tokens=Tokens(input=800, output=41))
    assert disagreement(measured, measured) == ""
    assert disagreement(report, measured) == "40 output tokens, the report 41"


def test_accuracy_counts_questions(tmp_path: Path) -> None:
    runs = [
        read_gsm8k(write_json(tmp_path / f"{n}", {"accuracy": score, "num_questions": n}))
        for n, score in ((100, 0.9), (300, 0.98))
    ]
    assert math.isclose(mean_score(runs), 0.96)


@pytest.mark.parametrize("runs", [1, 3])
def test_equal_accuracies_have_that_very_mean(runs: int) -> None:
    """A threshold that is reached is reached: of 1,319 questions, 0.109 became a little less."""
    scores = [thousandths / 1000 for thousandths in range(1001)]
    means = [
        mean_score([AccuracyRun(file=Path(), score=score, questions=1319)] * runs)
        for score in scores
    ]
    assert means == scores


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"accuracy": 94.0, "num_questions": 10}, "accuracy is 94, not a share of 1"),
        ({"accuracy": 0.9, "num_questions": 0}, "it asked no question"),
        ({"num_questions": 10}, "it lacks accuracy"),
    ],
    ids=str,
)
def test_broken_accuracy(tmp_path: Path, document: dict[str, Any], message: str) -> None:
    with pytest.raises(Unusable, match=message):
        read_gsm8k(write_json(tmp_path / "gsm8k_run0.json", document))


# --- real files -------------------------------------------------------------------------------


@needs_samples
def test_real_sa_bench_agrees_with_itself() -> None:
    path = SAMPLES / "results_concurrency_4_gpus_8_ctx_4_gen_4.json"
    measured, report = read_sa_bench(path), json.loads(path.read_text("utf-8"))
    for name, found in (
        ("ttft", measured.latencies.ttft),
        ("tpot", measured.latencies.tpot),
        ("itl", measured.latencies.inter_chunk),
        ("e2el", measured.latencies.end_to_end),
    ):
        assert found is not None
        assert found.mean == pytest.approx(report[f"mean_{name}_ms"], rel=1e-5)
        assert found.median == pytest.approx(report[f"median_{name}_ms"], rel=1e-5)
        assert found.percentile(99) == pytest.approx(report[f"p99_{name}_ms"], rel=1e-5)


@needs_samples
def test_real_aiperf_files() -> None:
    measured = read_aiperf(SAMPLES / "aiperf_c16_profile_export_aiperf.json")
    assert measured.concurrency == 16
    assert measured.tokens_per_s_per_user == pytest.approx(109.799, abs=1e-3)
    loads = list(read_aiperf_sweep(SAMPLES / "profile_export_aiperf_sweep.json"))
    assert [each.concurrency for each in loads if isinstance(each, Measurement)] == [2, 8]


@needs_samples
def test_real_lock_file() -> None:
    lock = lock_of(read_document(SAMPLES / "recipe.lock.yaml").data)
    assert lock.versions == {"dynamo.version": ("1.6.1",)}
    assert lock.gpus == 8
