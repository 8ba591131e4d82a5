"""`pdrecipe model`: one screen for each kind of model, figures of the facts, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from generator.cli import main
from generator.cli.output import definitions, table
from generator.units import GIB, MIB
from generator.validation import schema

REPOSITORY = Path(__file__).resolve().parent.parent
CONFIGS = REPOSITORY / "tests/data/hf_configs"
QWEN38 = REPOSITORY / "recipes/models/qwen3.8-2.4t-a95b-nvfp4"
QWEN35 = REPOSITORY / "recipes/models/qwen3.5-397b-a17b-nvfp4"
ARTICLE = ("--kv-cache-dtype", "fp8", "--mamba-ssm-cache-dtype", "bfloat16")
REFUSED = {
    "deepseek-ai--DeepSeek-V4-Pro": "sparse attention with an indexer",
    "google--gemma-4-26B-A4B": "sliding_attention",
    "moonshotai--Kimi-K3": "KDA linear attention",
    "nvidia--GLM-5-NVFP4": "sparse attention with an indexer",
    "nvidia--MiniMax-M3-NVFP4": "sparse attention",
    "openai--gpt-oss-120b": "sliding_attention",
}
MODELLED = sorted(
    folder.name for folder in CONFIGS.iterdir() if folder.is_dir() and folder.name not in REFUSED
)


def model_command(folder: Path, *arguments: str) -> Result:
    runner = CliRunner(catch_exceptions=False)
    return runner.invoke(main, ["model", str(folder), *arguments])


def document(folder: Path, *arguments: str) -> dict[str, Any]:
    result = model_command(folder, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


# --- one screen -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        (QWEN38, ()),
        (
            QWEN38,
            ("--layout", "TP4DP4+EP", "--mtp", "3", "--language-model-only", *ARTICLE),
        ),
        (QWEN35, ("--layout", "DEP8", "--enable-prefix-caching")),
        (CONFIGS / "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", ("--tp", "4")),
        (CONFIGS / "deepseek-ai--DeepSeek-R1", ("--tp", "8", "--mtp", "1")),
        (CONFIGS / "nvidia--Kimi-K2.5-NVFP4", ("--layout", "TP4DP4+EP")),
        (CONFIGS / "meta-llama--Meta-Llama-3.1-70B", ("--tp", "8", "--tokens", "100000")),
        (CONFIGS / "Qwen--Qwen3.5-27B", ("--tp", "2")),
    ],
    ids=[
        "Qwen3.8 whole",
        "Qwen3.8 as the article decodes",
        "Qwen3.5 with vision",
        "Nemotron-3",
        "DeepSeek-R1",
        "Kimi-K2.5",
        "Llama-3.1",
        "Qwen3.5 dense",
    ],
)
def test_screen(folder: Path, arguments: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    result = model_command(folder, *arguments)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == snapshot


@pytest.mark.parametrize("name", MODELLED)
def test_every_modelled_model_has_a_page_and_a_valid_document(name: str) -> None:
    result = model_command(CONFIGS / name)
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 100
    Draft202012Validator(schema("model")).validate(document(CONFIGS / name))


# --- figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "mtp", "block_page_layers_n", "mib", "replica_mib"),
    [
        (4, 0, (2112, 1_081_344, 23, 8), 189.75, 759.0),
        (4, 3, (2176, 1_114_112, 24, 17), 433.5, 1734.0),
        (8, 0, (1056, 540_672, 23, 12), 142.3125, 1138.5),
        (8, 3, (1088, 557_056, 24, 21), 267.75, 2142.0),
    ],
    ids=["TP4 S0", "TP4 S3", "TP8 S0", "TP8 S3"],
)
def test_rows_of_qwen38(
    tensor: int,
    mtp: int,
    block_page_layers_n: tuple[int, int, int, int],
    mib: float,
    replica_mib: float,
) -> None:
    """The facts' table of vLLM 0.26: fp8 KV cache, bf16 states, requests of 9216 tokens."""
    answer = document(QWEN38, "--tp", str(tensor), "--mtp", str(mtp), *ARTICLE)
    cost = answer["cost"]
    assert block_page_layers_n == (
        cost["block_tokens"],
        cost["page_bytes_per_rank"],
        cost["layers_per_block"],
        cost["blocks_per_request"],
    )
    assert cost["request_bytes_per_rank"] / MIB == mib
    assert cost["request_bytes_per_replica"] / MIB == replica_mib
    assert cost in answer["by_tensor"]


@pytest.mark.parametrize(
    ("layout", "mtp", "gib"),
    [("TEP8", 3, 169.2), ("TP4DP4+EP", 3, 108.65), ("TP4DP4+EP", 0, 107.45)],
)
def test_weights_of_the_article(layout: str, mtp: int, gib: float) -> None:
    answer = document(
        QWEN38,
        *("--layout", layout, "--mtp", str(mtp), "--language-model-only"),
    )
    total = answer["cost"]["weights_bytes_per_rank"]
    assert total / GIB == pytest.approx(gib, abs=0.02)
    assert sum(item["bytes_per_rank"] for item in answer["weights"]) == total
    sharding = {item["component"]: item["sharding"] for item in answer["weights"]}
    assert ("replicated" in sharding["shared expert"]) is (layout != "TEP8")
    assert "replicated" in sharding["router"]
    assert ("MTP" in sharding) is (mtp > 0)


