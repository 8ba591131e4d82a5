"""The acceptance contract: the B200 article's example, AIPerf's export, and traces that lie."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generator.goodput.acceptance import Assessment, Limits, Window, assess
from generator.goodput.clocks import parse_row
from generator.goodput.token_rows import token_row
from generator.goodput.trace import NS_PER_MS, NS_PER_S, Arrival, Outcome, Trace
from generator.goodput.trace_file import read_trace
from generator.validation import schema
from tests.small_specs import run

TRACES = Path(__file__).parent / "data/traces"
ARTICLE, AIPERF = TRACES / "article.json", TRACES / "aiperf_c4.jsonl"
LIMITS = Limits(ttft_ns=250 * NS_PER_MS, max_gap_ns=50 * NS_PER_MS)
SECOND = Window(start_ns=0, end_ns=NS_PER_S)


def of_rows(folder: Path, *rows: dict[str, Any], window: Window = SECOND) -> Assessment:
    file = folder / "trace.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return assess(read_trace(file), LIMITS, window)


def row(**changes: Any) -> dict[str, Any]:
    return {"sent": 0.0, "tokens": [0.1, 0.13], "done": 0.14, "ok": True} | changes


# --- the contract -----------------------------------------------------------------------------


def test_the_articles_example_gives_its_two_figures() -> None:
    found = assess(read_trace(ARTICLE), LIMITS, SECOND)
    assert (found.requests_per_s, found.tokens_per_s) == (2.0, 4.0)
    assert (found.offered, found.outcomes[Outcome.FAILED], found.slow) == (4, 1, 1)
    assert found.without_tpot == 1
    assert found.tpot is not None
    assert found.tpot.samples == 2


def test_its_second_response_fails_by_one_gap_though_its_mean_gap_is_40_ms() -> None:
    (second,) = [each for each in read_trace(ARTICLE).requests if each.sent_ns == NS_PER_S // 10]
    assert second.received is not None
    assert second.received.longest_gap_ns == 60 * NS_PER_MS
    assert second.tpot_ns == 40 * NS_PER_MS


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        pytest.param({"done": 0.99}, True, id="time after the last token is no gap"),
        pytest.param({"tokens": [0.25], "done": 0.3}, True, id="first token at the limit"),
        pytest.param({"tokens": [0.2500001], "done": 0.3}, False, id="first token above it"),
        pytest.param({"tokens": [0.1, 0.15], "done": 0.2}, True, id="gap of exactly 50 ms"),
        pytest.param({"tokens": [0.3, 0.35], "sent": 0.25, "done": 0.4}, True, id="so later on"),
        pytest.param({"tokens": [0.1, 0.1500001], "done": 0.2}, False, id="gap above 50 ms"),
        pytest.param({"tokens": [0.2], "done": 0.2}, True, id="done with the only token"),
        pytest.param({"tokens": []}, False, id="no token"),
        pytest.param({"ok": False}, False, id="failed"),
        pytest.param({"done": 1.0}, False, id="ends with the window"),
        pytest.param({"done": None}, False, id="never ends"),
    ],
)
def test_what_passes(changes: dict[str, Any], passes: bool, tmp_path: Path) -> None:
    assert of_rows(tmp_path, row(**changes)).passed == int(passes)


def test_every_offered_request_stands_somewhere(tmp_path: Path) -> None:
    found = of_rows(
        tmp_path,
        row(),
        row(ok=False),
        row(outcome="rejected", tokens=[]),
        row(outcome="cancelled"),
        row(done=None),
        row(done=2.0),
        row(tokens=[]),
        row(sent=1.0, tokens=[1.1], done=1.2),
        row(phase="warmup"),
    )
    assert found.outcomes == {
        Outcome.COMPLETED: 2,
        Outcome.FAILED: 1,
        Outcome.REJECTED: 1,
        Outcome.CANCELLED: 1,
        Outcome.PENDING: 2,
    }
    assert (found.offered, found.outside, found.warm_up, found.empty) == (7, 1, 1, 1)


def test_chunks_count_their_tokens_but_have_no_token_gaps(tmp_path: Path) -> None:
    chunked = {"sent": 0.0, "chunks": [0.1, 0.13], "output_tokens": 7, "done": 0.2, "ok": True}
    found = of_rows(tmp_path, chunked)
    assert (found.arrival, found.tokens_per_s) == (Arrival.CHUNK, 7.0)
    assert found.tpot is not None
    assert found.tpot.mean == pytest.approx(5.0)


def test_one_chunk_of_many_tokens_has_no_tpot(tmp_path: Path) -> None:
    one = {"sent": 0.0, "chunks": [0.1], "output_tokens": 7, "done": 0.2, "ok": True}
    found = of_rows(tmp_path, one)
    assert (found.passed, found.without_tpot, found.tpot) == (1, 1, None)


def test_the_goodput_of_a_point() -> None:
    goodput = assess(read_trace(ARTICLE), LIMITS, SECOND).goodput
    assert (goodput.ttft_ms, goodput.max_gap_ms) == (250.0, 50.0)
    assert (goodput.requests_per_s, goodput.tokens_per_s) == (2.0, 4.0)


@given(
    st.lists(st.integers(0, 10**9), min_size=0, max_size=6),
    st.integers(0, 10**9),
    st.integers(1, 10**9),
)
def test_wider_limits_never_lose_goodput(times: list[int], slack: int, limit: int) -> None:
    rows = [
        {"sent": 0, "tokens": [each / 1e9, each / 1e9], "done": each / 1e9, "ok": True}
        for each in times
    ]
    trace = parsed(rows)
    tight = assess(trace, Limits(ttft_ns=limit, max_gap_ns=limit), SECOND)
    wide = assess(trace, Limits(ttft_ns=limit + slack, max_gap_ns=limit + slack), SECOND)
    assert tight.passed <= wide.passed <= wide.outcomes[Outcome.COMPLETED] <= wide.offered


def parsed(rows: list[dict[str, Any]]) -> Trace:
    read = [token_row(parse_row(json.dumps(each).encode()))[0] for each in rows]
    return Trace(requests=tuple(read), arrival=Arrival.TOKEN)


# --- AIPerf -----------------------------------------------------------------------------------


def test_aiperf_leaves_the_warm_up_out_and_starts_its_clock_after_it() -> None:
    trace = read_trace(AIPERF)
    assert (len(trace.requests), trace.warm_up, trace.arrival) == (3, 1, Arrival.CHUNK)
    assert min(each.sent_ns for each in trace.requests) == 0
    first = min(trace.requests, key=lambda each: each.sent_ns)
    assert first.ttft_ns == 108_827_918
    assert first.received is not None
    assert (first.received.output_tokens, first.received.longest_gap_ns) == (5, 17_983_521)
    assert first.received.last_ns - first.received.first_ns == 45_102_004


def test_aiperf_errors_and_cancellations() -> None:
    outcomes = sorted(each.outcome for each in read_trace(AIPERF).requests)
    assert outcomes == [Outcome.CANCELLED, Outcome.COMPLETED, Outcome.REJECTED]


def test_the_real_export(shared: Path) -> None:
    trace = read_trace(shared / "samples/aiperf_profile_export_head.jsonl")
    assert (len(trace.requests), trace.warm_up) == (10, 2)
    assert all(each.received and each.received.output_tokens == 64 for each in trace.requests)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param('{"sent": NaN, "tokens": []}', "NaN is no number", id="NaN"),
        pytest.param('{"sent": -1, "tokens": []}', "sent is negative: -1", id="negative"),
        pytest.param(
            '{"sent": 0.2, "tokens": [0.1], "done": 1, "ok": true}',
            "the clock runs backwards: token 1 is 100 ms before sent",
            id="before it was sent",
        ),
        pytest.param(
            '{"sent": 0, "tokens": [0.2, 0.1], "done": 1, "ok": true}',
            "the clock runs backwards: token 2 is 100 ms before token 1",
            id="tokens out of order",
        ),
        pytest.param(
            '{"sent": 0, "tokens": [0.2], "done": 0.1, "ok": true}',
            "the clock runs backwards: done is 100 ms before token 1",
            id="done before the last token",
        ),
        pytest.param(
            '{"sent": "0", "tokens": []}', "sent must be a number of s, got '0'", id="text"
        ),
        pytest.param('{"sent": 0, "tokens": 1}', "tokens must be a list of times", id="no list"),
        pytest.param('{"sent": 0, "tokens": [], "done": 1}', "ok must be true or false", id="ok"),
        pytest.param(
            '{"sent": 0, "tokens": [], "done": 1, "outcome": "lost"}',
            "outcome must be one of completed, failed, rejected, cancelled",
            id="outcome",
        ),
        pytest.param(
            '{"sent": 0, "chunks": [1, 2], "output_tokens": 1, "done": 3, "ok": true}',
            "output_tokens 1 is less than the 2 chunks",
            id="fewer tokens than chunks",
        ),
        pytest.param('{"sent": 1e999999, "tokens": []}', "sent is not a time in s", id="far away"),
        pytest.param(f'{{"sent": {"1" * 5000}}}', "a number of it has too many digits", id="long"),
        pytest.param(f'{{"sent": 1e{"9" * 30}}}', "a number of it has too many digits", id="big"),
        pytest.param(
            f'{{"sent": 0, "chunks": [1], "output_tokens": {10**400}, "done": 3, "ok": true}}',
            "output_tokens is too large: 1000",
            id="more tokens than there are",
        ),
        pytest.param(
            '{"sent": 0, "tokens": [], "done": 1, "ok": true, "phase": "warm-up"}',
            "phase must be one of warmup, profiling, or not be there",
            id="a phase that might be either",
        ),
        pytest.param("{", "it is not JSON", id="cut short"),
        pytest.param("3", "it is not a JSON object", id="no object"),
        pytest.param('{"a": 1}', "it is no row of a trace", id="something else"),
        pytest.param(
            '{"metadata": {"request_start_ns": 5, "benchmark_phase": "profiling"}}',
            "the file starts with rows with sent, this one is AIPerf's",
            id="mixed forms",
        ),
        pytest.param(
            '{"sent": 0, "chunks": [], "output_tokens": 0, "done": 1, "ok": true}',
            "the file starts with tokens, this row has chunks",
            id="mixed time stamps",
        ),
    ],
)
def test_a_bad_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(f"{json.dumps(row())}\n\n{line}\n", encoding="utf-8")
    result = run("goodput", str(file), "--ttft-ms", "250", "--max-gap-ms", "50")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"error: {file}:3: {message}")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param('[\n{"sent": 0, "tokens": []},\n3]', 3, "not a JSON object", id="element"),
        pytest.param("[\n\n{,", 3, "not JSON from here on", id="syntax"),
        pytest.param("[", 1, "the file is cut short", id="open"),
        pytest.param('[{"sent": 0, "tokens": []}', 1, "the file is cut short", id="no end"),
        pytest.param(
            '[\n{"sent": 0, "tokens": []}\n', 2, "the file is cut short", id="no end, lines"
        ),
        pytest.param('[{"sent": 0, "tokens": []},\n]', 2, "not JSON from here on", id="comma"),
        pytest.param('[{"sent": 0, "tokens": []}]\n[]', 2, "not JSON from here on", id="two"),
        pytest.param('[{"sent": 0, "tokens": []} {', 1, "not JSON from here on", id="no comma"),
        pytest.param(f'[\n{{"sent": 1e{"9" * 30}}}]', 2, "not JSON from here on", id="big"),
    ],
)
def test_a_bad_array_is_named(text: str, line: int, message: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(text, encoding="utf-8")
    result = run("goodput", str(file), "--ttft-ms", "250", "--max-gap-ms", "50")
    assert result.exit_code == 3
    assert f"{file}:{line}: " in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize("trace", [ARTICLE, AIPERF])
def test_a_trace_may_come_through_a_pipe(trace: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(trace.read_bytes(),))
    writer.start()
    assert read_trace(pipe) == read_trace(trace)
    writer.join()


def test_a_long_array_is_to_be_lines(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(f"[{' ' * 2**23}]", encoding="utf-8")
    result = run("goodput", str(file), "--ttft-ms", "250", "--max-gap-ms", "50")
    assert (result.exit_code, "write it as JSON Lines" in result.stderr) == (3, True)


def test_lines_with_one_fault_are_one_problem(tmp_path: Path) -> None:
    """A file of another kind has the same fault on each line."""
    file = tmp_path / "trace.csv"
    file.write_text("a,b\n" * 3, encoding="utf-8")
    result = run("goodput", str(file), "--ttft-ms", "250", "--max-gap-ms", "50")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {file}:1: it is not JSON, as 2 more below it")


@pytest.mark.parametrize("text", [ARTICLE.read_text(), json.dumps(row())], ids=["array", "lines"])
def test_a_byte_order_mark_is_no_part_of_a_trace(text: str, tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain", tmp_path / "marked"
    plain.write_text(text, encoding="utf-8")
    marked.write_text(text, encoding="utf-8-sig")
    assert read_trace(marked) == read_trace(plain)


def test_a_first_token_of_no_tokens_is_no_output(tmp_path: Path) -> None:
    """AIPerf times a first chunk whose text is empty and counts no token of it."""
    first = json.loads(AIPERF.read_text().splitlines()[1])
    first["metrics"]["output_sequence_length"]["value"] = 0
    first["metrics"]["inter_chunk_latency"]["value"] = []
    found = of_rows(tmp_path, first)
    assert (found.passed, found.empty) == (0, 1)


@pytest.mark.parametrize("text", ["", "\n", "[]"])
def test_an_empty_trace_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(text, encoding="utf-8")
    result = run("goodput", str(file), "--ttft-ms", "250", "--max-gap-ms", "50")
    assert (result.exit_code, result.stderr.count("the trace is empty")) == (3, 1)


@pytest.mark.parametrize(
    "options",
    [
        ("--ttft-ms", "nan", "--max-gap-ms", "50"),
        ("--ttft-ms", "0", "--max-gap-ms", "50"),
        ("--ttft-ms", "-1", "--max-gap-ms", "50"),
        ("--ttft-ms", "250"),
        ("--ttft-ms", "250", "--max-gap-ms", "50", "--window", "1:1"),
        ("--ttft-ms", "250", "--max-gap-ms", "50", "--window", "1"),
        ("--ttft-ms", "250", "--max-gap-ms", "50", "--window", "0:inf"),
    ],
)
def test_limits_and_windows_that_are_none(options: tuple[str, ...]) -> None:
    assert run("goodput", str(ARTICLE), *options).exit_code == 2


# --- the answer -------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [ARTICLE, AIPERF])
def test_the_document_keeps_its_schema(file: Path) -> None:
    result = run("goodput", str(file), "--ttft-ms", "250", "--max-gap-ms", "50", "--json")
    document = json.loads(result.stdout)
    Draft202012Validator(schema("goodput")).validate(document)
    requests = document["requests"]
    ends = ("completed", "failed", "rejected", "cancelled", "pending")
    assert requests["offered"] == sum(requests[end] for end in ends)


def test_the_page_of_the_article() -> None:
    result = run(
        "goodput", str(ARTICLE), "--ttft-ms", "250", "--max-gap-ms", "50", "--window", "0:1"
    )
    assert result.stdout.startswith("Goodput: 2.00 requests/s, 4.00 tokens/s\n")
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_chunk_gaps_are_called_so() -> None:
    result = run("goodput", str(AIPERF), "--ttft-ms", "250", "--max-gap-ms", "50")
    assert "the gaps between tokens are not known" in " ".join(result.stdout.split())
