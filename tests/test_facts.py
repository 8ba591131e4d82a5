"""Facts: every figure has a source, and the loaders give what the data says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator import facts
from generator.documents import read_document
from generator.engine_version import release
from generator.errors import InvalidInput
from generator.facts.engines import _fault
from generator.facts.fact import DATA, load_data
from generator.units import GIB, MIB, gib
from generator.validation import problems, schema

NIGHTLY = "0.26.1rc1.dev1177+ga9a17e709"
QWEN38 = "qwen3_5_moe/92Lx8192/512E/nvfp4"
PROFILE = DATA / "measured" / "qwen3.8-2.4t-gb300.yaml"

FILES = [
    *((file, "measured-profile") for file in sorted((DATA / "measured").glob("*.yaml"))),
    (DATA / "gpus.yaml", "gpu-facts"),
    (DATA / "engine_defaults.yaml", "engine-facts"),
    (DATA / "recipe_defaults.yaml", "recipe-defaults"),
    (DATA / "plan_facts.yaml", "plan-facts"),
]


@pytest.mark.parametrize(("file", "schema_name"), FILES, ids=lambda value: Path(value).stem)
def test_data_file_is_valid(file: Path, schema_name: str) -> None:
    assert problems(read_document(file), schema_name) == []


@pytest.mark.parametrize("schema_name", sorted({name for _, name in FILES}))
def test_schema_explains_every_property_and_its_examples_hold(schema_name: str) -> None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    root = schema(schema_name)
    Draft202012Validator.check_schema(root)
    validator = Draft202012Validator(root)
    for path, node in _schema_nodes(root):
        for name, child in node.get("properties", {}).items():
            assert "description" in child or "$ref" in child, f"{path}/{name}"
        resolved = validator.evolve(schema={**node, "$defs": root.get("$defs", {})})
        for example in node.get("examples", []):
            assert resolved.is_valid(example), f"{path}: {example}"


def _schema_nodes(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        if "type" in node or "$ref" in node or "properties" in node:
            yield path, node
        for key, value in node.items():
            if key != "examples":
                yield from _schema_nodes(value, f"{path}/{key}")


@pytest.mark.parametrize("name", ["gpus.yaml", "engine_defaults.yaml"])
def test_every_value_has_a_source_a_date_and_no_address(name: str) -> None:
    found = list(_entries_with_values(load_data(name)))
    assert len(found) > 40
    for path, entry in found:
        assert entry["source"], path
        assert entry["as_of"], path
        assert "://" not in entry["source"], path


def _entries_with_values(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict) and "value" in node:
        yield path, node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _entries_with_values(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _entries_with_values(value, f"{path}[{index}]")


# --- GPUs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "nominal_gb", "inventory_mib", "engine_gib", "sm", "node_and_domain"),
    [
        ("gb300", 279, 284_208, 276.62, "SM103", (4, 72)),
        ("gb200", 186, 189_471, 184.31, "SM100", (4, 72)),
        ("b300", 270, 275_040, 267.69, "SM103", (8, 8)),
        ("b200", 180, 183_359, 178.35, "SM100", (8, 8)),
        ("h200", 141, 143_771, 139.80, "SM90", (8, 8)),
        ("h100", 80, 81_559, 79.18, "SM90", (8, 8)),
    ],
)
def test_gpu(
    name: str,
    nominal_gb: int,
    inventory_mib: int,
    engine_gib: float,
    sm: str,
    node_and_domain: tuple[int, int],
) -> None:
    gpu = facts.gpu(name)
    assert gpu.memory_nominal_bytes == nominal_gb * 10**9
    assert gpu.memory_inventory_bytes == inventory_mib * MIB
    assert gpu.engine_total.value == round(engine_gib * GIB)
    assert gpu.sm == sm
    assert (gpu.gpus_per_node, gpu.gpus_per_nvlink_domain) == node_and_domain


@pytest.mark.parametrize(
    ("name", "bf16", "fp8", "nvfp4", "hbm_tb", "nvlink_gb"),
    [
        ("gb300", 2500, 5000, 15000, 8, 1800),
        ("gb200", 2500, 5000, 10000, 8, 1800),
        ("b300", 2250, 4500, 14000, 8, 1800),
        ("b200", 2250, 4500, 9000, 8, 1800),
        ("h200", 989, 1979, None, 4.8, 900),
        ("h100", 989, 1979, None, 3.35, 900),
    ],
)
def test_dense_peaks_and_bandwidths(
    name: str, bf16: int, fp8: int, nvfp4: int | None, hbm_tb: float, nvlink_gb: int
) -> None:
    gpu = facts.gpu(name)
    tera = {key: value // 10**12 for key, value in gpu.peak_flops_per_second.items()}
    assert (tera["bf16"], tera["fp8"], tera.get("nvfp4")) == (bf16, fp8, nvfp4)
    assert gpu.hbm_bytes_per_second == round(hbm_tb * 10**12)
    assert gpu.nvlink_bytes_per_second == nvlink_gb * 10**9


@pytest.mark.parametrize("name", facts.gpu_names())
def test_memory_figures_are_not_mixed(name: str) -> None:
    gpu = facts.gpu(name)
    assert gpu.engine_total.value < gpu.memory_inventory_bytes
    assert gpu.engine_total.unit == "B"
    assert gpu.memory_inventory_bytes not in (gpu.memory_nominal_bytes, gpu.engine_total.value)
    assert gpu.facts["memory.engine_total"].basis is gpu.engine_total.basis
    assert {"memory.nominal", "hbm_bandwidth", "peak_flops.bf16"} <= set(gpu.facts)


def test_gpu_name_in_any_case() -> None:
    assert facts.gpu("GB300") is facts.gpu("gb300")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gb30", "did you mean 'gb300'?"),
        ("H20", "did you mean 'h200'?"),
        ("mi355x", "known: gb300, gb200, b300, b200, h200, h100"),
    ],
)
def test_unknown_gpu(name: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as error:
        facts.gpu(name)
    (problem,) = error.value.problems
    assert (problem.message, problem.hint) == (f"GPU '{name}' is not known", hint)


# --- engine defaults ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "resolved", "is_exact"),
    [
        ("0.19.1", "0.19.1", True),
        ("0.20.2", "0.20.0", False),
        ("0.26.0", "0.26.0", True),
        ("v0.26.0", "0.26.0", True),
        ("0.26.0+cu130", "0.26.0", True),
        (NIGHTLY, "0.26.0", False),
        ("0.26.1", "0.26.0", False),
        ("0.27.1", "0.27.1", True),
        ("0.27.9", "0.27.1", False),
        ("0.28.0rc1", "0.28.0", False),
        ("0.28.0.dev5", "0.28.0", False),
        ("0.28.0", "0.28.0", True),
        ("0.33.0", "0.33.0", True),
        ("1.2.0", "0.33.0", False),
        (None, "0.33.0", False),
    ],
)
def test_version_resolution(version: str | None, resolved: str, is_exact: bool) -> None:
    defaults = facts.engine_defaults("vllm", version, facts.gpu("gb300"))
    assert (defaults.version, defaults.resolved_version) == (version, resolved)
    assert defaults.is_exact_version is is_exact


_numbers = st.integers(min_value=0, max_value=60)


@given(st.tuples(_numbers, _numbers), st.tuples(_numbers, _numbers))
def test_resolution_is_at_most_the_version_and_never_falls(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    asked = sorted([(1, *first), (1, *second), (0, 26, first[0])])
    found = [
        release(facts.engine_defaults("vllm", f"{a}.{b}.{c}", facts.gpu("h100")).resolved_version)
        for a, b, c in asked
    ]
    assert found == sorted(found)
    assert all(known <= version for known, version in zip(found, asked, strict=True))


@pytest.mark.parametrize(
    ("version", "gpu", "expected"),
    [
        ("0.19.1", "gb300", (0.9, False, 1024, 8192, 512, False, 16)),
        ("0.20.0", "gb300", (0.92, True, 1024, 8192, 512, False, 16)),
        (NIGHTLY, "gb300", (0.92, True, 1024, 8192, 512, False, 16)),
        ("0.27.1", "gb300", (0.92, True, 1024, 8192, 512, False, 128)),
        ("0.28.0", "gb300", (0.92, True, 1024, 16384, 1024, True, 128)),
        ("0.28.0", "b200", (0.92, True, 1024, 16384, 1024, True, 128)),
        ("0.28.0", "h200", (0.92, True, 1024, 8192, 512, True, 128)),
        ("0.33.0", "h100", (0.92, True, 1024, 8192, 512, True, 128)),
    ],
)
def test_defaults(version: str, gpu: str, expected: tuple[object, ...]) -> None:
    defaults = facts.engine_defaults("vllm", version, facts.gpu(gpu))
    assert (
        defaults.gpu_memory_utilization.value,
        defaults.cudagraph_estimate_subtracted.value,
        defaults.max_num_seqs.value,
        defaults.max_num_batched_tokens.value,
        defaults.max_cudagraph_capture_size.value,
        defaults.prefix_caching_of_hybrids.value,
        defaults.mla_hybrid_kernel_block.value,
    ) == expected
    assert defaults.prefix_caching_of_attention_only.value is True
    assert defaults.cudagraph_mode.value == "FULL_AND_PIECEWISE"
    assert defaults.max_num_batched_tokens_of_batched_moe.value == 256


@pytest.mark.parametrize(
    ("version", "backend", "is_sequence_parallel"),
    [
        ("0.26.0", "allgather_reducescatter", True),
        ("0.26.0", "deepep_low_latency", True),
        ("0.26.0", "flashinfer_nvlink_one_sided", False),
        ("0.28.0", "flashinfer_nvlink_one_sided", False),
        ("0.29.0", "flashinfer_nvlink_one_sided", True),
        ("0.29.0", "flashinfer_nvlink_two_sided", False),
        ("0.30.0", "deepep_v2", False),
        ("0.31.0", "deepep_v2", True),
        ("0.32.0", "passthrough", True),
    ],
)
def test_sequence_parallel_moe(version: str, backend: str, is_sequence_parallel: bool) -> None:
    defaults = facts.engine_defaults("vllm", version, facts.gpu("gb300"))
    assert (backend in defaults.sequence_parallel_moe_backends.value) is is_sequence_parallel


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        (NIGHTLY, facts.PdBlockRule.EQUAL_KERNEL_BLOCKS),
        ("0.27.0", facts.PdBlockRule.DECODE_MULTIPLE_OF_PREFILL),
        ("0.27.1", facts.PdBlockRule.DECODE_MULTIPLE_OF_PREFILL),
    ],
)
def test_pairing_rule_of_hybrids(version: str, rule: facts.PdBlockRule) -> None:
    defaults = facts.engine_defaults("vllm", version, facts.gpu("gb300"))
    assert defaults.pd_block_rule_of_hybrids.value is rule


@pytest.mark.parametrize(
    ("gpu", "backend", "block", "kernel_block", "smallest"),
    [
        ("gb300", "FLASHINFER", 1088, 64, 16),
        ("gb300", "FLASHINFER", 2176, 128, 16),
        ("h200", "FLASHINFER", 2176, 64, 16),
        ("h200", "FLASH_ATTN", 2176, 2176, 16),
        ("h200", "FLASH_ATTN", 2180, None, 16),
        ("gb300", "FLASHINFER_MLA", 96, 32, 32),
        ("gb300", "FLASHMLA", 64, 64, 64),
        ("gb300", "CUTLASS_MLA", 64, None, 128),
    ],
)
def test_kernel_blocks(
    gpu: str, backend: str, block: int, kernel_block: int | None, smallest: int
) -> None:
    """The first two rows are why the article's TP8 and TP4 roles need one block size on 0.26."""
    defaults = facts.engine_defaults("vllm", "0.26.0", facts.gpu(gpu))
    blocks = defaults.kernel_blocks.value[backend]
    assert (blocks.within(block), blocks.smallest_tokens) == (kernel_block, smallest)


