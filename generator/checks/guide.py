"""The rules as a page and as an answer, made from their documentation."""

from __future__ import annotations

from collections.abc import Iterator

from generator.checks.registry import FAMILIES, RULES
from generator.checks.rule import Rule

_HEAD = """# Rules of `pdrecipe check`

Made from the rules' own documentation by `pdrecipe explain --page`; a test compares.
`pdrecipe explain ID` prints one. Allow a finding with its reason, on its line, on the line above
it, or at the top of the file for the whole file:

    max-num-seqs: 64  # pdrecipe: ignore[CON001] the queue is what this recipe measures

`ignore[CON]` allows a whole family. For many files write it in a `.pdrecipe.yaml` above them
(`schemas/settings.schema.json`):

    check:
      ignore:
        - {rule: TOP005, files: ["single-node/**"], reason: nodes are rented whole}
"""


def explanation(rule: Rule) -> str:
    """One rule, as it is printed."""
    return f"# {rule.id} {rule.name}\n\n{rule.severity}: {rule.documentation}\n"


def overview() -> Iterator[tuple[str, str, str, str]]:
    """Id, name, severity and summary of every rule."""
    for rule in RULES:
        yield rule.id, rule.name, str(rule.severity), rule.summary


def page() -> str:
    """The page of all rules, by family."""
    parts = [_HEAD]
    for family, title in FAMILIES.items():
        rules = [rule for rule in RULES if rule.family == family]
        parts.append(f"## {family}: {title}\n\n{_table(rules)}")
        parts += [_section(rule) for rule in rules]
    return "\n".join(parts)


def _table(rules: list[Rule]) -> str:
    rows = [f"| {rule.id} | `{rule.name}` | {rule.severity} | {rule.summary} |" for rule in rules]
    return "\n".join(["| id | name | severity | |", "| --- | --- | --- | --- |", *rows]) + "\n"


def _section(rule: Rule) -> str:
    body = rule.documentation.replace("\n## ", "\n#### ")
    return f"### {rule.id} {rule.name}\n\n{body}\n"
