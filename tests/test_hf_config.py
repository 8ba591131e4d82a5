"""Real configs to architecture facts or a refusal, and what is said of broken ones."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.architecture import (
    DenseMlp,
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba2,
    MixtureOfExperts,
    ModelArchitecture,
    MultiHeadLatentAttention,
    WeightFormat,
)
from generator.errors import InvalidInput
from generator.hf_config import architecture_from_config, load_architecture

CONFIGS = Path(__file__).parent / "data" / "hf_configs"

# layers, attention, recurrent, draft layers, experts, linear format, KV dtype, state dtype
Facts = tuple[int, int, int, int, int, WeightFormat | None, str | None, str | None]
BF16, NVFP4, FP8 = None, WeightFormat.NVFP4, WeightFormat.FP8
FP8_BLOCK = WeightFormat.FP8_BLOCK
MODELS: dict[str, Facts] = {
    "Qwen--Qwen3-32B-FP8": (64, 64, 0, 0, 0, FP8_BLOCK, None, None),
    "Qwen--Qwen3-Next-80B-A3B": (48, 12, 36, 1, 512, BF16, None, "bfloat16"),
    "Qwen--Qwen3.5-122B-A10B": (48, 12, 36, 1, 256, BF16, None, "float32"),
    "Qwen--Qwen3.5-27B": (64, 16, 48, 1, 0, BF16, None, "float32"),
    "Qwen--Qwen3.5-35B-A3B": (40, 10, 30, 1, 256, BF16, None, "float32"),
    "Qwen--Qwen3.5-397B-A17B": (60, 15, 45, 1, 512, BF16, None, "float32"),
    "Qwen--Qwen3.8-2.4T-A95B-NVFP4": (92, 23, 69, 1, 512, NVFP4, None, "float32"),
    "deepseek-ai--DeepSeek-R1": (61, 61, 0, 1, 256, FP8_BLOCK, None, None),
    "meta-llama--Meta-Llama-3.1-70B": (80, 80, 0, 0, 0, BF16, None, None),
    "nvidia--Kimi-K2.5-NVFP4": (61, 61, 0, 0, 384, NVFP4, "fp8", None),
    "nvidia--MiniMax-M2.5-NVFP4": (62, 62, 0, 0, 256, NVFP4, "fp8", None),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (52, 6, 23, 0, 128, BF16, None, "float32"),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": (52, 6, 23, 0, 128, NVFP4, "fp8", "float32"),
    # The KV scheme of a file that names no producer does not count, as in vLLM.
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8": (88, 8, 40, 2, 512, FP8, None, "float32"),
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4": (
        (88, 8, 40, 2, 512, NVFP4, None, "float32")
    ),
    "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": (108, 12, 48, 2, 512, BF16, None, "float32"),
    "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4": (
        (108, 12, 48, 2, 512, NVFP4, None, "float32")
    ),
    "nvidia--Qwen3-235B-A22B-NVFP4": (94, 94, 0, 0, 128, NVFP4, "fp8", None),
    "nvidia--Qwen3.5-397B-A17B-NVFP4": (60, 15, 45, 1, 512, NVFP4, "fp8", "float32"),
}
REFUSED = {
    "deepseek-ai--DeepSeek-V4-Pro": {
        "index_topk": "sparse attention with an indexer",
        "compress_ratios": "compressed attention",
        "sliding_window": "sliding_attention",
    },
    "google--gemma-4-26B-A4B": {
        "text_config.layer_types[0]": "sliding_attention",
        "vision_config": "vision tower",
    },
    "moonshotai--Kimi-K3": {
        "text_config.linear_attn_config": "KDA linear attention",
        "vision_config.mm_projector_type": "patchmergerv2 projector",
    },
    "nvidia--GLM-5-NVFP4": {"index_topk": "sparse attention with an indexer"},
    "nvidia--MiniMax-M3-NVFP4": {
        "text_config.sparse_attention_config": "sparse attention",
        "vision_config": "vision tower",
    },
    "openai--gpt-oss-120b": {"layer_types[0]": "sliding_attention"},
}


def config_of(model: str) -> dict[str, Any]:
    content = json.loads((CONFIGS / model / "config.json").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def convert(config: Any, quant: Any = None) -> ModelArchitecture:
    return architecture_from_config(config, quant, source="m/config.json", name="M")


def problems_of(config: Any, quant: Any = None) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        convert(config, quant)
    return [str(problem) for problem in caught.value.problems]


def facts(model: ModelArchitecture) -> Facts:
    quantization = model.quantization
    return (
        len(model.layers),
        model.attention_layers,
        model.recurrent_layers,
        len(model.draft_layers),
        model.experts.num_experts if model.experts else 0,
        quantization.linear_format if quantization else None,
        quantization.kv_cache_dtype if quantization else None,
        model.recurrent_state_dtype,
    )


def test_every_config_has_a_row() -> None:
    assert {folder.name for folder in CONFIGS.iterdir()} == {*MODELS, *REFUSED}


@pytest.mark.parametrize("model", MODELS)
def test_facts_of(model: str) -> None:
    architecture = load_architecture(CONFIGS / model)
    assert facts(architecture) == MODELS[model]
    assert architecture.name == model
    assert architecture.dtype == "bfloat16"


@pytest.mark.parametrize("model", REFUSED)
def test_refusal_of(model: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_architecture(CONFIGS / model)
    messages = {problem.path: problem.message for problem in caught.value.problems}
    assert messages == {
        path: f"layer type {kind} of model {model} is not modelled"
        for path, kind in REFUSED[model].items()
    }
    assert all("nothing else is counted" in problem.hint for problem in caught.value.problems)


@pytest.mark.parametrize("model", [*MODELS, *REFUSED])
def test_the_trimmed_config_says_what_the_whole_one_says(model: str, shared: Path) -> None:
    outcomes = []
    for folder in (CONFIGS, shared / "models"):
        try:
            outcomes.append(repr(load_architecture(folder / model)))
        except InvalidInput as error:
            outcomes.append(repr([problem.message for problem in error.problems]))
    assert outcomes[0] == outcomes[1]


def test_dimensions_of_a_gated_delta_net_hybrid() -> None:
    model = load_architecture(CONFIGS / "Qwen--Qwen3.8-2.4T-A95B-NVFP4")
    assert model.attention == GroupedQueryAttention(
        num_attention_heads=64,
        num_key_value_heads=4,
        head_dim=256,
        has_output_gate=True,
        has_qk_norm=True,
    )
    assert model.recurrent == GatedDeltaNet(
        num_key_heads=16,
        num_value_heads=128,
        key_head_dim=128,
        value_head_dim=128,
        conv_kernel=4,
    )
    assert model.experts == MixtureOfExperts(
        num_experts=512,
        num_experts_per_tok=10,
        moe_intermediate_size=2048,
        shared_expert_intermediate_size=2048,
        has_shared_expert_gate=True,
    )
    assert model.signature == "qwen3_5_moe/92Lx8192/512E/nvfp4"
    assert [layer.mixer == model.attention for layer in model.layers[:4]] == [False] * 3 + [True]
    assert model.draft_layers == (model.layers[3],)


def test_dimensions_of_latent_attention() -> None:
    model = load_architecture(CONFIGS / "deepseek-ai--DeepSeek-R1")
    assert model.attention == MultiHeadLatentAttention(
        num_attention_heads=128,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        q_lora_rank=1536,
    )
    dense = [layer.mlp for layer in model.layers if isinstance(layer.mlp, DenseMlp)]
    assert dense == [DenseMlp(intermediate_size=18432)] * 3
    assert model.quantization is not None
    assert model.quantization.group_size == 128


def test_dimensions_of_a_mamba_hybrid_with_latent_experts() -> None:
    model = load_architecture(CONFIGS / "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8")
    assert model.recurrent == Mamba2(
        num_heads=128, head_dim=64, num_groups=8, state_size=128, conv_kernel=4, chunk_size=128
    )
    assert model.experts is not None
    assert model.experts.latent_size == 1024
    assert model.experts.shared_expert_intermediate_size == 5376
    assert not model.experts.is_gated
    assert [layer.mixer is None for layer in model.draft_layers] == [False, True]


def test_vision_towers() -> None:
    qwen = load_architecture(CONFIGS / "Qwen--Qwen3.5-27B").vision
    kimi = load_architecture(CONFIGS / "nvidia--Kimi-K2.5-NVFP4").vision
    assert qwen is not None
    assert (qwen.depth, qwen.out_hidden_size, qwen.num_position_embeddings) == (27, 5120, 2304)
    assert kimi is not None
    assert (kimi.depth, kimi.out_hidden_size, kimi.num_position_embeddings) == (27, 7168, 4096)
    assert load_architecture(CONFIGS / "Qwen--Qwen3-32B-FP8").vision is None


def test_both_spellings_of_a_nemotron_stack_agree() -> None:
    config = config_of("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8")
    letters = config.pop("hybrid_override_pattern")
    names = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
    spelt = {**config, "layers_block_type": [names[letter] for letter in letters]}
    assert convert(spelt) == convert({**config, "hybrid_override_pattern": letters})


def test_layer_types_and_the_interval_agree() -> None:
    config = config_of("Qwen--Qwen3.5-27B")
    listed = convert(config)
    del config["text_config"]["layer_types"]
    config["text_config"]["full_attention_interval"] = 4
    assert convert(config) == listed


# What may be set without changing the layers.
HARMLESS: dict[str, dict[str, Any]] = {
    "sliding window off": {"use_sliding_window": False, "sliding_window": 4096},
    "sliding window null": {"sliding_window": None},
    "layer types all full": {"layer_types": ["full_attention"] * 64},
    "head_dim as the hidden size gives it": {"head_dim": 5120 // 64, "hidden_size": 5120},
    "unknown field": {"rope_theta": {"a": [1, 2]}},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless(name: str) -> None:
    config = {**config_of("Qwen--Qwen3-32B-FP8"), **HARMLESS[name]}
    assert convert(config).attention_layers == 64


REFUSED_EDITS: dict[str, tuple[dict[str, Any], str]] = {
    "sliding window on": (
        {"use_sliding_window": True, "sliding_window": 4096},
        "sliding_window: layer type sliding_attention",
    ),
    "sliding window of a model that has no switch": (
        {"model_type": "mistral", "sliding_window": 4096},
        "sliding_window: layer type sliding_attention",
    ),
    "sliding layers": (
        {"layer_types": ["full_attention", "sliding_attention"] * 32},
        "layer_types[1]: layer type sliding_attention",
    ),
    "linear attention in a plain decoder": (
        {"layer_types": ["linear_attention"] * 64},
        "layer_types[0]: layer type linear_attention in a qwen3 decoder",
    ),
    "chunked attention": (
        {"attention_chunk_size": 8192},
        "attention_chunk_size: layer type chunked_attention",
    ),
    "lightning attention": (
        {"attn_type_list": [1, 0, 1]},
        "attn_type_list[1]: layer type lightning attention",
    ),
    "unknown model type": (
        {"model_type": "gemma9"},
        "model_type: layer type gemma9 decoder layer",
    ),
}


@pytest.mark.parametrize("name", REFUSED_EDITS)
def test_refused_edit(name: str) -> None:
    edit, expected = REFUSED_EDITS[name]
    (problem,) = problems_of({**config_of("Qwen--Qwen3-32B-FP8"), **edit})
    assert problem.startswith(f"m/config.json: {expected} of model M is not modelled (")


def test_an_unknown_letter_of_a_nemotron_stack_is_refused() -> None:
    config = config_of("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    config["hybrid_override_pattern"] = "MEX*"
    (problem,) = problems_of(config)
    assert "hybrid_override_pattern: layer type 'X' of model M is not modelled" in problem


MISSING = object()
# model: 0 dense Qwen3, 1 Qwen3.5 MoE, 2 DeepSeek, 3 Nemotron; path; value; what is said
DENSE, GDN = "Qwen--Qwen3-32B-FP8", "Qwen--Qwen3.5-122B-A10B"
MLA, MAMBA = "deepseek-ai--DeepSeek-R1", "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
BAD_FIELDS: list[tuple[str, str, Any, str]] = [
    (DENSE, "hidden_size", MISSING, "hidden_size: is missing (must be a positive integer)"),
    (DENSE, "hidden_size", None, "hidden_size: must be a positive integer, not null"),
    (DENSE, "hidden_size", 0, "hidden_size: must be a positive integer, not 0"),
    (DENSE, "hidden_size", -5120, "hidden_size: must be a positive integer, not -5120"),
    (DENSE, "hidden_size", True, "hidden_size: must be a positive integer, not true"),
    (DENSE, "hidden_size", 5120.0, "hidden_size: must be a positive integer, not 5120.0"),
    (
        DENSE,
        "hidden_size",
        "5120",
        "hidden_size: must be a positive integer, not the string '5120'",
    ),
    (DENSE, "hidden_size", [5120], "hidden_size: must be a positive integer, not a list"),
    (DENSE, "hidden_size", {"a": 1}, "hidden_size: must be a positive integer, not an object"),
    (
        DENSE,
        "num_key_value_heads",
        7,
        "num_key_value_heads: 7 does not divide the 64 of num_attention_heads",
    ),
    (DENSE, "num_hidden_layers", 10**9, "num_hidden_layers: must be at most 4096, not 1000000000"),
    (DENSE, "model_type", MISSING, "model_type: is missing (must be a string)"),
    (DENSE, "torch_dtype", MISSING, "dtype: is missing (must be a string)"),
    (
        DENSE,
        "torch_dtype",
        "int8",
        "torch_dtype: must be one of bfloat16, float16, float32, not 'int8'",
    ),
    (
        DENSE,
        "tie_word_embeddings",
        "no",
        "tie_word_embeddings: must be true or false, not the string 'no'",
    ),
    (
        DENSE,
        "layer_types",
        ["full_attention"] * 3,
        "layer_types: has 3 entries for 64 layers (one entry for each of num_hidden_layers)",
    ),
    (DENSE, "layer_types", "full", "layer_types: must be a list, not the string 'full'"),
    (DENSE, "quantization_config", [], "quantization_config: must be an object, not a list"),
    (
        DENSE,
        "quantization_config.quant_method",
        "awq",
        (
            "quantization_config.quant_method: quantisation method 'awq' is not modelled "
            "(known are modelopt (NVFP4, FP8), compressed-tensors (NVFP4, MXFP4, FP8) and fp8)"
        ),
    ),
    (
        DENSE,
        "quantization_config.weight_block_size",
        [128, 64],
        (
            "quantization_config.weight_block_size: must be two equal positive integers "
            "(such as [128, 128])"
        ),
    ),
    (
        DENSE,
        "quantization_config.modules_to_not_convert",
        ["re:(", "lm_head"],
        "quantization_config.modules_to_not_convert[0]: is not a regular expression",
    ),
    (GDN, "text_config", [], "text_config: must be an object, not a list"),
    (
        GDN,
        "text_config.num_key_value_heads",
        "2",
        "text_config.num_key_value_heads: must be a positive integer, not the string '2'",
    ),
    (
        GDN,
        "text_config.layer_types",
        ["linear_attention"] * 47,
        (
            "text_config.layer_types: has 47 entries for 48 layers "
            "(one entry for each of num_hidden_layers)"
        ),
    ),
    (
        GDN,
        "text_config.layer_types",
        MISSING,
        "text_config.full_attention_interval: is missing (must be a positive integer)",
    ),
    (
        GDN,
        "text_config.linear_num_key_heads",
        24,
        "text_config.linear_num_key_heads: 24 does not divide the 64 of linear_num_value_heads",
    ),
    (
        GDN,
        "text_config.num_experts_per_tok",
        300,
        "text_config.num_experts_per_tok: is 300, more than the 256 of num_experts",
    ),
    (
        GDN,
        "text_config.mtp_num_hidden_layers",
        -1,
        "text_config.mtp_num_hidden_layers: must be an integer of at least 0, not -1",
    ),
    (
        GDN,
        "text_config.mamba_ssm_dtype",
        "fp32",
        "text_config.mamba_ssm_dtype: must be one of float32, bfloat16, float16, not 'fp32'",
    ),
    (
        GDN,
        "text_config.mlp_only_layers",
        ["1"],
        "text_config.mlp_only_layers[0]: must be an integer, not the string '1'",
    ),
    (
        GDN,
        "vision_config.depth",
        0,
        "vision_config.depth: must be a positive integer, not 0",
    ),
    (MLA, "kv_lora_rank", None, "kv_lora_rank: must be a positive integer, not null"),
    (
        MLA,
        "moe_layer_freq",
        [0, 1],
        "moe_layer_freq: has 2 entries for 61 layers",
    ),
    (
        MAMBA,
        "hybrid_override_pattern",
        MISSING,
        "hybrid_override_pattern: is missing (the layers stand there or in layers_block_type)",
    ),
    (
        MAMBA,
        "num_hidden_layers",
        51,
        "num_hidden_layers: is 51, but the layer pattern has 52 layers",
    ),
    (MAMBA, "n_groups", 7, "n_groups: 7 does not divide the 64 of mamba_num_heads"),
]


def edited(model: str, path: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(config_of(model))
    *parents, name = path.split(".")
    place = config
    for parent in parents:
        place = place[parent]
    if value is MISSING:
        del place[name]
    else:
        place[name] = value
    return config


@pytest.mark.parametrize(
    ("model", "path", "value", "expected"),
    BAD_FIELDS,
    ids=[
        f"{path}={'missing' if value is MISSING else str(value)[:20]}"
        for _, path, value, _ in BAD_FIELDS
    ],
)
def test_bad_field(model: str, path: str, value: Any, expected: str) -> None:
    assert problems_of(edited(model, path, value)) == [f"m/config.json: {expected}"]


def test_all_problems_of_both_files_are_told_at_once() -> None:
    config = config_of("Qwen--Qwen3.8-2.4T-A95B-NVFP4")
    config["text_config"] |= {"hidden_size": 0, "num_key_value_heads": 5, "vocab_size": None}
    config["text_config"]["linear_num_value_heads"] = "128"
    quant = {"quantization": {"quant_algo": "INT3", "kv_cache_quant_algo": "INT8"}}
    with pytest.raises(InvalidInput) as caught:
        convert(config, quant)
    found = {problem.path: (problem.source, problem.message) for problem in caught.value.problems}
    count, main, beside = (
        "must be a positive integer, not",
        "m/config.json",
        "m/hf_quant_config.json",
    )
    assert found == {
        "text_config.hidden_size": (main, f"{count} 0"),
        "text_config.num_key_value_heads": (
            (main, "5 does not divide the 64 of num_attention_heads")
        ),
        "text_config.linear_num_value_heads": (main, f"{count} the string '128'"),
        "text_config.vocab_size": (main, f"{count} null"),
        "quantization.quant_algo": (beside, "quantisation method 'INT3' is not modelled"),
        "quantization.kv_cache_quant_algo": (beside, "KV cache scheme 'INT8' is not modelled"),
    }


def test_text_from_the_file_stays_on_one_printable_line() -> None:
    config = {**config_of(DENSE), "model_type": "evil\n\x1b[31m\ud800" + "x" * 1000}
    (problem,) = problems_of(config)
    assert "\n" not in problem
    problem.encode("utf-8")
    assert len(problem) < 600


def test_many_wrong_entries_are_summed_up() -> None:
    problems = problems_of({**config_of(DENSE), "layer_types": [1] * 64})
    assert len(problems) == 4
    assert problems[-1].endswith("layer_types: 61 further entries are not a string")


def compressed(**weights: Any) -> dict[str, Any]:
    group = {"weights": weights, "targets": ["Linear"]}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}


QUANTIZED: dict[str, tuple[dict[str, Any], WeightFormat, int | None, str | None]] = {
    "fp8 per tensor": ({"quant_method": "fp8"}, FP8, None, None),
    "fp8 blocks": ({"quant_method": "fp8", "weight_block_size": [64, 64]}, FP8_BLOCK, 64, None),
    "modelopt NVFP4": (
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"},
        NVFP4,
        16,
        "nvfp4",
    ),
    "modelopt FP8 in blocks": (
        {"quant_method": "modelopt", "quant_algo": "fp8_pb_wo"},
        FP8_BLOCK,
        128,
        None,
    ),
    "nothing but a KV scheme": (
        {"quant_algo": None, "kv_cache_quant_algo": "FP8", "quant_method": "modelopt"},
        WeightFormat.BF16,
        None,
        "fp8",
    ),
    "the layout of hf_quant_config.json inside config.json": (
        {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None}},
        FP8,
        None,
        None,
    ),
    "compressed-tensors NVFP4": (
        {
            **compressed(type="float", num_bits=4, group_size=16, strategy="tensor_group"),
            "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        },
        NVFP4,
        16,
        "fp8",
    ),
    "compressed-tensors MXFP4": (
        compressed(type="float", num_bits=4, group_size=32, strategy="group"),
        WeightFormat.MXFP4,
        32,
        None,
    ),
    "compressed-tensors FP8 per channel": (
        compressed(type="float", num_bits=8, strategy="channel"),
        FP8,
        None,
        None,
    ),
    "compressed-tensors FP8 in blocks": (
        compressed(type="float", num_bits=8, strategy="block", block_structure=[128, 128]),
        FP8_BLOCK,
        128,
        None,
    ),
}


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantization(name: str) -> None:
    block, stored_as, group_size, kv_cache_dtype = QUANTIZED[name]
    quantization = convert({**config_of(DENSE), "quantization_config": block}).quantization
    assert quantization is not None
    assert quantization.linear_format is stored_as
    assert quantization.group_size == group_size
    assert quantization.kv_cache_dtype == kv_cache_dtype


UNKNOWN_QUANTIZATION: dict[str, tuple[dict[str, Any], str]] = {
    "no method": ({}, "quantization_config.quant_method: is missing"),
    "mixed precision": (
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        "quantization_config.quant_algo: quantisation method 'MIXED_PRECISION' is not modelled",
    ),
    "integers": (
        compressed(type="int", num_bits=4, group_size=128, strategy="group"),
        (
            "quantization_config.config_groups.group_0.weights: quantisation to 4-bit int weights "
            "is not modelled"
        ),
    ),
    "no groups": (
        {"quant_method": "compressed-tensors"},
        "quantization_config.config_groups: is missing",
    ),
    "empty groups": (
        {"quant_method": "compressed-tensors", "config_groups": {}},
        "quantization_config.config_groups: must agree on one format",
    ),
    "a group without weights": (
        {"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"]}}},
        "quantization_config.config_groups.g.weights: is missing",
    ),
    "an integer KV cache": (
        {**compressed(type="float", num_bits=8, strategy="tensor"), "kv_cache_scheme": {"a": 1}},
        "quantization_config.kv_cache_scheme: only 8-bit floats are modelled",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN_QUANTIZATION)
def test_unknown_quantization(name: str) -> None:
    block, expected = UNKNOWN_QUANTIZATION[name]
    (problem,) = problems_of({**config_of(DENSE), "quantization_config": block})
    assert problem.split(" (")[0] == f"m/config.json: {expected}"


def test_config_json_comes_before_hf_quant_config() -> None:
    quant = {"quantization": {"quant_algo": "NVFP4"}}
    config = config_of(DENSE)
    assert convert(config, quant) == convert(config)
    del config["quantization_config"]
    quantization = convert(config, quant).quantization
    assert quantization is not None
    assert quantization.linear_format is NVFP4


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "config.json:1: is not valid JSON: expecting value"),
    "truncated": (b'{\n "a": 1,\n "b": ', "config.json:3: is not valid JSON: expecting value"),
    "cut inside a string": (b'{\n"a', "config.json:2: is not valid JSON: unterminated string"),
    "a list": (b"[1]", "config.json:1: must hold a JSON object at its top"),
    "null": (b"null", "config.json:1: must hold a JSON object at its top"),
    "not UTF-8": (b'{\n"a": "\xff"}', "config.json:2: is not UTF-8 text"),
    "binary": (bytes(range(256)), "config.json"),
    "nested too deeply": (
        b'{"a":' + b"[" * 100_000,
        "config.json: is not usable JSON: nested too deeply",
    ),
    "a number too long": (
        b'{"a": ' + b"9" * 5000 + b"}",
        "config.json: is not usable JSON: a number too long",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file(name: str, tmp_path: Path) -> None:
    content, expected = BAD_FILES[name]
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        load_architecture(tmp_path)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"{tmp_path}/{expected}")


def test_missing_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path, message in {
        tmp_path / "nowhere": "there is no such file",
        tmp_path / "folder": "the folder has no config.json",
        tmp_path / ("x" * 5000): "cannot be read: file name too long",
        Path("nul\0byte"): "there is no such file",
    }.items():
        with pytest.raises(InvalidInput) as caught:
            load_architecture(path)
        (problem,) = caught.value.problems
        assert problem.message == message
        assert problem.hint == "give a Hugging Face model folder or its config.json"


def test_a_folder_named_config_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(InvalidInput) as caught:
        load_architecture(tmp_path)
    (problem,) = caught.value.problems
    assert problem.message == "cannot be read: is a directory"


def test_a_broken_neighbour_is_told_with_the_problems_of_the_config(tmp_path: Path) -> None:
    config = {**config_of(DENSE), "hidden_size": 0}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "hf_quant_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        load_architecture(tmp_path / "config.json")
    assert [(problem.path, problem.line) for problem in caught.value.problems] == [
        ("", 1),
        ("hidden_size", 0),
    ]


def test_a_config_json_is_named_after_its_folder() -> None:
    file = CONFIGS / DENSE / "config.json"
    assert load_architecture(file) == load_architecture(file.parent)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values),
    max_leaves=6,
)


def paths_of(config: dict[str, Any], prefix: str = "") -> list[str]:
    paths = []
    for name, value in config.items():
        paths.append(prefix + name)
        if isinstance(value, dict):
            paths += paths_of(value, f"{prefix}{name}.")
    return paths


ANY_FIELD = [(model, path) for model in MODELS for path in paths_of(config_of(model))]


@given(place=st.sampled_from(ANY_FIELD), value=JSON_VALUES)
def test_no_value_of_any_field_crashes(place: tuple[str, str], value: Any) -> None:
    model, path = place
    problems: list[str] = []
    try:
        convert(edited(model, path, value))
    except InvalidInput as error:
        problems = [str(problem) for problem in error.problems]
    assert all(problem.isprintable() for problem in problems)


@given(config=st.dictionaries(st.text(max_size=8), JSON_VALUES))
def test_no_object_crashes(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        convert(config)