@pytest.mark.parametrize(
    ("gpu", "attention", "mla"),
    [("gb300", "FLASHINFER", "FLASHINFER_MLA"), ("h100", "FLASH_ATTN", "FLASH_ATTN_MLA")],
)
def test_attention_backend_by_gpu(gpu: str, attention: str, mla: str) -> None:
    defaults = facts.engine_defaults("vllm", "0.26.0", facts.gpu(gpu))
    assert (defaults.attention_backend.value, defaults.mla_attention_backend.value) == (
        attention,
        mla,
    )
    assert {attention, mla} <= set(defaults.kernel_blocks.value)


@pytest.mark.parametrize(
    ("engine", "version", "message", "hint"),
    [
        ("vlm", "0.26.0", "engine 'vlm' is not known", "did you mean 'vllm'?"),
        ("sglang", "0.26.0", "engine 'sglang' is not known", "known: vllm"),
        ("vllm", "0.11.0", "engine version 0.11.0 is older than any known", "the oldest is 0.19.1"),
        ("vllm", "latest", "'latest' is not an engine version", "write the release, for example"),
    ],
)
def test_unknown_engine_or_version(engine: str, version: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as error:
        facts.engine_defaults(engine, version, facts.gpu("gb300"))
    (problem,) = error.value.problems
    assert problem.message == message
    assert problem.hint.startswith(hint)


@pytest.mark.parametrize(
    ("since", "conditions", "fault"),
    [
        (["0.26.0", "0.28.0"], [0, 0], ""),
        (["0.26.0", "0.26.0"], [1, 0], ""),
        (["0.28.0", "0.26.0"], [0, 0], "releases must rise"),
        (["0.28.0"], [0], "must start at the first verified release and change only at one"),
        (["0.26.0", "0.27.0"], [0, 0], "must start at the first verified release"),
        (["0.26.0", "0.26.0"], [0, 0], "of the entries since 0.26.0 all but the last need"),
        (["0.26.0", "0.26.0"], [1, 1], "of the entries since 0.26.0 all but the last need"),
    ],
)
def test_defaults_must_cover_every_release_and_gpu(
    since: list[str], conditions: list[int], fault: str
) -> None:
    entries: list[Mapping[str, Any]] = [
        {"since": release_, **({"when": {}} if has_condition else {})}
        for release_, has_condition in zip(since, conditions, strict=True)
    ]
    found = _fault(entries, ["0.26.0", "0.28.0"])
    assert found.startswith(fault)
    assert bool(found) is bool(fault)


# --- estimates ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "hidden_size", "low", "value", "high"),
    [
        (96, 8192, 0.56, 2.24, 2.24),
        (1104, 8192, 0.56, 2.24, 2.24),
        (8192, 8192, 2.29, 9.16, 16.08),
        (16384, 8192, 4.29, 17.16, 32.08),
        (16384, 4096, 2.43, 9.70, 17.16),
    ],
)
def test_peak_activation_rule(
    tokens: int, hidden_size: int, low: float, value: float, high: float
) -> None:
    estimate = facts.memory_estimates("vllm").peak_activation(
        max_num_batched_tokens=tokens, hidden_size=hidden_size
    )
    figures = (
        estimate.low_bytes_per_rank,
        estimate.bytes_per_rank,
        estimate.high_bytes_per_rank,
    )
    assert tuple(round(gib(size), 2) for size in figures) == (low, value, high)
    assert estimate.uncertainty_bytes == max(figures[2] - figures[1], figures[1] - figures[0])


