"""The answers of pdrecipe check: text, JSON, annotations and SARIF."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from generator.checks.finding import CheckResult
from generator.checks.registry import RULES
from generator.checks.report import github_lines, json_document, summary_line, text_lines
from generator.checks.run import check_recipes
from generator.checks.sarif import sarif_document
from generator.recipe.inputs import read_recipes
from generator.recipe.sources import CollectedSources, RecipeSource
from tests.check_cases import check_text, text_of
from tests.conftest import REPOSITORY

GRID = {
    "recipe": "plain",
    "set": {
        "backend/vllm_config/decode/tensor-parallel-size": "{tp}",
        "sweep": {"tp": [2, 4, 8]},
        "resources/decode_nodes": 3,
    },
    "top": "# pdrecipe: ignore[TOP005] a spare node",
}

# A part of the SARIF 2.1.0 standard, written down from its text: the properties that are printed
# here, those it requires, and the values it allows.
MESSAGE = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {"text": {"type": "string", "minLength": 1}, "markdown": {"type": "string"}},
}
LOCATION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"uri": {"type": "string", "pattern": "^[^\\s]*$"}},
                },
                "region": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        }
    },
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": MESSAGE,
                                                "help": MESSAGE,
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "additionalProperties": False,
                                                    "properties": {"level": LEVEL},
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "additionalProperties": False,
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message"],
                                        "additionalProperties": False,
                                        "properties": {
                                            "level": LEVEL,
                                            "message": MESSAGE,
                                            "locations": {"type": "array", "items": LOCATION},
                                        },
                                    },
                                },
                            },
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "locations": {"type": "array", "items": LOCATION},
                                "suppressions": {
                                    "type": "array",
                                    "uniqueItems": True,
                                    "items": {
                                        "type": "object",
                                        "required": ["kind"],
                                        "additionalProperties": False,
                                        "properties": {
                                            "kind": {"enum": ["inSource", "external"]},
                                            "justification": {"type": "string"},
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def result() -> CheckResult:
    return check_text(text_of(GRID), "a folder/one,two.yaml")


@pytest.fixture(scope="module")
def unreadable() -> CheckResult:
    source = RecipeSource(name="a.yaml", relative_path="a.yaml", text="a: [", is_named=True)
    return check_recipes(read_recipes(CollectedSources(sources=(source,))))


def test_text(result: CheckResult) -> None:
    (line,) = text_lines(result)
    assert line == (
        "a folder/one,two.yaml:41: error TOP001 roles.decode.args.tensor-parallel-size: TP8 x PP1"
        " x DP1 = 8 GPUs, but a worker has 4 [2 of 3 variants, such as tp8] (change the sizes, or"
        " the GPUs of a worker)"
    )
    assert summary_line(result) == (
        "1 recipe (3 variants): 1 error, 0 warnings, 0 info; 1 suppressed; memory not checked for 1"
        " recipe: model or flags not known or not modelled"
    )


def test_annotations(result: CheckResult, unreadable: CheckResult) -> None:
    (line,) = github_lines(result)
    assert line.startswith(
        "::error file=a folder/one%2Ctwo.yaml,line=41,title=TOP001 layout-beyond-gpus::"
        "roles.decode.args.tensor-parallel-size: TP8 x PP1"
    )
    (line,) = github_lines(unreadable)
    assert line.startswith("::error file=a.yaml,line=1,title=unreadable::")


def test_json(result: CheckResult, unreadable: CheckResult) -> None:
    schema = json.loads((REPOSITORY / "schemas/check.schema.json").read_text("utf-8"))
    for each in (result, unreadable):
        document = json_document(each)
        errors = Draft202012Validator(schema).iter_errors(document)
        assert [error.message for error in errors] == []
    (finding,) = json_document(result)["findings"]
    assert (finding["variants"], finding["of_variants"], finding["example"]) == (2, 3, "tp8")
    (suppressed,) = json_document(result)["suppressed"]
    assert (suppressed["rule"], suppressed["reason"]) == ("TOP005", "a spare node")


def test_sarif(result: CheckResult, unreadable: CheckResult) -> None:
    for each in (result, unreadable):
        errors = Draft202012Validator(SARIF).iter_errors(sarif_document(each))
        assert [error.message for error in errors] == []
    (run,) = sarif_document(result)["runs"]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == [rule.id for rule in RULES]
    found, suppressed = run["results"]
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == found["ruleId"] == "TOP001"
    assert suppressed["suppressions"] == [{"kind": "inSource", "justification": "a spare node"}]
    assert found["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20folder/one%2Ctwo.yaml"},
        "region": {"startLine": 41},
    }
    (run,) = sarif_document(unreadable)["runs"]
    assert not run["invocations"][0]["executionSuccessful"]
