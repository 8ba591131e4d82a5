"""Every flag of both roles: its order, its arithmetic, and what pairing adds to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.architecture import ModelArchitecture
from generator.derivation.derivation import Deployment, Derivation, derive
from generator.documents import parse_document
from generator.errors import InvalidInput
from generator.facts import EngineDefaults, engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.spec.reader import spec_from_document
from tests.recorded_models import attention_only, latent_attention
from tests.small_specs import MODEL, Edit, edited

VERSION = "  version: 0.26.0"
DECODE = "    decode: 1xTEP8"
SIZES = "    max-model-len: 10240\n"
FP8 = "kv-cache-dtype: fp8"


@pytest.fixture(scope="module")
def qwen38_model(repository: Path) -> ModelArchitecture:
    return load_architecture(repository / MODEL)


@pytest.fixture(scope="module")
def defaults() -> EngineDefaults:
    return engine_defaults("vllm", "0.26.0", gpu("gb300"))


class Deriver:
    """Derives edits of the short spec for one model."""

    def __init__(self, architecture: ModelArchitecture, defaults: EngineDefaults) -> None:
        self.architecture = architecture
        self.defaults = defaults

    def all(self, *edits: Edit, more: str = "") -> Derivation:
        document = parse_document(edited(*edits) + more, "spec.yaml")
        spec = spec_from_document(document, folder=Path())
        return derive(spec, self.architecture, self.defaults)

    def one(self, *edits: Edit) -> Deployment:
        (deployment,) = self.all(*edits).deployments
        return deployment

    def problems(self, *edits: Edit, more: str = "") -> list[str]:
        with pytest.raises(InvalidInput) as error:
            self.all(*edits, more=more)
        return [str(problem) for problem in error.value.problems]


@pytest.fixture(scope="module")
def qwen38(qwen38_model: ModelArchitecture, defaults: EngineDefaults) -> Deriver:
    return Deriver(qwen38_model, defaults)


@pytest.fixture(scope="module")
def deepseek(defaults: EngineDefaults) -> Deriver:
    return Deriver(latent_attention(), defaults)


@pytest.fixture(scope="module")
def llama(defaults: EngineDefaults) -> Deriver:
    return Deriver(attention_only(), defaults)


def flags(deployment: Deployment, role: str = "decode") -> dict[str, Any]:
    return dict(deployment.recipe.role(role).args)


def how(deployment: Deployment, flag: str, role: str = "decode") -> str | None:
    return deployment.recipe.comments.get(("roles", role, "args", flag))


# --- what is written and in which order -------------------------------------------------------


def test_flags_in_the_order_people_read_them(qwen38: Deriver) -> None:
    deployment = qwen38.one(
        (FP8, f"{FP8}, kv-transfer-config: {{kv_role: kv_both}}"),
        ("  type: vllm\n", "  type: vllm\n  environment: {VLLM_SSM_CONV_STATE_LAYOUT: DS}\n"),
        ("prefill: 1xTEP8", "prefill: 1xTP2DP4+EP"),
        (DECODE, f"{DECODE}\n    mtp: 3"),
    )
    assert list(flags(deployment)) == [
        "kv-transfer-config",
        "tensor-parallel-size",
        "pipeline-parallel-size",
        "data-parallel-size",
        "enable-expert-parallel",
        "kv-cache-dtype",
        "no-enable-prefix-caching",
        "language-model-only",
        "max-model-len",
        "max-num-seqs",
        "speculative_config.method",
        "speculative_config.num_speculative_tokens",
        "block-size",
    ]


def test_what_is_not_sized_is_not_written(qwen38: Deriver) -> None:
    deployment = qwen38.one()
    assert set(flags(deployment)) - set(flags(deployment, "prefill")) == {
        "max-model-len",
        "max-num-seqs",
    }


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("TP8", {"tensor-parallel-size": 8, "data-parallel-size": 1}),
        ("TEP8", {"tensor-parallel-size": 8, "enable-expert-parallel": True}),
        ("TP2DP4+EP", {"tensor-parallel-size": 2, "data-parallel-size": 4}),
        ("TP8DCP2", {"tensor-parallel-size": 8, "decode-context-parallel-size": 2}),
    ],
)
def test_layout_flags(layout: str, expected: dict[str, Any], qwen38: Deriver) -> None:
    written = flags(qwen38.one((DECODE, f"    decode: {layout}")))
    assert expected.items() <= written.items()
    assert ("enable-expert-parallel" in written) == ("EP" in layout)
    assert ("decode-context-parallel-size" in written) == ("DCP" in layout)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("{a: 1, b: [x]}", '{"a": 1, "b": ["x"]}'),
        ("[1, 2, 4]", [1, 2, 4]),
        ("'{\"a\": 1}'", '{"a": 1}'),
        ("null", None),
        ("true", True),
        ("8", 8),
        ("0.5", 0.5),
        ('"8"', "8"),
    ],
)
def test_value_of_a_flag(written: str, value: Any, qwen38: Deriver) -> None:
    """A mapping becomes one line of JSON; srtctl writes a list's items one after the other."""
    given = flags(qwen38.one((FP8, f"{FP8}, seed: {written}")))["seed"]
    assert given == value
    assert type(given) is type(value)


