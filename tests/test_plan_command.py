"""pdrecipe plan: what it prints, refuses and writes, and the chain to generate and check."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from generator.cli.rehearsal_plans import planned_rehearsal
from generator.cli.rehearse import _only_job as only_job
from generator.documents import read_document
from generator.errors import InvalidInput
from generator.rehearsal.timing import TimingSource
from generator.results.point_file import write_points
from generator.validation import schema
from tests.measured_points import Truth, decode_point, prefill_point
from tests.plan_subjects import CONFIGS, SPEC
from tests.small_specs import run

MODEL = CONFIGS / "Qwen--Qwen3.5-397B-A17B"
WORKLOAD = ("--isl", "8192", "--osl", "1024")
SMALL = ("--model", str(MODEL), "--gpu", "gb300", *WORKLOAD, "--nodes", "4")
QWEN38 = ("--model", str(CONFIGS / "Qwen--Qwen3.8-2.4T-A95B-NVFP4"), "--gpu", "gb300", *WORKLOAD)

R1 = ("--model", str(CONFIGS / "deepseek-ai--DeepSeek-R1"))

UNMODELLED = {
    "deepseek-ai--DeepSeek-V4-Pro": "sparse attention with an indexer",
    "google--gemma-4-26B-A4B": "sliding_attention",
    "moonshotai--Kimi-K3": "KDA linear attention",
    "nvidia--GLM-5-NVFP4": "sparse attention with an indexer",
    "nvidia--MiniMax-M3-NVFP4": "sparse attention",
    "openai--gpt-oss-120b": "sliding_attention",
}
MODELLED = sorted(each.name for each in CONFIGS.iterdir() if each.name not in UNMODELLED)


@pytest.mark.parametrize("name", MODELLED)
def test_plan_generate_and_check_chain_on_every_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(CONFIGS / name, tmp_path, monkeypatch)


def test_models_that_no_test_names_chain_or_are_refused_by_layer(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [each for each in (shared / "models").iterdir() if not (CONFIGS / each.name).exists()]
    for model in others:
        folder = tmp_path / model.name
        folder.mkdir()
        chain(model, folder, monkeypatch)


def chain(model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is edited between the commands."""
    shutil.copytree(model, folder / model.name)
    monkeypatch.chdir(folder)
    options = ("--gpu", "gb300", *WORKLOAD, "--nodes", "6", "--top", "3")
    planned = run("plan", "--model", model.name, *options, "--write", "spec.yaml")
    if planned.exit_code == 3 and "layer type" in planned.stderr:
        return
    assert planned.exit_code == 0, planned.stderr
    assert max(map(len, planned.stdout.splitlines())) <= 100
    generated = run("generate", "spec.yaml")
    assert generated.exit_code == 0, generated.stderr
    assert "unchanged" in generated.stdout
    recipes = read_document(Path("spec.yaml")).data["output"]
    checked = run("check", recipes)
    assert checked.exit_code == 0, checked.stdout
    assert " 0 errors" in checked.stderr
    assert "memory" not in checked.stderr  # the model is found by its path, or known
    assert all(map(rehearses, Path(recipes).rglob("*.yaml")))


def rehearses(recipe: Path) -> bool:
    """Whether a rehearsal of a recipe can be planned; some are too wide for one machine."""
    try:
        plan, _ = planned_rehearsal(only_job(recipe), (), None, TimingSource.ROOFLINE)
    except InvalidInput as error:
        return all("ranks are more than" in each.message for each in error.problems)
    return bool(plan.loads)


@pytest.mark.parametrize(("name", "layer"), UNMODELLED.items())
def test_an_unmodelled_layer_is_named(name: str, layer: str) -> None:
    result = run("plan", "--model", str(CONFIGS / name), "--gpu", "gb300", *WORKLOAD)
    assert result.exit_code == 3
    assert layer in result.stderr


def test_the_article_on_one_page(tmp_path: Path) -> None:
    out = tmp_path / "plan.svg"
    result = run("plan", str(SPEC), "--top", "5", "--out", str(out))
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "Predictions, not measurements" in result.stdout
    assert "| 4xtp2dep4-1xtp4dep4-cc2560" in result.stdout
    text = out.read_text("utf-8")
    assert "predicted, not measured" in text
    assert "<desc" in text


def test_the_document_keeps_its_schema() -> None:
    document = json.loads(run("plan", *SMALL, "--json").stdout)
    Draft202012Validator(schema("plan")).validate(document)
    refused = sum(each["engines"] for each in document["engines_refused"])
    assert document["engines_considered"] == document["engines_legal"] + refused
    assert document["evaluated"] < document["combinations"]


