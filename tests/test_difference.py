"""Two recipes by meaning: what makes no difference, what does, and what a difference costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.documents import parse_document, read_document
from generator.normal_form import NormalForm, normal_form
from generator.recipe.expansion import variants
from generator.recipe_diff.difference import (
    Action,
    Change,
    RecipeDiff,
    apply,
    compare,
    meant_values,
    same_values,
)
from generator.recipe_diff.effects import Effect, effect_of, strongest
from generator.wording import dotted_path

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURES = REPOSITORY / "tests/data/recipes"
RENDERED = [
    path.relative_to(REPOSITORY)
    for path in sorted((REPOSITORY / "recipes").rglob("*.yaml"))
    if "v1" in path.parts
]

V2 = """
schema: 2
name: a
model: {path: p, container: c, precision: fp8}
resources: {gpu_type: gb300, gpus_per_node: 4}
engine: {type: vllm, connector: null}
roles:
  decode:
    nodes: 2
    workers: 1
    gpus: 8
    args:
      tensor-parallel-size: 8
      max-num-seqs: 656
      kv-transfer-config: '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
benchmark: {type: sa-bench, isl: 8192, osl: 1024, concurrencies: 64x128}
"""


def form(text: str) -> NormalForm:
    (variant,) = variants(parse_document(text, "recipe.yaml"))
    return normal_form(variant)


def form_of(file: Path) -> NormalForm:
    return normal_form(next(iter(variants(read_document(file)))))


def edited(old: str, new: str) -> NormalForm:
    assert V2.count(old) == 1
    return form(V2.replace(old, new))


def changes(diff: RecipeDiff) -> list[tuple[str, str, object, object]]:
    return [(dotted_path(c.path), c.action.value, c.before, c.after) for c in diff.changes]


# --- no difference ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("concurrencies: 64x128", "concurrencies: [64, 128]"),
        ("concurrencies: 64x128", "concurrencies: [128, '64', 64]"),
        ("name: a", "name: 'a'  # a comment"),
        ("gpus_per_node: 4", "gpus_per_node: '4'"),
        ("{gpu_type: gb300, gpus_per_node: 4}", "{gpus_per_node: 4, gpu_type: gb300}"),
        ("    gpus: 8\n", ""),  # two nodes of four, one worker
        ("isl: 8192", "isl: 8192, req_rate: inf, random_range_ratio: 0.8"),
        ("engine: {type: vllm, connector: null}", "engine: {connector: null, type: vllm}"),
        ("tensor-parallel-size: 8", "tensor_parallel_size: 8\n      pipeline-parallel-size: 1"),
        ("max-num-seqs: 656", "max-num-seqs: 656\n      enforce-eager: false"),
        (
            """'{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'""",
            """'{"kv_role":"kv_both","kv_connector":"NixlConnector"}'""",
        ),
        (
            """'{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'""",
            "{kv_role: kv_both, kv_connector: NixlConnector}",
        ),
    ],
)
def test_spelling_is_no_difference(old: str, new: str) -> None:
    assert changes(compare(form(V2), edited(old, new))) == []


@pytest.mark.parametrize("path", RENDERED, ids=str)
def test_layouts_of_one_recipe_differ_only_in_what_v2_cannot_say(path: Path) -> None:
    v1 = form_of(REPOSITORY / path)
    v2 = form_of(REPOSITORY / Path(*("v2" if part == "v1" else part for part in path.parts)))
    diff = compare(v1, v2)
    assert changes(diff) == []
    left = {dotted_path(change.path) for change in diff.inexpressible}
    assert left <= {"benchmark.backend", "benchmark.endpoint"}
    assert diff.unchanged == len(meant_values(v2))


def test_own_recipe_in_both_layouts() -> None:
    diff = compare(form_of(FIXTURES / "small.v1.yaml"), form_of(FIXTURES / "small.v2.yaml"))
    assert diff == RecipeDiff(unchanged=diff.unchanged)


# --- differences ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "max-num-seqs: 656",
            "max-num-seqs: 720",
            [("roles.decode.args.max-num-seqs", "changed", 656, 720)],
        ),
        (
            "isl: 8192",
            "isl: 8192, num_prompts_mult: 8",
            [("benchmark.num_prompts_mult", "added", None, 8)],
        ),
        (
            "concurrencies: 64x128",
            "concurrencies: 64x256",
            [("benchmark.concurrencies", "changed", (64, 128), (64, 256))],
        ),
        (
            '"kv_role": "kv_both"',
            '"kv_role": "kv_both", "kv_load_failure_policy": "fail"',
            [
                (
                    "roles.decode.args.kv-transfer-config.kv-load-failure-policy",
                    "added",
                    None,
                    "fail",
                )
            ],
        ),
        (
            "      max-num-seqs: 656\n",
            "",
            [("roles.decode.args.max-num-seqs", "removed", 656, None)],
        ),
        (
            "nodes: 2\n    workers: 1\n    gpus: 8",  # the default of gpus moves with the nodes
            "nodes: 4\n    workers: 1",
            [("roles.decode.nodes", "changed", 2, 4), ("roles.decode.gpus", "changed", 8, 16)],
        ),
    ],
)
def test_differences(old: str, new: str, expected: list[tuple[str, str, object, object]]) -> None:
    before, after = form(V2), edited(old, new)
    diff = compare(before, after)
    assert changes(diff) == expected
    assert same_values(apply(diff, meant_values(before)), meant_values(after))
    back = compare(after, before)
    assert sorted(map(repr, back.changes)) == sorted(map(repr, diff.mirrored().changes))
    assert diff.compared == diff.unchanged + len(expected)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("max-model-len: 10240", "max-model-len: '10240'", True),
        ("max_model_len: 10240", "max-model-len: '10240'", True),
        ("tensor-parallel-size: 8", "tensor-parallel-size: '8'", True),  # nobody multiplies it
        ("gpu-memory-utilization: 0.90", "gpu-memory-utilization: '0.90'", True),
        ("swap-space: 1.5", "swap-space: '1.5'", True),
        ("compilation-config.level: 3", "compilation-config.level: '3'", True),
        ("cudagraph-capture-sizes: [1, 2]", "cudagraph-capture-sizes: ['1', 2]", True),
        ("data-parallel-size: 4", "data-parallel-size: '4'", False),
        (
            "{dp}, tensor-parallel-size: 4",
            "{dp}, tensor-parallel-size: '4'",
            False,
        ),
        ("compilation-config: {level: 3}", "compilation-config: {level: '3'}", False),
        ("enable-x: true", "enable-x: 'true'", False),  # a switch, and a value after a flag
        ("served-model-name: '1.10'", "served-model-name: 1.1", False),
        ("seed: '007'", "seed: 7", False),
    ],
)
def test_text_and_number_are_one_word_of_a_command_line(
    one: str, other: str, *, is_same: bool
) -> None:
    dp = "data-parallel-size: 2"
    template = "schema: 2\nname: a\nengine: vllm\nroles: {decode: {args: {%s}}}\n"
    before, after = (form(template % each.replace("{dp}", dp)) for each in (one, other))
    diff = compare(before, after)
    assert diff.is_empty is is_same
    assert compare(after, before).is_empty is is_same
    assert same_values(apply(diff, meant_values(before)), meant_values(after))


def test_text_and_number_differ_in_a_file_of_flags() -> None:
    template = "schema: 2\nname: a\nengine: trtllm\nroles: {decode: {args: {max_batch_size: %s}}}\n"
    assert not compare(form(template % "4"), form(template % "'4'")).is_empty


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("'1:00:00'", "'01:00:00'"),
        ("'60'", "'1:00:00'"),
        ("'90:30'", "'1:30:30'"),
        ("'1-12'", "'36:00:00'"),
        ("'1-12:30'", "'36:30:00'"),
        ("'1-00:00:00'", "'24:00:00'"),
    ],
)
def test_time_limits_are_durations(one: str, other: str) -> None:
    template = "name: a\nresources: {}\nbackend: {}\nslurm: {time_limit: %s}\n"
    assert compare(form(template % one), form(template % other)).is_empty
    assert not compare(form(template % one), form(template % "'0:59:00'")).is_empty


def test_a_time_limit_in_no_format_of_slurm_stays_as_it_is() -> None:
    template = "name: a\nresources: {}\nbackend: {}\nslurm: {time_limit: %s}\n"
    diff = compare(form(template % "UNLIMITED"), form(template % "'1:2:3:4'"))
    assert changes(diff) == [("slurm.time_limit", "changed", "UNLIMITED", "1:2:3:4")]


def test_the_default_is_named_where_a_side_says_nothing() -> None:
    (change,) = compare(form(V2), edited("isl: 8192", "isl: 8192, num_prompts_mult: 8")).changes
    assert change == Change(
        path=("benchmark", "num_prompts_mult"),
        action=Action.ADDED,
        before=None,
        after=8,
        effect=Effect.INVALIDATES_RESULTS,
        default=10,
    )
    assert change.mirrored().default == 10


def test_services_of_two_layouts_go_by_name() -> None:
    v1 = form("name: a\nresources: {}\nbackend: {}\ninfra: {nats_max_payload_mb: 32}\n")
    v2 = form(
        "schema: 2\nname: a\nresources: {}\nengine: sglang\n"
        "services:\n  - {type: nats, options: {max_payload_mb: 64}, name: nats}\n"
    )
    assert changes(compare(v1, v2)) == [("services.nats.options.max_payload_mb", "changed", 32, 64)]


# --- effects ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "effect"),
    [
        ("name", "cosmetic"),
        ("identity.frameworks.vllm", "cosmetic"),
        ("slurm.time_limit", "needs-restart"),
        ("services.nats.options.max_payload_mb", "needs-restart"),
        ("services.anything.type", "needs-restart"),
        ("roles.decode.restart.policy", "needs-restart"),
        ("roles.decode.args.max-num-seqs", "changes-memory"),
        ("roles.prefill.args.compilation-config.cudagraph-mode", "changes-memory"),
        ("roles.agg.args.speculative-config.num-speculative-tokens", "changes-memory"),
        ("resources.gpu_type", "changes-memory"),
        ("roles.decode.args.a-flag-nobody-knows", "invalidates-results"),
        ("roles.decode.args.kv-transfer-config.kv-role", "invalidates-results"),
        ("roles.decode.env.NCCL_DEBUG", "invalidates-results"),
        ("roles.decode.env.DYN_LOG", "needs-restart"),
        ("environment.VLLM_LOGGING_LEVEL", "needs-restart"),
        ("frontend.env.NCCL_LOG_LEVEL", "needs-restart"),
        ("roles.decode.env.DYN_LOGIN", "invalidates-results"),
        ("roles.prefill.nodes", "invalidates-results"),
        ("dynamo.version", "invalidates-results"),
        ("engine.type", "invalidates-results"),
        ("frontend.placement.node", "invalidates-results"),
        ("a_key_of_no_schema", "invalidates-results"),
    ],
)
def test_effect_of_a_path(path: str, effect: str) -> None:
    assert effect_of(tuple(path.split("."))) == effect


def test_every_change_has_an_effect_and_the_strongest_counts() -> None:
    assert strongest([]) is None
    assert strongest([Effect.NEEDS_RESTART, Effect.COSMETIC]) is Effect.NEEDS_RESTART
    assert strongest(Effect) is Effect.CHANGES_MEMORY
    diff = compare(form(V2), edited("name: a", "name: b\nslurm: {time_limit: '1:00:00'}"))
    assert diff.effect is Effect.NEEDS_RESTART
