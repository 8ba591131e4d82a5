"""How a diff names values, effects and figures: the words that text and Markdown share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.recipe_diff.effects import Effect
from generator.wording import plural
from generator.yaml_text.scalars import AmbiguousNumber, plain_value

SYMBOLS = {"changed": "~", "added": "+", "removed": "-", "renamed": ">", "same": "="}

EFFECTS = {
    Effect.COSMETIC.value: "cosmetic",
    Effect.NEEDS_RESTART.value: "needs a restart",
    Effect.INVALIDATES_RESULTS.value: "invalidates earlier results",
    Effect.CHANGES_MEMORY.value: "changes memory",
}
_ORDER = {effect.value: rank for rank, effect in enumerate(Effect)}


def value_text(value: Any, most_characters: int = 60) -> str:
    """A value of the document as people write it in YAML, cut in the middle if long."""
    if isinstance(value, str):
        text = value if value.isprintable() and value.strip() == value and value else repr(value)
    else:
        text = json.dumps(value)
    return _cut(text, most_characters)


def side_text(change: Mapping[str, Any], side: str, most_characters: int = 60) -> str:
    """The value of one side; text that looks like the other side's kind of value is quoted."""
    value, other = change[side], change["after" if side == "before" else "before"]
    if other is None:
        other = change["default"]
    if isinstance(value, str) and not isinstance(other, str | None) and _needs_quotes(value):
        return _cut(json.dumps(value), most_characters)
    return value_text(value, most_characters)


def _needs_quotes(text: str) -> bool:
    try:
        return not isinstance(plain_value(text), str)
    except AmbiguousNumber:
        return True


def _cut(text: str, most_characters: int) -> str:
    if len(text) <= most_characters:
        return text
    half = (most_characters - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def change_text(change: Mapping[str, Any], most_characters: int = 60) -> str:
    """A change as ``656 -> 720``, with the default where a side says nothing."""

    def side(name: str) -> str:
        value = change[name]
        if value is None and change["default"] is not None:
            return f"{value_text(change['default'], most_characters)} (default)"
        return side_text(change, name, most_characters)

    if change["action"] == "added" and change["default"] is None:
        return side("after")
    if change["action"] == "removed" and change["default"] is None:
        return side("before")
    return f"{side('before')} -> {side('after')}"


def by_effect(changes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Changes, those first whose effect matters most."""
    return sorted(changes, key=lambda change: -_ORDER[change["effect"]])


def names(items: Sequence[str], most: int = 3) -> str:
    """The first few of a list, and how many more there are."""
    listed = ", ".join(items[:most])
    return listed if len(items) <= most else f"{listed} and {len(items) - most} more"


def jobs_text(recipe: Mapping[str, Any]) -> str:
    """How many jobs of a recipe differ and which only one side has; empty for a single job."""
    jobs = recipe["jobs"]
    if max(jobs["before"], jobs["after"]) <= 1:
        return ""
    compared = plural(jobs["compared"], "job")
    parts = [f"{jobs['changed']} of {compared} differ" if jobs["compared"] else "no job in common"]
    parts += [
        f"{plural(len(jobs[key]), 'job')} {key}: {names([each or 'base' for each in jobs[key]])}"
        for key in ("added", "removed")
        if jobs[key]
    ]
    return "; ".join(parts)


def jobs_moved(recipe: Mapping[str, Any]) -> bool:
    """Whether a recipe file of both sides has jobs that only one of them has."""
    both = recipe["before_path"] and recipe["after_path"]
    return bool(both and (recipe["jobs"]["added"] or recipe["jobs"]["removed"]))


def summary_line(document: Mapping[str, Any]) -> str:
    """One line that counts everything and names the strongest effect."""
    summary = document["summary"]
    kinds = ("changed", "added", "removed", "renamed")
    counts = [f"{summary[kind]} {kind}" for kind in kinds if summary[kind]]
    effect = summary["effect"]
    ending = f" Strongest effect: {EFFECTS[effect]}." if effect else ""
    found = [f"{count} {side}" for side, count in summary["findings"].items() if count]
    ending += f" Findings: {', '.join(found)}." if found else ""
    total = summary["compared"] + summary["added"] + summary["removed"]
    return (
        f"{plural(total, 'recipe')}: {', '.join(counts)}, {summary['unchanged']} unchanged.{ending}"
    )


def no_changes_line(document: Mapping[str, Any]) -> str:
    """What was compared where nothing differs."""
    summary = document["summary"]
    return (
        f"No changes. {plural(summary['compared'], 'recipe')} of {document['before']['name']} and"
        f" {document['after']['name']} were compared by meaning,"
        f" {plural(summary['values_compared'], 'value')} of them; spelling, order, comments and"
        " defaults written out make no difference."
    )


def inexpressible_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """What one side's layout has no key for, each once with the number of recipes."""
    found: dict[tuple[str, str, str], int] = {}
    for recipe in document["recipes"]:
        for each in recipe["inexpressible"]:
            key = (each["path"], value_text(each["value"]), each["said_by"])
            found[key] = found.get(key, 0) + 1
    for (path, value, said_by), count in found.items():
        other = "after" if said_by == "before" else "before"
        yield (
            f"{path}: {value} in {plural(count, 'recipe')} {said_by} only:"
            f" the layout of the {other} side has no key for it"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A rule's finding that came or went: the first such finding and every recipe with one."""

    side: str
    finding: Mapping[str, Any]
    recipes: list[str]


def finding_rows(document: Mapping[str, Any]) -> list[FindingRow]:
    """Findings that only one side has, each rule once with its recipes; what is new comes first."""
    rows: dict[tuple[str, str], FindingRow] = {}
    for side in ("appeared", "vanished"):
        for recipe in document["recipes"]:
            for finding in recipe["findings"][side]:
                row = FindingRow(side=side, finding=finding, recipes=[])
                row = rows.setdefault((side, finding["rule"]), row)
                if recipe["path"] not in row.recipes:
                    row.recipes.append(recipe["path"])
    return list(rows.values())
