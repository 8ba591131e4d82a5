"""``pdrecipe cancel --json``: which jobs are cancelled, and which points with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from generator.sweep.folder import SweepFolder, SweepSettings
from generator.sweep.history import Attempt
from generator.sweep.looking import Look


def cancellation_document(
    folder: SweepFolder,
    settings: SweepSettings,
    look: Look,
    attempts: Iterable[Attempt],
    beside: Iterable[str],
) -> dict[str, Any]:
    """The document that ``schemas/cancellation.schema.json`` describes."""
    return {
        "version": 1,
        "sweep": settings.name,
        "folder": str(folder.root),
        "cluster": settings.cluster,
        "jobs": [_job(each, look) for each in attempts],
        "beside": list(beside),
        "notices": list(look.notices),
    }


def _job(attempt: Attempt, look: Look) -> dict[str, Any]:
    recipe = look.history.recipes[attempt.recipe]
    return {
        "job": attempt.task_id,
        "token": attempt.token,
        "recipe": recipe.name,
        "file": recipe.file,
        "points": list(attempt.open_points),
    }