def test_environment_and_engine(qwen38: Deriver) -> None:
    recipe = qwen38.one(
        (VERSION, f"{VERSION}\n  connector: null\n  prefill_environment: {{A: '1'}}")
    ).recipe
    assert recipe.role("prefill").environment == {"A": "1"}
    assert recipe.role("decode").environment == {}
    assert (recipe.engine, recipe.has_connector, recipe.connector) == ("vllm", True, None)


# --- sizes and their arithmetic ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("pool", "load", "value", "text"),
    [
        ("1xTEP8", 1, 17, "ceil(1 / 1 DP) + 16"),
        ("1xTEP8", 64, 80, "ceil(64 / 1 DP) + 16"),
        ("1xTP4DP4+EP", 256, 80, "ceil(256 / 4 DP) + 16"),
        ("1xTP4DP4+EP", 1, 17, "ceil(1 / 4 DP) + 16"),
        ("2xTP4DP4+EP", 1030, 145, "ceil(1030 / (2 workers x 4 DP)) + 16"),
        ("3xTEP8", 100, 50, "ceil(100 / (3 workers x 1 DP)) + 16"),
    ],
)
def test_sequences_per_rank(pool: str, load: int, value: int, text: str, qwen38: Deriver) -> None:
    deployment = qwen38.one((DECODE, f"    decode: {pool}"), ("[4]", f"[{load}]"))
    assert flags(deployment)["max-num-seqs"] == value
    assert how(deployment, "max-num-seqs") == text


@pytest.mark.parametrize(
    ("rule", "value", "text"),
    [
        ("2 * isl", 16384, "2 * 8192"),
        ("isl + osl", 9216, "8192 + 1024"),
        ("max_model_len * 2", 20480, "10240 * 2"),
        ("(1 + mtp) * 5", 20, "(1 + 3 MTP) * 5"),
        ("headroom_tokens + 8192", 8208, "16 + 8192"),
        ("workers * 8192", 8192, "1 workers * 8192"),
        ("4096", 4096, "4096"),
    ],
)
def test_rule(rule: str, value: int, text: str, qwen38: Deriver) -> None:
    deployment = qwen38.one(
        (SIZES, f"{SIZES}    max-num-batched-tokens: {rule!r}\n"), (DECODE, f"{DECODE}\n    mtp: 3")
    )
    assert flags(deployment)["max-num-batched-tokens"] == value
    assert how(deployment, "max-num-batched-tokens") == text


def test_plain_number_explains_itself(qwen38: Deriver) -> None:
    assert how(qwen38.one(), "max-model-len") is None


def test_rule_sees_only_the_flags_above_it(qwen38: Deriver) -> None:
    (problem,) = qwen38.problems((SIZES, "    max-num-batched-tokens: 2 * max_model_len\n" + SIZES))
    assert "unknown name 'max_model_len'" in problem


