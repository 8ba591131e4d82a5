"""What the terminal shows: tables, changed lines and problems, in colour only where it belongs."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import click

from generator.errors import PdrecipeError

_PROGRESS_AFTER_S = 1.0
_LEAST_WIDTH = 3
_PAGE_WIDTH = 100


def echo(text: str = "") -> None:
    """A line of the answer, on stdout; styles are dropped where NO_COLOR or a pipe says so."""
    click.echo(text, color=_colour(sys.stdout.isatty()))


def paragraph(text: str) -> None:
    """Prose of the answer, wrapped so that it can be pasted into a review."""
    echo(textwrap.fill(text, _PAGE_WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def talk(text: str) -> None:
    """A line beside the answer, on stderr."""
    click.echo(text, err=True, color=_colour(sys.stderr.isatty()))


def problem_lines(error: PdrecipeError) -> list[str]:
    """One line for each problem of an error."""
    return [f"{click.style('error', fg='red')}: {problem}" for problem in error.problems]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its columns aligned: text to the left, figures to the right."""
    body = [list(row) for row in rows]
    columns = list(zip(headers, *body, strict=True))
    widths = [max(_LEAST_WIDTH, *map(len, column)) for column in columns]
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
    return "\n".join([line(headers), f"| {' | '.join(rule)} |", *map(line, body)])


def _is_figures(cells: Iterable[str]) -> bool:
    """Whether a column holds figures, so that their last digits should align."""
    return all(cell.lstrip("-+~<")[:1].isdigit() or cell in ("", "-") for cell in cells)


def _colour(is_terminal: bool) -> bool:
    return is_terminal and not os.environ.get("NO_COLOR")


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
