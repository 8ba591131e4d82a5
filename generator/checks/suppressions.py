"""SUP: findings that a recipe or a configuration file allows, and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from generator.checks.finding import Finding
from generator.checks.rule import Rule, Severity
from generator.checks.settings import AllowedFindings
from generator.documents import Document
from generator.wording import did_you_mean

_COMMENT = re.compile(r"#\s*pdrecipe:\s*ignore\[([^\]]*)\][\s:,-]*(.*)$")

WITHOUT_REASON = Rule(
    id="SUP001",
    name="suppression-without-reason",
    severity=Severity.WARNING,
    documentation="""A comment suppresses findings without saying why.

## What it does
Looks for `# pdrecipe: ignore[ID]` with nothing behind it. Such a comment suppresses nothing.

## Why is this bad?
Nobody can tell later whether the exception still holds.

## Example
`# pdrecipe: ignore[TOP005]` for `# pdrecipe: ignore[TOP005] the other GPUs run the router`.""",
)
UNUSED = Rule(
    id="SUP002",
    name="unused-suppression",
    severity=Severity.WARNING,
    documentation="""A suppression suppresses nothing.

## What it does
Looks for comments, and for entries of `.pdrecipe.yaml` whose files were checked, that no finding
needs, and for ids that no rule has.

## Why is this bad?
It hides the next finding, which nobody has looked at.

## Example
`# pdrecipe: ignore[CON001] meant so` after the concurrency has been lowered.""",
)
RULES = (WITHOUT_REASON, UNUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comment:
    """A suppression in a recipe: of a line and the one below, or of the file if at its top."""

    line: int
    id: str
    reason: str
    is_for_file: bool

    def covers(self, finding: Finding) -> bool:
        is_here = self.is_for_file or finding.line in (self.line, self.line + 1)
        return bool(self.reason) and is_here and names(self.id, finding.rule.id)


def names(name: str, rule_id: str) -> bool:
    """Whether a suppression's name is that of a rule or of its family."""
    return name in (rule_id, rule_id.rstrip("0123456789"))


def suppress(
    findings: Iterable[Finding],
    document: Document,
    allowed: tuple[AllowedFindings, ...],
    not_run: Collection[str],
    known: Collection[str],
) -> Iterator[Finding]:
    """The findings of one file, those that are suppressed with their reason, and SUP001, SUP002.

    ``allowed`` are the entries of the configuration that hold for the file; ``not_run`` are rules
    that were left out, so that nobody can tell whether their suppressions are needed; ``known`` are
    the rules and families that there are.
    """
    source, text = document.source, document.text
    comments = list(_comments(text))
    used: set[_Comment] = set()
    for finding in findings:
        comment = next((each for each in comments if each.covers(finding)), None)
        entry = next((each for each in allowed if names(each.rule, finding.rule.id)), None)
        if comment is not None:
            used.add(comment)
            yield replace(finding, reason=comment.reason, is_suppressed_in_source=True)
        elif entry is not None:
            yield replace(finding, reason=entry.reason)
        else:
            yield finding
    for comment in comments:
        if comment.id not in known:
            message = f"ignore[{comment.id}]: there is no such rule"
            hint = did_you_mean(comment.id, known) or "pdrecipe explain lists all"
            yield _about(UNUSED, source, comment, message, hint)
        elif not comment.reason:
            message = f"ignore[{comment.id}] gives no reason and suppresses nothing"
            hint = "write the reason behind the bracket"
            yield _about(WITHOUT_REASON, source, comment, message, hint)
        elif comment not in used and not _may_be_needed(comment, not_run):
            message = f"ignore[{comment.id}] suppresses nothing"
            yield _about(UNUSED, source, comment, message, "remove it")


def _may_be_needed(comment: _Comment, not_run: Collection[str]) -> bool:
    """Whether a run with other rules, or with other files beside this one, might use it."""
    return comment.id.startswith("NAM") or any(names(comment.id, each) for each in not_run)


def _about(rule: Rule, source: str, comment: _Comment, message: str, hint: str) -> Finding:
    return Finding(rule=rule, source=source, line=comment.line, path="", message=message, hint=hint)


def _comments(text: str) -> Iterator[_Comment]:
    if "pdrecipe:" not in text:
        return
    is_top = True
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        is_top = is_top and (not stripped or stripped.startswith("#") or stripped == "---")
        found = _COMMENT.search(line)
        if found is None:
            continue
        reason = found[2].strip()
        for name in filter(None, map(str.strip, found[1].upper().split(","))):
            yield _Comment(line=number, id=name, reason=reason, is_for_file=is_top)
