"""What the terminal shows: tables, changed lines and problems, in colour only where it belongs."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import click

from generator.errors import PdrecipeError

_PROGRESS_AFTER_S = 1.0
_LEAST_WIDTH = 3
_PAGE_WIDTH = 100


def echo(text: str = "") -> None:
    """A line of the answer, on stdout; styles are dropped where NO_COLOR or a pipe says so."""
    click.echo(text, color=_colour(sys.stdout))


def paragraph(text: str) -> None:
    """Prose of the answer, wrapped so that it can be pasted into a review."""
    echo(textwrap.fill(text, _PAGE_WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """Labels with their texts beside them, wrapped to the page."""
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0) + 2
    return "\n".join(
        textwrap.fill(
            text,
            _PAGE_WIDTH,
            initial_indent=label.ljust(width),
            subsequent_indent=" " * width,
            break_on_hyphens=False,
        )
        for label, text in listed
    )


def talk(text: str) -> None:
    """A line beside the answer, on stderr."""
    click.echo(text, err=True, color=_colour(sys.stderr))


def problem_lines(error: PdrecipeError) -> list[str]:
    """One line for each problem of an error."""
    return [f"{click.style('error', fg='red')}: {problem}" for problem in error.problems]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its columns aligned: text to the left, figures to the right.

    A row of two cells under more headers says why it has no figures: its text takes the rest of
    the line, wrapped.
    """
    body = [list(row) for row in rows]
    whole = [row for row in body if len(row) == len(headers)]
    columns = list(zip(headers, *whole, strict=True))
    widths = [max(_LEAST_WIDTH, *map(len, column)) for column in columns]
    widths[0] = max(_LEAST_WIDTH, len(headers[0]), *(len(row[0]) for row in body))
    is_figure = [_is_figures(column[1:]) for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, is_figure, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        f"{'-' * (width - 1)}{':' if right else '-'}"
        for width, right in zip(widths, is_figure, strict=True)
    )
    lines = [line(headers), f"| {' | '.join(rule)} |"]
    for row in body:
        lines += [line(row)] if len(row) == len(headers) else _reason_lines(row, widths)
    return "\n".join(lines)


def _reason_lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A name and a text across all columns but the first."""
    name, reason = row
    rest = sum(widths[1:]) + len(" | ") * (len(widths) - 2)
    for text in textwrap.wrap(reason, rest, break_on_hyphens=False):
        yield f"| {name.ljust(widths[0])} | {text.ljust(rest)} |"
        name = ""


def _is_figures(cells: Iterable[str]) -> bool:
    """Whether a column holds figures, so that their last digits should align."""
    return all(cell.lstrip("-+~<")[:1].isdigit() or cell in ("", "-") for cell in cells)


def _colour(stream: TextIO | None) -> bool:
    """Whether to style what goes there; a stream is None where the shell closed it (``>&-``)."""
    return stream is not None and stream.isatty() and not os.environ.get("NO_COLOR")


@contextmanager
def progress(label: str) -> Iterator[Callable[[str], None]]:
    """A running count on stderr for work over a second; silent where nobody watches."""
    started = time.monotonic()
    count = 0

    def tick(item: str) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty() and time.monotonic() - started > _PROGRESS_AFTER_S:
            click.echo(f"\r\x1b[K{label} {count}: {item[:60]}", err=True, nl=False)

    yield tick
    if sys.stderr.isatty() and time.monotonic() - started > _PROGRESS_AFTER_S:
        click.echo("\r\x1b[K", err=True, nl=False)
