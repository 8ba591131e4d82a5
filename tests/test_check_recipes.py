"""pdrecipe check on real recipes: our own, and the shared ones with what is wrong in them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from generator.checks.finding import CheckResult, Finding
from generator.checks.known_models import chosen_model, known_models
from generator.checks.rule import Severity
from generator.checks.run import check_recipes
from generator.errors import InvalidInput
from generator.facts.fact import DATA
from generator.facts.vllm_flags import (
    flag_tables,
    is_unknown,
    known_release,
    nearest_flag,
    nearest_releases,
)
from generator.recipe.inputs import read_recipes
from generator.recipe.sources import collect_sources
from tests.conftest import REPOSITORY


def check(folder: Path) -> CheckResult:
    return check_recipes(read_recipes(collect_sources(["."], folder=folder)), folder=folder)


@pytest.fixture(scope="module")
def real(shared: Path) -> CheckResult:
    return check(shared / "recipes")


@pytest.mark.parametrize("folder", ["qwen3.8-2.4t", "qwen3.5-397b"])
def test_our_own_recipes_have_no_error(folder: str) -> None:
    result = check(REPOSITORY / "recipes" / folder)
    assert result.files > 0
    assert result.problems == ()
    assert [each.text for each in result.findings if each.rule.severity is Severity.ERROR] == []


def test_our_own_recipes_of_the_article_have_nothing_but_notes() -> None:
    result = check(REPOSITORY / "recipes/qwen3.8-2.4t")
    assert result.count(Severity.WARNING) == 0


SLIPS = yaml.safe_load((REPOSITORY / "tests/data/check_slips.yaml").read_text("utf-8"))["slips"]


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: f"{slip['rule']}-{slip['file']}")
def test_known_slips_are_found(real: CheckResult, slip: dict[str, str]) -> None:
    found = [
        each
        for each in real.findings
        if each.source.endswith(slip["file"]) and each.rule.id == slip["rule"]
    ]
    said = [each for each in found if slip["says"] in each.message]
    assert [each.share for each in said] == [slip.get("share", "")]


@pytest.mark.parametrize("family", ["Kimi-K2.5", "DeepSeek-V4-Pro", "MiniMax-M3"])
def test_families_that_run_have_no_error(real: CheckResult, family: str) -> None:
    own = [each for each in real.findings if f"/{family}/GB300/vllm/" in each.source]
    assert own
    assert [each.text for each in own if each.rule.severity is Severity.ERROR] == []


def test_layout_v2_has_no_error(real: CheckResult) -> None:
    own = [each for each in real.findings if each.source.startswith("v2/")]
    assert [each.text for each in own if each.rule.severity is Severity.ERROR] == []


def test_counts_of_the_shared_recipes(real: CheckResult) -> None:
    assert (real.files, real.variants, real.problems, real.skipped) == (65, 777, (), ())
    errors: Counter[str] = Counter(
        each.rule.id for each in real.findings if each.rule.severity is Severity.ERROR
    )
    assert errors == {"CON005": 1, "GRA002": 3, "NAM001": 2, "TOP001": 5, "TOP006": 5, "TOP007": 3}


def test_every_finding_has_a_line_of_its_file(real: CheckResult, shared: Path) -> None:
    def is_inside(finding: Finding) -> bool:
        text = (shared / "recipes" / finding.source).read_text("utf-8")
        return 0 < finding.line <= len(text.splitlines())

    assert [each for each in real.findings if not is_inside(each)] == []


# --- flags of the engine ----------------------------------------------------------------------


def test_flag_tables_are_those_of_the_parsers(shared: Path) -> None:
    path = shared / "truth/vllm_serve_flags.json"
    truth = json.loads(path.read_text("utf-8"))["versions"]
    assert {version: set(flags) for version, flags in truth.items()} == flag_tables()


def test_flag_tables_have_their_source() -> None:
    data = yaml.safe_load((DATA / "vllm_flags.yaml").read_text("utf-8"))
    assert data["source"]
    assert data["as_of"]
    assert {version: len(flags) for version, flags in flag_tables().items()} == {
        "0.26.0": 348,
        "0.27.1": 359,
        "0.28.0": 362,
    }


@pytest.mark.parametrize(
    ("version", "exact", "nearest"),
    [
        ("0.26.0", "0.26.0", ()),
        ("v0.28.0", "0.28.0", ()),
        ("0.28", "0.28.0", ()),
        ("0.27.1+cu130", "0.27.1", ()),
        ("0.20.1", None, ("0.26.0",)),
        ("0.27.0", None, ("0.26.0", "0.27.1")),
        ("0.26.1rc1.dev1177+ga9a17e709", None, ("0.26.0", "0.27.1")),
        ("0.33.0", None, ("0.28.0",)),
        (None, None, ("0.26.0", "0.27.1", "0.28.0")),
    ],
)
def test_releases(version: str | None, exact: str | None, nearest: tuple[str, ...]) -> None:
    assert known_release(version) == exact
    if exact is None:
        assert nearest_releases(version) == nearest


def test_flags() -> None:
    assert is_unknown("use-replayssm", ("0.26.0",))
    assert not is_unknown("use-replayssm", ("0.26.0", "0.27.1"))
    assert not is_unknown("no-enable-prefix-caching", ("0.26.0",))
    assert not is_unknown("dyn-tool-call-parser", ("0.26.0",))
    assert nearest_flag("max-num-seq", ("0.26.0",)) == "max-num-seqs"
    assert nearest_flag("qqqqqqqq", ("0.26.0",)) is None


# --- the catalogue of models ------------------------------------------------------------------


@pytest.mark.parametrize("key", list(known_models()))
def test_known_models_are_those_of_the_tests(key: str) -> None:
    own, tests = DATA / "models" / key, REPOSITORY / "tests/data/hf_configs" / key
    names = {path.name for path in own.iterdir()}
    assert names == {path.name for path in tests.iterdir()}
    assert all((own / name).read_bytes() == (tests / name).read_bytes() for name in names)
    assert chosen_model(key).name == key
    first = known_models()[key][0].replace("*", "anyone")
    assert chosen_model(first) is chosen_model(f"hf:{first}")


def test_catalogue_has_every_folder() -> None:
    assert {path.name for path in (DATA / "models").iterdir()} == set(known_models())


def test_an_unknown_model() -> None:
    with pytest.raises(InvalidInput, match="there is no folder and no known model 'x/y'"):
        chosen_model("x/y")


def test_json_nested_beyond_reading_is_a_finding(tmp_path: Path) -> None:
    text = next((REPOSITORY / "recipes/qwen3.8-2.4t").rglob("*.yaml")).read_text("utf-8")
    deep = '{"a":' * 20_000
    flag = re.compile("kv-transfer-config: .*")
    (tmp_path / "recipe.yaml").write_text(flag.sub(f"kv-transfer-config: '{deep}'", text, 1))
    found = [each.text for each in check(tmp_path).findings if each.rule.id == "SCH009"]
    assert len(found) == 1
    assert found[0].startswith("is not JSON: ")
