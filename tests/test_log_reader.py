"""Start-up logs in every wording and state: what is read, on which line, and what is refused."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import InvalidInput
from generator.startup_log import StartupLog, read_startup_log
from generator.startup_log.lines import CHUNK_BYTES, LogLines
from tests.composed_logs import (
    CYAN,
    LOGS,
    RESET,
    engine_line,
    kv_cache_line,
    tagged,
    weights_line,
)
from tests.log_wordings import ARGUMENTS, CONFIG, gib, read


def value(log: StartupLog, name: str) -> Any:
    """What the only process that printed it says."""
    ((_, reading),) = log.readings(name)
    return reading.value


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "0: ",
        "2026-05-14 12:43:22.094 | ",
        "Aug 14 09:10:00 node7 serve[12]: ",
        '{"log":"',
        "[36m",
    ],
)
def test_what_a_launcher_puts_before_a_line_does_not_matter(prefix: str, tmp_path: Path) -> None:
    line = tagged("Worker_DP1_TP0", "gpu_worker.py:564", kv_cache_line(83.0))
    ((process, reading),) = read(tmp_path, prefix + line).readings("kv_cache_bytes")
    assert (process.data, reading.value) == (1, gib("83"))


def test_colours_and_progress_bars(tmp_path: Path) -> None:
    bar = "Capturing CUDA graphs (decode, FULL):  98%|##| 51/52\rCapturing: 100%|##| 52/52"
    finished = tagged("Worker_DP0", "x.py:1", "Graph capturing finished in 2 secs, took 7.51 GiB")
    coloured = f"{CYAN}(Worker_DP1 pid=3){RESET} \x1b[32mINFO\x1b[0m {weights_line(1.5)}"
    log = read(tmp_path, bar + finished, coloured)
    assert [
        (process.tag, reading.line) for process, reading in log.readings("graph_used_bytes")
    ] == [("Worker_DP0", 1)]
    assert value(log, "weights_bytes") == gib("1.5")


def test_two_processes_on_one_line_keep_their_own(tmp_path: Path) -> None:
    first = tagged("Worker_DP0", "x.py:1", kv_cache_line(133.96))
    second = tagged("Worker_DP1", "x.py:1", kv_cache_line(133.90))
    log = read(tmp_path, first + second)
    assert {process.data: reading.value for process, reading in log.readings("kv_cache_bytes")} == {
        0: gib("133.96"),
        1: gib("133.90"),
    }


def test_ray_workers_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    lines = [
        f"(RayWorkerWrapper pid={pid}, ip=10.0.0.{pid}) {kv_cache_line(80 + pid)}"
        for pid in (1, 2, 3)
    ]
    log = read(tmp_path, *lines)
    assert (len(log.readings("kv_cache_bytes")), log.start_ups) == (3, 1)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_lines_end_as_on_any_system(ending: bytes, tmp_path: Path) -> None:
    log = read(tmp_path, "a", weights_line(1.0), "b", kv_cache_line(2.0), ending=ending)
    assert log.lines == 4
    assert [reading.line for _, reading in log.readings("kv_cache_bytes")] == [4]


def test_a_last_line_without_an_end_counts(tmp_path: Path) -> None:
    file = tmp_path / "worker.log"
    file.write_text(f"a\n{kv_cache_line(2.0)}")
    log = read_startup_log(file)
    assert (log.lines, log.readings("kv_cache_bytes")[0][1].place) == (2, f"{file}:2")


def test_broken_bytes_and_a_byte_order_mark_do_not_hurt(tmp_path: Path) -> None:
    log = read(tmp_path, b"\xef\xbb\xbf" + weights_line(1.0).encode(), b"\xe4\xff " + b"GiB")
    assert value(log, "weights_bytes") == gib("1")


CONFIG_LINE = engine_line("0.26.0", model="'m'")


class TestSettings:
    def test_the_engine_describes_itself(self, tmp_path: Path) -> None:
        log = read(tmp_path, tagged("EngineCore_DP0", "core.py:121", CONFIG))
        assert log.engine_version is not None
        assert log.model is not None
        assert log.capture_sizes is not None
        assert (log.engine_version.value, log.model.value) == ("0.26.0", "/models/m")
        assert log.capture_sizes.value == (4, 8, 16)
        assert {flag: reading.value for flag, reading in log.settings.items()} == {
            "max_model_len": 10240,
            "tensor_parallel_size": 4,
            "pipeline_parallel_size": 1,
            "data_parallel_size": 4,
            "decode_context_parallel_size": 1,
            "kv_cache_dtype": "fp8",
            "enable_prefix_caching": False,
            "num_speculative_tokens": 3,
            "max_cudagraph_capture_size": 16,
            "cudagraph_mode": "FULL_AND_PIECEWISE",
        }

    def test_no_speculation_is_none_drafted(self, tmp_path: Path) -> None:
        log = read(tmp_path, engine_line("0.26.0", model="'m'", speculative_config=None))
        assert log.settings["num_speculative_tokens"].value == 0

    def test_the_arguments_are_repeated(self, tmp_path: Path) -> None:
        log = read(tmp_path, tagged("APIServer", "api_utils.py:286", ARGUMENTS))
        assert log.has_arguments
        assert {flag: reading.value for flag, reading in log.settings.items()} == {
            "max_num_seqs": 528,
            "gpu_memory_utilization": 0.9,
            "enable_expert_parallel": True,
            "max_model_len": 1,
            "num_speculative_tokens": 2,
            "mamba_ssm_cache_dtype": "bfloat16",
            "cudagraph_mode": "FULL",
        }

    def test_what_the_engine_resolves_counts_more_than_an_argument(self, tmp_path: Path) -> None:
        log = read(
            tmp_path,
            ARGUMENTS,
            "Chunked prefill is enabled with max_num_batched_tokens=544.",
            CONFIG,
            "CUDAGraphMode.FULL is not supported; setting cudagraph_mode=PIECEWISE",
        )
        settings = {flag: (reading.value, reading.line) for flag, reading in log.settings.items()}
        assert settings["max_model_len"] == (10240, 3)
        assert settings["num_speculative_tokens"] == (3, 3)
        assert settings["max_num_seqs"] == (528, 1)
        assert settings["max_num_batched_tokens"] == (544, 2)
        assert settings["cudagraph_mode"] == ("PIECEWISE", 4)


class TestSeveralStartUps:
    def test_the_engine_starts_again(self, tmp_path: Path) -> None:
        def start(pid: int, kv_cache: float, sequences: int) -> list[str]:
            return [
                f"(APIServer pid={pid}) non-default args: {{'max_num_seqs': {sequences}}}",
                f"(EngineCore_DP0 pid={pid}) {CONFIG_LINE}",
                f"(Worker_DP0 pid={pid + 1}) {weights_line(pid)}",
                f"(Worker_DP0 pid={pid + 1}) {kv_cache_line(kv_cache)}",
            ]

        log = read(tmp_path, *start(10, 80.0, 1), *start(20, 81.0, 2))
        assert (log.start_ups, value(log, "kv_cache_bytes")) == (2, gib("81"))
        assert log.settings["max_num_seqs"].value == 2

    def test_nodes_of_one_engine_are_one_start(self, tmp_path: Path) -> None:
        lines = [f"(EngineCore_DP{rank} pid=7) {CONFIG_LINE}" for rank in (0, 4)]
        assert read(tmp_path, *lines).start_ups == 1

    def test_a_process_id_that_changes(self, tmp_path: Path) -> None:
        log = read(
            tmp_path,
            f"(Worker_TP0 pid=1) {weights_line(1.0)}",
            f"(Worker_TP0 pid=1) {kv_cache_line(80.0)}",
            f"(Worker_TP0 pid=2) {weights_line(1.0)}",
        )
        assert (log.start_ups, log.readings("kv_cache_bytes")) == (2, ())

    def test_weights_loaded_again_without_tags(self, tmp_path: Path) -> None:
        log = read(
            tmp_path, weights_line(1.0), kv_cache_line(80.0), weights_line(1.0), kv_cache_line(81.0)
        )
        assert (log.start_ups, value(log, "kv_cache_bytes")) == (2, gib("81"))

    def test_untagged_ranks_of_one_start(self, tmp_path: Path) -> None:
        log = read(
            tmp_path, weights_line(1.0), weights_line(1.0), kv_cache_line(80.0), kv_cache_line(80.0)
        )
        assert log.start_ups == 1


def write_missing(_: Path) -> None:
    """Leave the file out."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (write_missing, "no such file"),
        (Path.mkdir, "is a folder"),
        (Path.touch, "is empty"),
        (lambda file: file.write_bytes(b"\x7fELF\0\0"), "is no text: it has a zero byte"),
        (
            lambda file: file.write_bytes(b"line\n" * 2**18 + b"\0"),
            "is no text: it has a zero byte after line 262144",
        ),
        (lambda file: file.write_bytes(gzip.compress(b"log")), "is packed with gzip"),
        (lambda file: file.write_text("log", encoding="utf-16"), "is UTF-16 text"),
        (lambda file: file.write_text("hello\nworld\n"), "no start-up line of vLLM in its 2 lines"),
        (
            lambda file: file.write_text((LOGS / "sglang.log").read_text()),
            "is a log of SGLang, and only vLLM's can be read",
        ),
        (
            lambda file: file.write_text((LOGS / "tensorrt_llm.log").read_text()),
            "is a log of TensorRT-LLM, and only vLLM's can be read",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_what_is_no_start_up_log(
    make: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "worker.log"
    make(file)
    with pytest.raises(InvalidInput) as caught:
        read_startup_log(file, "worker.log")
    (problem,) = caught.value.problems
    assert problem.message == message or problem.message.startswith(message)
    assert problem.source == "worker.log"
    assert problem.hint


class Endless:
    """A stream of a serving engine's lines, so many bytes of them, after a start-up."""

    LINE = b"(APIServer pid=1) INFO 08-14 [loggers.py:271] GPU KV cache usage: 31.2%, Running: 12\n"

    def __init__(self, start: bytes, size: int) -> None:
        self._rest = start
        self._left = size
        self._block = self.LINE * (CHUNK_BYTES // len(self.LINE))

    def read(self, _: int = -1) -> bytes:
        if self._rest:
            start, self._rest = self._rest, b""
            return start
        self._left -= len(self._block)
        return self._block if self._left > 0 else b""


def peak_while_reading(stream: Any) -> tuple[int, int]:
    """How many lines matter, and the most memory that took."""
    tracemalloc.start()
    matching = sum(1 for _ in LogLines(stream, "endless"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return matching, peak


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(24 * 2**20, id="24 MiB"),
        pytest.param(200 * 2**20, id="200 MiB", marks=pytest.mark.slow),
    ],
)
def test_memory_does_not_grow_with_the_log(size: int) -> None:
    start = (LOGS / "run7_four_ranks.log").read_bytes()
    matching, peak = peak_while_reading(Endless(start, size))
    assert matching == peak_while_reading(Endless(start, 0))[0] > 30
    assert peak < 12 * CHUNK_BYTES


def test_a_line_without_end_takes_constant_memory() -> None:
    class OneLine(Endless):
        LINE = b"Loading: 50%|##|\r"

    assert peak_while_reading(OneLine(b"", 24 * 2**20))[1] < 12 * CHUNK_BYTES


def test_readings_across_chunks_have_their_lines(tmp_path: Path) -> None:
    filler = "x" * 99
    count = 3 * CHUNK_BYTES // 100
    log = read(tmp_path, *[filler] * count, kv_cache_line(80.0), *[filler] * count)
    assert [reading.line for _, reading in log.readings("kv_cache_bytes")] == [count + 1]
    assert log.lines == 2 * count + 1


def test_progress_is_told_of_every_chunk(tmp_path: Path) -> None:
    file = tmp_path / "worker.log"
    file.write_bytes(weights_line(1.0).encode() + b"\n" * (2 * CHUNK_BYTES))
    ticks: list[int] = []
    read_startup_log(file, on_chunk=lambda: ticks.append(1))
    assert len(ticks) == 3


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    class Once:
        def __init__(self) -> None:
            self._content = content

        def read(self, _: int) -> bytes:
            content, self._content = self._content, b""
            return content

    stream: BinaryIO = Once()  # type: ignore[assignment]
    lines = LogLines(stream, "any")
    try:
        texts = list(lines)
    except InvalidInput:
        return
    assert all(1 <= line.number <= lines.count for line in texts)


def test_the_data_logs_say_that_they_are_composed() -> None:
    for file in LOGS.glob("*.log"):
        assert file.read_text().startswith("# synthetic: composed"), file.name


def test_the_shared_samples_are_read(shared: Path) -> None:
    new = read_startup_log(shared / "samples" / "vllm_startup_new_style.log")
    old = read_startup_log(shared / "samples" / "vllm_startup_old_style.log")
    assert len(new.readings("weights_bytes")) == 4
    assert value(new, "concurrency") == 722.88
    assert value(old, "kv_cache_tokens") == 1581104
    assert json.dumps(new.lines) == "35"
