"""One sourced figure, and how the package's data files are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

T = TypeVar("T")

DATA = Path(__file__).resolve().parent.parent / "data"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FactBasis(StrEnum):
    """How a fact is known: said by whoever makes the thing, seen by someone, or neither."""

    PUBLISHED = "published"
    MEASURED = "measured"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Generic[T]):
    """One value, where it comes from and when it held; ``unit`` is the unit of ``value``."""

    value: T
    unit: str
    source: str
    as_of: str
    basis: FactBasis = FactBasis.PUBLISHED
    note: str = ""


def load_data(name: str) -> Any:
    """The content of a file of the package's own data, by its name under ``generator/data``."""
    with (DATA / name).open(encoding="utf-8") as stream:
        return yaml.load(stream, Loader=_LOADER)  # noqa: S506 - it is the safe loader, in C


def fact_of(entry: Mapping[str, Any], value: Any = None) -> Fact[Any]:
    """The fact in a data file's entry; ``value`` replaces the one written there."""
    return Fact(
        value=entry["value"] if value is None else value,
        unit=entry["unit"],
        source=entry["source"],
        as_of=entry["as_of"],
        basis=FactBasis(entry.get("basis", FactBasis.PUBLISHED)),
        note=entry.get("note", ""),
    )


def facts_within(entry: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Fact[Any]]]:
    """Every fact below an entry with its dotted path, such as ``memory.nominal``."""
    for key, value in entry.items():
        if not isinstance(value, dict):
            continue
        if "source" in value:
            yield prefix + key, fact_of(value)
        else:
            yield from facts_within(value, f"{prefix}{key}.")
