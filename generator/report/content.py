"""What a page says, apart from how it looks: sections of blocks, tables of cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from generator.figures.chart import Chart
from generator.wording import plural

# A number with at most a sign, a mark of how it is known, and its spread behind it.
_FIGURE = re.compile(r"(?:[<>]= )?[-+~<]*\d[\d,.]*(?: ?%| [mca]| \+-[\d.]+%)?\Z")
_WHOLE = frozenset({"configuration", "deployment", "engine", "layout", "source", "run"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table.

    ``href`` is where its text leads, ``title`` what a pointer shows, ``id`` where links lead.
    """

    text: str
    href: str = ""
    title: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A sentence or a few; ``is_note`` for what explains a table or figure."""

    text: str
    is_note: bool = False
    is_alert: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Labels with their texts."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBlock:
    """A table. A row of two cells under more headers says in the second why it has no figures.

    ``figures`` are the columns aligned to the right, ``whole`` those whose cells never break.
    ``source`` says where its figures are from.
    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    figures: frozenset[int]
    whole: frozenset[int]
    source: str = ""
    left_out: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureBlock:
    """A chart, drawn when the page is; ``id`` is its place on the page."""

    id: str
    chart: Chart
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Lines for a shell."""

    lines: tuple[str, ...]


Block: TypeAlias = Paragraph | Facts | TableBlock | FigureBlock | Commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page; ``id`` is where links lead."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A figure of the head of the page, with what it is and where it is explained."""

    value: str
    unit: str
    meaning: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The whole page. ``is_measured`` is False where the origin must be shown loudly."""

    title: str
    lead: str
    origin: str
    is_measured: bool
    key_figures: tuple[KeyFigure, ...]
    sections: tuple[Section, ...]
    footer: str


def table_block(
    caption: str,
    content: tuple[Sequence[str], Iterable[Sequence[str | Cell]]],
    *,
    source: str = "",
    most_rows: int | None = None,
    rest_is_in: str = "",
) -> TableBlock:
    """A table of texts and cells; beyond ``most_rows`` it says how many rows are left out."""
    headers, given = content
    rows = [tuple(map(_cell, row)) for row in given]
    shown = rows if most_rows is None else rows[:most_rows]
    whole = [row for row in shown if len(row) == len(headers)]
    figures = frozenset(
        column
        for column in range(len(headers))
        if whole and all(_is_figure(row[column].text) for row in whole)
    )
    missing = len(rows) - len(shown)
    return TableBlock(
        caption=caption,
        headers=tuple(headers),
        rows=tuple(shown),
        figures=figures,
        whole=frozenset(index for index, header in enumerate(headers) if header in _WHOLE),
        source=source,
        left_out=f"{plural(missing, 'more row')} left out here; {rest_is_in}." if missing else "",
    )


def _cell(value: str | Cell) -> Cell:
    return value if isinstance(value, Cell) else Cell(text=value)


def _is_figure(text: str) -> bool:
    return text in ("", "-") or _FIGURE.match(text) is not None
