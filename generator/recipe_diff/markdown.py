"""The diff as Markdown that fits a comment on a pull request, rendered from its JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.recipe_diff.figures import (
    FIGURES,
    basis_lines,
    cluster_lines,
    differing_engines,
    engine_label,
    figure_of_both,
    refusal_lines,
    unknown_model_lines,
)
from generator.recipe_diff.wording import (
    EFFECTS,
    SYMBOLS,
    by_effect,
    change_text,
    finding_rows,
    inexpressible_lines,
    jobs_moved,
    jobs_text,
    names,
    no_changes_line,
    side_text,
    summary_line,
    value_text,
)
from generator.wording import plural

MAX_MARKDOWN_BYTES = 60_000
_LONGEST_VALUE = 120
_MOST_GROUPS = 60
_MOST_ENGINES = 60
_MOST_FILES = 100
_ROOM_FOR_THE_CUT = 200


def diff_markdown(document: Mapping[str, Any]) -> str:
    """The comment; recipes that would not fit are left out, and it says how many."""
    head = "\n".join(_head(document))
    size = len(head.encode())
    recipes = [each for each in document["recipes"] if each["changes"]]
    details: list[str] = []
    for index, recipe in enumerate(recipes):
        text = "\n".join(_recipe(recipe))
        size += len(text.encode()) + 2
        if size > MAX_MARKDOWN_BYTES - _ROOM_FOR_THE_CUT:
            rest = plural(len(recipes) - index, "recipe")
            details.append(
                f"_{rest} left out to keep this short; `--format json` has all of them._"
            )
            break
        details.append(text)
    return "\n\n".join([head, *details])


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    before, after = document["before"]["name"], document["after"]["name"]
    yield f"### Recipes: {_code(before)} to {_code(after)}"
    yield ""
    if not document["summary"]["different"]:
        yield no_changes_line(document)
    else:
        yield f"**{summary_line(document)}**"
        yield from _groups(document)
        yield from _files(document)
        moved = [each for each in document["recipes"] if jobs_moved(each)]
        lines = [f"{each['path']}: {jobs_text(each)}" for each in moved]
        yield from _listed("Jobs that only one side has:", lines)
        yield from _figures(document)
        yield from _findings(document)
    yield from _listed("What a layout has no key for:", list(inexpressible_lines(document)))
    problems = [each["message"] for each in document["problems"]]
    yield from _listed("Not compared, since it cannot be read:", problems)


def _listed(heading: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"\n{heading}\n"
        yield from (f"- {_text(line)}" for line in lines[:_MOST_FILES])
        if len(lines) > _MOST_FILES:
            yield f"- and {len(lines) - _MOST_FILES} more"


def _groups(document: Mapping[str, Any]) -> Iterator[str]:
    groups = by_effect(document["groups"])
    if not groups:
        return
    compared = document["summary"]["compared"]
    yield "\n| | value | change | in recipes | effect |\n| --- | --- | --- | --- | --- |"
    for group in groups[:_MOST_GROUPS]:
        where = f"{len(group['recipes'])} of {compared}"
        if group["siblings"]:
            where += f"; not in {_text(names(group['siblings']))}"
        yield _row(
            SYMBOLS[group["action"]],
            _code(group["path"]),
            _code(change_text(group, _LONGEST_VALUE // 2)),
            where,
            EFFECTS[group["effect"]],
        )
    if len(groups) > _MOST_GROUPS:
        yield f"\n_and {len(groups) - _MOST_GROUPS} more changes_"


def _files(document: Mapping[str, Any]) -> Iterator[str]:
    for status in ("added", "removed", "renamed"):
        found = [each for each in document["recipes"] if each["status"] == status]
        lines = [
            _code(each["path"])
            if status != "renamed"
            else f"{_code(each['before_path'])} to {_code(each['path'])}"
            for each in found
        ]
        if lines:
            more = f" and {len(lines) - _MOST_FILES} more" if len(lines) > _MOST_FILES else ""
            yield f"\n{status.capitalize()}: {', '.join(lines[:_MOST_FILES])}{more}"


def _figures(document: Mapping[str, Any]) -> Iterator[str]:
    engines, unchanged = differing_engines(document)
    notes = [
        *cluster_lines(document),
        *refusal_lines(document),
        *unknown_model_lines(document),
    ]
    if engines:
        labels = [figure.label for figure in FIGURES]
        rule = " | ".join(["---:"] * (len(labels) + 2))
        yield f"\nCapacity of {', '.join(map(_code, document['models']))}, GiB of one rank:\n"
        yield f"| engine | recipes | tokens | {' | '.join(labels)} |\n| --- | {rule} |"
        for row in engines[:_MOST_ENGINES]:
            figures = (figure_of_both(figure, row.engine) for figure in FIGURES)
            label, count = engine_label(row.engine), str(len(row.recipes))
            yield _row(label, count, str(row.request_tokens), *figures)
        notes += basis_lines(row.engine for row in engines)
    hidden = max(0, len(engines) - _MOST_ENGINES)
    if hidden or unchanged:
        notes.append(f"Engines not shown: {hidden} more, {len(unchanged)} with the same figures.")
    if notes:
        yield ""
        yield from (f"- {_text(note)}" for note in notes)


def _findings(document: Mapping[str, Any]) -> Iterator[str]:
    for side in ("appeared", "vanished"):
        rows = [row for row in finding_rows(document) if row.side == side]
        lines = [
            f"{row.finding['severity']} {row.finding['rule']} in {names(row.recipes)}:"
            f" {row.finding['message']}"
            for row in rows
        ]
        yield from _listed(f"Findings that {side}:", lines)


def _recipe(recipe: Mapping[str, Any]) -> Iterator[str]:
    changes = by_effect(recipe["changes"])
    count, effect = plural(len(changes), "change"), EFFECTS[recipe["effect"]]
    yield f"<details><summary>{_html(recipe['path'])}: {count}, {effect}</summary>\n"
    yield "| | value | before | after | line | effect |\n| --- | --- | --- | --- | ---: | --- |"
    compared = recipe["jobs"]["compared"]
    for change in changes:
        jobs = f" ({change['jobs']} of {compared} jobs)" if compared > 1 else ""
        yield _row(
            SYMBOLS[change["action"]],
            _code(change["path"]),
            _side(change, "before"),
            _side(change, "after"),
            str(change["after_line"] or change["before_line"] or ""),
            EFFECTS[change["effect"]] + jobs,
        )
    yield f"\n{plural(recipe['unchanged_values'], 'unchanged value')} hidden.\n"
    yield "</details>"


def _side(change: Mapping[str, Any], side: str) -> str:
    is_absent = change["action"] == ("added" if side == "before" else "removed")
    if not is_absent:
        return _code(side_text(change, side, _LONGEST_VALUE))
    default = change["default"]
    return "" if default is None else f"default {_code(value_text(default, _LONGEST_VALUE))}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    """Text as code in a table's cell; backticks and bars would end it, so they are doubled up."""
    escaped = text.replace("|", "\\|")
    fence = "``" if "`" in escaped else "`"
    space = " " if fence == "``" else ""
    return f"{fence}{space}{escaped}{space}{fence}"


def _text(text: str) -> str:
    """Text that Markdown takes for nothing else."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>|#" else each for each in text)


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
