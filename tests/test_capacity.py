"""The article's memory table and capacity columns, row by row, and the answer's document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from generator.capacity.capacity import EngineCapacity
from generator.capacity.engine_memory import Basis
from generator.cli import main
from generator.estimation import Estimate, estimate_engine, estimate_spec
from generator.hf_config import load_architecture
from generator.parallel import parse_layout
from generator.units import GIB, parse_bytes
from generator.validation import schema
from generator.weights import weight_footprint

ARTICLE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "published" / "qwen38_article.json").read_text()
)
RUNS: list[dict[str, Any]] = ARTICLE["runs"]
VLLM_REQUESTS: dict[str, float] = ARTICLE["vllm_requests_at_9216_from_kv_cache"]
MODEL = "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
LAYOUTS = {"TP8": "TEP8", "TP4DP4": "TP4DP4+EP"}
REQUEST_TOKENS = 9216


def run_id(run: dict[str, Any]) -> str:
    return f"run {run['run']}"


def probe_name(run: dict[str, Any]) -> str:
    """The probe of the committed spec that starts the engine of an article run."""
    layout, ranks = ("tp4dep4", 4) if run["layout"] == "TP4DP4" else ("tep8", 1)
    load = (run["max_num_seqs"] - 16) * ranks
    return f"probe-{layout}{'-mtp' if run['mtp'] else ''}-cc{load}"


@pytest.fixture(scope="module")
def estimate(repository: Path) -> Estimate:
    return estimate_spec(repository / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml")


def from_published_kv_cache(repository: Path, run: dict[str, Any], **more: Any) -> EngineCapacity:
    """The engine of a run with the article's KV cache in place of the memory account."""
    flags = {
        "kv_cache_dtype": "fp8",
        "mamba_ssm_cache_dtype": "bfloat16",
        "max_model_len": REQUEST_TOKENS,
        "max_num_seqs": run["max_num_seqs"],
        "max_num_batched_tokens": run["max_num_batched_tokens"],
        "max_cudagraph_capture_size": run["max_num_seqs"] * (1 + run["mtp"]),
        "cudagraph_mode": "FULL_DECODE_ONLY",
        "speculative_config.num_speculative_tokens": run["mtp"],
        "kv_cache_memory_bytes": parse_bytes(f"{run['kv_cache']} GiB"),
    }
    layout = LAYOUTS[run["layout"]]
    return estimate_engine(repository / MODEL, "gb300", layout, {**flags, **more}, "0.26.0", None)


@pytest.mark.parametrize("run", RUNS, ids=run_id)
def test_memory_account_gives_the_published_kv_cache(
    run: dict[str, Any], estimate: Estimate
) -> None:
    memory = estimate.capacities[probe_name(run)].memory
    assert memory.kv_cache.bytes_per_rank / GIB == pytest.approx(run["kv_cache"], abs=0.02)
    assert memory.terms.weights.basis is Basis.MEASURED
    printed = {
        "cuda_context": memory.terms.cuda_context,
        "non_torch": memory.terms.non_torch,
        "weights": memory.terms.weights,
        "peak_activation": memory.terms.peak_activation,
        "graph_reserved": memory.terms.cuda_graphs,
    }
    for term, item in printed.items():
        assert item.bytes_per_rank == parse_bytes(f"{run[term]} GiB"), term


@pytest.mark.parametrize("run", RUNS, ids=run_id)
def test_graph_count(run: dict[str, Any], estimate: Estimate) -> None:
    resolved = estimate.capacities[probe_name(run)].engine.resolved
    assert resolved.graphs.graphs == run["graphs"]


@pytest.mark.parametrize("run", RUNS, ids=run_id)
def test_vllm_column_from_the_published_kv_cache(run: dict[str, Any], repository: Path) -> None:
    capacity = from_published_kv_cache(repository, run)
    expected = VLLM_REQUESTS[str(run["run"])]
    assert float(capacity.at_workload.per_rank) == pytest.approx(expected, abs=0.01)
    data = parse_layout(LAYOUTS[run["layout"]]).data
    assert capacity.at_workload.per_endpoint == capacity.at_workload.per_rank * data


@pytest.mark.parametrize("run", RUNS, ids=run_id)
def test_whole_model_column(run: dict[str, Any], repository: Path) -> None:
    by_division = from_published_kv_cache(repository, run).at_workload.by_whole_model_division
    assert float(by_division) == pytest.approx(run["requests_by_whole_model_division"], abs=0.1)


