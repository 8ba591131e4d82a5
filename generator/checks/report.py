"""A check's answer as lines for people, as annotations and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.checks.finding import CheckResult, Finding
from generator.checks.rule import Severity
from generator.errors import Problem
from generator.wording import plural

_ANNOTATIONS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def text_lines(result: CheckResult) -> Iterator[str]:
    """One line a finding: place, severity, rule, what, and what to do."""
    for finding in result.findings:
        place = f"{finding.source}:{finding.line}" if finding.line else finding.source
        path = f"{finding.path}: " if finding.path else ""
        hint = f" ({finding.hint})" if finding.hint else ""
        severity = finding.rule.severity
        yield f"{place}: {severity} {finding.rule.id} {path}{finding.text}{hint}"


def summary_line(result: CheckResult) -> str:
    """What was checked and what was found, in one line."""
    counts = [
        plural(result.count(Severity.ERROR), "error"),
        plural(result.count(Severity.WARNING), "warning"),
        f"{result.count(Severity.INFO)} info",
    ]
    checked = plural(result.files, "recipe")
    if result.variants != result.files:
        checked += f" ({result.variants} variants)"
    line = f"{checked}: {', '.join(counts)}"
    if result.suppressed:
        line += f"; {len(result.suppressed)} suppressed"
    fixable = sum(each.edit is not None for each in result.findings)
    if fixable:
        line += f"; --fix would fix {fixable}"
    if result.skipped:
        line += f"; {plural(len(result.skipped), 'file')} skipped that are no recipes"
    if result.without_memory:
        recipes = plural(len(result.without_memory), "recipe")
        line += f"; memory not checked for {recipes}: model or flags not known or not modelled"
    return line


def github_lines(result: CheckResult) -> Iterator[str]:
    """Workflow commands that GitHub shows as annotations of a pull request."""
    for finding in result.findings:
        hint = f" ({finding.hint})" if finding.hint else ""
        title = f"{finding.rule.id} {finding.rule.name}"
        path = f"{finding.path}: " if finding.path else ""
        yield _annotation(
            _ANNOTATIONS[finding.rule.severity],
            finding.source,
            finding.line,
            title,
            f"{path}{finding.text}{hint}",
        )
    for problem in result.problems:
        yield _annotation("error", problem.source, problem.line, "unreadable", problem.message)


def _annotation(command: str, file: str, line: int, title: str, message: str) -> str:
    fields = [f"file={_escaped_property(file)}"]
    if line:
        fields.append(f"line={line}")
    fields.append(f"title={_escaped_property(title)}")
    return f"::{command} {','.join(fields)}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def json_document(result: CheckResult) -> dict[str, Any]:
    """The answer as schemas/check.schema.json describes it."""
    return {
        "version": 1,
        "summary": {
            "files": result.files,
            "variants": result.variants,
            "errors": result.count(Severity.ERROR),
            "warnings": result.count(Severity.WARNING),
            "infos": result.count(Severity.INFO),
            "suppressed": len(result.suppressed),
            "memory_not_checked": len(result.without_memory),
        },
        "findings": [_finding(each) for each in result.findings],
        "suppressed": [_finding(each) | {"reason": each.reason} for each in result.suppressed],
        "skipped": list(result.skipped),
        "problems": [_problem(each) for each in result.problems],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule.id,
        "name": finding.rule.name,
        "severity": str(finding.rule.severity),
        "file": finding.source,
        "line": finding.line,
        "path": finding.path,
        "message": finding.message,
        "hint": finding.hint,
        "variants": finding.variants,
        "of_variants": finding.of_variants,
        "example": finding.example,
        "is_fixable": finding.edit is not None,
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.source,
        "line": problem.line,
        "path": problem.path,
        "message": problem.message,
        "hint": problem.hint,
    }