def test_parameters_are_those_of_the_name() -> None:
    """Qwen3.8-2.4T-A95B."""
    parameters = document(QWEN38)["parameters"]
    assert parameters["total"] / 1e12 == pytest.approx(2.4, abs=0.05)
    assert parameters["active"] / 1e9 == pytest.approx(95, abs=0.5)


def test_weights_and_tokens_never_grow_with_tp() -> None:
    for name in MODELLED:
        rows = [row for row in document(CONFIGS / name)["by_tensor"] if "refused" not in row]
        for key in ("weights_bytes_per_rank", "bytes_per_token_per_rank", "page_bytes_per_rank"):
            sizes = [row[key] for row in rows]
            assert sizes == sorted(sizes, reverse=True), (name, key)


def test_a_tp_that_does_not_divide_has_its_reason() -> None:
    rows = {row["layout"]: row for row in document(QWEN38, "--layout", "TEP16")["by_tensor"]}
    assert rows["TEP32"]["refused"] == "16 key heads are not divisible by TP 32"
    assert list(rows) == ["TP1+EP", "TEP2", "TEP4", "TEP8", "TEP16", "TEP32"]


def test_a_tp_between_the_doublings_has_a_row_too() -> None:
    answer = document(CONFIGS / "meta-llama--Meta-Llama-3.1-70B", "--layout", "TP64")
    assert answer["by_tensor"][-1] == answer["cost"]
    assert answer["cost"]["layout"] == "TP64"


def test_the_default_request_is_no_longer_than_the_context(tmp_path: Path) -> None:
    config = json.loads((CONFIGS / "Qwen--Qwen3-32B-FP8/config.json").read_text("utf-8"))
    config["max_position_embeddings"] = 4096
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    assert document(tmp_path)["request_tokens"] == 4096


def test_flags_reach_the_cache() -> None:
    plain, cached = document(QWEN38), document(QWEN38, "--enable-prefix-caching")
    assert (plain["prefix_caching"], cached["prefix_caching"]) == (False, True)
    assert cached["cost"]["blocks_per_request"] == plain["cost"]["blocks_per_request"] + 3
    wide = document(QWEN38, "--mamba-ssm-cache-dtype", "float32")
    narrow = document(QWEN38, "--mamba-ssm-cache-dtype", "bfloat16")
    assert wide["cost"]["ssm_state_bytes_per_layer"] == (
        2 * narrow["cost"]["ssm_state_bytes_per_layer"]
    )
    assert document(QWEN38, "--block-size", "8192")["cost"]["block_tokens"] == 8192


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "layer_type"), REFUSED.items(), ids=REFUSED)
def test_a_model_that_is_not_modelled_is_refused_by_name(name: str, layer_type: str) -> None:
    result = model_command(CONFIGS / name)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert f"layer type {layer_type} of model {name} is not modelled" in result.stderr
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tp", "3"), "64 attention heads are not divisible by TP 3"),
        (("--layout", "TEP32"), "16 key heads are not divisible by TP 32"),
        (("--layout", "XP4"), "layout 'XP4': cannot read 'XP4'"),
        (("--kv-cache-dtype", "int3"), "kv-cache-dtype 'int3' is not modelled"),
        (("--block-size", "17"), "block-size 17 is not a multiple of 16"),
        (("--gpu", "gb999"), "GPU 'gb999' is not known"),
        (("--tokens", "999999"), "requests of 999999 tokens exceed the model's context 262144"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_user_can_get_wrong_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = model_command(QWEN38, *arguments)
    assert result.exit_code == 3
    assert message in result.stderr
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())


def test_mtp_without_mtp_layers_is_refused() -> None:
    result = model_command(CONFIGS / "meta-llama--Meta-Llama-3.1-70B", "--mtp", "1")
    assert result.exit_code == 3
    assert "the checkpoint has no MTP layers" in result.stderr


def test_two_layouts_are_a_usage_error() -> None:
    result = model_command(QWEN38, "--tp", "4", "--layout", "TP8")
    assert result.exit_code == 2
    assert "give --tp or --layout, not both" in result.stderr


def test_a_folder_without_a_config() -> None:
    result = model_command(REPOSITORY / "schemas")
    assert result.exit_code == 3
    assert "the folder has no config.json" in result.stderr


# --- the page ---------------------------------------------------------------------------------


def test_a_row_that_ends_early_gives_its_reason_the_rest_of_the_line() -> None:
    rows = [["TP1", "10", "20"], ["a longer name", "one two three four"], ["TP4", "7", "8"]]
    assert table(["layout", "weights", "token"], rows).splitlines() == [
        "| layout        | weights | token |",
        "| ------------- | ------: | ----: |",
        "| TP1           |      10 |    20 |",
        "| a longer name | one two three   |",
        "|               | four            |",
        "| TP4           |       7 |     8 |",
    ]


def test_definitions_wrap_beside_their_label() -> None:
    text = definitions([("a", "word " * 25), ("label", "short")])
    first, second, last = text.splitlines()
    assert first.startswith("a      word word")
    assert second.startswith("       word")
    assert last == "label  short"
