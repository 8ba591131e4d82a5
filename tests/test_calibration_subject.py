"""Which engine a log is of: told by it, by flags or by a spec, and where they disagree."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.calibration import (
    EngineDescription,
    SpecEngines,
    calibration_of,
    measured_profile,
    subject_of_description,
)
from generator.calibration.document import calibration_document
from generator.calibration.view import comparison_table, readings_table
from generator.errors import InvalidInput
from generator.estimation import study_probes
from generator.startup_log import read_startup_log
from generator.workload import Workload
from tests.calibrations import (
    MODEL,
    REPOSITORY,
    SPEC,
    VERSION,
    described,
    log_of,
    run_description,
    start_up,
)
from tests.composed_logs import (
    LOGS,
    RUN_TERMS,
    RUNS,
    kv_cache_line,
)


class TestSubject:
    def test_a_log_may_tell_everything_but_model_and_gpu(self, repository: Path) -> None:
        log = read_startup_log(LOGS / "run7_four_ranks.log", "run7.log")
        description = EngineDescription(
            model=repository / MODEL,
            gpu="gb300",
            layout=None,
            engine_version=None,
            flags={},
            workload=None,
            concurrency=None,
        )
        subject = subject_of_description(description, log)
        assert subject.engine.name == "TP4DP4+EP s528"
        assert (subject.assumed, subject.defaults.version) == ((), VERSION)
        assert subject.engine.resolved.max_num_batched_tokens == 544

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"layout": "TP8"},
                "tensor-parallel-size is 4 in the log, but --layout says TP8",
            ),
            (
                {"layout": "TP4DP4"},
                "enable-expert-parallel is True in the log, but --layout says TP4DP4",
            ),
            (
                {"engine_version": "0.28.0"},
                f"the engine's version is {VERSION} in the log, but --engine-version says 0.28.0",
            ),
            ({"gpu": "h100"}, "the GPU's memory is 276.62 GiB in the log, but h100 has 79.18 GiB"),
            (
                {"max_num_seqs": 80},
                "max-num-seqs is 528 in the log, but --max-num-seqs says 80",
            ),
            (
                {"max_num_batched_tokens": 1104},
                "max-num-batched-tokens is 544 in the log, but --max-num-batched-tokens says 1104",
            ),
            (
                {"max_cudagraph_capture_size": 320},
                (
                    "max-cudagraph-capture-size is 528 in the log, but --max-cudagraph-capture-size"
                    " says 320"
                ),
            ),
            (
                {"cudagraph_mode": "PIECEWISE"},
                (
                    "cudagraph-mode is FULL_DECODE_ONLY in the log, but --cudagraph-mode says"
                    " PIECEWISE"
                ),
            ),
            (
                {"max_model_len": 9216},
                "max-model-len is 10240 in the log, but --max-model-len says 9216",
            ),
            (
                {"gpu_memory_utilization": 0.9},
                "gpu-memory-utilization is 0.92 in the log, but --gpu-memory-utilization says 0.9",
            ),
            (
                {"speculative_config.num_speculative_tokens": 3},
                "num-speculative-tokens is 0 in the log, but --mtp says 3",
            ),
            (
                {"kv_cache_dtype": "bfloat16"},
                "kv-cache-dtype is fp8 in the log, but --kv-cache-dtype says bfloat16",
            ),
            (
                {"enable_prefix_caching": True, "max_num_batched_tokens": None},
                None,
            ),
        ],
        ids=lambda item: next(iter(item)) if isinstance(item, dict) else "",
    )
    def test_an_option_that_contradicts_the_log(
        self, change: dict[str, Any], message: str | None, repository: Path
    ) -> None:
        log = read_startup_log(LOGS / "run7_four_ranks.log", "run7.log")
        fields = {
            name: change.pop(name) for name in ("layout", "gpu", "engine_version") if name in change
        }
        base = EngineDescription(
            model=repository / MODEL,
            gpu="gb300",
            layout=None,
            engine_version=None,
            flags={name: value for name, value in change.items() if value is not None},
            workload=None,
            concurrency=None,
        )
        with pytest.raises(InvalidInput) as caught:
            subject_of_description(replace(base, **fields), log)
        assert message is None or message in {problem.message for problem in caught.value.problems}
        assert {problem.source for problem in caught.value.problems} <= {"run7.log", ""}

    def test_the_same_option_is_no_conflict(self, repository: Path) -> None:
        log = read_startup_log(LOGS / "run7_four_ranks.log")
        description = run_description(repository, RUNS[7])
        assert subject_of_description(description, log).engine.options.max_num_seqs == 528

    def test_a_rank_beyond_the_layout(self, repository: Path, tmp_path: Path) -> None:
        log = log_of(tmp_path, *start_up(RUN_TERMS[7], is_older=False, tag="Worker_DP3_TP0_EP12"))
        with pytest.raises(InvalidInput, match="highest data parallel rank is 3 in the log"):
            subject_of_description(described(repository, "TP4DP2+EP"), log)

    def test_nobody_says_the_layout(self, repository: Path, tmp_path: Path) -> None:
        log = log_of(tmp_path, *start_up(RUN_TERMS[7], is_older=False, tag="EngineCore"))
        with pytest.raises(InvalidInput, match="parallel layout is not in the log"):
            subject_of_description(described(repository, None), log)

    @pytest.mark.parametrize(
        ("number", "probe"),
        [
            (1, "probe-tep8-mtp-cc4"),
            (4, "probe-tep8-mtp-cc256"),
            (6, "probe-tp4dep4-mtp-cc1024"),
            (8, "probe-tp4dep4-cc2560"),
        ],
        ids=["run 1", "run 4", "run 6", "run 8"],
    )
    def test_a_spec_s_engine_is_found_by_its_log(
        self, number: int, probe: str, repository: Path, tmp_path: Path
    ) -> None:
        run = RUNS[number]
        arguments = (
            f"non-default args: {{'max_num_seqs': {run['max_num_seqs']}, 'tensor_parallel_size':"
            f" {8 if run['layout'] == 'TP8' else 4}, 'speculative_config':"
            f" {{'num_speculative_tokens': {run['mtp']}}}}}"
        )
        log = log_of(tmp_path, arguments, *start_up(RUN_TERMS[number], is_older=False))
        engines = SpecEngines(repository / SPEC)
        subject = engines.subject(log, None)
        assert subject.engine.name == probe
        assert subject.workload == Workload(isl=8192, osl=1024)
        assert subject.concurrency == int(probe.rpartition("cc")[2])
        assert engines.subject(log, probe).engine == subject.engine

    # TEP16 is in the spec's decode study only; run 1's log is of a probe and of a study alike.
    def test_an_engine_of_a_study_is_found_where_no_other_fits(
        self, repository: Path, tmp_path: Path
    ) -> None:
        engines = SpecEngines(repository / SPEC, study_probes(repository / SPEC))
        (study,) = [
            each for each in study_probes(repository / SPEC) if each.spec.file == "decode-tep16"
        ]
        arguments = (
            f"non-default args: {{'max_num_seqs': {study.engine.resolved.max_num_seqs},"
            " 'tensor_parallel_size': 16}"
        )
        log = log_of(tmp_path, arguments, kv_cache_line(83.0))
        subject = engines.subject(log, None)
        assert subject.engine.name == study.engine.name
        assert subject.workload == Workload(isl=1, osl=1000)
        assert subject.concurrency == study.spec.concurrency
        assert engines.subject(log, study.engine.name).engine == subject.engine
        with pytest.raises(InvalidInput, match="is of no engine of"):
            SpecEngines(repository / SPEC).subject(log, None)

    def test_several_kinds_fit(self, repository: Path, tmp_path: Path) -> None:
        log = log_of(tmp_path, *start_up(RUN_TERMS[1], is_older=False))
        with pytest.raises(InvalidInput, match=r"may be of \d+ engines of .*: probe-tep8-mtp-cc4"):
            SpecEngines(repository / SPEC).subject(log, None)

    def test_none_fits(self, repository: Path, tmp_path: Path) -> None:
        log = log_of(tmp_path, "non-default args: {'max_num_seqs': 7}", kv_cache_line(83.0))
        with pytest.raises(InvalidInput, match="is of no engine of"):
            SpecEngines(repository / SPEC).subject(log, None)

    def test_a_misspelt_engine(self, repository: Path, tmp_path: Path) -> None:
        log = log_of(tmp_path, kv_cache_line(83.0))
        with pytest.raises(InvalidInput, match="did you mean 'probe-tep8-mtp-cc4'"):
            SpecEngines(repository / SPEC).subject(log, "probe-tep8-mtp-cc44")


_NUMBERS = st.sampled_from(["0", "1", "16", "2112", "10240", "999999999", "9" * 30, "-1", "1,024"])
_SIZES = st.sampled_from(
    ["0.0", "0.01", "83.0", "276.62", "999999999", "9" * 5000, "-0.19", "1.2.3"]
)
_TEMPLATES = st.sampled_from(
    [
        "(Worker_DP{n}_TP{m}_EP{n} pid={m}) ",
        "(EngineCore_DP{n} pid={m}) ",
        "Model loading took {g} GiB memory and 1.0 seconds\n",
        "Setting attention block size to {n} tokens to ensure that attention page size\n",
        "Padding mamba page size by {g}%\n",
        "Profiling CUDA graph memory: FULL={n} (largest={m}), PIECEWISE={m} (largest={n})\n",
        "Estimated CUDA graph memory: {g} GiB total\n",
        "CUDA graph memory profiling is enabled\n",
        "Available KV cache memory: {g} GiB\n",
        "GPU KV cache size: {n} tokens, Maximum concurrency for {m} tokens per request: {g}x\n",
        "Maximum concurrency for {n} tokens per request: 0.00x\n",
        "Maximum concurrency for {n} tokens per request: 999999999.99x\n",
        "Overriding num_gpu_blocks=1 with num_gpu_blocks_override={n}\n",
        "CUDA graph pool memory: {g} GiB (actual), {h} GiB (estimated)\n",
        (
            "Free memory on device ({g}/{h} GiB) on startup. Desired GPU memory utilization is"
            " (0.92, {h} GiB). "
        ),
        (
            "Actual usage is {g} GiB for consumed memory (weights + non-torch), {h} GiB for peak"
            " activation, and {g} GiB for CUDAGraph memory. `--kv-cache-memory={n}` ({g} GiB) to"
            " fit into requested memory\n"
        ),
        (
            "Actual usage is {g} GiB for weight, {h} GiB for peak activation, {g} GiB for non-torch"
            " memory, and {h} GiB for CUDAGraph memory.\n"
        ),
        (
            "max seq len ({n}), ({g} GiB KV cache is needed, which is larger than the available KV"
            " cache memory ({h} GiB). the estimated maximum model length is {m}.\n"
        ),
        (
            "Initializing a V1 LLM engine (v0.{n}.0) with config: model='m', max_seq_len={n},"
            " tensor_parallel_size={m}, data_parallel_size={n}, kv_cache_dtype=fp8,"
            " 'cudagraph_capture_sizes': [{n}, {m}]\n"
        ),
        (
            "non-default args: {{'max_num_seqs': {n}, 'block_size': {m}, 'max_num_batched_tokens':"
            " {n}, 'gpu_memory_utilization': 0.{m}, 'cudagraph_mode': 'PIECEWISE'}}\n"
        ),
    ]
)
_PIECES = st.tuples(_TEMPLATES, _NUMBERS, _NUMBERS, _SIZES, _SIZES).map(
    lambda piece: piece[0].format(n=piece[1], m=piece[2], g=piece[3], h=piece[4])
)


@given(st.lists(_PIECES, min_size=1, max_size=14).map("".join))
@settings(max_examples=150)
def test_whatever_a_log_says_is_worked_out_or_refused(text: str) -> None:
    """No figure of a broken log ends in anything but an answer or a list of problems."""
    folder = Path(tempfile.mkdtemp())
    file = folder / "worker.log"
    file.write_text(text, encoding="utf-8")
    try:
        log = read_startup_log(file)
        by_itself = calibration_of(log, None)
        assert calibration_document([by_itself])["logs"]
        assert readings_table(by_itself)
        layout = None if "tensor_parallel_size" in log.settings else "TEP8"
        subject = subject_of_description(
            EngineDescription(
                model=REPOSITORY / MODEL,
                gpu="gb300",
                layout=layout,
                engine_version=None,
                flags={},
                workload=Workload(isl=8192, osl=1024),
                concurrency=4,
            ),
            log,
        )
        compared = calibration_of(log, subject)
        assert calibration_document([compared])["logs"]
        assert comparison_table(compared)
        measured_profile(compared, "2026-08-14")
    except InvalidInput as error:
        for problem in error.problems:
            assert "\n" not in str(problem)
    finally:
        shutil.rmtree(folder)
