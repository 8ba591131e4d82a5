"""One form for every way to write a recipe: layouts, engines, spellings, defaults."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from generator.documents import parse_document, read_document
from generator.engine.options import options_from_flags
from generator.facts.fact import DATA
from generator.normal_form import (
    NormalForm,
    canonical,
    default_value,
    inexpressible,
    normal_form,
    recipe_defaults,
    same_value,
)
from generator.recipe.expansion import variants
from generator.recipe.recipe import Dialect
from generator.validation import problems
from generator.wording import dotted_path

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURES = REPOSITORY / "tests/data/recipes"


def form(text: str) -> NormalForm:
    (variant,) = variants(parse_document(text, "recipe.yaml"))
    return normal_form(variant)


def form_of(file: Path) -> NormalForm:
    return normal_form(next(variants(read_document(file))))


def dotted(found: NormalForm) -> dict[str, Any]:
    return {dotted_path(path): value for path, value in found.plain().items()}


def args(flags: str, engine: str = "vllm") -> dict[str, Any]:
    text = f"schema: 2\nengine: {engine}\nroles:\n  decode:\n    args: {flags}\n"
    return form(text).args("decode")


# --- spellings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("{max-num-seqs: 8}", {"max-num-seqs": 8}),
        ("{max_num_seqs: 8}", {"max-num-seqs": 8}),
        ("{'max-num-seqs': 8}", {"max-num-seqs": 8}),
        ("{max-num-seqs: '8'}", {"max-num-seqs": "8"}),  # text breaks vLLM's data parallel sums
        ("{speculative_config.method: mtp}", {"speculative-config.method": "mtp"}),
        ("{speculative-config: {method: mtp}}", {"speculative-config.method": "mtp"}),
        ('{speculative-config: \'{"method": "mtp"}\'}', {"speculative-config.method": "mtp"}),
        (
            '{compilation-config: \'{"cudagraph_mode":"FULL","sizes":[1,2]}\'}',
            {"compilation-config.cudagraph-mode": "FULL", "compilation-config.sizes": (1, 2)},
        ),
        (
            '{kv-transfer-config: \'{"x": {"connectors": [{"kv_role": "a"}, {}]}}\'}',
            {
                "kv-transfer-config.x.connectors.0.kv-role": "a",
                "kv-transfer-config.x.connectors.1": {},
            },
        ),
        ("{served-model-name: '{a}'}", {"served-model-name": "{a}"}),  # no JSON
        ("{x: '{\"a\": NaN}'}", {"x": '{"a": NaN}'}),  # no JSON either
        ("{x: '{}'}", {"x": {}}),
        ("{x: .nan}", {"x": "nan"}),
        ("{numa-bind-nodes: [0, 0, 1]}", {"numa-bind-nodes": (0, 0, 1)}),
        ("{x: [[1, 2], []]}", {"x": ((1, 2), ())}),
        ("{a.: 1, .b: 2, '..': 3}", {"a.": 1, ".b": 2, "..": 3}),  # dots that part nothing
        (
            "{cuda_graph_config: {enable_padding: true, batch_sizes: [1]}, kv_cache_config: null}",
            {
                "cuda-graph-config.enable-padding": True,
                "cuda-graph-config.batch-sizes": (1,),
                "kv-cache-config": None,
            },
        ),
    ],
)
def test_flags_have_one_spelling(spelled: str, expected: dict[str, Any]) -> None:
    assert args(spelled) == expected


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (
            "{max_num_seqs: 1, max-num-seqs: 2}",
            {"max-num-seqs": 2, "max_num_seqs": 1},
        ),
        (
            '{speculative_config.method: a, speculative-config: \'{"method": "b"}\'}',
            {"speculative-config.method": "b", "speculative_config.method": "a"},
        ),
    ],
)
def test_of_a_flag_given_twice_nothing_is_lost(flags: str, kept: dict[str, Any]) -> None:
    assert args(flags) == kept
    one, other = flags.strip("{}").split(", ", 1)
    assert args(f"{{{other}, {one}}}") == kept
    (path,) = form(f"schema: 2\nroles: {{decode: {{args: {flags}}}}}\n").repeated
    assert dotted_path(path).replace("-", "_").endswith(("max_num_seqs", "config.method"))


def test_flags_are_read_as_engine_options() -> None:
    flags = "{tensor_parallel_size: 4, speculative-config: '{\"num_speculative_tokens\": 3}'}"
    options = options_from_flags(args(flags))
    assert (options.layout.tensor, options.num_speculative_tokens) == (4, 3)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("'64x128'", (64, 128)),
        ("[128, 64, 64]", (64, 128)),
        ("['128', 64]", (64, 128)),
        ("64", (64,)),
        ("'64'", (64,)),
        ("['{conc}']", ("{conc}",)),
        ("'{conc}x8'", "{conc}x8"),
        ("[]", ()),
        ("null", None),
        ("[true]", (True,)),
    ],
)
def test_concurrencies_are_a_set(written: str, expected: object) -> None:
    assert (
        form(f"benchmark: {{concurrencies: {written}}}\n").get("benchmark", "concurrencies")
        == expected
    )


@pytest.mark.parametrize(
    ("written", "path", "expected"),
    [
        ("environment: {A: 1}", "environment.A", "1"),
        ("environment: {A: true}", "environment.A", "true"),
        ("environment: {A: 0.5}", "environment.A", "0.5"),
        ("environment: {A: null}", "environment.A", None),
        ("backend: {decode_environment: {A: 1}}", "roles.decode.env.A", "1"),
        ("sbatch_directives: {mem: 0}", "sbatch_directives.mem", "0"),
        ("resources: {gpus_per_node: '8'}", "resources.gpus_per_node", 8),
        ("resources: {gpus_per_agg: '{tp}'}", "roles.agg.gpus", "{tp}"),
        ("resources: {gpus_per_agg: '16'}", "roles.agg.gpus", 16),
        ("benchmark: {isl: '8192'}", "benchmark.isl", 8192),
        ("benchmark: {random_range_ratio: '0.8'}", "benchmark.random_range_ratio", 0.8),
        ("benchmark: {use_chat_template: 'False'}", "benchmark.use_chat_template", False),
        ("dynamo: {install: 0}", "dynamo.install", False),
        ("frontend: {env: {A: 3}}", "frontend.env.A", "3"),
        ("name: 8", "name", 8),  # no text: srt-slurm refuses it
    ],
)
def test_values_are_what_the_consumer_casts_them_to(
    written: str, path: str, expected: object
) -> None:
    value = dotted(form(written + "\n"))[path]
    assert (value, type(value)) == (expected, type(expected))


# --- layouts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("v1", "v2"),
    [
        ("backend: {type: vllm}", "engine: vllm"),
        ("backend: {type: vllm, connector: null}", "engine: {type: vllm, connector: null}"),
        (
            "backend: {type: vllm, set_cuda_visible_devices: true}",
            "engine: {type: vllm, set_visible_devices: true}",
        ),
        (
            "backend: {sglang_config: {decode: {tp-size: 8}}}",
            "engine: sglang\nroles: {decode: {args: {tp-size: 8}}}",
        ),
        (
            "backend: {type: trtllm, trtllm_config: {prefill: {max_batch_size: 8}}}",
            "engine: trtllm\nroles: {prefill: {args: {max-batch-size: 8}}}",
        ),
        (
            "backend: {type: mocker, speedup_ratio: 2.0, mocker_config: {aggregated: {a: 1}}}",
            "engine: {type: mocker, speedup_ratio: 2}\nroles: {agg: {args: {a: 1}}}",
        ),
        (
            "backend: {type: vllm, aggregated_environment: {A: '1'}}",
            "engine: vllm\nroles: {agg: {env: {A: '1'}}}",
        ),
        (
            "resources: {prefill_nodes: 2, prefill_workers: 1, gpus_per_prefill: 8}",
            "engine: sglang\nroles: {prefill: {nodes: 2, workers: 1, gpus: 8}}",
        ),
        (
            "resources: {decode_nodes: 0, decode_workers: 1}",
            "engine: sglang\nroles: {decode: {nodes: colocate, workers: 1}}",
        ),
        (
            "resources: {decode_nodes: '0', decode_workers: 1}",
            "engine: sglang\nroles: {decode: {nodes: ' Colocate', workers: 1}}",
        ),
        ("dynamo: {version: 1.2.0}", "engine: sglang\ndynamo: {source: {pypi: 1.2.0}}"),
        ("dynamo: {wheel: 1.2.0}", "engine: sglang\ndynamo: {source: {wheel: 1.2.0}}"),
        (
            "dynamo: {hash: 0a1b, cargo_patches: [x]}",
            (
                "engine: sglang\ndynamo: {source: {git: 'https://github.com/ai-dynamo/dynamo.git', "
                "rev: 0a1b, patches: [x]}}"
            ),
        ),
        (
            "frontend: {type: sglang, dedicated_node: true}",
            "engine: sglang\nfrontend: {type: sglang-router, placement: {node: dedicated}}",
        ),
        (
            "frontend: {dedicated_node: false, orchestrator_placement: first_decode}",
            "engine: sglang\nfrontend: {placement: {node: first_decode}}",
        ),
        (
            "benchmark: {client_placement: last_decode}",
            "engine: sglang\nbenchmark: {placement: {node: last_decode}}",
        ),
        (
            "benchmark: {client_dedicated_node: 'true'}",
            "engine: sglang\nbenchmark: {placement: {node: dedicated}}",
        ),
        (
            "infra: {etcd_nats_dedicated_node: true, nats_max_payload_mb: 32}",
            (
                "engine: sglang\nservices:\n"
                "- {name: nats, type: nats, placement: {node: dedicated}, options: "
                "{max_payload_mb: 32}}\n"
                "- {name: etcd, type: etcd, placement: {node: dedicated}}"
            ),
        ),
        (
            (
                "resources: {decode_nodes: 1}\n"
                "backend: {type: vllm, kv_events_config: {decode: {topic: t}}}"
            ),
            "engine: vllm\nroles: {decode: {nodes: 1, kv_events: {topic: t}}}",
        ),
        (
            (
                "resources: {prefill_nodes: 1, decode_nodes: 1}\n"
                "backend: {type: vllm, kv_events_config: true}"
            ),
            (
                "engine: vllm\nroles: {prefill: {nodes: 1, kv_events: true}, "
                "decode: {nodes: 1, kv_events: true}}"
            ),
        ),
        (
            (
                "resources: {agg_nodes: 1}\nbackend: {type: vllm, mooncake_kv_store: "
                "{container: c, env: {MC: '1'}, master_extra_args: [a], "
                "store_config: {protocol: rdma}}}"
            ),
            (
                "engine: vllm\nroles: {agg: {nodes: 1, env: {MC: '1'}}}\n"
                "services: [{name: mooncake-master, type: mooncake-master, container: c, "
                "args: [a], options: {store_config: {protocol: rdma}}}]"
            ),
        ),
    ],
)
def test_v1_and_v2_say_the_same(v1: str, v2: str) -> None:
    one, other = form(v1 + "\n"), form(f"schema: 2\n{v2}\n")
    assert (one.dialect, other.dialect) == (Dialect.V1, Dialect.V2)
    expected = other.plain()
    if "backend" not in v1:
        expected["engine", "type"] = "sglang"  # v1's default
    assert one.plain() == expected
    assert inexpressible(one, Dialect.V2) == () == inexpressible(other, Dialect.V1)


def test_small_recipes_say_the_same() -> None:
    one, other = form_of(FIXTURES / "small.v1.yaml"), form_of(FIXTURES / "small.v2.yaml")
    assert one.plain() == other.plain()
    assert len(one.values) > 40


RENDERED = sorted((REPOSITORY / "recipes").rglob("v1/*.yaml"))


@pytest.mark.parametrize("file", RENDERED, ids=lambda file: f"{file.parts[-7]}-{file.stem}")
def test_rendered_pairs_differ_by_what_v2_cannot_express(file: Path) -> None:
    one, other = form_of(file), form_of(file.parents[1] / "v2" / file.name)
    missing = [each.path for each in inexpressible(one, Dialect.V2)]
    assert {path: value for path, value in one.plain().items() if path not in missing} == (
        other.plain()
    )
    assert all(path[0] == "benchmark" for path in missing)
    assert inexpressible(other, Dialect.V1) == ()


# --- nothing lost, whatever it is -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("backend: {type: vllm, sglang_config: {decode: {tp: 8}}}",
         "backend.sglang_config.decode.tp", 8),
        ("backend: {type: vllm, connecter: x}", "engine.connecter", "x"),
        ("backend: [1]", "engine", (1,)),
        ("backend: vllm", "engine", "vllm"),
        ("backend: {type: {a: 1}}", "engine.type.a", 1),
        ("resources: {prefil_nodes: 2}", "resources.prefil_nodes", 2),
        ("resources: 8", "resources", 8),
        ("resources: {decode_nodes: 0}", "roles.decode.nodes", 0),
        ("backend: {vllm_config: {other: {a: 1}}, type: vllm}", "engine.vllm_config.other.a", 1),
        ("backend: {vllm_config: {decode: [1]}, type: vllm}", "roles.decode.args", (1,)),
        ("backend: {type: vllm, kv_events_config: true}", "engine.kv_events_config", True),
        ("frontend: {dedicated_node: true, orchestrator_placement: x}",
         "frontend.orchestrator_placement", "x"),
        ("benchmark: {client_dedicated_node: maybe}", "benchmark.client_dedicated_node", "maybe"),
        ("dynamo: {version: 1, hash: a}", "dynamo.version", 1),
        ("infra: {etcd_nats_dedicated_node: maybe}", "infra.etcd_nats_dedicated_node", "maybe"),
        ("schema: 3", "schema", 3),
        ("schema: 2\nservices: [{name: a}, 3]", "services[0].name", "a"),
        ("schema: 2\nservices: [{name: a, x: 1}, {name: a, x: 2}]", "services[1].x", 2),
        ("schema: 2\nservices: {name: a}", "services.name", "a"),
        ("schema: 2\nroles: {other: {nodes: 1}}", "roles.other.nodes", 1),
        ("schema: 2\nroles: 3", "roles", 3),
        ("schema: 2\ndynamo: {source: null}", "dynamo.source", None),
        ("schema: 2\nroles: {agg: {engine: vllm, restart: always}}", "roles.agg.restart.policy",
         "always"),
        ("schema: 2\nroles: {agg: {engine: vllm}}", "roles.agg.engine.type", "vllm"),
        ("sweep_me: '{tp}'", "sweep_me", "{tp}"),
    ],
)  # fmt: skip
def test_what_is_not_understood_keeps_its_path(text: str, path: str, value: object) -> None:
    assert dotted(form(text + "\n"))[path] == value


def test_number_of_values_is_the_documents() -> None:
    text = 'backend: {type: vllm, vllm_config: {decode: {a: 1, b: \'{"c": 1, "d": 2}\'}}}\n'
    assert len(form(text).values) == 4


def test_engine_and_roles() -> None:
    found = form(
        "schema: 2\nroles: {decode: {engine: vllm, nodes: 1}, prefill: {engine: {type: sglang}}}\n"
    )
    assert (found.engine, found.roles) == ("", ("prefill", "decode"))
    assert (found.engine_of("decode"), found.engine_of("prefill")) == ("vllm", "sglang")
    assert form("backend: {type: trtllm}\n").engine_of("decode") == "trtllm"
    assert form("name: x\n").engine == "sglang"


def test_lines() -> None:
    text = (
        "name: x\nbackend:\n  type: vllm\n  vllm_config:\n    decode:\n      max_num_seqs: 8\n"
        '      speculative-config: >-\n        {"method":\n         "mtp"}\n'
        "resources:\n  decode_nodes: 1\n"
    )
    found = form(text)
    lines = {dotted_path(path): found.line(path) for path in found.values}
    assert lines == {
        "name": 1,
        "engine.type": 3,
        "roles.decode.args.max-num-seqs": 6,
        "roles.decode.args.speculative-config.method": 7,
        "roles.decode.nodes": 11,
    }
    assert found.line(("roles", "decode", "args", "block-size")) == 5  # the section it lacks in
    assert found.line(("roles", "decode", "args", "speculative-config", "x")) == 7
    assert found.line(("engine", "connector")) == 2
    assert found.line(("benchmark",)) == 1
    problem = found.problem(("roles", "decode", "args", "max-num-seqs"), "too many", "lower it")
    assert str(problem) == ("recipe.yaml:6: roles.decode.args.max-num-seqs: too many (lower it)")


# --- defaults ---------------------------------------------------------------------------------


def test_defaults_are_sourced_facts() -> None:
    assert problems(read_document(DATA / "recipe_defaults.yaml"), "recipe-defaults") == []
    assert all(each.source and each.as_of for each in recipe_defaults().values())


BARE = "backend: {type: vllm}\nresources: {agg_nodes: 2, agg_workers: 1}\nbenchmark: {type: %s}\n"


@pytest.mark.parametrize(
    ("written", "is_dropped"),
    [
        ("resources: {agg_nodes: 2, agg_workers: 1, gpus_per_node: 4}", True),
        ("resources: {agg_nodes: 2, agg_workers: 1, gpus_per_node: 8}", False),
        ("resources: {agg_nodes: 2, agg_workers: 1, gpus_per_agg: 8}", True),
        ("resources: {agg_nodes: 2, agg_workers: 1, gpus_per_agg: 4}", False),
        ("benchmark: {type: sa-bench, random_range_ratio: 0.8}", True),
        ("benchmark: {type: sa-bench, num_prompts_mult: 10, num_warmup_mult: 2}", True),
        ("benchmark: {type: custom, random_range_ratio: 0.8}", False),
        ("benchmark: {type: sa-bench, req_rate: inf}", True),
        ("frontend: {type: dynamo, enable_multiple_frontends: true}", True),
        ("frontend: {enable_multiple_frontends: false}", False),
        ("frontend: {args: {}, env: {}}", True),
        ("backend: {type: vllm, connector: nixl}", True),
        ("backend: {type: vllm, connector: null}", False),
        ("backend: {type: vllm, vllm_config: {aggregated: {pipeline-parallel-size: 1}}}", True),
        ("backend: {type: vllm, vllm_config: {aggregated: {data_parallel_size: 1}}}", True),
        ("backend: {type: vllm, vllm_config: {aggregated: {data-parallel-size: true}}}", False),
        ("backend: {type: vllm, vllm_config: {aggregated: {trust-remote-code: false}}}", True),
        ("backend: {type: vllm, vllm_config: {aggregated: {x: null}}}", True),
        ("backend: {type: vllm, vllm_config: {aggregated: {x: {y: false}}}}", False),
        ("backend: {type: vllm, vllm_config: {aggregated: {x: '{}'}}}", False),
        ("infra: {etcd_nats_dedicated_node: false}", True),
        ("infra: {etcd_nats_dedicated_node: true}", False),
        ("environment: {}", True),
        ("lock: {version: 1}", True),
        ("dynamo: {version: 0.8.0}", False),  # a pin is more than its absence
    ],
)
def test_defaults_written_out_make_no_difference(written: str, *, is_dropped: bool) -> None:
    kind = "custom" if "custom" in written else "sa-bench"
    bare = form(BARE % kind)
    section = written.partition(":")[0]
    others = [line for line in (BARE % kind).splitlines() if not line.startswith(section)]
    found = form("\n".join([*others, written, ""]))
    assert found.plain() != bare.plain()
    assert (canonical(found).plain() == canonical(bare).plain()) is is_dropped
    assert canonical(canonical(found)).plain() == canonical(found).plain()


def test_flags_of_a_file_are_not_a_command_line() -> None:
    text = "backend: {type: trtllm, trtllm_config: {decode: {print_iter_log: false, x: null}}}\n"
    assert canonical(form(text)).args("decode") == {"print-iter-log": False, "x": None}


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (BARE % "sa-bench", "roles.agg.gpus", 8),
        ("resources: {decode_nodes: 3, decode_workers: 2, gpus_per_node: 8}",
         "roles.decode.gpus", 12),
        (("resources: {prefill_nodes: 1, prefill_workers: 2, gpus_per_node: 8, decode_nodes: 0, "
         "decode_workers: 1}"), "roles.decode.gpus", 4),
        ("resources: {gpus_per_prefill: 2, decode_nodes: 0, decode_workers: 1}",
         "roles.decode.gpus", 2),
        ("resources: {agg_nodes: '{n}', agg_workers: 1}", "roles.agg.gpus", None),
        ("name: x", "roles.agg.gpus", 4),
        ("name: x", "roles.agg.args.pipeline-parallel-size", 1),
        ("name: x", "benchmark.num_prompts_mult", None),
        ("benchmark: {type: sa-bench}", "benchmark.num_prompts_mult", 10),
        ("name: x", "nothing.known", None),
    ],
)  # fmt: skip
def test_default_values(text: str, path: str, expected: object) -> None:
    assert default_value(form(text + "\n"), tuple(path.split("."))) == expected


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ((1, 2), (1, 2.0), True),
        ((1,), (True,), False),
        ((1,), (1, 1), False),
        ("1", 1, False),
        (None, None, True),
        ({}, {}, True),
    ],
)
def test_same_value(one: object, other: object, *, is_same: bool) -> None:
    assert same_value(one, other) is is_same
    assert same_value(other, one) is is_same


# --- what a layout cannot express -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect", "path", "is_known"),
    [
        ("benchmark: {backend: dynamo}", Dialect.V2, "benchmark.backend", True),
        ("benchmark: {export_node_metrics: true}", Dialect.V2,
         "benchmark.export_node_metrics", True),
        ("benchmark: {islx: 3}", Dialect.V2, "benchmark.islx", False),
        ("benchmark: {islx: 3}", Dialect.V1, "benchmark.islx", False),
        ("resources: {prefill_nodes: 0}", Dialect.V2, "roles.prefill.nodes", True),
        ("backend: {type: vllm, sglang_config: {decode: {a: 1}}}", Dialect.V2,
         "backend.sglang_config.decode.a", True),
        ("schema: 2\nengine: vllm\nroles: {agg: {restart: always}}", Dialect.V1,
         "roles.agg.restart.policy", True),
        ("schema: 2\nengine: vllm\nservices: [{name: ray, type: ray}]", Dialect.V1,
         "services.ray.type", True),
        ("schema: 2\nengine: vllm\nhost_setup: {commands: [a]}", Dialect.V1,
         "host_setup.commands", True),
    ],
)  # fmt: skip
def test_inexpressible(text: str, dialect: Dialect, path: str, *, is_known: bool) -> None:
    (found,) = inexpressible(form(text + "\n"), dialect)
    assert (dotted_path(found.path), found.is_known) == (path, is_known)


# --- real recipes -----------------------------------------------------------------------------


def test_all_real_recipes_in_no_time(shared: Path) -> None:
    documents = [read_document(file) for file in sorted((shared / "recipes").rglob("*.yaml"))]
    start = time.perf_counter()
    forms = [normal_form(variant) for each in documents for variant in variants(each)]
    seconds = time.perf_counter() - start
    assert (len(forms), sum(len(each.values) for each in forms)) == (777, 41645)
    assert seconds < 3  # 0.2 measured
    for each in forms:
        assert not each.repeated
        assert inexpressible(each, each.dialect) == ()


@pytest.mark.parametrize(
    ("file", "path", "value"),
    [
        ("v1/multi-node/DeepSeek-R1/H200/trtllm/1k1k/bs256-1p6d-dep.yaml", "engine.type", "sglang"),
        ("v1/multi-node/DeepSeek-R1/H200/trtllm/1k1k/bs256-1p6d-dep.yaml",
         "benchmark.concurrencies", (128, 256, 512, 1024, 2048)),
        ("v1/multi-node/DeepSeek-V4-Pro/H100/vllm/8k1k-mtp.yaml", "roles.agg.gpus", 16),
        ("v1/multi-node/DeepSeek-V4-Pro/H100/vllm/8k1k-mtp.yaml",
         "roles.agg.args.tensor-parallel-size", "16"),
        ("v1/multi-node/DeepSeek-V4-Pro/H100/vllm/8k1k-mtp.yaml",
         "roles.agg.args.speculative-config.num-speculative-tokens", 2),
        ("v1/single-node/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4/B200/trtllm/8k1k.yaml",
         "roles.agg.args.max-num-tokens", 2176),
        ("v2/nvidia__vllm__dynamo-disagg.colocate.yaml", "roles.decode.nodes", "colocate"),
        ("v2/nvidia__features__infra-services.yaml", "services.nats.options.max_payload_mb", 24),
        ("v2/nvidia__features__worker-restart.yaml", "roles.agg.restart.policy", "on-failure"),
        ("v2/infx__dsv4__gb300-fp4__variants.truncated.yaml", "dynamo.wheel", "1.2.1"),
    ],
)  # fmt: skip
def test_values_of_real_recipes(shared: Path, file: str, path: str, value: object) -> None:
    assert dotted(form_of(shared / "recipes" / file))[path] == value
