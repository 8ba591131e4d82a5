"""The figures of a diff: which engines differ, and how each figure of both sides is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.units import gib
from generator.wording import plural

_ROLE_LETTERS = {"prefill": "P", "decode": "D", "agg": "agg"}


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
        return "-"
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
    return bool(engine["before"] != engine["after"])


@dataclass(slots=True)
class EngineRow:
    """An engine whose figures differ, and the number of recipes that start it so."""

    engine: Mapping[str, Any]
    recipes: set[str]

    @property
    def request_tokens(self) -> int:
        return int(self.engine["after"]["request_tokens"])


def differing_engines(document: Mapping[str, Any]) -> tuple[list[EngineRow], list[str]]:
    """Each engine whose figures differ, once, by request length; and the roles of all others.

    A recipe without a load counts with one that starts the same engine under a load.
    """
    rows: dict[str, EngineRow] = {}
    unchanged: list[str] = []
    found = sorted(_engines(document), key=lambda each: not _is_loaded(each[1]))
    for path, engine in found:
        if not is_changed(engine):
            unchanged.append(engine["role"])
            continue
        alike = _key(engine, with_load=False)
        key = _key(engine, with_load=True) if _is_loaded(engine) else alike
        same = next((row for known, row in rows.items() if known.startswith(alike)), None)
        if _is_loaded(engine) or same is None:
            same = rows.setdefault(key, EngineRow(engine=engine, recipes=set()))
        same.recipes.add(path)
    return sorted(rows.values(), key=lambda row: -row.request_tokens), unchanged


def unchanged_line(roles: Sequence[str]) -> str:
    """That nothing moves, of the roles whose engines were computed on both sides."""
    named = " and ".join(dict.fromkeys(roles))
    return (
        f"Capacity of {named}: as before, {plural(len(roles), 'engine')} computed for both sides."
    )


def _engines(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for recipe in document["recipes"]:
        for each in recipe["consequences"]:
            for engine in each["engines"]:
                if engine["after"]:  # why there is none stands among the refusals
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


def unknown_model_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """How many recipes differ whose model is not known, so that no capacity is computed."""
    unknown = [
        recipe["path"]
        for recipe in document["recipes"]
        if not all(each["models_known"] for each in recipe["consequences"])
    ]
    if unknown:
        yield (
            f"no capacity of {plural(len(unknown), 'recipe')} whose model is not known: name its"
            " folder with --model"
        )


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
    for text, recipes in found.items():
        yield f"{text} in {plural(len(recipes), 'recipe')}"


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
        f"Figures of a start-up that nobody measured are estimates within +-{_gib(spread)} GiB;"
        " they start from the other side's where that was measured, and differences are nearer."
    )
    if any(
        side and side["graphs"] != (engine["before"] or side)["graphs"]
        for engine in listed
        for side in _sides(engine)
    ):
        yield "The estimate does not tell more graphs from fewer: each one takes memory, too."
