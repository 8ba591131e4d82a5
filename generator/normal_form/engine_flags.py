"""Engine flags in one spelling: dashes for underscores, nesting as sub-paths, JSON text opened.

``speculative_config.method: mtp``, ``speculative-config: '{"method": "mtp"}'`` and a nested
mapping are the same setting to the engines, so they get the same path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn

from generator.normal_form.leaves import leaves
from generator.wording import FieldPath

_MOST_TEXTS_KEPT = 4096


def flag_values(spelled: FieldPath, value: Any) -> Iterator[tuple[FieldPath, FieldPath, Any]]:
    """Every value of a flag: its path in the one spelling, its path as spelled, and the value.

    ``value`` is a leaf of the flags, ``spelled`` its path among them.
    """
    for below, inner in _json_leaves(value) if _looks_like_json(value) else (((), value),):
        whole = spelled + below
        yield _one_spelling(whole), whole, inner


@lru_cache(_MOST_TEXTS_KEPT)
def _one_spelling(spelled: FieldPath) -> FieldPath:
    steps: list[str | int] = []
    for step in spelled:
        if isinstance(step, int):
            steps.append(step)
            continue
        parts = step.split(".")
        steps += (part.replace("_", "-") for part in (parts if all(parts) else [step]))
    return tuple(steps)


def _looks_like_json(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("{")


@lru_cache(_MOST_TEXTS_KEPT)
def _json_leaves(text: str) -> tuple[tuple[FieldPath, Any], ...]:
    """What a JSON object says; text that only looks like one stays as it is."""
    try:
        opened = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return (((), text),)
    return tuple(leaves(opened))


def _refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are Python's, not JSON's."""
    raise ValueError(name)
