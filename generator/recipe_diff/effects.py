"""What changing one value of a recipe costs: the ``x-effect`` annotations of the recipe schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache

from generator.normal_form.consumer_types import ANY_STEP, schema_parts
from generator.normal_form.engine_flags import flag_values
from generator.normal_form.neutral_paths import ROLES, V1_ENGINES, neutral_path
from generator.recipe.recipe import Dialect
from generator.wording import FieldPath


class Effect(StrEnum):
    """What a changed value does to a deployment and its figures, the mildest first."""

    COSMETIC = "cosmetic"
    NEEDS_RESTART = "needs-restart"
    INVALIDATES_RESULTS = "invalidates-results"
    CHANGES_MEMORY = "changes-memory"


_ORDER = {effect: rank for rank, effect in enumerate(Effect)}


_LOGGING_VARIABLE = re.compile(r"DYN_LOG\Z|.*_LOGGING(_|\Z)|.*_LOG_LEVEL\Z")


def strongest(effects: Iterable[Effect]) -> Effect | None:
    """The effect that matters most: changed memory invalidates results, too; None of none."""
    return max(effects, key=_ORDER.__getitem__, default=None)


def effect_of(path: FieldPath) -> Effect:
    """The effect class of a path of the normal form: its own, or that of the section around it.

    What no schema knows counts as invalidating results.
    """
    if len(path) > 1 and path[-2] in ("env", "environment") and _is_logging(path[-1]):
        return Effect.NEEDS_RESTART
    general = tuple(ANY_STEP if isinstance(step, int) else step for step in path)
    if general[0] in ("services", "roles") and len(general) > 1:
        general = (general[0], ANY_STEP, *general[2:])
    known = _effects()
    for length in range(len(general), 0, -1):
        effect = known.get(general[:length])
        if effect is not None:
            return effect
    return Effect.INVALIDATES_RESULTS


def _is_logging(variable: str | int) -> bool:
    """Whether an environment variable decides only what is logged."""
    return _LOGGING_VARIABLE.match(str(variable)) is not None


@cache
def _effects() -> Mapping[FieldPath, Effect]:
    """Every annotation by its neutral path, any role and any service as ``*``; v2 comes first."""
    found: dict[FieldPath, Effect] = {}
    for dialect in (Dialect.V2, Dialect.V1):
        for path, part in schema_parts(dialect):
            if "x-effect" in part:
                for neutral in _neutral_paths(path, dialect):
                    found.setdefault(neutral, Effect(part["x-effect"]))
    return found


def _neutral_paths(path: FieldPath, dialect: Dialect) -> Iterator[FieldPath]:
    for engine in V1_ENGINES if dialect is Dialect.V1 else ("",):
        neutral = neutral_path(path, dialect, engine)
        if neutral[0] == "roles" and len(neutral) > 1 and neutral[1] in ROLES:
            neutral = (neutral[0], ANY_STEP, *neutral[2:])
        if neutral[:3] == ("roles", ANY_STEP, "args") and len(neutral) > 3:
            for flag, _, _ in flag_values(neutral[3:], None):
                yield neutral[:3] + flag
        elif neutral:
            yield neutral
