"""How far long work has come: one line on stderr, only where somebody watches."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_AFTER_S = 1.0
_EVERY_S = 0.1
_BAR_CHARACTERS = 24
_CLEARED = "\r\x1b[K"


def is_watched() -> bool:
    """Whether a line that changes makes sense: stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def bar(done: int, total: int) -> str:
    """A share as a picture: ``[######------]``."""
    filled = _BAR_CHARACTERS * done // total if total else _BAR_CHARACTERS
    return f"[{'#' * filled}{'-' * (_BAR_CHARACTERS - filled)}]"


def show_line(text: str) -> None:
    """Put a text in the place of the line before it."""
    columns = shutil.get_terminal_size().columns
    click.echo(f"{_CLEARED}{text[: columns - 1]}", err=True, nl=False)


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """A count of items, with a bar where their ``total`` is known, once it takes over a second.

    Each item is told to the function given; the line is gone at the end.
    """
    shown_at = time.monotonic() + _AFTER_S - _EVERY_S
    is_shown = False
    count = 0

    def tick(item: str) -> None:
        nonlocal count, is_shown, shown_at
        count += 1
        if time.monotonic() - shown_at > _EVERY_S and is_watched():
            shown_at, is_shown = time.monotonic(), True
            head = (
                f"{label} {count}"
                if total is None
                else f"{label} {bar(count, total)} {count}/{total}"
            )
            show_line(f"{head}: {item}")

    try:
        yield tick
    finally:
        if is_shown:
            show_line("")