@pytest.mark.parametrize("layout", ["TEP8", "TP1", "TP8PP2", "TP3", "TP16DCP2", "DEP17"])
def test_why_judges_one_layout(layout: str) -> None:
    document = json.loads(run("plan", *SMALL, "--why", layout, "--json").stdout)
    Draft202012Validator(schema("plan")).validate(document)
    told = run("plan", *SMALL, "--why", layout)
    assert told.exit_code == 0
    assert max(map(len, told.stdout.splitlines())) <= 100
    legal = any(each["legal"] for each in document["verdicts"])
    assert ("Best with it" in told.stdout) == legal
    assert ("refused" in told.stdout) == (not all(each["legal"] for each in document["verdicts"]))


def test_all_bad_numbers_at_once() -> None:
    result = run(
        *("plan", "--model", str(MODEL), "--gpu", "gb400", "--nodes", "0"),
        *("--isl", "-1", "--osl", "0", "--ttft-ms", "0", "--tpot-ms", "nan", "--top", "-2"),
        *("--acceptance-rate", "1.5"),
    )
    assert result.exit_code == 3
    lines = result.stderr.splitlines()
    named = ("--ttft-ms", "--tpot-ms", "--top", "--acceptance-rate", "--nodes", "--isl", "--osl")
    for name in (*named, "gb400"):
        assert sum(name in line for line in lines) == 1, name


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ((*QWEN38, "--nodes", "1"), 4, "plan for 4 nodes: 1x"),
        ((*R1, "--gpu", "h100", *WORKLOAD), 4, "use a GPU that holds it: gb300"),
        ((*QWEN38, "--nodes", "3"), 4, "plan for 4 nodes"),
        ((*QWEN38, "--nodes", "19"), 3, "more than the 18 of one NVLink domain"),
        ((*SMALL, "--ttft-ms", "1"), 4, "no deployment is predicted to keep TTFT <= 1 ms"),
        ((*SMALL, "--ttft-ms", "300", "--tpot-ms", "0.1"), 4, "nearest: "),
        ((*SMALL[:2], "--gpu", "gb300", "--isl", "270000", "--osl", "9"), 3, "more than the"),
        ((*QWEN38[:2], "--gpu", "h200", *WORKLOAD), 3, "h200 has no nvfp4 path"),
        ((*SMALL, "--why", "2xTP8"), 3, "takes no worker count"),
        ((*SMALL, "--why", "TP8", "--write", "x.yaml"), 2, "--why judges one layout"),
        ((*SMALL, "--out", "plan.pdf"), 2, ".svg, .png"),
        ((*SMALL[:4],), 2, "--model goes with --isl, --osl"),
        ((), 2, "name a SPEC"),
        ((str(SPEC), "--gpu", "gb300"), 2, "leave --gpu out"),
    ],
)
def test_bad_input(options: tuple[str, ...], code: int, text: str) -> None:
    result = run("plan", *options)
    assert result.exit_code == code, result.stderr
    assert text in result.stderr
    assert result.stdout == ""


def test_a_prefix_of_the_frontier_keeps_the_limits() -> None:
    document = json.loads(run("plan", *SMALL, "--tpot-ms", "20", "--json").stdout)
    assert document["limits"] == {"ttft_s": None, "tpot_s": 0.02}
    assert all(each["tpot_s"] <= 0.02 for each in document["frontier"])


def test_more_accepted_drafts_are_faster() -> None:
    def fastest(rate: str) -> float:
        document = json.loads(run("plan", *SMALL, "--acceptance-rate", rate, "--json").stdout)
        assert document["acceptance_rate"] == float(rate)
        return float(document["frontier"][-1]["tokens_per_s_per_user"])

    assert fastest("0") < fastest("0.5") < fastest("1")


def test_a_users_spec_keeps_the_rest_of_it(tmp_path: Path, repository: Path) -> None:
    shutil.copytree(repository / "recipes", tmp_path / "recipes")
    spec = tmp_path / "recipes/specs" / SPEC.name
    written = spec.with_name("planned.yaml")
    result = run("plan", str(spec), "--top", "3", "--write", str(written))
    assert result.exit_code == 0, result.stderr
    before, after = read_document(spec).data, read_document(written).data
    assert before["engine"] == after["engine"]
    assert before["sizing"] == after["sizing"]
    assert not after.keys() & {"accuracy", "probe", "studies"}
    assert run("generate", str(written), "--out", str(tmp_path / "out")).exit_code == 0


