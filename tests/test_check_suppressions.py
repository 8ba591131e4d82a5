"""What keeps a finding of pdrecipe check from being reported, and what is said of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.checks.run import Selection, check_recipes
from generator.errors import InvalidInput
from generator.recipe.inputs import RecipeInputs, read_recipes
from generator.recipe.sources import collect_sources
from tests.check_cases import check_text, recipe, text_of

IDLE = {"recipe": "plain", "set": {"resources/decode_nodes": 3}}
KEY = "  decode_nodes: 3\n"


def ids(text: str) -> list[str]:
    return [each.rule.id for each in check_text(text).findings]


def test_the_finding_itself() -> None:
    assert ids(text_of(IDLE)) == ["TOP005"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("  decode_nodes: 3  # pdrecipe: ignore[TOP005] spare node\n", id="line"),
        pytest.param("  # pdrecipe: ignore[TOP005] spare node\n  decode_nodes: 3\n", id="above"),
        pytest.param("  decode_nodes: 3  # pdrecipe: ignore[TOP] spare node\n", id="family"),
        pytest.param("  decode_nodes: 3  #pdrecipe:ignore[TOP005]: spare\n", id="without spaces"),
        pytest.param("  decode_nodes: 3 # x # pdrecipe: ignore[TOP005] spare\n", id="after x"),
    ],
)
def test_a_comment_at_the_line(text: str) -> None:
    result = check_text(text_of(IDLE).replace(KEY, text))
    assert result.findings == ()
    (suppressed,) = result.suppressed
    assert suppressed.rule.id == "TOP005"
    assert (suppressed.reason or "").startswith("spare")
    assert suppressed.is_suppressed_in_source


def test_a_comment_at_the_top_is_for_the_file() -> None:
    top = "# A recipe.\n# pdrecipe: ignore[TOP005] spare node\n"
    assert ids(top + text_of(IDLE)) == []


def test_a_comment_elsewhere_is_for_its_line_alone() -> None:
    text = text_of(IDLE).replace("resources:\n", "# pdrecipe: ignore[TOP005] no\nresources:\n")
    assert ids(text) == ["SUP002", "TOP005"]


def test_another_rule_is_not_suppressed() -> None:
    text = text_of(IDLE).replace(KEY, "  decode_nodes: 3  # pdrecipe: ignore[TOP001] no\n")
    assert sorted(ids(text)) == ["SUP002", "TOP005"]


def test_rules_that_were_not_run_need_no_suppression() -> None:
    text = "# pdrecipe: ignore[TOP005] spare node\n" + text_of(IDLE)
    inputs = RecipeInputs(recipes=(recipe(text),))
    result = check_recipes(inputs, selection=Selection(ignore=("TOP005",)))
    assert [each.rule.id for each in result.findings] == []
    result = check_recipes(inputs, selection=Selection(select=("SUP", "CON")))
    assert [each.rule.id for each in result.findings] == []


# --- configuration files ----------------------------------------------------------------------

ENTRY = "    - {{rule: TOP005, files: ['{}'], reason: spare nodes}}\n"


def check_folder(folder: Path) -> list[tuple[str, str]]:
    result = check_recipes(read_recipes(collect_sources(["."], folder=folder)), folder=folder)
    return [(each.source, each.rule.id) for each in result.findings]


def write(folder: Path, *patterns: str) -> None:
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/one.yaml").write_text(text_of(IDLE))
    entries = "".join(ENTRY.format(each) for each in patterns)
    (folder / ".pdrecipe.yaml").write_text(f"check:\n  ignore:\n{entries}")


@pytest.mark.parametrize("pattern", ["a/b/one.yaml", "a/**", "one.yaml", "**/one.yaml", "*.yaml"])
def test_an_entry_for_the_file(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, pattern)
    assert check_folder(tmp_path) == []


def test_an_entry_for_other_files(tmp_path: Path) -> None:
    write(tmp_path, "c/**")
    assert check_folder(tmp_path) == [("a/b/one.yaml", "TOP005")]


def test_the_nearest_configuration_counts(tmp_path: Path) -> None:
    write(tmp_path, "a/**")
    (tmp_path / "a/.pdrecipe.yaml").write_text("check: {ignore: []}\n")
    assert check_folder(tmp_path) == [("a/b/one.yaml", "TOP005")]


def test_an_entry_for_a_family(tmp_path: Path) -> None:
    write(tmp_path, "a/**")
    settings = tmp_path / ".pdrecipe.yaml"
    settings.write_text(settings.read_text().replace("TOP005", "TOP"))
    assert check_folder(tmp_path) == []


def test_an_entry_that_nothing_needs(tmp_path: Path) -> None:
    write(tmp_path, "one.yaml")
    (tmp_path / "a/b/one.yaml").write_text(text_of({"recipe": "plain"}))
    assert check_folder(tmp_path) == [(str(tmp_path / ".pdrecipe.yaml"), "SUP002")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("check: {ignore: [{rule: TOP005, files: [a]}]}", "'reason' is required"),
        ("check: {ignore: [{rule: TOP005, files: [a], reason: ' '}]}", "say why"),
        ("check: {ignore: [{rule: TOP999, files: [a], reason: x}]}", "there is no rule TOP999"),
        ("check: {ignored: []}", "unknown key 'ignored'"),
        ("[1", "not closed"),
    ],
)
def test_a_faulty_configuration(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path)
    (tmp_path / ".pdrecipe.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        check_folder(tmp_path)