def test_group_is_sized_for_its_highest_load(qwen38: Deriver) -> None:
    row = "      - {file: b, prefill: 1xTEP8, concurrencies: [8, 32]}\n"
    first, second = qwen38.all(more=row).deployments
    assert flags(first)["max-num-seqs"] == flags(second)["max-num-seqs"] == 48
    assert first.recipe.benchmark["concurrencies"] == "4"
    assert second.recipe.benchmark["concurrencies"] == "8x32"


@pytest.mark.parametrize(
    ("pool", "nodes", "nodes_text", "gpus", "gpus_text"),
    [
        ("1xTEP8", 2, "1 x ceil(8 / 4 GPUs per node)", 8, "TP8"),
        ("2xTP2DP4+EP", 4, "2 x ceil(8 / 4 GPUs per node)", 8, "TP2 x DP4"),
        ("3xTP2", 2, "ceil(3 workers / 2 per node of 4 GPUs)", 2, "TP2"),
    ],
)
def test_nodes_and_gpus(
    pool: str, nodes: int, nodes_text: str, gpus: int, gpus_text: str, qwen38: Deriver
) -> None:
    recipe = qwen38.one(("prefill: 1xTEP8", f"prefill: {pool}")).recipe
    role = recipe.role("prefill")
    assert (role.nodes, role.gpus) == (nodes, gpus)
    assert recipe.comments["roles", "prefill", "nodes"] == nodes_text
    assert recipe.comments["roles", "prefill", "gpus"] == gpus_text


# --- block sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefill", "mtp", "own", "forced"),
    [
        ("1xTEP8", 3, (1088, 1088), None),
        ("1xTP2DP4+EP", 3, (2176, 1088), 2176),
        ("1xTP4DP2+EP", 3, (2176, 1088), 2176),
        ("1xTP2DP4+EP", 0, (2112, 1056), 2112),
    ],
)
def test_one_block_size_for_both_roles(
    prefill: str, mtp: int, own: tuple[int, int], forced: int | None, qwen38: Deriver
) -> None:
    deployment = qwen38.one(
        ("prefill: 1xTEP8", f"prefill: {prefill}"),
        (DECODE, f"{DECODE}\n    mtp: {mtp}"),
        (FP8, f"{FP8}, mamba-ssm-cache-dtype: bfloat16"),
    )
    engines = (deployment.prefill, deployment.decode)
    unforced = [engine.unforced_kv_cache or engine.kv_cache for engine in engines]
    assert tuple(layout.block_tokens for layout in unforced) == own
    for engine in engines:
        assert flags(deployment, engine.role).get("block-size") == forced
        assert engine.options.block_size == forced
        assert engine.kv_cache.block_tokens == (forced or own[0])
        reason = f"max(prefill {own[0]}, decode {own[1]}): KV transfer needs one size"
        assert how(deployment, "block-size", engine.role) == (reason if forced else None)


def test_block_size_of_the_spec_is_kept_where_it_serves_both(qwen38: Deriver) -> None:
    deployment = qwen38.one(
        ("prefill: 1xTEP8", "prefill: 1xTP2DP4+EP"), (FP8, f"{FP8}, block-size: 8704")
    )
    assert flags(deployment)["block-size"] == flags(deployment, "prefill")["block-size"] == 8704
    assert how(deployment, "block-size") is None


def test_attention_only_roles_agree_already(llama: Deriver) -> None:
    deployment = llama.one(("prefill: 1xTEP8", "prefill: 1xTP2DP4"), (DECODE, "    decode: TP8"))
    assert "block-size" not in flags(deployment)
    assert deployment.decode.unforced_kv_cache is None


# --- benchmarks, accuracy, probes -------------------------------------------------------------


def test_benchmark_gets_lengths_and_loads_after_its_type(qwen38: Deriver) -> None:
    recipe = qwen38.one(("{type: sa-bench}", "{req_rate: inf, type: sa-bench, backend: x}")).recipe
    assert list(recipe.benchmark.items()) == [
        ("type", "sa-bench"),
        ("isl", 8192),
        ("osl", 1024),
        ("concurrencies", "4"),
        ("req_rate", "inf"),
        ("backend", "x"),
    ]


