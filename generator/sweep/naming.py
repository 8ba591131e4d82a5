"""Which points a user means by ids, beginnings of ids, recipe names and files."""

from __future__ import annotations

from collections.abc import Iterable

from generator.errors import InvalidInput, Problem
from generator.sweep.history import History
from generator.wording import did_you_mean

_LEAST_CHARACTERS = 4


def named_points(texts: Iterable[str], history: History, folder: str) -> list[str]:
    """The points meant, in the order of the plan; ``folder`` is the sweep as users paste it.

    Raises InvalidInput with every text that means no point, or several by accident.
    """
    problems: list[Problem] = []
    meant: set[str] = set()
    for text in texts:
        found = _meant(text, history)
        meant |= found
        if not found:
            names = [recipe.name for recipe in history.recipes.values()]
            hint = (
                did_you_mean(text, [*history.points, *names])
                or f"pdrecipe status --all {folder} names them"
            )
            problems.append(Problem(message=f"no point {text[:80]!r} in this sweep", hint=hint))
    if problems:
        raise InvalidInput(problems)
    return [point for point in history.points if point in meant]


def _meant(text: str, history: History) -> set[str]:
    """A point, all points of a recipe, or the only points that begin so."""
    if text in history.points:
        return {text}
    by_recipe = {
        point
        for recipe in history.recipes.values()
        if text in (recipe.name, recipe.file, recipe.digest)
        for point in recipe.points
    }
    if by_recipe or len(text) < _LEAST_CHARACTERS:
        return by_recipe
    begin = {point for point in history.points if point.startswith(text)}
    return begin if len({history.points[point] for point in begin}) == 1 else set()