def test_estimates_are_at_least_what_the_article_measured() -> None:
    estimates = facts.memory_estimates("vllm")
    for run in facts.measured_profiles():
        assert estimates.cuda_context.bytes_per_rank >= run.cuda_context_bytes_per_rank
        assert estimates.non_torch.bytes_per_rank >= run.non_torch_bytes_per_rank
        graphs = estimates.cuda_graphs[run.key.cudagraph_mode]
        assert graphs.bytes_per_rank >= run.graph_reserved_bytes_per_rank
        activation = estimates.peak_activation(
            max_num_batched_tokens=run.key.max_num_batched_tokens, hidden_size=8192
        )
        assert activation.bytes_per_rank >= run.peak_activation_bytes_per_rank
        assert activation.low_bytes_per_rank <= run.peak_activation_bytes_per_rank


def test_no_graphs_need_no_memory() -> None:
    assert facts.memory_estimates("vllm").cuda_graphs["NONE"].high_bytes_per_rank == 0


# --- measured profiles -------------------------------------------------------------------------

# run, TP, DP, MTP, max-num-seqs, batched tokens; GiB: context, non-torch, weights, activation,
# graphs reserved, graphs used, KV cache (GB300 NVL72 Qwen3.8-2.4T article, memory tables).
ARTICLE = [
    (1, 8, 1, 3, 20, 96, 2.54, 0.72, 169.28, 0.57, 0.91, 0.59, 83.00),
    (2, 8, 1, 3, 32, 144, 2.54, 0.72, 169.28, 0.58, 1.28, 0.82, 82.63),
    (3, 8, 1, 3, 80, 336, 2.54, 1.19, 169.28, 0.56, 1.87, 1.88, 81.60),
    (4, 8, 1, 3, 272, 1104, 2.54, 2.40, 169.28, 1.91, 7.93, 6.04, 72.97),
    (5, 4, 4, 3, 80, 336, 3.13, 1.98, 108.71, 1.72, 8.35, 6.52, 133.74),
    (6, 4, 4, 3, 272, 1104, 3.13, 2.22, 108.71, 2.24, 7.56, 9.90, 133.77),
    (7, 4, 4, 0, 528, 544, 3.13, 2.90, 107.51, 1.83, 8.29, 7.51, 133.96),
    (8, 4, 4, 0, 656, 672, 3.13, 3.03, 107.51, 2.15, 8.95, 8.07, 132.85),
]


