"""``pdrecipe logs --json``: the logs of one attempt, and the end of the one that tells most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generator.errors import InvalidInput
from generator.files import os_problem
from generator.sweep.folder import SweepFolder, SweepSettings
from generator.sweep.history import History

MOST_TEXT_BYTES = 2**20


def logs_document(
    folder: SweepFolder,
    settings: SweepSettings,
    point: str,
    known: History,
    number: int,
    logs: Sequence[Path],
) -> dict[str, Any]:
    """The document that ``schemas/logs.schema.json`` describes.

    ``number`` counts attempts from 1. Raises InvalidInput where a log cannot be read.
    """
    attempts = known.attempts(point)
    attempt = attempts[number - 1]
    text, skipped_bytes = _end_of(logs[-1]) if logs else ("", 0)
    return {
        "version": 1,
        "sweep": settings.name,
        "folder": str(folder.root),
        "point": point,
        "recipe": known.recipes[attempt.recipe].name,
        "attempt": number,
        "attempts": len(attempts),
        "token": attempt.token,
        "job": attempt.task_id,
        "logs": [str(each) for each in logs],
        "skipped_bytes": skipped_bytes,
        "text": text,
    }


def _end_of(path: Path) -> tuple[str, int]:
    """The last of a log, and how many bytes lie before it."""
    try:
        with path.open("rb") as stream:
            size_bytes = stream.seek(0, 2)
            skipped_bytes = max(0, size_bytes - MOST_TEXT_BYTES)
            stream.seek(skipped_bytes)
            return stream.read(MOST_TEXT_BYTES).decode("utf-8", "replace"), skipped_bytes
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error
