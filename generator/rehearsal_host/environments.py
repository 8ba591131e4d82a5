"""The two Python environments of a rehearsal: what belongs in them, and whether they are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from generator.facts.fact import load_data
from generator.units import parse_bytes

FILE = "rehearsal_environments.yaml"
_MARK = "installed.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """The programs a rehearsal starts: Dynamo's interpreter, and the ``aiperf`` command."""

    dynamo_python: Path
    aiperf: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPlan:
    """What one environment consists of.

    ``pins`` hold the dependencies of ``requirements``; ``alone`` goes in last, without its own.
    """

    name: str
    title: str
    installed_bytes: int
    requirements: tuple[str, ...]
    alone: tuple[str, ...]
    pins: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Names what is installed: another digest is another environment.

        For which Python does not count, since the environment runs its own.
        """
        content = [self.requirements, self.alone, self.pins]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def default_cache(environment: Mapping[str, str]) -> Path:
    """``pdrecipe/rehearsal`` in the user's cache folder; XDG_CACHE_HOME counts if absolute."""
    named = environment.get("XDG_CACHE_HOME", "")
    home = Path(named) if named.startswith("/") else Path.home() / ".cache"
    return home / "pdrecipe" / "rehearsal"


@cache
def environment_plans() -> tuple[EnvironmentPlan, ...]:
    """The environments of the data file, in the order in which they are made."""
    data: Mapping[str, Any] = load_data(FILE)
    return tuple(
        EnvironmentPlan(
            name=name,
            title=entry["title"],
            installed_bytes=parse_bytes(entry["installed"]["value"]),
            requirements=tuple(entry["requirements"]["value"]),
            alone=tuple(entry["alone"]["value"]) if "alone" in entry else (),
            pins=tuple(entry["pins"]["value"]),
        )
        for name, entry in data["environments"].items()
    )


@cache
def python_releases() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The oldest Python release that will do, and the first that will not any more."""
    releases = load_data(FILE)["python"]["value"]
    least, below = (
        tuple(int(part) for part in releases[key].split(".")) for key in ("at_least", "below")
    )
    return least, below


def find_environments(folder: Path) -> Environments | None:
    """The environments in a cache folder; None where one is missing, unfinished or another's."""
    if not all(is_installed(plan, folder) for plan in environment_plans()):
        return None
    return Environments(
        dynamo_python=interpreter(folder / "dynamo"),
        aiperf=folder / "aiperf" / "bin" / "aiperf",
    )


def is_installed(plan: EnvironmentPlan, folder: Path) -> bool:
    """Whether an installation of just this plan was finished and its interpreter is still there."""
    home = folder / plan.name
    try:
        mark = json.loads((home / _MARK).read_bytes())
        return bool(mark == _mark(plan) and interpreter(home).stat())
    except (OSError, ValueError):
        return False


def mark_text(plan: EnvironmentPlan) -> str:
    """What the file that is written last says."""
    return json.dumps(_mark(plan)) + "\n"


def mark_path(plan: EnvironmentPlan, folder: Path) -> Path:
    """Where that file lies."""
    return folder / plan.name / _MARK


def interpreter(home: Path) -> Path:
    """The Python of an environment."""
    return home / "bin" / "python"


def _mark(plan: EnvironmentPlan) -> dict[str, str]:
    return {"title": plan.title, "digest": plan.digest}
