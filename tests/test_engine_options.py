"""Engine flags in every spelling a recipe or a command line uses, and values that are none."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from generator.engine.options import EngineOptions, options_from_flags
from generator.errors import InvalidInput
from generator.parallel import ParallelLayout

DRAFTS = "speculative-config.num-speculative-tokens"


def test_no_flags_leave_everything_to_the_engine() -> None:
    assert options_from_flags({}) == EngineOptions(layout=ParallelLayout())


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ({"max-num-seqs": 80}, "max_num_seqs", 80),
        ({"max_num_seqs": 80}, "max_num_seqs", 80),
        ({"max-num-seqs": "80"}, "max_num_seqs", 80),
        ({"max-num-seqs": None}, "max_num_seqs", None),
        ({"max-model-len": 10240}, "max_model_len", 10240),
        ({"max-num-batched-tokens": 336}, "max_num_batched_tokens", 336),
        ({"max-cudagraph-capture-size": 320}, "max_cudagraph_capture_size", 320),
        ({"block-size": 2176}, "block_size", 2176),
        ({"kv-cache-memory-bytes": 10**11}, "kv_cache_memory_bytes", 10**11),
        ({"gpu-memory-utilization": 0.9}, "gpu_memory_utilization", 0.9),
        ({"gpu-memory-utilization": 1}, "gpu_memory_utilization", 1.0),
        ({"kv-cache-dtype": "fp8"}, "kv_cache_dtype", "fp8"),
        ({"mamba-ssm-cache-dtype": "bfloat16"}, "mamba_ssm_cache_dtype", "bfloat16"),
        ({"mamba-cache-dtype": "float32"}, "mamba_cache_dtype", "float32"),
        ({"all2all-backend": "deepep"}, "all2all_backend", "deepep"),
        ({"attention-backend": "FLASHINFER"}, "attention_backend", "FLASHINFER"),
        ({"language-model-only": True}, "language_model_only", True),
        ({"enable-prefix-caching": True}, "enable_prefix_caching", True),
        ({"enable-prefix-caching": False}, "enable_prefix_caching", None),
        ({"no-enable-prefix-caching": True}, "enable_prefix_caching", False),
        ({"no_enable_prefix_caching": False}, "enable_prefix_caching", None),
        ({}, "enable_prefix_caching", None),
        ({"disable-hybrid-kv-cache-manager": True}, "hybrid_kv_cache_manager_disabled", True),
        ({"no-disable-hybrid-kv-cache-manager": True}, "hybrid_kv_cache_manager_disabled", False),
        ({"speculative_config.num_speculative_tokens": 3}, "num_speculative_tokens", 3),
        ({"speculative-config": {"num_speculative_tokens": 3}}, "num_speculative_tokens", 3),
        ({"speculative-config": '{"num_speculative_tokens": 3}'}, "num_speculative_tokens", 3),
        ({"speculative_config.num_speculative_tokens": 0}, "num_speculative_tokens", 0),
        ({"compilation-config": {"cudagraph_mode": "FULL"}}, "cudagraph_mode", "FULL"),
        ({"compilation-config": ' {"cudagraph_mode": "FULL"}'}, "cudagraph_mode", "FULL"),
        ({"compilation_config.cudagraph_mode": "FULL"}, "cudagraph_mode", "FULL"),
        ({"cudagraph_mode": "PIECEWISE"}, "cudagraph_mode", "PIECEWISE"),
        ({"enforce-eager": True, "cudagraph-mode": "FULL"}, "cudagraph_mode", "NONE"),
        ({"enforce-eager": False}, "cudagraph_mode", None),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_flag(flags: dict[str, Any], field: str, value: Any) -> None:
    options = options_from_flags(flags)
    assert getattr(options, field) == value
    assert type(getattr(options, field)) is type(value)
    others = [each.name for each in fields(options) if each.name != field]
    untouched = EngineOptions(layout=ParallelLayout())
    assert all(getattr(options, name) == getattr(untouched, name) for name in others)


def test_layout_of_the_flags_srt_slurm_recipes_carry() -> None:
    options = options_from_flags(
        {
            "tensor-parallel-size": 4,
            "pipeline_parallel_size": 2,
            "data-parallel-size": "8",
            "decode-context-parallel-size": 2,
            "enable-expert-parallel": True,
        }
    )
    assert options.layout == ParallelLayout(
        tensor=4, pipeline=2, data=8, decode_context=2, expert_parallel=True
    )


@pytest.mark.parametrize(
    "flags",
    [
        {"kv-transfer-config": '{"kv_connector": "NixlConnector"}'},
        {"kv-transfer-config": "{cut off"},
        {"served-model-name": "[x]"},
        {"compilation-config": '["not a mapping"]'},
        {"compilation-config": {"cudagraph_mode": None}},
        {"": None, "a.b.c": 1},
    ],
    ids=str,
)
def test_flags_that_do_not_bear_on_memory(flags: dict[str, Any]) -> None:
    assert options_from_flags(flags) == EngineOptions(layout=ParallelLayout())


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"max-num-seqs": 0}, "max-num-seqs must be a whole number of at least 1, got 0"),
        ({"max-num-seqs": True}, "max-num-seqs must be a whole number of at least 1, got True"),
        ({"max-num-seqs": 1.0}, "max-num-seqs must be a whole number of at least 1, got 1.0"),
        ({"max-num-seqs": "-1"}, "max-num-seqs must be a whole number of at least 1, got '-1'"),
        ({"max-num-seqs": [1]}, "max-num-seqs must be a whole number of at least 1, got [1]"),
        (
            {"speculative_config.num_speculative_tokens": -1},
            f"{DRAFTS} must be a whole number of at least 0, got -1",
        ),
        (
            {"gpu-memory-utilization": 92},
            "gpu-memory-utilization must be a share above 0 and at most 1, got 92",
        ),
        (
            {"gpu-memory-utilization": float("nan")},
            "gpu-memory-utilization must be a share above 0 and at most 1, got nan",
        ),
        (
            {"gpu-memory-utilization": True},
            "gpu-memory-utilization must be a share above 0 and at most 1, got True",
        ),
        ({"kv-cache-dtype": 8}, "kv-cache-dtype must be a word, got 8"),
        ({"language-model-only": 1}, "language-model-only must be true or false, got 1"),
        (
            {"no-enable-prefix-caching": "yes"},
            "no-enable-prefix-caching must be true or false, got 'yes'",
        ),
        ({"enforce-eager": "x"}, "enforce-eager must be true or false, got 'x'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_value_that_is_none(flags: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput) as error:
        options_from_flags(flags)
    assert [each.message for each in error.value.problems] == [problem]


def test_all_wrong_flags_at_once() -> None:
    with pytest.raises(InvalidInput) as error:
        options_from_flags({"max-num-seqs": 0, "kv-cache-dtype": 8, "block_size": "x"})
    assert [each.path for each in error.value.problems] == [
        "kv-cache-dtype",
        "block-size",
        "max-num-seqs",
    ]


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"num-gpu-blocks-override": 100}, ("num-gpu-blocks-override",)),
        ({"cudagraph_capture_sizes": [1, 2]}, ("cudagraph-capture-sizes",)),
        (
            {"compilation-config": '{"cudagraph_capture_sizes": [1, 2]}'},
            ("compilation-config.cudagraph-capture-sizes",),
        ),
        (
            {"hf-overrides": {"num_layers": 2}, "cpu-offload-gb": 50},
            ("cpu-offload-gb", "hf-overrides"),
        ),
        ({"enable-eplb": False}, ()),
        ({"seed": 1}, ()),
    ],
)
def test_flags_that_are_not_modelled_are_named(
    flags: dict[str, Any], named: tuple[str, ...]
) -> None:
    assert options_from_flags(flags).unmodelled_flags == named


def test_cache_mode_and_block_of_recurrent_layers() -> None:
    options = options_from_flags({"mamba-cache-mode": "align", "mamba_block_size": 4096})
    assert (options.mamba_cache_mode, options.mamba_block_size) == ("align", 4096)
