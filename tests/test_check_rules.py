"""Every rule of pdrecipe check on the cases of tests/cases/checks."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from generator.checks.fixes import apply_edits
from generator.checks.guide import page
from generator.checks.registry import FAMILIES, RULES, rules_by_id
from generator.checks.rule import Rule
from generator.documents import parse_document
from tests.check_cases import CASES, RECIPES, check_case, keys, text_of
from tests.conftest import REPOSITORY

ALL_CASES: dict[str, dict[str, list[dict[str, Any]]]] = {
    path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(CASES.glob("*.yaml"))
}


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(rule, case, id=f"{rule}-{kind}-{number}")
        for rule, both in ALL_CASES.items()
        for number, case in enumerate(both.get(kind, ()))
    ]


def test_every_rule_has_both_kinds_of_cases() -> None:
    assert {rule for rule, both in ALL_CASES.items() if both["fail"] and both["pass"]} == {
        rule.id for rule in RULES
    }


@pytest.mark.parametrize(("rule", "case"), cases("fail"))
def test_rule_finds(rule: str, case: dict[str, Any]) -> None:
    result = check_case(case)
    own = case.get("file", "recipe.yaml")
    found = [each for each in result.findings if each.rule.id == rule and each.source == own]
    assert [each for each in found if case["says"] in each.text], [
        (each.rule.id, each.text) for each in result.findings
    ]
    assert any(case.get("hint", "") in each.hint for each in found)
    assert all(each.line > 0 for each in found)


@pytest.mark.parametrize(("rule", "case"), cases("pass"))
def test_rule_has_nothing_to_say(rule: str, case: dict[str, Any]) -> None:
    own = case.get("file", "recipe.yaml")
    found = [each for each in check_case(case).findings if each.source == own]
    assert [each.text for each in found if each.rule.id == rule] == []


@pytest.mark.parametrize(
    ("rule", "case"), [each for each in cases("fail") if "fixed" in each.values[1]]
)
def test_fix_changes_the_value_alone(rule: str, case: dict[str, Any]) -> None:
    text = text_of(case)
    edits = [each.edit for each in check_case(case).findings if each.rule.id == rule and each.edit]
    fixed, made = apply_edits(text, edits, "recipe.yaml")
    expected = parse_document(text, "recipe.yaml").data
    for path, value in case["fixed"].items():
        here = expected
        for key in keys(path)[:-1]:
            here = here[key]
        here[keys(path)[-1]] = value
    assert made == len(case["fixed"])
    assert parse_document(fixed, "recipe.yaml").data == expected
    after = check_case({**case, "set": {**case["set"], **case["fixed"]}})
    assert rule not in {each.rule.id for each in after.findings}


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_base_recipes_are_clean(path: Any) -> None:
    result = check_case({"recipe": path.stem})
    assert [(each.rule.id, each.text) for each in result.findings] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_documentation_is_complete(rule: Rule) -> None:
    headings = re.findall("^## (.+)$", rule.documentation, flags=re.MULTILINE)
    assert headings == ["What it does", "Why is this bad?", "Example"]
    assert rule.summary.endswith(".")
    assert re.fullmatch("[a-z]+(-[a-z]+)+|[a-z]+", rule.name)
    assert rule.family in FAMILIES


def test_ids_and_names_are_unique() -> None:
    assert len(rules_by_id()) == len(RULES) == len({rule.name for rule in RULES})


def test_page_is_up_to_date() -> None:
    written = (REPOSITORY / "generator/checks/README.md").read_text("utf-8")
    assert written == page(), "write it anew: pdrecipe explain --page > generator/checks/README.md"
