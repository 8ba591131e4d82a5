"""How a diff names values, effects and figures: the words that text and Markdown share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.effects import Effect
from generator.units import gib

SYMBOLS = {"changed": "~", "added": "+", "removed": "-", "renamed": ">", "same": "="}

EFFECTS = {
    Effect.COSMETIC.value: "cosmetic",
    Effect.NEEDS_RESTART.value: "needs a restart",
    Effect.INVALIDATES_RESULTS.value: "invalidates earlier results",
    Effect.CHANGES_MEMORY.value: "changes memory",
}
_ORDER = {effect.value: rank for rank, effect in enumerate(Effect)}
_ROLE_LETTERS = {"prefill": "P", "decode": "D", "agg": "agg"}


def value_text(value: Any, most_characters: int = 60) -> str:
    """A value of the document as people write it in YAML, cut in the middle if long."""
    if isinstance(value, str):
        text = value if value.isprintable() and value.strip() == value and value else repr(value)
    else:
        text = json.dumps(value)
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
        return value_text(value, most_characters)

    if change["action"] == "added" and change["default"] is None:
        return side("after")
    if change["action"] == "removed" and change["default"] is None:
        return side("before")
    return f"{side('before')} -> {side('after')}"


def by_effect(changes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Changes, those first whose effect matters most."""
    return sorted(changes, key=lambda change: -_ORDER[change["effect"]])


def plural(count: int, word: str) -> str:
    """``1 recipe``, ``2 recipes``."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def names(items: Sequence[str], most: int = 3) -> str:
    """The first few of a list, and how many more there are."""
    listed = ", ".join(items[:most])
    return listed if len(items) <= most else f"{listed} and {len(items) - most} more"


def summary_line(document: Mapping[str, Any]) -> str:
    """One line that counts everything and names the strongest effect."""
    summary = document["summary"]
    kinds = ("changed", "added", "removed", "renamed")
    counts = [f"{summary[kind]} {kind}" for kind in kinds if summary[kind]]
    effect = summary["effect"]
    ending = f" Strongest effect: {EFFECTS[effect]}." if effect else ""
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


# --- figures ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A column of figures: what it is called, where it is and how it is written."""

    label: str
    key: str
    write: Callable[[float], str]


def _gib(value: float) -> str:
    return f"{gib(value):,.2f}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _tenths(value: float) -> str:
    return f"{value:,.1f}"


FIGURES = (
    Figure(label="KV cache", key="kv_cache_bytes_per_rank", write=_gib),
    Figure(label="req/rank", key="requests_per_rank", write=_tenths),
    Figure(label="endpoint", key="requests_per_endpoint", write=_tenths),
    Figure(label="block", key="block_tokens", write=_count),
    Figure(label="graphs", key="graphs", write=_count),
    Figure(label="slots", key="slots", write=_count),
    Figure(label="load", key="concurrency", write=_count),
    Figure(label="headroom", key="headroom_bytes_per_rank", write=_gib),
)


def engine_label(engine: Mapping[str, Any]) -> str:
    """Role, layout and drafted tokens of an engine; both where they changed."""
    labels = dict.fromkeys(
        f"{side['layout']}{_mtp(side)}" for side in (engine["before"], engine["after"]) if side
    )
    return f"{_ROLE_LETTERS[engine['role']]} {' -> '.join(labels)}"


def _mtp(side: Mapping[str, Any]) -> str:
    tokens = side["num_speculative_tokens"]
    return f" mtp{tokens}" if tokens else ""


def figure_with_difference(figure: Figure, engine: Mapping[str, Any]) -> str:
    """``133.61 (-0.12)``: a figure of the after side, and by how much it moved if it did."""
    before, after = (engine[side] and engine[side][figure.key] for side in ("before", "after"))
    if after is None:
        return "-" if before is None else f"({figure.write(before)} before)"
    if before is None:
        return figure.write(after)
    moved = figure.write(after - before)
    is_still = not float(moved.replace(",", ""))
    return figure.write(after) if is_still else f"{figure.write(after)} ({_signed(moved)})"


def figure_after(figure: Figure, engine: Mapping[str, Any]) -> str:
    """``133.61``: a figure of the after side alone."""
    side = engine["after"]
    return "-" if side is None or side[figure.key] is None else figure.write(side[figure.key])


def figure_of_both(figure: Figure, engine: Mapping[str, Any]) -> str:
    """``133.73 -> 133.61``, or one figure where both are written the same."""
    sides = [
        "-"
        if engine[side] is None or engine[side][figure.key] is None
        else figure.write(engine[side][figure.key])
        for side in ("before", "after")
    ]
    return sides[0] if sides[0] == sides[1] else " -> ".join(sides)


