"""A check's answer as SARIF 2.1.0, which code review tools read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from generator import __version__
from generator.checks.finding import CheckResult, Finding
from generator.checks.registry import RULES
from generator.checks.rule import Rule, Severity
from generator.errors import Problem

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif_document(result: CheckResult) -> dict[str, Any]:
    """One run with every rule; findings that are suppressed are in it, with their reasons."""
    places = {rule.id: index for index, rule in enumerate(RULES)}
    findings = (*result.findings, *result.suppressed)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "pdrecipe",
                        "semanticVersion": __version__,
                        "rules": [_rule(each) for each in RULES],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": not result.problems,
                        "toolExecutionNotifications": [_problem(each) for each in result.problems],
                    }
                ],
                "results": [_result(each, places[each.rule.id]) for each in findings],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.documentation, "markdown": rule.documentation},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, place: int) -> dict[str, Any]:
    hint = f" ({finding.hint})" if finding.hint else ""
    path = f"{finding.path}: " if finding.path else ""
    document: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": place,
        "level": _LEVELS[finding.rule.severity],
        "message": {"text": f"{path}{finding.text}{hint}"},
        "locations": [_location(finding.source, finding.line)],
    }
    if finding.reason is not None:
        kind = "inSource" if finding.is_suppressed_in_source else "external"
        document["suppressions"] = [{"kind": kind, "justification": finding.reason}]
    return document


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": str(problem)},
        "locations": [_location(problem.source, problem.line)],
    }


def _location(file: str, line: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file)}}
    if line:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}