@pytest.mark.parametrize(
    ("layout", "speculative_tokens", "measured_gib"),
    [("TEP8", 3, 169.28), ("TP4DP4+EP", 3, 108.71), ("TP4DP4+EP", 0, 107.51)],
)
def test_computed_weights_are_within_two_permille_of_the_measured(
    layout: str, speculative_tokens: int, measured_gib: float, repository: Path
) -> None:
    footprint = weight_footprint(
        load_architecture(repository / MODEL),
        parse_layout(layout),
        speculative_tokens=speculative_tokens,
        language_model_only=True,
        sequence_parallel_moe=True,
    )
    assert footprint.total_bytes_per_rank / GIB == pytest.approx(measured_gib, rel=0.002)


def test_forced_block_size_of_run_1(repository: Path) -> None:
    """TP8 with MTP 3 and 83.00 GiB, forced to the 2176 tokens a TP2 prefill needs."""
    capacity = from_published_kv_cache(repository, RUNS[0], block_size=2176)
    assert capacity.unforced is not None
    assert float(capacity.unforced.per_rank) == pytest.approx(317.43, abs=0.005)
    assert float(capacity.at_workload.per_rank) == pytest.approx(196.06, abs=0.005)


def test_longer_max_model_len_of_run_1(repository: Path) -> None:
    capacity = from_published_kv_cache(repository, RUNS[0], max_model_len=10240)
    assert float(capacity.at_max_model_len.per_rank) == 303.0


def test_spec_forces_one_block_size_where_the_roles_differ(estimate: Estimate) -> None:
    forced = {
        deployment.spec.file: deployment.decode.options.block_size
        for deployment in estimate.derivation.deployments
        if not deployment.spec.folder
    }
    assert forced == {row["file"]: row["block_size"] for row in ARTICLE["recipes"]}


def test_json_answer_is_valid_and_names_every_engine(repository: Path) -> None:
    spec = repository / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
    result = CliRunner().invoke(main, ["capacity", str(spec), "--json"])
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    Draft202012Validator(schema("capacity")).validate(document)
    engines = {engine["name"]: engine for engine in document["engines"]}
    assert len(engines) == len(document["engines"]) == 8 + 2 * 16
    decode = engines["4xtp2dep4-1xtp4dep4-cc2560/decode"]
    assert decode["layout"] == {
        "tensor": 4,
        "data": 4,
        "pipeline": 1,
        "expert": 16,
        "decode_context": 1,
    }
    assert decode["capacity"]["requests_per_rank"] == pytest.approx(716.88, abs=0.01)
    assert decode["capacity"]["requests_per_endpoint"] == pytest.approx(2867.5)
    assert decode["cudagraph_capture_sizes"][-1] == 656
    assert decode["memory"]["basis"]["kv_cache"] == "computed"


def test_flags_of_the_command_line_reach_the_engine(repository: Path) -> None:
    options = [
        "--gpu",
        "gb300",
        "--layout",
        "TP4DP4+EP",
        "--mtp",
        "3",
        "--kv-cache-dtype",
        "fp8",
        "--mamba-ssm-cache-dtype",
        "bfloat16",
        "--max-model-len",
        "9216",
        "--max-num-seqs",
        "80",
        "--gpu-memory-utilization",
        "0.92",
        "--kv-cache-gib",
        "133.74",
        "--json",
    ]
    result = CliRunner().invoke(main, ["capacity", "--model", str(repository / MODEL), *options])
    assert result.exit_code == 0, result.stderr
    (engine,) = json.loads(result.stdout)["engines"]
    assert engine["kv_cache"]["block_tokens"] == 2176
    assert engine["capacity"]["requests_per_rank"] == pytest.approx(315.88, abs=0.01)
    assert engine["capacity"]["requests_per_endpoint"] == pytest.approx(1263.53, abs=0.01)


def test_prefix_caching_costs_a_block_of_each_state_group(repository: Path) -> None:
    plain = from_published_kv_cache(repository, RUNS[6])
    cached = from_published_kv_cache(
        repository, RUNS[6], enable_prefix_caching=True, max_num_batched_tokens=8192
    )
    assert cached.at_workload.blocks_per_request - plain.at_workload.blocks_per_request == 3


def test_cache_mode_reaches_a_mamba_model(repository: Path) -> None:
    """Nemotron-3 keeps all states under prefix caching, unless align is asked for."""
    model = repository / "tests/data/hf_configs/nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4"
    flags = {"enable_prefix_caching": True, "max_model_len": REQUEST_TOKENS}
    every = estimate_engine(model, "gb300", "TEP8", flags, "0.26.0", None)
    align = {**flags, "mamba_cache_mode": "align"}
    aligned = estimate_engine(model, "gb300", "TEP8", align, "0.26.0", None)
    assert (every.engine.kv_cache.mode, aligned.engine.kv_cache.mode) == ("all", "align")
    assert every.at_workload.blocks_per_request > aligned.at_workload.blocks_per_request
