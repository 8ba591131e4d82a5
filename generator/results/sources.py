"""Which files the figures of a point are from, as its ``sources`` write them."""

from __future__ import annotations

from collections.abc import Iterable

_JOINED = ", "
_OF_SEVERAL_FILES = frozenset({"accuracy", "preemptions"})


def source_of(files: Iterable[str]) -> str:
    """The files of a group of figures as one text."""
    return _JOINED.join(files)


def files_of(group: str, source: str) -> list[str]:
    """The files of a group of figures: a score or a count of preemptions is from several."""
    return source.split(_JOINED) if group in _OF_SEVERAL_FILES else [source]
