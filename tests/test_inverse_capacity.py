"""Memory for requests, longest lengths, most sequences and mean lengths: figures and inverses."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generator.architecture import ModelArchitecture
from generator.capacity.capacity import EngineCapacity, evaluate_engine
from generator.capacity.inverse import (
    RequestQuestion,
    mean_length_capacity,
    memory_for_requests,
    startup_fault,
    startup_limits,
)
from generator.cli import main
from generator.engine.options import options_from_flags
from generator.engine.plan import plan_engine
from generator.errors import InvalidInput, NothingFits
from generator.estimation import estimate_spec
from generator.facts import engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.kv_cache.kv_cache import KvCacheOptions, plan_kv_cache
from generator.kv_cache.mean_length import LengthRange
from generator.parallel import WorkerPool, parse_layout
from generator.units import parse_bytes
from generator.validation import schema
from generator.workload import Workload, random_range_ratio
from tests.property.strategies import engines

REPOSITORY = Path(__file__).resolve().parent.parent
QWEN38 = REPOSITORY / "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
LLAMA = REPOSITORY / "tests/data/hf_configs/meta-llama--Meta-Llama-3.1-70B"
QWEN35_SPEC = REPOSITORY / "recipes/specs/qwen3.5-397b-gb200-8k1k.yaml"
TOKENS = 9216

# Pages and blocks of vLLM 0.26 for Qwen3.8, fp8 KV cache and bf16 states (README of the facts).
TP8_MTP3_REQUEST_BYTES = 21 * 24 * 557_056
TP4_MTP0_REQUEST_BYTES = 8 * 23 * 1_081_344
RUN_1: dict[str, Any] = {"layout": "TEP8", "mtp": 3, "kv_cache": "83.00 GiB"}
RUN_8: dict[str, Any] = {"layout": "TP4DP4+EP", "mtp": 0, "kv_cache": "132.85 GiB"}


@cache
def model(folder: Path) -> ModelArchitecture:
    return load_architecture(folder)


def engine(
    layout: str,
    mtp: int,
    kv_cache: str | None = None,
    *,
    workload: Workload | None = None,
    folder: Path = QWEN38,
    **flags: Any,
) -> EngineCapacity:
    """A Qwen3.8 engine with the article's flags; its KV cache as given, else by its account."""
    accelerator = gpu("gb300")
    defaults = engine_defaults("vllm", "0.26.0", accelerator)
    given_flags = {
        "kv_cache_dtype": "fp8",
        "mamba_ssm_cache_dtype": "bfloat16",
        "max_model_len": TOKENS,
        "max_num_seqs": 20,
        "max_num_batched_tokens": 96,
        "cudagraph_mode": "FULL_DECODE_ONLY",
        "speculative_config.num_speculative_tokens": mtp,
        **({"kv_cache_memory_bytes": parse_bytes(kv_cache)} if kv_cache else {}),
        **flags,
    }
    pool = WorkerPool(workers=1, layout=parse_layout(layout))
    options = replace(options_from_flags(given_flags), layout=pool.layout)
    planned = plan_engine(layout, "agg", pool, options, model(folder), defaults)
    return evaluate_engine(planned, model(folder), accelerator, defaults, workload)


def ask(requests: int | None = None, tokens: int | None = None) -> RequestQuestion:
    return RequestQuestion(requests=requests, request_tokens=tokens)


# --- memory for requests ----------------------------------------------------------------------


@pytest.mark.parametrize(("requests", "fits"), [(1, True), (317, True), (318, False)])
def test_run_1_holds_317_requests_and_no_more(requests: int, fits: bool) -> None:
    needed = memory_for_requests(engine(**RUN_1), ask(requests))
    assert needed.kv_cache_bytes_per_rank == requests * TP8_MTP3_REQUEST_BYTES
    assert needed.fits is fits


@pytest.mark.parametrize(
    ("requests", "per_rank", "fits"), [(2864, 716, True), (2865, 717, False), (2867, 717, False)]
)
def test_data_ranks_share_requests_and_each_holds_whole_ones(
    requests: int, per_rank: int, fits: bool
) -> None:
    """716.88 a rank are 2867.5 an endpoint on paper, but no rank holds 0.88 of a request."""
    capacity = engine(**RUN_8)
    assert float(capacity.at_workload.per_rank) == pytest.approx(716.88, abs=0.005)
    needed = memory_for_requests(capacity, ask(requests))
    assert needed.requests_per_rank == per_rank
    assert needed.kv_cache_bytes_per_rank == per_rank * TP4_MTP0_REQUEST_BYTES
    assert needed.fits is fits


