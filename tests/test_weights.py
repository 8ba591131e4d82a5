"""Bytes of weights on a rank against vLLM's own, and the accounting behind them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from generator.architecture import (
    DenseMlp,
    GatedDeltaNet,
    GroupedQueryAttention,
    Layer,
    Mamba2,
    Mixer,
    MixtureOfExperts,
    Mlp,
    ModelArchitecture,
    MultiHeadLatentAttention,
    Quantization,
    VisionTower,
    WeightFormat,
)
from generator.errors import InvalidInput
from generator.hf_config import load_architecture
from generator.quantization import matrix_bytes, module_patterns
from generator.units import GIB
from generator.weights import WeightFootprint, parameter_counts, weight_footprint

DATA = Path(__file__).parent / "data"
CONFIGS = DATA / "hf_configs"
ARTICLE_MODEL = "Qwen--Qwen3.8-2.4T-A95B-NVFP4"
MODELLED = {
    "Qwen--Qwen3-32B-FP8": (32.8, 32.8),
    "Qwen--Qwen3-Next-80B-A3B": (79.7, 3.9),
    "Qwen--Qwen3.5-122B-A10B": (122.1, 9.8),
    "Qwen--Qwen3.5-27B": (26.9, 26.9),
    "Qwen--Qwen3.5-35B-A3B": (34.7, 3.5),
    "Qwen--Qwen3.5-397B-A17B": (396.3, 17.4),
    "Qwen--Qwen3.8-2.4T-A95B-NVFP4": (2419.8, 95.3),
    "deepseek-ai--DeepSeek-R1": (671.0, 37.6),
    "meta-llama--Meta-Llama-3.1-70B": (70.6, 70.6),
    "nvidia--Kimi-K2.5-NVFP4": (1026.4, 32.9),
    "nvidia--MiniMax-M2.5-NVFP4": (228.7, 11.0),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.6, 3.6),
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8": (120.7, 12.8),
    "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": (549.3, 56.1),
    "nvidia--Qwen3-235B-A22B-NVFP4": (235.1, 22.2),
}
"""Parameters in all and active, in billions; the model names say the same in round numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    expert_parallel: bool = False

    @property
    def expert(self) -> int:
        return self.tensor * self.data if self.expert_parallel else 1


def model(name: str) -> ModelArchitecture:
    return load_architecture(CONFIGS / name)


