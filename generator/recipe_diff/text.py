"""The diff for a terminal, rendered from its JSON document: like a plan, in one screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generator.recipe_diff.effects import Effect
from generator.recipe_diff.figures import (
    FIGURES,
    EngineRow,
    Figure,
    basis_lines,
    cluster_lines,
    differing_engines,
    engine_label,
    figure_after,
    figure_with_difference,
    refusal_lines,
    unchanged_line,
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

_WIDTH = 100
_MOST_VALUES = 10
_MOST_FILES = 12
_MOST_FINDINGS = 12
_FINDING_SIGNS = {"appeared": "!", "vanished": "*"}
_MOST_ENGINES = 16
_LONGEST_KEY = 52
_VALUE_WIDTH = 16
_MOST_COSMETIC_VALUES = 3
_TOLD_BY_OTHERS = (
    "requests_per_endpoint",
    "headroom_bytes_per_rank",
    "requests_per_rank",
    "concurrency",
    "slots",
)
_LEGEND = {
    "~": "changed",
    "+": "added",
    "-": "removed",
    ">": "renamed",
    "!": "look at this",
    "*": "settled",
}


def diff_text(document: Mapping[str, Any]) -> list[str]:
    """The lines to print; the first character that is no space is a symbol of the legend."""
    if not document["summary"]["different"]:
        return [*_wrapped(no_changes_line(document)), *_forced(document)]
    body = list(_body(document))
    used = {line.lstrip()[:1] for line in body}
    legend = "  ".join(f"{sign} {text}" for sign, text in _LEGEND.items() if sign in used)
    heading = f"From {document['before']['name']} to {document['after']['name']}:"
    lines = [f"{heading}  {legend}"] if len(heading) + len(legend) < _WIDTH else [heading, legend]
    lines = [part for line in lines for part in _wrapped(line)]
    return [*lines, "", *body, *_forced(document), "", *_wrapped(summary_line(document))]


def _body(document: Mapping[str, Any]) -> Iterator[str]:
    changed = [each for each in document["recipes"] if each["changes"] or jobs_moved(each)]
    if len(changed) == 1:
        yield from _one_recipe(changed[0], document["groups"])
    else:
        yield from _grouped(document)
    yield from _files(document)
    yield from _figures(document)
    yield from _findings(document)


def _findings(document: Mapping[str, Any]) -> Iterator[str]:
    rows = finding_rows(document)
    if rows:
        yield ""
    for row in rows[:_MOST_FINDINGS]:
        finding, count = row.finding, len(row.recipes)
        where = names(row.recipes) if count < 3 else plural(count, "recipe")
        head = f"{_FINDING_SIGNS[row.side]} {finding['severity']} {finding['rule']} {row.side}"
        yield from _wrapped(f"{head} in {where}: {finding['message']}")
    if len(rows) > _MOST_FINDINGS:
        yield f"  and findings of {plural(len(rows) - _MOST_FINDINGS, 'rule')} more"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


# --- one recipe -------------------------------------------------------------------------------


def _one_recipe(recipe: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    jobs = jobs_text(recipe)
    jobs = f"  ({jobs})" if jobs else ""
    yield from _wrapped(f"{SYMBOLS[recipe['status']]} {recipe['path']}{jobs}")
    changes = by_effect(recipe["changes"])
    width = min(_LONGEST_KEY, max((len(each["path"]) for each in changes), default=0))
    kept = {(group["path"], change_text(group)): group for group in groups}
    for change in changes:
        yield from _change_lines(change, width, _in_jobs(change, recipe))
        yield from _siblings(kept[change["path"], change_text(change)])
    if recipe["jobs"]["compared"]:
        yield f"    ({plural(recipe['unchanged_values'], 'unchanged value')} hidden)"


def _change_lines(change: Mapping[str, Any], width: int, in_jobs: str) -> Iterator[str]:
    """One line if it fits; else the values below, on a line each if they are long."""
    text = change_text(change)
    effect = EFFECTS[change["effect"]] + in_jobs
    head = f"  {SYMBOLS[change['action']]} {change['path'].ljust(width)}"
    line = f"{head}  {text.ljust(_VALUE_WIDTH)}  {effect}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{head}  {effect}"
    if len(text) + 6 <= _WIDTH:
        yield f"      {text}"
        return
    for side in ("before", "after"):
        yield f"      {side.ljust(6)} {side_text(change, side, _WIDTH - 14)}"


def _siblings(group: Mapping[str, Any]) -> Iterator[str]:
    """Recipes beside those of a change that said the same and still do."""
    if group["siblings"]:
        kept = "nothing" if group["before"] is None else value_text(group["before"], 40)
        count = plural(len(group["siblings"]), "sibling")
        yield from _wrapped(f"! {count} with {kept} still: {names(group['siblings'])}", "    ")


def _in_jobs(change: Mapping[str, Any], recipe: Mapping[str, Any]) -> str:
    compared = recipe["jobs"]["compared"]
    return f", in {change['jobs']} of {plural(compared, 'job')}" if compared > 1 else ""


# --- many -------------------------------------------------------------------------------------


def _grouped(document: Mapping[str, Any]) -> Iterator[str]:
    """One entry for every key, with each of its changes and the number of recipes it is in."""
    by_key: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for group in by_effect(document["groups"]):
        by_key.setdefault((group["path"], group["action"]), []).append(group)
    width = min(_LONGEST_KEY, max((len(path) for path, _ in by_key), default=0))
    compared = document["summary"]["compared"]
    for (path, action), groups in by_key.items():
        recipes = {name for group in groups for name in group["recipes"]}
        where = f"in {len(recipes)} of {plural(compared, 'recipe')}"
        effect = EFFECTS[groups[0]["effect"]]
        head = f"{SYMBOLS[action]} {path.ljust(width)}  "
        text = change_text(groups[0], 40)
        line = f"{head}{text}  {where}, {effect}"
        if len(groups) == 1 and len(line) <= _WIDTH:
            yield line
        else:
            yield f"{head}{where}, {effect}"
            yield from _wrapped(_values(groups), "    ")
        if len(groups) == 1 and len(recipes) < min(compared, 4):
            yield from _wrapped(f"in {', '.join(groups[0]['recipes'])}", "    ")
        for group in groups:
            yield from _siblings(group)


def _values(groups: Sequence[Mapping[str, Any]]) -> str:
    is_cosmetic = groups[0]["effect"] == Effect.COSMETIC
    most = _MOST_COSMETIC_VALUES if is_cosmetic else _MOST_VALUES
    listed = [f"{change_text(each, 40)} in {len(each['recipes'])}" for each in groups[:most]]
    if len(groups) > most:
        listed.append(f"and {len(groups) - most} other changes")
    return "; ".join(listed)


def _files(document: Mapping[str, Any]) -> Iterator[str]:
    for status in ("added", "removed", "renamed"):
        found = [each for each in document["recipes"] if each["status"] == status]
        for recipe in found[:_MOST_FILES]:
            before = f"{recipe['before_path']} -> " if status == "renamed" else ""
            yield f"{SYMBOLS[status]} {before}{recipe['path']}"
        if len(found) > _MOST_FILES:
            yield f"{SYMBOLS[status]} {len(found) - _MOST_FILES} more {status}"


def _forced(document: Mapping[str, Any]) -> Iterator[str]:
    lines = list(inexpressible_lines(document))
    if lines:
        yield ""
    for line in lines:
        yield from _wrapped(line)


# --- what follows -----------------------------------------------------------------------------


def _figures(document: Mapping[str, Any]) -> Iterator[str]:
    engines, unchanged = differing_engines(document)
    notes = [
        *cluster_lines(document),
        *refusal_lines(document),
        *unknown_model_lines(document),
    ]
    if engines or notes:
        yield ""
    for note in notes:
        yield from _wrapped(note)
    if not engines:
        if unchanged:
            yield from _wrapped(unchanged_line(unchanged))
        return
    models = ", ".join(document["models"])
    yield from _wrapped(f"Capacity of {models} after the change (difference), GiB of one rank:")
    shown = engines[:_MOST_ENGINES]
    for tokens in dict.fromkeys(row.request_tokens for row in shown):
        yield from _table(tokens, [row for row in shown if row.request_tokens == tokens])
    rest = len(engines) - len(shown)
    hidden = [f"{rest} more"] if rest else []
    hidden += [f"{len(unchanged)} with the same figures"] if unchanged else []
    if hidden:
        yield f"  (engines hidden: {', '.join(hidden)})"
    for line in basis_lines(row.engine for row in engines):
        yield from _wrapped(line)


def _table(tokens: int, rows: Sequence[EngineRow]) -> Iterator[str]:
    """Figures in columns; differences that others tell go where the page is too narrow."""
    for count in range(len(_TOLD_BY_OTHERS) + 1):
        without = _TOLD_BY_OTHERS[:count]
        lines = list(_aligned(tokens, rows, without))
        if max(map(len, lines)) <= _WIDTH:
            break
    yield from lines


def _aligned(tokens: int, rows: Sequence[EngineRow], without: Sequence[str]) -> Iterator[str]:
    """Columns in which nothing is said, or block sizes that stay, are left out."""
    figures = [figure for figure in FIGURES if _is_told(figure, rows)]
    cells = [[f"{tokens} tokens", "in", *(figure.label for figure in figures)]]
    for row in rows:
        written = (
            (figure_after if figure.key in without else figure_with_difference)(figure, row.engine)
            for figure in figures
        )
        cells.append([engine_label(row.engine), str(len(row.recipes)), *written])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for each in cells:
        line = [each[0].ljust(widths[0])]
        line += (cell.rjust(width) for cell, width in zip(each[1:], widths[1:], strict=True))
        yield f"  {'  '.join(line)}".rstrip()


def _is_told(figure: Figure, rows: Sequence[EngineRow]) -> bool:
    if figure.key == "block_tokens":
        return any(_block_moved(row.engine) for row in rows)
    return any(figure_with_difference(figure, row.engine) != "-" for row in rows)


def _block_moved(engine: Mapping[str, Any]) -> bool:
    sides = [side["block_tokens"] for side in (engine["before"], engine["after"]) if side]
    return len(set(sides)) > 1