def test_without_a_number_every_slot_is_filled() -> None:
    needed = memory_for_requests(engine("TP4DP4+EP", 3, max_num_seqs=24), ask())
    assert (needed.requests_per_rank, needed.requests_per_endpoint) == (24, 96)
    assert needed.request_tokens == TOKENS


def test_total_is_the_account_with_this_kv_cache_and_the_context() -> None:
    capacity = engine("TEP8", 3)
    needed = memory_for_requests(capacity, ask(100))
    terms = capacity.memory.terms
    others = [terms.weights, terms.non_torch, terms.peak_activation, terms.cuda_graphs]
    assert (
        needed.total.bytes_per_rank
        == sum(item.bytes_per_rank for item in [*others, terms.cuda_context])
        + 100 * TP8_MTP3_REQUEST_BYTES
    )


@pytest.mark.parametrize("requests", [2, 20, 100, 250, 300])
def test_the_utilization_named_holds_the_requests_and_a_lower_one_does_not(requests: int) -> None:
    utilization = memory_for_requests(engine("TEP8", 3), ask(requests)).gpu_memory_utilization
    assert utilization is not None
    enough = engine("TEP8", 3, gpu_memory_utilization=utilization)
    assert enough.at_workload.per_rank >= requests
    step = 1e-4
    less = engine("TEP8", 3, gpu_memory_utilization=utilization - step)
    assert less.memory.kv_cache.bytes_per_rank < requests * TP8_MTP3_REQUEST_BYTES


def test_no_utilization_gives_more_than_the_gpu_has_beside_the_context() -> None:
    needed = memory_for_requests(engine("TEP8", 3), ask(500))
    assert not needed.fits
    assert needed.gpu_memory_utilization is None


def test_a_kv_cache_given_in_bytes_is_answered_in_bytes() -> None:
    assert memory_for_requests(engine(**RUN_1), ask(10)).gpu_memory_utilization is None


def test_requests_longer_than_the_engine_accepts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="9217 tokens are longer than max-model-len 9216"):
        memory_for_requests(engine(**RUN_1), ask(1, TOKENS + 1))


@given(
    planned=engines(),
    requests=st.integers(1, 5000),
    tokens=st.integers(1, 300_000),
)
def test_inverse_of_the_inverse(
    planned: tuple[ModelArchitecture, KvCacheOptions], requests: int, tokens: int
) -> None:
    """The memory for N requests holds N, and one byte less does not."""
    layout = plan_kv_cache(*planned)
    needed = layout.bytes_for_requests(requests, tokens)
    assert layout.concurrency(needed, tokens) >= requests
    assert layout.concurrency(needed - 1, tokens) < requests


# --- limits of the flags ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "blocks", "block_tokens", "state_groups", "states"),
    [(RUN_1, 6666, 1088, 3, 4), (RUN_8, 5735, 2112, 3, 1)],
    ids=["TP8 MTP3", "TP4 MTP0"],
)
def test_longest_length_by_the_formula(
    run: dict[str, Any], blocks: int, block_tokens: int, state_groups: int, states: int
) -> None:
    """B * floor((blocks - gN * m) / gA) with one attention group; both were checked in vLLM."""
    capacity = engine(**run)
    limits = startup_limits(capacity)
    assert capacity.num_blocks == blocks
    assert limits.longest_max_model_len == block_tokens * (blocks - state_groups * states)
    assert limits.highest_max_num_seqs == blocks
    assert limits.model_context_tokens == 262_144


def test_the_longest_length_starts_and_one_token_more_does_not() -> None:
    longest = startup_limits(engine("TEP8", 3, "2.00 GiB")).longest_max_model_len
    assert engine("TEP8", 3, "2.00 GiB", max_model_len=longest).at_max_model_len.per_rank >= 1
    with pytest.raises(NothingFits, match=f"at most {longest}"):
        engine("TEP8", 3, "2.00 GiB", max_model_len=longest + 1)


@pytest.mark.parametrize(("max_model_len", "whole"), [(9216, 317), (10240, 303)])
def test_full_length_requests_beside_the_sequences_that_start(
    max_model_len: int, whole: int
) -> None:
    limits = startup_limits(engine(**RUN_1, max_model_len=max_model_len))
    assert limits.full_length_requests_per_rank == whole
    assert limits.highest_max_num_seqs == 6666