def rows_of(file: str, key: str) -> list[dict[str, Any]]:
    content = json.loads((DATA / file).read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = content[key]
    return rows


def by_component(footprint: WeightFootprint) -> dict[str, int]:
    return {item.component: item.bytes_per_rank for item in footprint.items}


def sharding_of(footprint: WeightFootprint) -> dict[str, str]:
    return {item.component: item.sharding for item in footprint.items}


def record_id(record: dict[str, Any]) -> str:
    ep = "+EP" if record["expert_parallel"] else ""
    spec = record["speculative_tokens"]
    return f"{record['model']}-TP{record['tensor']}DP{record['data']}{ep}-mtp{spec}"


def footprint_of_record(record: dict[str, Any]) -> WeightFootprint:
    return weight_footprint(
        model(record["model"]),
        Layout(
            tensor=record["tensor"],
            data=record["data"],
            expert_parallel=record["expert_parallel"],
        ),
        speculative_tokens=record["speculative_tokens"],
        language_model_only=True,
        sequence_parallel_moe=record["sequence_parallel_moe"],
    )


@pytest.mark.parametrize("record", rows_of("weights_vllm_0_26.json", "records"), ids=record_id)
def test_vllm_record(record: dict[str, Any]) -> None:
    footprint = footprint_of_record(record)
    assert by_component(footprint) == record["bytes_per_rank"]
    rotary = record["rotary_cache_bytes_per_rank"]
    assert footprint.total_bytes_per_rank == record["total_bytes_per_rank"] - rotary


def test_the_figures_are_those_of_the_reference(shared: Path) -> None:
    content = json.loads((shared / "truth" / "vllm_weights.json").read_text(encoding="utf-8"))
    records = rows_of("weights_vllm_0_26.json", "records")
    totals = [record["total_bytes_per_rank"] for record in records]
    assert totals == [record["total_bytes"] for record in content["records"]]
    for record, reference in zip(records, content["records"], strict=True):
        categories = reference["per_category_bytes"].items()
        experts = sum(size for name, size in categories if name.startswith("mlp.experts."))
        assert record["bytes_per_rank"]["routed experts"] == experts


@pytest.mark.parametrize(
    "row",
    rows_of("weights_article.json", "rows"),
    ids=lambda row: f"{row['layout']}-mtp{row['speculative_tokens']}",
)
def test_measured_weights_of_the_article(row: dict[str, Any]) -> None:
    footprint = weight_footprint(
        model(ARTICLE_MODEL),
        Layout(tensor=row["tensor"], data=row["data"], expert_parallel=True),
        speculative_tokens=row["speculative_tokens"],
        language_model_only=True,
        sequence_parallel_moe=True,
    )
    weights_gib = footprint.total_bytes_per_rank / GIB
    assert weights_gib == pytest.approx(row["weights_gib"], rel=0.002)
    # What is missing fits a rotary cache of 262144 positions x 64 dimensions in FP32.
    assert weights_gib + 0.0625 == pytest.approx(row["weights_gib"], abs=0.01)


def test_gdn_and_attention_of_the_article_are_decimal_gigabytes() -> None:
    parts = by_component(weight_footprint(model(ARTICLE_MODEL), Layout()))
    assert parts["GDN"] / 1e9 == pytest.approx(60, abs=0.6)
    assert parts["attention"] / 1e9 == pytest.approx(19, abs=0.4)
    assert parts["routed experts"] / GIB == pytest.approx(1242, abs=0.5)


@pytest.mark.parametrize("name", MODELLED)
def test_parameters_of(name: str) -> None:
    counts = parameter_counts(model(name))
    total, active = MODELLED[name]
    assert counts.total / 1e9 == pytest.approx(total, abs=0.051)
    assert counts.active / 1e9 == pytest.approx(active, abs=0.051)
    title = re.search(r"(?P<total>[\d.]+)(?P<unit>[BT])(?:-A(?P<active>\d+)B)?", name)
    if title is not None:
        unit = 1e12 if title["unit"] == "T" else 1e9
        assert counts.total == pytest.approx(float(title["total"]) * unit, rel=0.06)
        if title["active"]:
            assert counts.active / 1e9 == pytest.approx(float(title["active"]), rel=0.08, abs=0.9)


def test_quantisation_does_not_change_the_parameters() -> None:
    wide = model("Qwen--Qwen3.5-397B-A17B")
    narrow = model("nvidia--Qwen3.5-397B-A17B-NVFP4")
    assert parameter_counts(wide) == parameter_counts(narrow)


PER_PARAMETER = {
    (WeightFormat.BF16, None): Fraction(2),
    (WeightFormat.FP16, None): Fraction(2),
    (WeightFormat.FP32, None): Fraction(4),
    (WeightFormat.FP8, None): Fraction(1),
    (WeightFormat.FP8_BLOCK, None): 1 + Fraction(4, 128 * 128),
    (WeightFormat.FP8_BLOCK, 64): 1 + Fraction(4, 64 * 64),
    (WeightFormat.NVFP4, None): Fraction(1, 2) + Fraction(1, 16),
    (WeightFormat.MXFP4, None): Fraction(1, 2) + Fraction(1, 32),
}


@pytest.mark.parametrize(("stored_as", "group_size"), PER_PARAMETER)
def test_bytes_per_parameter(stored_as: WeightFormat, group_size: int | None) -> None:
    expected = PER_PARAMETER[stored_as, group_size] * 256 * 1024
    assert matrix_bytes(stored_as, 256, 1024, group_size) == expected


def test_a_group_begun_counts_whole() -> None:
    assert matrix_bytes(WeightFormat.NVFP4, 3, 17) == 26 + 3 * 2
    assert matrix_bytes(WeightFormat.FP8_BLOCK, 129, 128) == 129 * 128 + 2 * 4


EXPERT = "model.layers.3.mlp.experts.0.up_proj"
PATTERNS: list[tuple[str, str, bool]] = [
    ("lm_head", "lm_head", True),
    ("model.layers.3.mlp.experts", EXPERT, True),
    ("model.layers.3.mlp.expert", EXPERT, False),
    ("model.layers.3", "model.layers.31.mlp.down_proj", False),
    ("model.layers.1*", "model.layers.12.mlp.down_proj", True),
    ("*mlp.experts*", EXPERT, True),
    ("model.layers.*.mlp", EXPERT, True),
    ("model.layers.?.mlp", "model.layers.12.mlp.up_proj", False),
    ("*self_attn*", EXPERT, False),
    ("experts", EXPERT, True),
    ("model.language_model.layers.3.mlp*", EXPERT, True),
    ("language_model.model.layers.3.mlp.experts", EXPERT, True),
    ("backbone.layers.3.mixer.in_proj", "model.layers.3.mixer.in_proj", True),
    ("model.layers.3.block_sparse_moe.experts*", EXPERT, True),
    ("*.mlp.shared_experts.*", "model.layers.0.mlp.shared_expert.up_proj", True),
    ("re:.*mlp\\.(gate|up)_proj.*", "model.layers.0.mlp.up_proj", True),
    ("re:.*mlp\\.(gate|up)_proj.*", EXPERT, False),
    ("re:.*shared_experts.*", "model.layers.0.mlp.shared_expert.up_proj", True),
    ("re:model\\.language_model\\..*", EXPERT, True),
    ("re:mlp", EXPERT, False),
]


@pytest.mark.parametrize(("pattern", "module", "excluded"), PATTERNS)
def test_exclusion_pattern(pattern: str, module: str, excluded: bool) -> None:
    quantization = Quantization(
        linear_format=WeightFormat.NVFP4, excluded_modules=("nothing", pattern)
    )
    assert module_patterns(quantization).match(module) is excluded


def test_exclusions_of_real_checkpoints_keep_modules_wide() -> None:
    for name, wide, narrow in [
        ("nvidia--Qwen3.5-397B-A17B-NVFP4", ("attention", "GDN", "shared expert", "MTP"), ()),
        ("nvidia--Kimi-K2.5-NVFP4", ("attention",), ("shared expert", "dense MLP")),
        ("nvidia--MiniMax-M2.5-NVFP4", ("attention",), ()),
        ("nvidia--Qwen3-235B-A22B-NVFP4", (), ("attention",)),
    ]:
        quantized = model(name)
        plain = replace(quantized, quantization=None)
        sizes = by_component(weight_footprint(quantized, Layout(), speculative_tokens=1))
        whole = by_component(weight_footprint(plain, Layout(), speculative_tokens=1))
        for component in wide:
            assert sizes[component] == pytest.approx(whole[component], rel=1e-6)
        for component in (*narrow, "routed experts"):
            assert sizes[component] == pytest.approx(whole[component] * 9 / 32, rel=0.01)


def test_some_layers_of_a_checkpoint_may_stay_wide() -> None:
    """Nemotron Nano NVFP4 keeps 6 of 23 Mamba layers and all attention in BF16."""
    narrow = by_component(
        weight_footprint(model("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4"), Layout())
    )
    wide = by_component(
        weight_footprint(model("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"), Layout())
    )
    assert narrow["attention"] == pytest.approx(wide["attention"], rel=1e-6)
    share = (6 + 17 * 9 / 32) / 23
    assert narrow["Mamba"] / wide["Mamba"] == pytest.approx(share, rel=0.01)


def test_the_largest_pipeline_stage_is_reported() -> None:
    llama = model("meta-llama--Meta-Llama-3.1-70B")
    whole = by_component(weight_footprint(llama, Layout()))
    half = by_component(weight_footprint(llama, Layout(pipeline=2)))
    assert "embeddings" not in half  # the last stage has the final norm, one vector more
    assert half["head"] == whole["head"]
    assert half["dense MLP"] * 2 == whole["dense MLP"]
    # Hybrid classes of vLLM build the embedding on each stage.
    qwen = weight_footprint(model(ARTICLE_MODEL), Layout(pipeline=4, expert_parallel=True))
    assert {"embeddings", "head"} <= by_component(qwen).keys()


def test_the_draft_layers_sit_on_the_last_stage_with_an_embedding_of_their_own() -> None:
    qwen = model(ARTICLE_MODEL)
    alone = by_component(weight_footprint(qwen, Layout(), speculative_tokens=1))
    staged = by_component(weight_footprint(qwen, Layout(pipeline=2), speculative_tokens=1))
    assert staged["MTP"] - alone["MTP"] == 248320 * 8192 * 2


def test_draft_layers_count_only_with_speculation() -> None:
    for name in ("deepseek-ai--DeepSeek-R1", "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8"):
        off = by_component(weight_footprint(model(name), Layout()))
        on = by_component(weight_footprint(model(name), Layout(), speculative_tokens=3))
        assert "MTP" not in off
        assert on == {**off, "MTP": on["MTP"]}
    # One MLA layer with 256 FP8 experts, and the projection of 2 x 7168 to 7168 in BF16.
    r1 = by_component(
        weight_footprint(model("deepseek-ai--DeepSeek-R1"), Layout(), speculative_tokens=1)
    )
    assert r1["MTP"] / 1e9 == pytest.approx(11.5 + 0.2, abs=0.1)


def test_the_vision_tower_counts_unless_left_out() -> None:
    qwen = model("Qwen--Qwen3.5-27B")
    seen = by_component(weight_footprint(qwen, Layout()))
    blind = by_component(weight_footprint(qwen, Layout(), language_model_only=True))
    assert {**blind, "vision": seen["vision"]} == seen
    # 27 blocks of 4 x 1152^2 + 2 x 1152 x 4304, a merger of 4608^2 + 4608 x 5120, embeddings.
    parameters = 27 * (4 * 1152**2 + 2 * 1152 * 4304) + 4608 * (4608 + 5120)
    embeddings = 3 * 2 * 16 * 16 * 1152 + 2304 * 1152
    assert seen["vision"] == pytest.approx(2 * (parameters + embeddings), rel=0.002)


def test_deepstack_mergers_count() -> None:
    qwen = model("Qwen--Qwen3.5-27B")
    assert isinstance(qwen.vision, VisionTower)
    deep = replace(qwen, vision=replace(qwen.vision, num_deepstack_mergers=3))
    more, plain = (
        by_component(weight_footprint(each, Layout()))["vision"] for each in (deep, qwen)
    )
    assert more - plain == 3 * 2 * (4608 * 4609 + 5120 * 4609 + 2 * 4608)


def test_a_tower_that_does_not_divide_is_replicated() -> None:
    kimi = model("nvidia--Kimi-K2.5-NVFP4")
    at = {
        tensor: weight_footprint(kimi, Layout(tensor=tensor, expert_parallel=True))
        for tensor in (1, 16, 32)
    }
    vision = {tensor: by_component(footprint)["vision"] for tensor, footprint in at.items()}
    assert vision[16] < vision[1] == vision[32]
    assert sharding_of(at[32])["vision"] == "replicated: its heads do not divide by TP 32"


def test_a_tied_head_is_the_embedding() -> None:
    tied = replace(model("Qwen--Qwen3.5-27B"), tie_word_embeddings=True)
    untied = replace(tied, tie_word_embeddings=False)
    one, two = (weight_footprint(each, Layout(tensor=4)) for each in (tied, untied))
    assert "head" not in by_component(one)
    assert one.total_bytes_per_rank + by_component(two)["head"] == two.total_bytes_per_rank
    assert parameter_counts(untied).total - parameter_counts(tied).total == 248320 * 5120
    last = by_component(weight_footprint(tied, Layout(tensor=4, pipeline=2)))
    assert last["embeddings"] == by_component(one)["embeddings"]
    assert sharding_of(one)["embeddings"].endswith("the head is the same table")


def test_the_vocabulary_is_padded_to_64_rows() -> None:
    llama = replace(model("meta-llama--Meta-Llama-3.1-70B"), vocab_size=128257)
    parts = by_component(weight_footprint(llama, Layout(tensor=8)))
    assert parts["embeddings"] == (128257 + 63) // 64 * 64 // 8 * 8192 * 2


def test_without_expert_parallelism_experts_are_split_over_tensor_and_data_ranks() -> None:
    qwen = model("Qwen--Qwen3-Next-80B-A3B")
    split = by_component(weight_footprint(qwen, Layout(tensor=2, data=4)))
    spread = by_component(weight_footprint(qwen, Layout(tensor=2, data=4, expert_parallel=True)))
    assert split["routed experts"] == spread["routed experts"] - 48 * 512 * 4  # the expert map


def test_experts_that_do_not_divide_give_the_largest_rank_one_more() -> None:
    qwen = model("Qwen--Qwen3-Next-80B-A3B")
    parts = by_component(weight_footprint(qwen, Layout(data=6, expert_parallel=True)))
    expert = 48 * 3 * 2048 * 512 * 2
    assert parts["routed experts"] == 86 * expert + 48 * 512 * 4


SHARDING: list[tuple[str, Layout, bool, str, str]] = [
    (ARTICLE_MODEL, Layout(), False, "attention", "whole: TP is 1"),
    (ARTICLE_MODEL, Layout(tensor=4), False, "attention", "q, k, v and o heads split over TP 4"),
    (
        ARTICLE_MODEL,
        Layout(tensor=8),
        False,
        "attention",
        (
            "q and o heads split over TP 8; k and v replicated 2 times: only 4 KV heads, "
            "one on each rank"
        ),
    ),
    (
        "deepseek-ai--DeepSeek-R1",
        Layout(tensor=8),
        False,
        "attention",
        (
            "projections of the heads split over TP 8; those into the latent replicated: "
            "every head reads the whole latent"
        ),
    ),
    (ARTICLE_MODEL, Layout(tensor=8), False, "GDN", "heads split over TP 8"),
    (
        "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
        Layout(tensor=16),
        False,
        "Mamba",
        "heads split over TP 16; 8 groups replicated to follow the heads",
    ),
    (
        "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
        Layout(tensor=8),
        False,
        "latent projections",
        "replicated: every rank needs the whole latent",
    ),
    (
        ARTICLE_MODEL,
        Layout(tensor=4, data=4, expert_parallel=True),
        True,
        "shared expert",
        (
            "replicated: sequence-parallel MoE gives each rank whole tokens; "
            "once more on each of 4 DP ranks"
        ),
    ),
    (
        ARTICLE_MODEL,
        Layout(tensor=4, data=4, expert_parallel=True),
        False,
        "shared expert",
        "columns split over TP 4; once more on each of 4 DP ranks",
    ),
    (
        ARTICLE_MODEL,
        Layout(tensor=8, expert_parallel=True),
        True,
        "shared expert",
        "columns split over TP 8",
    ),
    (
        ARTICLE_MODEL,
        Layout(tensor=4, data=4, expert_parallel=True),
        True,
        "routed experts",
        "512 whole experts over 16 ranks (EP), 32 on a rank",
    ),
    (
        ARTICLE_MODEL,
        Layout(tensor=4, data=4),
        True,
        "routed experts",
        "each of 512 experts split over 16 ranks (TP x DP), no EP",
    ),
    (ARTICLE_MODEL, Layout(), True, "routed experts", "all 512 experts whole: one rank"),
    (ARTICLE_MODEL, Layout(), True, "router", "replicated: every rank routes the tokens it has"),
    (
        ARTICLE_MODEL,
        Layout(),
        True,
        "MTP",
        "each part as in the decoder; embedding and head are the decoder's",
    ),
]


@pytest.mark.parametrize(("name", "layout", "sequence_parallel", "component", "text"), SHARDING)
def test_sharding_text(
    name: str, layout: Layout, sequence_parallel: bool, component: str, text: str
) -> None:
    footprint = weight_footprint(
        model(name), layout, speculative_tokens=1, sequence_parallel_moe=sequence_parallel
    )
    assert sharding_of(footprint)[component] == text


INDIVISIBLE = [
    ("Qwen--Qwen3.5-27B", Layout(tensor=16), "24 attention heads"),
    ("Qwen--Qwen3-32B-FP8", Layout(tensor=3), "64 attention heads"),
    ("Qwen--Qwen3.5-122B-A10B", Layout(tensor=32), "16 GDN key heads"),
    ("Qwen--Qwen3.5-35B-A3B", Layout(tensor=2, data=3), "512 columns of an expert"),
]


@pytest.mark.parametrize(("name", "layout", "what"), INDIVISIBLE)
def test_indivisible(name: str, layout: Layout, what: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{what} cannot be split evenly over "):
        weight_footprint(model(name), layout)


def test_more_stages_than_layers() -> None:
    with pytest.raises(InvalidInput, match="80 layers cannot fill 81 pipeline stages"):
        weight_footprint(model("meta-llama--Meta-Llama-3.1-70B"), Layout(pipeline=81))


TENSOR_SIZES = (1, 2, 4, 8, 16, 32)


@pytest.mark.parametrize("name", MODELLED)
@pytest.mark.parametrize("expert_parallel", [False, True])
@pytest.mark.parametrize("data", [1, 4])
def test_more_tensor_ranks_never_cost_a_rank_more(
    name: str, expert_parallel: bool, data: int
) -> None:
    sizes = []
    for tensor in TENSOR_SIZES:
        layout = Layout(tensor=tensor, data=data, expert_parallel=expert_parallel)
        try:
            footprint = weight_footprint(
                model(name), layout, speculative_tokens=1, sequence_parallel_moe=True
            )
        except InvalidInput:
            break
        sizes.append(footprint.total_bytes_per_rank)
    assert len(sizes) >= 2
    assert sizes == sorted(sizes, reverse=True)


# Synthetic models whose dimensions divide by 8 ranks wherever they must.
EIGHTS = st.integers(1, 4).map(lambda number: 8 * number)


@st.composite
def attentions(draw: st.DrawFn) -> GroupedQueryAttention:
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    return GroupedQueryAttention(
        num_attention_heads=8 * draw(st.integers(1, 3)),
        num_key_value_heads=kv_heads,
        head_dim=draw(EIGHTS),
        has_output_gate=draw(st.booleans()),
        has_qkv_bias=draw(st.booleans()),
        has_qk_norm=draw(st.booleans()),
        has_output_bias=draw(st.booleans()),
        qk_norm_spans_heads=draw(st.booleans()),
    )


MIXERS: st.SearchStrategy[Mixer] = st.one_of(
    attentions(),
    st.builds(
        MultiHeadLatentAttention,
        num_attention_heads=EIGHTS,
        kv_lora_rank=EIGHTS,
        qk_rope_head_dim=EIGHTS,
        qk_nope_head_dim=EIGHTS,
        v_head_dim=EIGHTS,
        q_lora_rank=st.none() | EIGHTS,
    ),
    st.builds(
        GatedDeltaNet,
        num_key_heads=st.just(8),
        num_value_heads=EIGHTS,
        key_head_dim=EIGHTS,
        value_head_dim=EIGHTS,
        conv_kernel=st.integers(2, 4),
    ),
    st.builds(
        Mamba2,
        num_heads=EIGHTS,
        head_dim=EIGHTS,
        num_groups=st.sampled_from([1, 2, 8]),
        state_size=EIGHTS,
        conv_kernel=st.integers(2, 4),
        chunk_size=st.just(128),
        has_conv_bias=st.booleans(),
        has_projection_bias=st.booleans(),
    ),
)
MLPS: st.SearchStrategy[Mlp] = st.one_of(
    st.builds(DenseMlp, intermediate_size=EIGHTS, is_gated=st.booleans(), has_bias=st.booleans()),
    st.builds(
        MixtureOfExperts,
        num_experts=st.integers(1, 20),
        num_experts_per_tok=st.just(1),
        moe_intermediate_size=EIGHTS.map(lambda size: 8 * size),
        shared_expert_intermediate_size=st.just(0) | EIGHTS,
        has_shared_expert_gate=st.booleans(),
        is_gated=st.booleans(),
        latent_size=st.none() | EIGHTS,
        has_router_bias=st.booleans(),
        router_dtype=st.none() | st.just("float32"),
    ),
)
LAYERS = st.builds(Layer, mixer=st.none() | MIXERS, mlp=MLPS)
QUANTIZATIONS = st.none() | st.builds(
    Quantization,
    linear_format=st.sampled_from([WeightFormat.NVFP4, WeightFormat.FP8, WeightFormat.FP8_BLOCK]),
    excluded_modules=st.sampled_from([(), ("*self_attn*",), ("model.layers.0",), ("re:.*mlp.*",)]),
)


@st.composite
def architectures(draw: st.DrawFn) -> ModelArchitecture:
    layers = tuple(draw(st.lists(LAYERS, min_size=1, max_size=5)))
    return ModelArchitecture(
        name="synthetic",
        model_type="synthetic",
        hidden_size=draw(EIGHTS),
        vocab_size=draw(st.integers(1, 2000)),
        max_position_embeddings=4096,
        dtype=draw(st.sampled_from(["bfloat16", "float32"])),
        layers=layers,
        tie_word_embeddings=draw(st.booleans()),
        draft_layers=layers[:1],
        quantization=draw(QUANTIZATIONS),
    )


LAYOUTS = st.builds(
    Layout,
    tensor=st.sampled_from([1, 2, 4, 8]),
    data=st.sampled_from([1, 2, 4, 8]),
    pipeline=st.integers(1, 3),
    expert_parallel=st.booleans(),
)


@given(architecture=architectures(), layout=LAYOUTS, sequence_parallel=st.booleans())
def test_all_ranks_together_hold_the_model(
    architecture: ModelArchitecture, layout: Layout, sequence_parallel: bool
) -> None:
    assume(layout.pipeline <= len(architecture.layers))
    whole = weight_footprint(architecture, Layout(), speculative_tokens=1)
    rank = weight_footprint(
        architecture, layout, speculative_tokens=1, sequence_parallel_moe=sequence_parallel
    )
    ranks = layout.tensor * layout.data * layout.pipeline
    assert rank.total_bytes_per_rank * ranks >= whole.total_bytes_per_rank
    assert all(item.bytes_per_rank > 0 and item.sharding for item in rank.items)


@given(architecture=architectures(), layout=LAYOUTS, sequence_parallel=st.booleans())
def test_doubling_the_tensor_ranks_costs_a_rank_no_more(
    architecture: ModelArchitecture, layout: Layout, sequence_parallel: bool
) -> None:
    assume(layout.pipeline <= len(architecture.layers) and layout.tensor < 8)
    # The map of experts to ranks, 4 bytes an expert, only comes with the second expert rank.
    assume(layout.tensor * layout.data > 1)
    small, large = (
        weight_footprint(
            architecture,
            replace(layout, tensor=tensor),
            speculative_tokens=1,
            sequence_parallel_moe=sequence_parallel,
        )
        for tensor in (layout.tensor, 2 * layout.tensor)
    )
    assert large.total_bytes_per_rank <= small.total_bytes_per_rank


def test_the_sum_over_ranks_is_the_checkpoint_where_nothing_is_replicated() -> None:
    """8 KV heads on 8 ranks: only norms, scale buffers and the router are on every rank."""
    for name in ("meta-llama--Meta-Llama-3.1-70B", "Qwen--Qwen3-32B-FP8"):
        whole = by_component(weight_footprint(model(name), Layout()))
        rank = by_component(weight_footprint(model(name), Layout(tensor=8)))
        for component in ("embeddings", "dense MLP", "head"):
            assert 8 * rank[component] == whole[component]
    llama = model("meta-llama--Meta-Llama-3.1-70B")
    whole = by_component(weight_footprint(llama, Layout()))
    rank = by_component(weight_footprint(llama, Layout(tensor=8)))
    scale_buffers = 80 * 16
    assert 8 * (rank["attention"] - scale_buffers) == whole["attention"] - scale_buffers
    parameters = parameter_counts(llama).total
    assert sum(whole.values()) - scale_buffers == 2 * parameters


@pytest.mark.parametrize("name", MODELLED)
def test_an_unquantised_whole_model_takes_its_parameters(name: str) -> None:
    """Two bytes a parameter; FP32 vectors, padding and engine buffers are all there is more."""
    plain = replace(model(name), quantization=None)
    parts = by_component(weight_footprint(plain, Layout(), language_model_only=True))
    assert sum(parts.values()) == pytest.approx(2 * parameter_counts(plain).total, rel=1e-3)
    assert sum(parts.values()) >= 2 * parameter_counts(plain).total
