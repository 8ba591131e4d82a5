"""What makes a point: a recipe apart from wording and loads, and one concurrency."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_DIGEST_CHARACTERS = 16
_POINT_ID = re.compile(rf"(?P<digest>[0-9a-f]{{{_DIGEST_CHARACTERS}}})(-c(?P<load>[1-9][0-9]*))?\Z")
# srtctl writes `lock` into the copy that a finished run leaves, and ignores it when it reads one.
_RECORDS = frozenset({"lock"})


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Point:
    """One measurement: a recipe, by digest, at one concurrency; None where it sweeps no load."""

    digest: str
    concurrency: int | None = None

    @property
    def id(self) -> str:
        """Its name in ledgers, folders and on the command line: ``0123456789abcdef-c64``."""
        return self.digest if self.concurrency is None else f"{self.digest}-c{self.concurrency}"


def parse_point(text: str) -> Point:
    """The point of that id; raises ValueError for any other text."""
    match = _POINT_ID.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a point such as 0123456789abcdef-c64")
    load = match["load"]
    return Point(digest=match["digest"], concurrency=int(load) if load else None)


def recipe_digest(recipe: Mapping[str, Any]) -> str:
    """The identity of a parsed recipe without its concurrencies, 16 hexadecimal digits.

    Comments, header, quoting style, order of keys and the way concurrencies are written do not
    count; every other value does, the name included. No module of this package that may change
    takes part, so a newer generator gives the same digest.
    """
    kept = {key: value for key, value in recipe.items() if key not in _RECORDS}
    benchmark = kept.get("benchmark")
    if isinstance(benchmark, Mapping):
        loadless = {key: value for key, value in benchmark.items() if key != "concurrencies"}
        kept["benchmark"] = loadless
    canonical = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:_DIGEST_CHARACTERS]


def concurrencies(recipe: Mapping[str, Any]) -> tuple[int | None, ...]:
    """The loads of a recipe that its schema accepts, ascending and each once; (None,) without.

    Raises ValueError for a load that is no positive number.
    """
    written = (recipe.get("benchmark") or {}).get("concurrencies")
    if written is None or written == []:
        return (None,)
    parts = written.split("x") if isinstance(written, str) else written
    loads = sorted({_load(part) for part in parts})
    return tuple(loads)


def _load(text: int | str) -> int:
    load = int(text)
    if load < 1:
        raise ValueError(f"a concurrency must be at least 1, got {load}")
    return load
