"""What a spec means: defaults, layers of rules, units of work, and a digest of the meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.documents import parse_document
from generator.errors import InvalidInput
from generator.parallel import parse_layout, parse_pool
from generator.spec.placement import Cluster
from generator.spec.reader import load_spec, spec_from_document
from generator.spec.spec import Spec, SpeculativeTokens
from generator.workload import Workload
from tests.small_specs import SPEC, Edit, edited

ROW = "      - {file: b, prefill: 2xTP2DP4+EP, concurrencies: [8, 16]}\n"


def read(*edits: Edit, more: str = "") -> Spec:
    text = edited(*edits) + more
    return spec_from_document(parse_document(text, "folder/spec.yaml"), folder=Path("folder"))


def test_the_short_spec() -> None:
    spec = read()
    assert spec.file_name == "spec.yaml"
    assert (spec.output, spec.model_config) == (Path("folder/recipes"), Path("folder/model"))
    assert spec.model == {"path": "hf:org/model", "container": "image", "precision": "NVFP4"}
    assert spec.cluster == Cluster(gpu="gb300", gpus_per_node=4, nodes=18)
    assert (spec.workload.isl, spec.workload.osl) == (8192, 1024)
    assert (spec.identity, spec.dynamo, spec.frontend, spec.sections) == (None, None, None, {})
    assert (spec.engine.type, spec.engine.version) == ("vllm", "0.26.0")
    assert (spec.engine.has_connector, spec.engine.connector) == (False, None)
    assert spec.probes == ()
    (deployment,) = spec.deployments
    assert (deployment.file, deployment.name, deployment.group) == ("a", "tiny-a", "only")
    assert (deployment.prefill, deployment.decode) == (parse_pool("TEP8"), parse_pool("TEP8"))
    assert deployment.speculative_tokens == SpeculativeTokens(prefill=0, decode=0)
    assert (deployment.concurrencies, deployment.sizing_concurrency) == ((4,), 4)
    assert (deployment.folder, deployment.time_limit) == ("", None)


def test_workload_is_what_the_deployment_is_sized_for() -> None:
    workload = Workload(isl=8192, osl=1024)
    assert workload.request_tokens == 9216


def test_paths_start_at_the_spec_and_may_be_absolute() -> None:
    spec = read(
        ("output: recipes", "output: ../out"), ("config: model,", "config: /m/config.json,")
    )
    assert spec.output == Path("folder/../out")
    assert spec.model_config == Path("/m/config.json")


def test_no_output_folder() -> None:
    assert read(("output: recipes\n", "")).output is None


def test_file_is_read_with_the_name_the_user_gave(tmp_path: Path) -> None:
    path = tmp_path / "a\tb.yaml"
    path.write_text(SPEC, encoding="utf-8")
    spec = load_spec(path)
    assert spec.document.source == str(path)
    assert spec.file_name == "a?b.yaml", "the header of a recipe is one line of text"


# --- groups -----------------------------------------------------------------------------------


def test_deployments_of_a_group_share_its_highest_load() -> None:
    spec = read(more=ROW)
    assert [deployment.sizing_concurrency for deployment in spec.deployments] == [16, 16]
    assert [deployment.concurrencies for deployment in spec.deployments] == [(4,), (8, 16)]


def test_group_may_state_the_load_to_size_for() -> None:
    spec = read(("    decode: 1xTEP8", "    decode: 1xTEP8\n    concurrency: 64"), more=ROW)
    assert {deployment.sizing_concurrency for deployment in spec.deployments} == {64}


def test_group_without_a_name_is_called_by_its_decode_pool() -> None:
    (deployment,) = read(("  - name: only\n    decode: 1xTEP8", "  - decode: TP8+EP")).deployments
    assert deployment.group == "1xTEP8"


@pytest.mark.parametrize(
    ("text", "loads"),
    [("[4]", (4,)), ("[8, 4]", (8, 4)), ("4", (4,)), ("4x8x16", (4, 8, 16)), ('"4"', (4,))],
)
def test_concurrencies(text: str, loads: tuple[int, ...]) -> None:
    (deployment,) = read(("[4]", text)).deployments
    assert deployment.concurrencies == loads
    assert deployment.sizing_concurrency == max(loads)


@pytest.mark.parametrize(
    ("mtp", "prefill", "decode"), [("3", 3, 3), ("{prefill: 0, decode: 3}", 0, 3), ("0", 0, 0)]
)
def test_speculative_tokens(mtp: str, prefill: int, decode: int) -> None:
    (deployment,) = read(("    decode: 1xTEP8", f"    decode: 1xTEP8\n    mtp: {mtp}")).deployments
    assert deployment.speculative_tokens == SpeculativeTokens(prefill=prefill, decode=decode)


@pytest.mark.parametrize(
    "pool", ["{layout: 2xTP2DP4+EP}", "{layout: 2xTP2DP4+EP, gpus: 8}", "2xTP2DP4+EP"]
)
def test_long_and_short_form_of_a_pool(pool: str) -> None:
    (deployment,) = read(("prefill: 1xTEP8", f"prefill: {pool}")).deployments
    assert deployment.prefill == parse_pool("2xTP2DP4+EP")


@pytest.mark.parametrize(
    ("group", "row", "limit"),
    [
        ("1:00:00", "", "1:00:00"),
        ("1:00:00", "0:30:00", "0:30:00"),
        ("", "1-00:00:00", "1-00:00:00"),
    ],
)
def test_time_limit_of_a_deployment_goes_before_its_groups(
    group: str, row: str, limit: str
) -> None:
    edits = []
    if group:
        edits.append(("    decode: 1xTEP8", f"    decode: 1xTEP8\n    time_limit: {group}"))
    if row:
        edits.append(("[4]}", f"[4], time_limit: {row}}}"))
    (deployment,) = read(*edits).deployments
    assert deployment.time_limit == limit


# --- sizing -----------------------------------------------------------------------------------

OF_ALL = {
    "max-model-len": 10240,
    "max-num-seqs": "ceil(concurrency / ranks) + headroom_sequences",
}


@pytest.mark.parametrize(
    ("group", "decode", "prefill", "headroom"),
    [
        pytest.param("", OF_ALL, {}, 16, id="the spec's"),
        pytest.param("{headroom_sequences: 4}", OF_ALL, {}, 4, id="headroom of the group"),
        pytest.param(
            "{decode: {max-num-seqs: 9, block-size: 32}}",
            {"max-model-len": 10240, "max-num-seqs": 9, "block-size": 32},
            {},
            16,
            id="flags of the group, in the spec's order",
        ),
        pytest.param(
            "{prefill: {max-num-seqs: 2}}", OF_ALL, {"max-num-seqs": 2}, 16, id="the other role"
        ),
    ],
)
def test_rules_of_a_group_go_on_top(
    group: str, decode: dict[str, Any], prefill: dict[str, Any], headroom: int
) -> None:
    more = f"\n    sizing: {group}" if group else ""
    (deployment,) = read(("    decode: 1xTEP8", f"    decode: 1xTEP8{more}")).deployments
    sizing = deployment.sizing
    assert (sizing.decode, sizing.prefill) == (decode, prefill)
    assert list(sizing.decode) == list(decode), "a formula may use the flags above it"
    assert (sizing.headroom_sequences, sizing.headroom_tokens) == (headroom, 16)


def test_roles_add_to_what_both_share() -> None:
    more = """\
  version: 0.26.0
  environment: {A: shared, B: shared}
  prefill_environment: {B: prefill}
  decode_environment: {C: decode}
  decode_args: {kv-cache-dtype: auto, seed: 1}
