"""Phase studies: what a spec asks for, how far each ladder goes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from generator.documents import parse_document
from generator.errors import InvalidInput
from generator.estimation import Estimate, estimate_spec
from generator.parallel import parse_layout
from generator.spec.reader import spec_from_document
from generator.spec.spec import Spec
from generator.studies.ladders import Limit, ladder_rungs
from tests.conftest import REPOSITORY
from tests.small_specs import SPEC, edited, run, spec_folder

QWEN38 = "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
WITHOUT_GROUPS = SPEC.partition("groups:")[0]


def study(layouts: str, more: str = "", phase: str = "decode") -> str:
    """A studies section of one phase."""
    return (
        f"studies: {{{phase}: {{workload: {{isl: 1, osl: 1000}}, layouts: [{layouts}]{more}}}}}\n"
    )


def read(text: str) -> Spec:
    return spec_from_document(parse_document(text, "spec.yaml"), folder=Path())


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        read(text)
    return [str(problem) for problem in error.value.problems]


@pytest.fixture(scope="module")
def qwen38() -> Estimate:
    return estimate_spec(REPOSITORY / QWEN38)


# --- the published studies --------------------------------------------------------------------

# Layout, MTP, last rung, what ends the ladder. Decode at 1/1000 shows why the article's figure 2
# changes its leader: TEP8 holds 256 requests with MTP and 1024 without, TP4DP4+EP 1024 and all.
LADDERS = [
    ("prefill", "TP4DP2+EP", 0, 64, Limit.SLOTS),
    ("prefill", "TP2DP4+EP", 0, 128, Limit.SLOTS),
    ("prefill", "TP4DP4+EP", 0, 128, Limit.SLOTS),
    ("prefill", "TP2DP8+EP", 0, 256, Limit.SLOTS),
    ("prefill", "DEP16", 0, 512, Limit.SLOTS),
    ("prefill", "TP1PP8+EP", 0, 32, Limit.SLOTS),
    ("prefill", "TEP8", 0, 32, Limit.SLOTS),
    ("prefill", "TEP16", 0, 32, Limit.SLOTS),
    ("decode", "TP2DP4+EP", 0, 512, Limit.KV_CACHE),
    ("decode", "TP2DP4+EP", 3, 128, Limit.KV_CACHE),
    ("decode", "TP4DP8+EP", 0, 2560, None),
    ("decode", "TP4DP8+EP", 3, 2560, None),
    ("decode", "TEP8", 0, 1024, Limit.KV_CACHE),
    ("decode", "TEP8", 3, 256, Limit.KV_CACHE),
    ("decode", "TEP16", 0, 2560, None),
    ("decode", "TEP16", 3, 1024, Limit.KV_CACHE),
    ("decode", "TP4DP4+EP", 0, 2560, None),
    ("decode", "TP4DP4+EP", 3, 1024, Limit.KV_CACHE),
]


@pytest.mark.parametrize(
    ("phase", "layout", "tokens", "last", "limit"),
    [pytest.param(*row, id=f"{row[0]} {row[1]} mtp{row[2]}") for row in LADDERS],
)
def test_ladder_of_a_published_study(
    phase: str, layout: str, tokens: int, last: int, limit: Limit | None, qwen38: Estimate
) -> None:
    (found,) = [
        each
        for each in qwen38.studies.planned
        if (each.spec.phase, str(each.spec.engine.pool.layout)) == (phase, layout)
        and each.spec.engine.speculative_tokens == tokens
    ]
    rungs = found.probe.spec.concurrencies
    assert rungs[:3] == (1, 2, 4)
    assert rungs[-1] == last
    assert (found.end.limit if found.end else None) == limit
    engine = found.capacity.engine
    assert found.capacity.pool_requests >= last
    assert engine.pool.data_ranks * engine.resolved.max_num_seqs >= last


def test_the_article_s_layouts_are_all_there_and_one_is_refused(qwen38: Estimate) -> None:
    published = json.loads((REPOSITORY / "tests/data/studies/article.json").read_text("utf-8"))
    specs = [each.spec for each in qwen38.studies.planned]
    specs += [each.spec for each in qwen38.studies.refused]
    for phase, of in published["studies"].items():
        layouts = {each.engine.pool.layout for each in specs if each.phase == phase}
        assert layouts == set(map(parse_layout, of["layouts"]))
    (refused,) = qwen38.studies.refused
    assert str(refused.spec.engine.pool.layout) == "TP1PP6+EP"
    assert "6 GPUs, which neither divides a node of 4 GPUs" in refused.reason


def test_a_study_has_its_role_s_flags_and_no_transfer(qwen38: Estimate) -> None:
    flags = {
        each.probe.spec.file: each.probe.recipe.role("agg").args for each in qwen38.studies.planned
    }
    prefill, decode = flags["prefill-tp2dep4"], flags["decode-tp4dep4-mtp3"]
    assert (prefill["max-num-seqs"], prefill["max-num-batched-tokens"]) == (32, 16384)
    assert prefill["compilation-config"] == '{"cudagraph_mode": "PIECEWISE"}'
    assert (decode["max-num-seqs"], decode["max-cudagraph-capture-size"]) == (272, 1088)
    assert decode["speculative_config.num_speculative_tokens"] == 3
    assert not any("kv-transfer-config" in each for each in flags.values())


# --- what a spec may ask for --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "rungs"),
    [
        ("", [1, 2, 4, 8, 16, 32, 64]),
        (", concurrencies: {highest: 48}", [1, 2, 4, 8, 16, 32, 48]),
        (", concurrencies: {highest: 32}", [1, 2, 4, 8, 16, 32]),
        (", concurrencies: {highest: 1}", [1]),
        (", concurrencies: [8, 3]", [3, 8]),
        (", concurrencies: 16x64", [16, 64]),
    ],
)
def test_rungs(more: str, rungs: list[int]) -> None:
    (found,) = read(WITHOUT_GROUPS + study("TEP8", more)).studies
    assert [rung for rung in ladder_rungs(found) if rung <= 64] == rungs


def test_long_form_of_a_layout() -> None:
    row = "{layout: TEP8, mtp: [1, 3], concurrencies: [4], concurrency: 64}, TEP16"
    found = read(WITHOUT_GROUPS + study(row, ", mtp: [0]")).studies
    assert [(each.engine.file, each.concurrencies, each.sized_for) for each in found] == [
        ("decode-tep8-mtp1", (4,), 64),
        ("decode-tep8-mtp3", (4,), 64),
        ("decode-tep16", None, None),
    ]


@pytest.mark.parametrize(
    ("layout", "slug"),
    [
        ("TP2DP4+EP", "tp2dep4"),
        ("TP8+EP", "tep8"),
        ("DP16+EP", "dep16"),
        ("TP1PP8+EP", "tp1pp8ep"),
        ("TP2DP4", "tp2dp4"),
        ("TP8", "tp8"),
    ],
)
def test_layout_in_a_file_name(layout: str, slug: str) -> None:
    assert parse_layout(layout).slug == slug


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WITHOUT_GROUPS, "'groups' is required (or studies, where no layout is chosen yet)"),
        (study("TEP8, TP8+EP"), "decode study 'decode-tep8' is already on line"),
        (study("TEPP"), "layout 'TEPP': cannot read"),
        (study("8xTEP8"), "it is one worker's layout and takes no worker count"),
        ("studies: {}\n", "studies: must not be empty"),
        ("studies: {prefill: {layouts: [TEP8]}}\n", "'workload' is required"),
        (study("TEP8", ", concurrencies: {highest: 0}"), "highest: must be at least 1"),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    found = problems(text if text is WITHOUT_GROUPS else WITHOUT_GROUPS + text)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("layouts", "reason"),
    [
        ("TP1PP6+EP", "TP1 x PP6 = 6 GPUs, which neither divides a node of 4 GPUs"),
        ("TEP32", "16 key heads are not divisible by TP 32"),
        ("TEP1", "weights"),
        ("{layout: TP1PP8+EP, mtp: [3]}", "vLLM refuses it for Qwen3.5"),
        ("{layout: TP8DP16+EP}", "needs 32 nodes (128 GPUs), but the cluster has 18"),
        ("{layout: TEP8, concurrencies: [4], concurrency: 9999}", "below max-num-seqs 10015"),
        ("{layout: TEP8, concurrencies: [99999], concurrency: 4}", "are 20 slots"),
    ],
)
def test_refused_layout_stops_no_other(layouts: str, reason: str, tmp_path: Path) -> None:
    folder = spec_folder(
        tmp_path,
        REPOSITORY,
        WITHOUT_GROUPS
        + study(f"TEP8, {layouts}").replace("TEP8, {layout: TEP8", "TEP16, {layout: TEP8"),
    )
    studies = estimate_spec(folder / "spec.yaml").studies
    assert len(studies.planned) == 1
    (refused,) = studies.refused
    assert reason in refused.reason


def test_a_study_longer_than_its_engine_accepts_is_refused(tmp_path: Path) -> None:
    """Its own length counts: the spec's requests of 9216 tokens fit."""
    text = WITHOUT_GROUPS + study("TEP8").replace("osl: 1000", "osl: 10240")
    folder = spec_folder(tmp_path, REPOSITORY, text)
    (refused,) = estimate_spec(folder / "spec.yaml").studies.refused
    assert refused.reason == "max-model-len 10240 is below ISL + OSL = 1 + 10240 = 10241"