def test_accuracy_recipe_differs_by_name_and_benchmark_alone(qwen38: Deriver) -> None:
    accuracy = "accuracy: {file: '{file}-acc', benchmark: {type: gsm8k, repeat: 2}}\n"
    load, repeat = (each.recipe for each in qwen38.all(more=accuracy).deployments)
    assert repeat.benchmark == {"type": "gsm8k", "repeat": 2}
    assert repeat.name == "tiny-a-acc"
    assert repeat.roles == load.roles
    assert repeat.comments == load.comments


def test_probes_are_sized_as_decode_workers(qwen38: Deriver) -> None:
    more = """probe:
  engines:
    - {file: probe-a, layout: TP4DP4+EP, mtp: 3, concurrency: 256}
    - {file: probe-b, layout: TP4DP4+EP, mtp: 3, concurrency: 1024}
"""
    derivation = qwen38.all(more=more)
    engines = [probe.engine for probe in derivation.probes]
    assert [engine.name for engine in engines] == ["probe-a", "probe-b"]
    assert {engine.role for engine in engines} == {"agg"}
    assert [engine.resolved.max_num_seqs for engine in engines] == [80, 272]
    assert [engine.name for engine in derivation.engines][2:] == ["a/prefill", "a/decode"]


def test_a_probe_is_a_recipe_of_one_aggregated_worker(qwen38: Deriver) -> None:
    more = """probe:
  folder: probe
  time_limit: "0:40:00"
  engines: [{file: probe-a, layout: TP4DP4+EP, mtp: 3, concurrency: 1024}]
"""
    (probe,) = qwen38.all(more=more).probes
    (role,) = probe.recipe.roles
    assert (role.name, role.nodes, role.workers, role.gpus) == ("agg", 4, 1, 16)
    assert role.args["max-num-seqs"] == 272
    assert "kv-transfer-config" not in role.args
    assert probe.recipe.benchmark["concurrencies"] == "1024"
    assert probe.recipe.time_limit == "0:40:00"


# --- what is refused, and what is warned of ---------------------------------------------------


@pytest.mark.parametrize(("length", "fits"), [(9216, True), (9215, False)])
def test_a_request_must_fit_to_the_token(length: int, fits: bool, qwen38: Deriver) -> None:
    edit = (SIZES, SIZES.replace("10240", str(length)))
    if fits:
        assert flags(qwen38.one(edit))["max-model-len"] == length
    else:
        (problem,) = qwen38.problems(edit)
        assert "max-model-len 9215 is below ISL + OSL = 8192 + 1024 = 9216" in problem


def test_problems_of_all_deployments_and_probes_at_once(qwen38: Deriver) -> None:
    rows = "      - {file: b, prefill: 1xTP1PP6, concurrencies: [4]}\n"
    probes = "probe: {engines: [{file: p, layout: TEP24, concurrency: 4}]}\n"
    problems = qwen38.problems(("prefill: 1xTEP8", "prefill: 20xTEP8"), more=rows + probes)
    places = [problem.split(" ")[0] for problem in problems]
    assert places == ["spec.yaml:21:", "spec.yaml:22:", *["spec.yaml:23:"] * 3]


def test_attention_only_roles_that_draft_differently_are_warned_of(deepseek: Deriver) -> None:
    deployment = deepseek.one((DECODE, f"{DECODE}\n    mtp: {{prefill: 0, decode: 3}}"))
    (warning,) = deployment.warnings
    assert warning.message == "prefill drafts 0 tokens, decode 3"
    assert "speculative_config.method" not in flags(deployment, "prefill")
    assert flags(deployment)["speculative_config.num_speculative_tokens"] == 3


def test_checkpoint_that_cannot_draft(llama: Deriver) -> None:
    (problem,) = llama.problems((DECODE, f"{DECODE}\n    mtp: 3"))
    assert "mtp 3: the checkpoint has no multi-token-prediction layers" in problem


def test_same_spec_same_derivation(qwen38: Deriver) -> None:
    edits = (("prefill: 1xTEP8", "prefill: 1xTP2DP4+EP"), (DECODE, f"{DECODE}\n    mtp: 3"))
    assert qwen38.all(*edits) == qwen38.all(*edits)