@pytest.mark.parametrize(
    "flags",
    [{"cudagraph_mode": "PIECEWISE"}, {"cudagraph_mode": "NONE"}, {"folder": LLAMA}],
    ids=["pieces alone", "no graphs", "attention alone"],
)
def test_only_full_graphs_of_a_model_with_states_limit_sequences(flags: dict[str, Any]) -> None:
    assert startup_limits(engine("TP8", 0, "80 GiB", **flags)).highest_max_num_seqs is None


# --- lengths that vary ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest", "ratio", "shortest"),
    [(8192, 0.8, 6553), (1024, 0.8, 819), (1024, 1.0, 1024), (100, 0.0, 1)],
)
def test_lengths_are_drawn_as_sa_bench_draws_them(
    longest: int, ratio: float, shortest: int
) -> None:
    drawn = LengthRange.drawn(longest, ratio)
    assert (drawn.shortest_tokens, drawn.longest_tokens) == (shortest, longest)


def test_ratio_one_is_the_worst_case() -> None:
    capacity = engine(**RUN_1, workload=Workload(isl=8192, osl=1024))
    mean = mean_length_capacity(capacity)
    assert mean is not None
    assert mean.per_rank == capacity.at_workload.per_rank == Fraction(6666, 21)


@pytest.mark.parametrize("ratio", [0.8, 0.5, 0.0])
def test_mean_blocks_are_those_of_every_pair_of_lengths(ratio: float) -> None:
    workload = Workload(isl=8192, osl=1024, random_range_ratio=ratio)
    capacity = engine(**RUN_8, workload=workload)
    mean = mean_length_capacity(capacity)
    assert mean is not None
    totals = Counter[int]()
    outputs = range(max(1, int(1024 * ratio)), 1025)
    for prompt in range(max(1, int(8192 * ratio)), 8193):
        totals.update(prompt + output for output in outputs)
    blocks = sum(
        count * capacity.engine.kv_cache.blocks_per_request(tokens)
        for tokens, count in totals.items()
    )
    assert mean.blocks_per_request == Fraction(blocks, totals.total())
    assert mean.per_rank == 5735 / mean.blocks_per_request
    assert mean.per_endpoint == 4 * mean.per_rank
    assert mean.per_rank > capacity.at_workload.per_rank


def test_no_mean_without_a_workload() -> None:
    assert mean_length_capacity(engine(**RUN_1)) is None


@pytest.mark.parametrize(
    ("benchmark", "ratio"),
    [
        ({"type": "sa-bench", "random_range_ratio": 0.6}, 0.6),
        ({"type": "sa-bench", "random_range_ratio": 1}, 1.0),
        ({"type": "sa-bench"}, 0.8),
        ({"type": "sa-bench", "random_range_ratio": None}, 0.8),
        ({"type": "custom"}, 1.0),
        ({}, 1.0),
    ],
)
def test_ratio_of_a_benchmark_section(benchmark: dict[str, Any], ratio: float) -> None:
    assert random_range_ratio(benchmark) == ratio


def test_spec_takes_the_ratio_of_its_benchmark() -> None:
    estimate = estimate_spec(QWEN35_SPEC)
    for capacity in estimate.capacities.values():
        mean = mean_length_capacity(capacity)
        assert mean is not None
        assert (mean.random_range_ratio, mean.prompt.shortest_tokens) == (0.8, 6553)