"""
    spec = read(("  version: 0.26.0\n", more))
    assert spec.engine.environment == {
        "prefill": {"A": "shared", "B": "prefill"},
        "decode": {"A": "shared", "B": "shared", "C": "decode"},
    }
    assert spec.engine.args["prefill"]["kv-cache-dtype"] == "fp8"
    assert spec.engine.args["decode"]["kv-cache-dtype"] == "auto"
    assert "x" not in spec.engine.args["prefill"]


@pytest.mark.parametrize(
    ("written", "has_connector", "connector"),
    [("", False, None), ("connector: null", True, None), ("connector: nixl", True, "nixl")],
)
def test_connector_left_out_is_not_connector_null(
    written: str, has_connector: bool, connector: str | None
) -> None:
    engine = read(("  version: 0.26.0", f"  version: 0.26.0\n  {written}")).engine
    assert (engine.has_connector, engine.connector) == (has_connector, connector)


# --- accuracy and probes ----------------------------------------------------------------------


def test_accuracy_repeats_every_deployment() -> None:
    accuracy = "accuracy: {folder: acc, file: '{file}-gsm8k', benchmark: {type: gsm8k}}\n"
    spec = read(more=ROW + accuracy)
    first, second, *repeated = spec.deployments
    assert [(each.folder, each.file, each.name) for each in repeated] == [
        ("acc", "a-gsm8k", "tiny-a-gsm8k"),
        ("acc", "b-gsm8k", "tiny-b-gsm8k"),
    ]
    for original, repeat in zip((first, second), repeated, strict=True):
        assert repeat.benchmark == {"type": "gsm8k"}
        assert repeat.concurrencies == ()
        assert repeat.sizing_concurrency == original.sizing_concurrency
        assert (repeat.prefill, repeat.decode) == (original.prefill, original.decode)


@pytest.mark.parametrize(
    ("of", "files"), [("[b]", ["b-acc"]), ("[]", []), ("[b, a]", ["a-acc", "b-acc"])]
)
def test_accuracy_of_some_deployments(of: str, files: list[str]) -> None:
    accuracy = f"accuracy: {{file: '{{file}}-acc', benchmark: {{type: gsm8k}}, of: {of}}}\n"
    spec = read(more=ROW + accuracy)
    assert [deployment.file for deployment in spec.deployments[2:]] == files


def test_accuracy_in_a_folder_of_its_own_may_keep_the_names() -> None:
    accuracy = "accuracy: {folder: acc, file: '{file}', benchmark: {type: gsm8k}}\n"
    spec = read(more=accuracy)
    assert [(each.folder, each.file) for each in spec.deployments] == [("", "a"), ("acc", "a")]


def test_accuracy_file_that_is_another_deployment() -> None:
    row = ROW.replace("file: b", "file: a-acc")
    accuracy = "accuracy: {file: '{file}-acc', benchmark: {type: gsm8k}}\n"
    with pytest.raises(InvalidInput, match="'a-acc' is also the file of a deployment"):
        read(more=row + accuracy)


def test_probes() -> None:
    rows = "".join(
        f"    - {{file: p{load}, layout: TP4DP4+EP, mtp: 3, concurrency: {load}}}\n"
        for load in (4, 8)
    )
    probes = read(more="probe:\n  engines:\n" + rows).probes
    assert [(each.concurrency, each.speculative_tokens) for each in probes] == [(4, 3), (8, 3)]
    assert {(each.pool.workers, each.pool.layout) for each in probes} == {
        (1, parse_layout("TP4DP4+EP"))
    }


# --- digest -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        SPEC + "# a comment\n",
        SPEC.replace("\n", "\r\n"),
        SPEC.replace("{isl: 8192, osl: 1024}", "\n  osl: 1024\n  isl: 8192"),
        SPEC.replace("gb300", '"gb300"'),
        SPEC.replace("isl: 8192", "isl: 0x2000"),
    ],
    ids=["comment", "line ends", "order and layout", "quotes", "hexadecimal"],
)
def test_digest_is_of_the_meaning(text: str) -> None:
    spec = spec_from_document(parse_document(text, "other.yaml"), folder=Path())
    assert spec.digest == read().digest


@pytest.mark.parametrize(
    "edit",
    [
        ("isl: 8192", "isl: 8191"),
        ("headroom_sequences: 16", "headroom_sequences: 17"),
        ("[4]", "4"),
    ],
)
def test_digest_changes_with_a_value(edit: Edit) -> None:
    assert read(edit).digest != read().digest


def test_problems_come_in_the_order_of_the_file() -> None:
    with pytest.raises(InvalidInput) as error:
        read(("isl: 8192", "isl: 0"), ("pdrecipe: 1", "pdrecipe: 2"), ("TEP8, conc", "XP8, conc"))
    assert [problem.line for problem in error.value.problems] == [1, 10, 21]
