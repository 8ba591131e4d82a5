"""Which files of a sweep have changed since: it goes on with its own copies of their recipes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from generator.documents import parse_document
from generator.errors import InvalidInput
from generator.files import read_text
from generator.sweep.events import PlannedRecipe
from generator.sweep.folder import SweepFolder
from generator.sweep.history import History
from generator.sweep.swept_recipe import swept_recipes

_MOST_NAMED = 3


def changed_files(folder: SweepFolder, known: History) -> list[str]:
    """The files, as they were named, that now hold a recipe the sweep does not have.

    Other words for the same recipe and other concurrencies are no change. A file that is not there
    says nothing. Names are looked up where the sweep was submitted, wherever this runs.
    """
    by_file: dict[Path, list[PlannedRecipe]] = {}
    for recipe in known.recipes.values():
        by_file.setdefault(Path(recipe.seen_from) / recipe.file, []).append(recipe)
    return [
        recipes[0].file for path, recipes in by_file.items() if _is_changed(folder, path, recipes)
    ]


def changes_notice(changed: list[str], folder: str) -> str:
    """What to know of changed files, nothing where there are none; ``folder`` as users paste it."""
    if not changed:
        return ""
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return (
        f"changed since submission: {', '.join(changed[:_MOST_NAMED])}{more}; the sweep goes on"
        f" with its copies, pdrecipe submit FILE --sweep {folder} adds what they hold now"
    )


def _is_changed(folder: SweepFolder, path: Path, recipes: Iterable[PlannedRecipe]) -> bool:
    try:
        if not path.is_file():
            return False
        text = read_text(path, str(path))
        if any(_copy(folder, recipe) == text for recipe in recipes):
            return False
        now = {each.digest for each in swept_recipes(parse_document(text, str(path)))}
    except (InvalidInput, OSError):
        return True  # whatever it holds now, it is not that recipe
    return not now <= {recipe.digest for recipe in recipes}


def _copy(folder: SweepFolder, recipe: PlannedRecipe) -> str:
    path = folder.recipe(recipe.digest)
    return read_text(path, str(path)) if path.exists() else ""