@pytest.mark.parametrize(
    ("text", "path", "twice"),
    [
        (
            WITHOUT_GROUPS + study("TEP8", ", concurrencies: 4x2x2x4"),
            "studies.decode.concurrencies", "2, 4",
        ),
        (
            WITHOUT_GROUPS + study("{layout: TEP8, concurrencies: 8x8}"),
            "studies.decode.layouts[0].concurrencies", "8",
        ),
        (
            edited(("concurrencies: [4]", "concurrencies: 4x4")),
            "groups[0].deployments[0].concurrencies", "4",
        ),
    ],
)  # fmt: skip
def test_loads_that_are_named_twice(text: str, path: str, twice: str, tmp_path: Path) -> None:
    folder = spec_folder(tmp_path, REPOSITORY, text)
    with pytest.raises(InvalidInput) as caught:
        estimate_spec(folder / "spec.yaml")
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (path, f"names {twice} more than once")


# --- commands -----------------------------------------------------------------------------------


def test_generate_and_capacity_without_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = WITHOUT_GROUPS + study("TEP8, TP1PP6+EP", ", concurrencies: [1, 8], folder: alone")
    monkeypatch.chdir(spec_folder(tmp_path, REPOSITORY, text))
    lines = run("generate", "spec.yaml").stdout.splitlines()
    assert lines[0] == "+ recipes/v2/alone/decode-tep8.yaml"
    assert lines[1].startswith("no decode study of TP1PP6+EP: layout 'TP1PP6+EP': one replica")
    assert lines[-1] == "1 recipe: 1 new, 0 changed, 0 unchanged."
    recipe = yaml.safe_load(Path("recipes/v2/alone/decode-tep8.yaml").read_text("utf-8"))
    assert recipe["benchmark"] == {
        "type": "sa-bench", "isl": 1, "osl": 1000, "concurrencies": "1x8",
    }  # fmt: skip
    assert run("generate", "spec.yaml", "--check").exit_code == 0
    assert "| D TEP8" in run("capacity", "spec.yaml").stdout
    document = json.loads(run("capacity", "spec.yaml", "--json").stdout)
    schema = json.loads((REPOSITORY / "schemas/capacity.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)
    planned, refused = document["studies"]
    assert (planned["concurrencies"], planned["ladder_end"]) == ([1, 8], "")
    assert planned["engine"]["capacity"]["request_tokens"] == 1001
    assert refused["layout"] == "TP1PP6+EP"


def test_benchmark_that_cannot_be_read_is_the_spec_s_mistake(tmp_path: Path) -> None:
    text = edited(
        ("benchmark: {type: sa-bench}", "benchmark: {type: sa-bench, random_range_ratio: 2}")
    )
    folder = spec_folder(tmp_path, REPOSITORY, text + study("TEP8"))
    assert run("generate", str(folder / "spec.yaml")).exit_code == 3