def _signed(text: str) -> str:
    return text if text.startswith("-") else f"+{text}"


def is_changed(engine: Mapping[str, Any]) -> bool:
    """Whether any figure of an engine differs as it is written."""
    return engine["before"] != engine["after"]


@dataclass(slots=True)
class EngineRow:
    """An engine whose figures differ, and the number of recipes that start it so."""

    engine: Mapping[str, Any]
    recipes: set[str]

    @property
    def request_tokens(self) -> int:
        side = self.engine["after"] or self.engine["before"]
        return int(side["request_tokens"])


def differing_engines(document: Mapping[str, Any]) -> tuple[list[EngineRow], int]:
    """Each engine whose figures differ, once, by request length; and how many do not.

    A recipe without a load counts with one that starts the same engine under a load.
    """
    rows: dict[str, EngineRow] = {}
    unchanged = 0
    found = sorted(_engines(document), key=lambda each: not _is_loaded(each[1]))
    for path, engine in found:
        if not is_changed(engine):
            unchanged += 1
            continue
        alike = _key(engine, with_load=False)
        key = _key(engine, with_load=True) if _is_loaded(engine) else alike
        same = next((row for known, row in rows.items() if known.startswith(alike)), None)
        if _is_loaded(engine) or same is None:
            same = rows.setdefault(key, EngineRow(engine=engine, recipes=set()))
        same.recipes.add(path)
    return sorted(rows.values(), key=lambda row: -row.request_tokens), unchanged


def _engines(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for recipe in document["recipes"]:
        for each in recipe["consequences"]:
            for engine in each["engines"]:
                if engine["before"] or engine["after"]:
                    yield recipe["path"], engine


def _is_loaded(engine: Mapping[str, Any]) -> bool:
    return any(side and side["concurrency"] is not None for side in _sides(engine))


def _sides(engine: Mapping[str, Any]) -> tuple[Any, Any]:
    return engine["before"], engine["after"]


def _key(engine: Mapping[str, Any], *, with_load: bool) -> str:
    """What tells rows apart; a key with the load starts with the one without it."""
    own = [[side[key] for key in _OWN_FIGURES] if side else None for side in _sides(engine)]
    load = [
        [side[key] for key in ("request_tokens", "concurrency")] if side else None
        for side in _sides(engine)
    ]
    return json.dumps([engine["role"], own]) + (json.dumps(load) if with_load else "")


_OWN_FIGURES = (
    "layout",
    "num_speculative_tokens",
    "kv_cache_bytes_per_rank",
    "block_tokens",
    "graphs",
    "slots",
)


def refusal_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Why engines have no figures, each reason once with the number of recipes."""
    found: dict[str, set[str]] = {}
    for recipe in document["recipes"]:
        for each in recipe["consequences"]:
            for engine in each["engines"]:
                for reason in engine["refusals"]:
                    found.setdefault(f"{engine['role']}: {reason}", set()).add(recipe["path"])
    for reason, recipes in found.items():
        yield f"no figures of {reason} ({plural(len(recipes), 'recipe')})"


def cluster_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """GPUs and nodes where they change, each change once with the number of recipes."""
    found: dict[str, set[str]] = {}
    for recipe in document["recipes"]:
        if recipe["before_path"] is None:
            continue
        for each in recipe["consequences"]:
            moved = [
                f"{name} {each[key]['before']} -> {each[key]['after']}"
                for name, key in (("GPUs", "gpus"), ("nodes", "nodes"))
                if each[key]["before"] != each[key]["after"]
            ]
            if moved:
                found.setdefault(", ".join(moved), set()).add(recipe["path"])
    for moved, recipes in found.items():
        yield f"{moved} in {plural(len(recipes), 'recipe')}"


def basis_lines(engines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """How far figures of engines that nobody started may be off."""
    listed = list(engines)
    spread = max(
        (side["uncertainty_bytes"] for engine in listed for side in _sides(engine) if side),
        default=0,
    )
    if not spread:
        return
    yield (
        f"Where no start-up was measured KV cache is estimated, within +-{_gib(spread)} GiB, and"
        " a measured other side is the start of it: the difference is nearer than the figures."
    )
    if any(
        side and side["graphs"] != (engine["before"] or side)["graphs"]
        for engine in listed
        for side in _sides(engine)
    ):
        yield "The estimate does not tell more graphs from fewer: each one takes memory, too."
