"""Override files: ``base`` with ``override_*`` and ``zip_override_*`` sections laid over it.

Read from srt-slurm 1.0.68 (``core/config.py``): mappings merge, everything else is replaced whole,
null deletes. A zip section stands for as many overrides as its lists are long; a list of one item
and a value that is no list go to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.documents import Document
from generator.errors import Problem
from generator.wording import FieldPath, kind_of

_OVERRIDE, _ZIP = "override_", "zip_override_"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverridePart:
    """One recipe of an override file, and where its parts are written (see ``Variant``)."""

    suffix: str
    data: Mapping[str, Any]
    moved: Mapping[FieldPath, FieldPath]
    kept_deletions: tuple[FieldPath, ...] = ()


def is_override_key(key: str) -> bool:
    """Whether a top-level key lays something over ``base``."""
    return key.startswith((_OVERRIDE, _ZIP))


def override_problems(document: Document) -> Iterator[Problem]:
    """What keeps an override file from being expanded."""
    for key, section in document.data.items():
        if key != "base" and not is_override_key(key):
            continue
        if not isinstance(section, dict):
            yield document.problem((key,), f"must be a mapping, not {kind_of(section)}")
        elif key.startswith(_ZIP):
            yield from _zip_problems(document, key, section)


def _zip_problems(document: Document, key: str, section: Mapping[str, Any]) -> Iterator[Problem]:
    lengths = {path: len(values) for path, values in _lists(section, (key,))}
    if not lengths:
        hint = "give at least one key a list of values, or call it override_*"
        yield document.problem((key,), "has no list to zip", hint)
    empty = [path for path, length in lengths.items() if not length]
    yield from (document.problem(path, "an empty list cannot be zipped") for path in empty)
    longer = {path: length for path, length in lengths.items() if length > 1}
    if len(set(longer.values())) > 1 and not empty:
        first, *others = longer
        for path in others:
            if longer[path] != longer[first]:
                message = f"has {longer[path]} values beside a list of {longer[first]}"
                yield document.problem(path, message, "all lists must be as long, or hold one item")


def _lists(section: Mapping[str, Any], path: FieldPath) -> Iterator[tuple[FieldPath, list[Any]]]:
    for key, value in section.items():
        if isinstance(value, list):
            yield (*path, key), value
        elif isinstance(value, dict):
            yield from _lists(value, (*path, key))


class OverrideFile:
    """The recipes of an override file in which ``override_problems`` found nothing."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._base: Mapping[str, Any] = data["base"]
        self._schema_moved: dict[FieldPath, FieldPath] = {}
        if "schema" in data and "schema" not in self._base:
            # The layout is said once for the file, but each recipe is read by itself.
            self._base = {"schema": data["schema"], **self._base}
            self._schema_moved = {("schema",): ("schema",)}

    def parts(self) -> Iterator[OverridePart]:
        """Overrides by name, then zip groups by name; ``base`` alone is none."""
        for key in sorted(key for key in self._data if key.startswith(_OVERRIDE)):
            section = self._data[key]
            layer = _Layer(section, {(): (key,)})
            yield self._part(layer, key.removeprefix(_OVERRIDE), is_named="name" in section)
        for key in sorted(key for key in self._data if key.startswith(_ZIP)):
            yield from self._zipped(key, self._data[key])

    def _zipped(self, key: str, section: Mapping[str, Any]) -> Iterator[OverridePart]:
        group = key.removeprefix(_ZIP)
        names_each = isinstance(section.get("name"), list)  # one name for all tells none apart
        for index in range(max(len(values) for _, values in _lists(section, ()))):
            origins: dict[FieldPath, FieldPath] = {(): (key,)}
            layer = _Layer(_sliced(section, index, (), origins), origins)
            yield self._part(layer, f"{group}_{index}", is_named=names_each, is_zipped=True)

    def _part(
        self, layer: _Layer, suffix: str, *, is_named: bool, is_zipped: bool = False
    ) -> OverridePart:
        data = layer.over(self._base)
        moved = {(): ("base",), **self._schema_moved, **layer.moved}
        if not is_named:
            data = {**data, "name": f"{self._base.get('name', 'unnamed')}_{suffix}"}
            moved["name",] = layer.origin(())
        kept = tuple(layer.deleted) if is_zipped else ()
        return OverridePart(suffix=suffix, data=data, moved=moved, kept_deletions=kept)


def _sliced(
    section: Mapping[str, Any], index: int, path: FieldPath, origins: dict[FieldPath, FieldPath]
) -> dict[str, Any]:
    """A zip section with one item in place of each list; notes where those items are written."""
    result = {}
    for key, value in section.items():
        here = (*path, key)
        if isinstance(value, list):
            chosen = 0 if len(value) == 1 else index
            origins[here] = (*origins[()], *here, chosen)
            result[key] = value[chosen]
        elif isinstance(value, dict):
            result[key] = _sliced(value, index, here, origins)
        else:
            result[key] = value
    return result


class _Layer:
    """A section to lay over ``base``, and what that moves into and removes from it."""

    def __init__(self, section: Mapping[str, Any], origins: Mapping[FieldPath, FieldPath]) -> None:
        self.moved: dict[FieldPath, FieldPath] = {}
        self.deleted: list[FieldPath] = []
        self._section = section
        self._origins = origins

    def origin(self, path: FieldPath) -> FieldPath:
        """Where a value of the section is written; ``origins`` has its root and its exceptions."""
        length = next(each for each in range(len(path), -1, -1) if path[:each] in self._origins)
        return (*self._origins[path[:length]], *path[length:])

    def over(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """``base`` with the section laid over it."""
        return self._merged(base, self._section, ())

    def _merged(
        self, base: Mapping[str, Any], section: Mapping[str, Any], path: FieldPath
    ) -> dict[str, Any]:
        result = dict(base)
        for key, value in section.items():
            here = (*path, key)
            if value is None:
                if result.pop(key, None) is not None:
                    self.deleted.append(here)
            elif isinstance(value, dict) and isinstance(result.get(key), dict):
                result[key] = self._merged(result[key], value, here)
            else:
                result[key] = value
                self._note_move(here)
        return result

    def _note_move(self, path: FieldPath) -> None:
        self.moved[path] = self.origin(path)
        for below, origin in self._origins.items():
            if below[: len(path)] == path:
                self.moved[below] = origin