def _key(tensor: int, data: int, mtp: int, seqs: int, tokens: int) -> facts.ProfileKey:
    return facts.ProfileKey(
        engine="vllm",
        engine_version=NIGHTLY,
        model=QWEN38,
        gpu="gb300",
        tensor=tensor,
        data=data,
        pipeline=1,
        expert_parallel=True,
        num_speculative_tokens=mtp,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        cudagraph_mode="FULL_DECODE_ONLY",
        max_cudagraph_capture_size=seqs * (1 + mtp),
    )


@pytest.mark.parametrize("row", ARTICLE, ids=[f"run {row[0]}" for row in ARTICLE])
def test_article_row(row: tuple[Any, ...]) -> None:
    number, *settings = row[:6]
    profile = facts.find_profile(_key(*settings))
    assert profile is not None
    assert profile.name == f"run {number}"
    assert profile.graph_used_bytes_per_rank is not None
    printed = (
        profile.cuda_context_bytes_per_rank,
        profile.non_torch_bytes_per_rank,
        profile.weights_bytes_per_rank,
        profile.peak_activation_bytes_per_rank,
        profile.graph_reserved_bytes_per_rank,
        profile.graph_used_bytes_per_rank,
        profile.kv_cache_bytes_per_rank,
    )
    assert tuple(round(gib(size), 2) for size in printed) == row[6:]
    assert profile.source.startswith("GB300 NVL72 Qwen3.8-2.4T article")
    assert profile.as_of == "2026-08"


