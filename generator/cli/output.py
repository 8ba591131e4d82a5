"""What the terminal shows: tables, changed lines and problems, in colour only where it belongs."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

import click

from generator.errors import InvalidInput, PdrecipeError, Problem, one_line

_LEAST_WIDTH = 3
_PAGE_WIDTH = 100
_LEAST_TEXT_WIDTH = 12
_FIGURE = re.compile(r"[-+~<]*\d[\d,.]*(?:[ %]|\Z)")  # "83.00 kept", not the name "2xtp4"
# Where a cell may be cut: behind a space, inside names behind what joins their parts, and between
# the numbers of 1x2x4, which would otherwise be cut into others.
_BREAKS = re.compile(r"(?<=[ /_-])(?=[^ /_-])|(?<=\dx)(?=\d)")


def echo(text: str = "") -> None:
    """A line of the answer, on stdout; styles are dropped where NO_COLOR or a pipe says so.

    Raises InvalidInput where stdout takes no more, as on a full disk; BrokenPipeError where nobody
    reads it any more.
    """
    if sys.stdout is None:  # closed by the shell: nobody asked for the answer
        return
    try:
        click.echo(text, color=_colour(sys.stdout))
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = nowhere()
        raise InvalidInput(
            Problem(message=f"the answer cannot be written: {(error.strerror or '').lower()}")
        ) from None


def nowhere() -> TextIO:
    """What replaces a stream that takes no more.

    Otherwise what is buffered would fail again, and as a traceback, when Python closes it.
    """
    return Path(os.devnull).open("w", encoding="utf-8")


def paragraph(text: str) -> None:
    """Prose of the answer, wrapped so that it can be pasted into a review."""
    echo(_filled(text, "", "  "))


def _filled(text: str, first: str, others: str) -> str:
    """A text in lines of the page, their indents given; control characters are escaped."""
    return textwrap.fill(
        one_line(" ".join(text.splitlines())),
        _PAGE_WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
    )


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """Labels with their texts beside them, wrapped to the page."""
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0) + 2
    return "\n".join(
        _filled(text, one_line(label).ljust(width), " " * width) for label, text in listed
    )


def talk(text: str) -> None:
    """A line beside the answer, on stderr."""
    click.echo(text, err=True, color=_colour(sys.stderr))


def warn(message: object) -> None:
    """What a user should know of and may go on in spite of, on stderr."""
    talk(f"{click.style('warning', fg='yellow')}: {message}")


def problem_lines(error: PdrecipeError) -> list[str]:
    """One line for each problem of an error."""
    return [f"{click.style('error', fg='red')}: {problem}" for problem in error.problems]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], unbroken: int = 0) -> str:
    """A Markdown table, its columns aligned: text to the left, figures to the right.

    A row of two cells under more headers says why it has no figures: its text takes the rest of
    the line, wrapped. Where the page is too narrow, the widest texts are wrapped; figures never,
    nor the first ``unbroken`` columns, whose texts are for pasting. Control characters are escaped:
    names come from other people's files.
    """
    body = [list(map(one_line, row)) for row in rows]
    whole = [row for row in body if len(row) == len(headers)]
    columns = list(zip(headers, *whole, strict=True))
    widths = [max(_LEAST_WIDTH, *map(len, column)) for column in columns]
    widths[0] = max(_LEAST_WIDTH, len(headers[0]), *(len(row[0]) for row in body))
    is_figure = [_is_figures(column[1:]) for column in columns]
    narrowest = [
        width if right or place < unbroken else min(width, max(_LEAST_TEXT_WIDTH, len(header)))
        for place, (header, width, right) in enumerate(zip(headers, widths, is_figure, strict=True))
    ]
    widths = _within_page(widths, narrowest)

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
        if len(row) == len(headers):
            lines += map(line, _wrapped(row, widths))
        else:
            lines += _reason_lines(row, widths)
    return "\n".join(lines)


def _within_page(widths: Sequence[int], narrowest: Sequence[int]) -> list[int]:
    """Column widths that fit the page, the widest reduced first, none below its narrowest."""
    fitting = list(widths)
    excess = sum(fitting) + len(" | ") * (len(fitting) - 1) + len("|  |") - _PAGE_WIDTH
    for _ in range(excess):
        wide = [index for index, width in enumerate(fitting) if width > narrowest[index]]
        if not wide:
            break
        fitting[max(wide, key=fitting.__getitem__)] -= 1
    return fitting


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """A row as the lines it takes; a long name breaks after what joins its parts."""
    cells = [_cell_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    yield from zip_longest(*cells, fillvalue="")


def _cell_lines(cell: str, width: int) -> list[str]:
    lines = [""]
    for part in _BREAKS.split(cell):
        if len(lines[-1] + part.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


def _reason_lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A name and a text across all columns but the first."""
    name, reason = row
    rest = sum(widths[1:]) + len(" | ") * (len(widths) - 2)
    for text in textwrap.wrap(reason, rest, break_on_hyphens=False):
        yield f"| {name.ljust(widths[0])} | {text.ljust(rest)} |"
        name = ""


def _is_figures(cells: Iterable[str]) -> bool:
    """Whether a column holds figures, so that their last digits should align."""
    return all(_FIGURE.match(cell) or cell in ("", "-") for cell in cells)


def _colour(stream: TextIO | None) -> bool:
    """Whether to style what goes there; a stream is None where the shell closed it (``>&-``)."""
    return stream is not None and stream.isatty() and not os.environ.get("NO_COLOR")
