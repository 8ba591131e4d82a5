"""``pdrecipe-run.json``: what made a run folder that no engine on a GPU filled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from generator.errors import InvalidInput, Problem
from generator.files import read_text, write_text_atomically
from generator.results.point import Origin

MARKER_FILE = "pdrecipe-run.json"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledLoad:
    """A load of the recipe that a smaller one stood for.

    ``folder`` is where its report lies, below the run folder; ``in_flight`` the concurrency that
    the client ran. ``preemptions`` are those of the engines meanwhile, None where unknown.
    """

    folder: str
    concurrency: int
    in_flight: int
    preemptions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMarker:
    """Where the figures of a run are from; ``note`` says how, for people.

    ``conditions`` belong to the contract of its points. ``loads`` are those that were scaled;
    reports elsewhere ran the load that they name.
    """

    version: int = _VERSION
    origin: Origin
    note: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    loads: tuple[ScaledLoad, ...] = ()


def write_run_marker(run: Path, marker: RunMarker) -> None:
    """Mark a run folder; raises InvalidInput where that cannot be written."""
    text = json.dumps(msgspec.to_builtins(marker), indent=1) + "\n"
    write_text_atomically(run / MARKER_FILE, text)


def read_run_marker(run: Path) -> RunMarker | None:
    """The marker of a run folder, None where it has none.

    Raises InvalidInput for one that is broken: the run might be no measurement.
    """
    path = run / MARKER_FILE
    if not path.exists():
        return None
    if not path.is_file():  # a pipe would be waited for for ever
        raise InvalidInput(_broken(path, "is no regular file"))
    try:
        marker = msgspec.convert(json.loads(read_text(path, str(path))), RunMarker)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(_broken(path, f"is broken: {error}")) from error
    if marker.version != _VERSION:
        raise InvalidInput(_broken(path, f"is version {marker.version} of its format, not 1"))
    return marker


def _broken(path: Path, message: str) -> Problem:
    hint = "the run is left out: without it nobody can tell whether it was measured"
    return Problem(message=message, hint=hint, source=str(path))