@pytest.mark.parametrize("profile", facts.measured_profiles(), ids=lambda profile: profile.name)
def test_terms_of_a_run_add_up(profile: facts.MeasuredProfile) -> None:
    requested = math.ceil(profile.engine_total_bytes * profile.gpu_memory_utilization)
    remainder = requested - (
        profile.weights_bytes_per_rank
        + profile.peak_activation_bytes_per_rank
        + profile.non_torch_bytes_per_rank
        + profile.graph_reserved_bytes_per_rank
    )
    assert abs(remainder - profile.kv_cache_bytes_per_rank) <= 0.02 * GIB
    assert profile.engine_total_bytes == facts.gpu(profile.key.gpu).engine_total.value


def test_there_are_eight_runs_with_eight_keys() -> None:
    assert len({profile.key for profile in facts.measured_profiles()}) == len(ARTICLE)


def test_a_key_that_was_not_measured_finds_nothing() -> None:
    assert facts.find_profile(_key(8, 1, 3, 21, 96)) is None
    assert facts.find_profile(_key(8, 1, 3, 20, 96), profiles=()) is None


def test_a_users_file_reads_like_the_packages_own() -> None:
    assert facts.read_profiles(PROFILE) == facts.measured_profiles()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("gpu: gb300", "gpu: gb303", "p.yaml:9: gpu: GPU 'gb303' is not known (did you mean"),
        ("83.00 GiB", "83.00 GB", "p.yaml:27: runs[0].memory.kv_cache: "),
        ("max_num_seqs: 20", "max_num_seq: 20", "'max_num_seqs' is required"),
    ],
)
def test_problems_of_a_users_file(tmp_path: Path, old: str, new: str, problem: str) -> None:
    text = PROFILE.read_text("utf-8")
    assert old in text
    file = tmp_path / "p.yaml"
    file.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(InvalidInput) as error:
        facts.read_profiles(file, "p.yaml")
    assert any(problem in str(each) for each in error.value.problems), error.value


def test_two_runs_with_one_key(tmp_path: Path) -> None:
    text = PROFILE.read_text("utf-8")
    head, first, *_ = text.split("  - name: ")
    file = tmp_path / "p.yaml"
    file.write_text(f"{head}  - name: {first}  - name: again{first.partition('run 1')[2]}", "utf-8")
    with pytest.raises(InvalidInput, match=r"p\.yaml:28: runs\[1\]: has the same settings as"):
        facts.read_profiles(file, "p.yaml")