def test_factors_of_ones_own_points_come_first(tmp_path: Path) -> None:
    """From measured phases to a plan that predicts with them."""
    truth = Truth(decode=(3.0, 0.02), prefill=(4.0, 0.05))
    points = [decode_point(truth, "TEP8", load) for load in (1, 16, 256)]
    points.append(decode_point(replace(truth, tokens_per_step=1.875), "TEP8", 16, 3))
    points += [prefill_point(truth, layout, 1) for layout in ("TEP8", "TP2DP4+EP")]
    results, factors = tmp_path / "results.jsonl", tmp_path / "factors.json"
    write_points(results, points)
    fitted = run("calibrate", "--results", str(results), "--out", str(factors))
    assert fitted.exit_code == 0, fitted.stderr
    own = json.loads(run("plan", str(SPEC), "--efficiency", str(factors), "--json").stdout)
    public = json.loads(run("plan", str(SPEC), "--json").stdout)
    assert own["efficiencies"]["decode"]["factor"] == pytest.approx(3.0, rel=1e-3)
    assert (len(own["public_points"]), len(public["public_points"])) == (0, 14)
    assert own["acceptance_rate"] == pytest.approx(0.5, abs=1e-6)
    assert own["efficiencies"]["decode"]["source"].startswith(str(results))
    fastest = [each["frontier"][-1]["tokens_per_s_per_user"] for each in (own, public)]
    assert fastest[0] < fastest[1]


def test_a_model_under_a_name_that_nobody_knows_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its recipes name the folder, where check and rehearse find it."""
    model = tmp_path / "models/Some--Other-35B"
    shutil.copytree(CONFIGS / "Qwen--Qwen3.5-35B-A3B", model)
    folder = tmp_path / "work"
    folder.mkdir()
    chain(model, folder, monkeypatch)
    (recipe, *_) = folder.rglob("v2/*.yaml")
    assert read_document(recipe).data["model"]["path"] == str(folder / model.name)


def test_a_start_up_that_is_only_assumed_to_fail_is_no_reason_to_refuse() -> None:
    """The published Qwen3.5 recipes leave prefill's max-num-seqs to the engine: a warning only."""
    spec = SPEC.with_name("qwen3.5-397b-gb200-8k1k.yaml")
    result = run("plan", str(spec), "--top", "2")
    assert result.exit_code == 0, result.stderr
    own = [line for line in result.stdout.splitlines() if line.startswith("| 4xdep2-1xdep8 ")]
    assert [line.split("|")[2].strip() for line in own] == ["64", "3072"]


def test_a_workload_as_long_as_the_context_has_no_chat_template(tmp_path: Path) -> None:
    """The template would add tokens that the model has no room for; prompts come in chunks."""
    spec = tmp_path / "spec.yaml"
    model = CONFIGS / "Qwen--Qwen3.5-27B"
    lengths = ("--isl", "261120", "--osl", "1024", "--nodes", "2", "--top", "2")
    result = run("plan", "--model", str(model), "--gpu", "gb300", *lengths, "--write", str(spec))
    assert result.exit_code == 0, result.stderr
    written = read_document(spec).data
    assert written["benchmark"]["use_chat_template"] is False
    assert written["sizing"]["decode"]["max-model-len"] == 262144
    assert run("generate", str(spec), "--out", str(tmp_path / "out")).exit_code == 0
    assert run("check", str(tmp_path / "out")).exit_code == 0


@pytest.mark.parametrize(
    ("written", "instead", "code", "text"),
    [
        ("kv-cache-dtype: fp8", "kv-cache-dtype: int3", 3, "kv-cache-dtype 'int3' is not modelled"),
        (
            "no-disable-hybrid-kv-cache-manager: true",
            "disable-hybrid-kv-cache-manager: true",
            4,
            "needs the hybrid KV cache manager, which is off",
        ),
        ("max-num-seqs: 32", "max-num-seqs: 99999", 3, "is below max-num-seqs 99999"),
        ("nodes: 18", "nodes: 2", 4, "plan for 4 nodes"),
        ("isl: 8192, osl: 1024}", "isl: 300000, osl: 1024}", 3, "more than the context"),
    ],
)
def test_what_a_spec_rules_out_for_every_engine(
    written: str, instead: str, code: int, text: str, tmp_path: Path, repository: Path
) -> None:
    shutil.copytree(repository / "recipes/models", tmp_path / "models")
    shutil.copytree(repository / "recipes/specs", tmp_path / "specs")
    spec = tmp_path / "specs" / SPEC.name
    before = spec.read_text("utf-8")
    assert written in before
    spec.write_text(before.replace(written, instead, 1), "utf-8")
    result = run("plan", str(spec))
    assert result.exit_code == code, result.stderr
    assert text in result.stderr