@pytest.mark.parametrize("value", ["1.2", "-0.1", "'0.8'", "true"])
def test_ratio_that_is_no_share_is_named_with_its_line(value: str, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "recipes/models", tmp_path / "models")
    text = QWEN35_SPEC.read_text(encoding="utf-8")
    spec = tmp_path / "specs" / "spec.yaml"
    spec.parent.mkdir()
    changed = text.replace("random_range_ratio: 0.8", f"random_range_ratio: {value}")
    assert changed != text
    spec.write_text(changed, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        estimate_spec(spec)
    (problem,) = caught.value.problems
    assert problem.path == "benchmark.random_range_ratio"
    assert problem.line == changed[: changed.index("random_range_ratio")].count("\n") + 1


# --- the command ------------------------------------------------------------------------------


def capacity_command(*arguments: str) -> Result:
    return CliRunner(catch_exceptions=False).invoke(main, ["capacity", *arguments])


def run_1(*arguments: str) -> Result:
    flags = (
        "--gpu gb300 --layout TEP8 --mtp 3 --kv-cache-dtype fp8 --mamba-ssm-cache-dtype bfloat16"
        " --max-model-len 9216 --max-num-seqs 20 --max-num-batched-tokens 96 --kv-cache-gib 83.00"
    )
    return capacity_command("--model", str(QWEN38), *flags.split(), *arguments)


@pytest.mark.parametrize(
    ("arguments", "row"),
    [
        ((), "| probe TEP8 mtp3 s20 | 7239552 |   6666 |  20 |   5.23 | 191.80 | yes  |     - |"),
        (
            ("--requests", "317"),
            "| probe TEP8 mtp3 s20 | 7239552 |   6666 | 317 |  82.89 | 269.46 | yes  |     - |",
        ),
        (
            ("--requests", "318"),
            "| probe TEP8 mtp3 s20 | 7239552 |   6666 | 318 |  83.15 | 269.72 | no   |     - |",
        ),
    ],
    ids=["every slot", "317", "318"],
)
def test_requests_section_answers_both_inverse_questions(
    arguments: tuple[str, ...], row: str
) -> None:
    result = run_1(*arguments)
    assert result.exit_code == 0, result.stderr
    assert row in result.stdout.splitlines()


def test_json_has_every_answer() -> None:
    result = run_1(
        "--isl", "8000", "--osl", "1000", "--range-ratio", "0.5", "--requests", "9", "--json"
    )
    document = json.loads(result.stdout)
    Draft202012Validator(schema("capacity")).validate(document)
    (answer,) = document["engines"]
    assert answer["memory_for_requests"]["requests_per_rank"] == 9
    assert answer["memory_for_requests"]["request_tokens"] == 9000
    assert answer["memory_for_requests"]["kv_cache_memory_bytes"] == 9 * TP8_MTP3_REQUEST_BYTES
    assert answer["limits"] == {
        "longest_max_model_len": 7_239_552,
        "model_context_tokens": 262_144,
        "highest_max_num_seqs": 6666,
        "full_length_requests_per_rank": 317,
    }
    mean = answer["capacity"]["at_mean_length"]
    assert (mean["shortest_isl"], mean["shortest_osl"]) == (4000, 500)
    assert mean["requests_per_rank"] > answer["capacity"]["requests_per_rank"]


@pytest.mark.parametrize("name", ["qwen3.8-2.4t-gb300-8k1k", "qwen3.5-397b-gb200-8k1k"])
def test_spec_prints_within_the_page(name: str) -> None:
    result = capacity_command(str(REPOSITORY / f"recipes/specs/{name}.yaml"), "--requests", "64")
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert ("Lengths vary" in result.stdout) is name.startswith("qwen3.5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--range-ratio", "0.8"), "--range-ratio needs --isl and --osl"),
        (("--range-ratio", "1.5", "--isl", "1", "--osl", "1"), "1.5 is not in the range"),
        (("--requests", "0"), "0 is not in the range"),
        (("--compare", "--requests", "4"), "--compare takes requests of the workload"),
    ],
)
def test_questions_that_make_no_sense(arguments: tuple[str, ...], message: str) -> None:
    result = run_1(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_requests_beyond_max_model_len_end_in_one_line() -> None:
    result = run_1("--requests", "4", "--request-tokens", "20000")
    assert result.exit_code == 3
    assert result.stderr == (
        "error: TEP8: requests of 20000 tokens are longer than max-model-len 9216"
        " (raise max-model-len, or ask for shorter requests)\n"
    )


# A block of TP8 is 24 pages of 544 KiB: 160 in 2 GiB, 5150 in the 64.13 GiB that estimates leave.
@pytest.mark.parametrize(
    ("kv_cache", "slots", "message"),
    [
        ("2.00 GiB", 160, None),
        (
            "2.00 GiB",
            161,
            (
                "vLLM does not start with max-num-seqs 161, above the 160 blocks there are"
                " (KV cache measured)"
            ),
        ),
        (None, 5150, None),
        (
            None,
            5151,
            (
                "vLLM may not start with max-num-seqs 5151, above the 5150 blocks there are"
                " (KV cache assumed +-17.27 GiB)"
            ),
        ),
    ],
    ids=["given, enough", "given, one too few", "assumed, enough", "assumed, one too few"],
)
def test_more_sequences_than_blocks(kv_cache: str | None, slots: int, message: str | None) -> None:
    flags: dict[str, Any] = {"max_num_seqs": slots, "max_num_batched_tokens": 8192}
    fault = startup_fault(engine("TEP8", 3, kv_cache, **flags))
    assert (fault.message if fault else None) == message
    assert fault is None or fault.is_certain is (kv_cache is not None)


def test_more_slots_than_blocks_is_said() -> None:
    result = run_1(
        "--kv-cache-gib", "2", "--max-num-seqs", "256", "--max-num-batched-tokens", "2048"
    )
    assert (
        "vLLM does not start with max-num-seqs 256, above the 160 blocks there are" in result.stdout
    )
