"""The page as HTML: one file without any other, its figures drawn into it."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from generator.assets import asset_root
from generator.figures.chart import Chart
from generator.figures.drawing import draw_svg
from generator.figures.palette import PAIRS
from generator.figures.svg_text import inline
from generator.report.content import (
    Commands,
    Facts,
    FigureBlock,
    Page,
    Paragraph,
    TableBlock,
)

_TEMPLATE = "report/page.html.j2"
# Control characters, and bytes of file names that are no text: no document may hold them.
_NOT_IN_HTML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_KINDS = {
    Paragraph: "paragraph",
    Facts: "facts",
    TableBlock: "table",
    FigureBlock: "figure",
    Commands: "commands",
}


def render_page(page: Page) -> str:
    """The HTML of a page; the same text for the same page. Whatever a file said is escaped."""
    text = _environment().get_template(_TEMPLATE).render(page=page, colours=PAIRS)
    return _NOT_IN_HTML.sub("\ufffd", text)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(asset_root() / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    environment.tests["of_kind"] = lambda block, kind: _KINDS[type(block)] == kind
    environment.filters["drawn"] = _drawn
    return environment


def _drawn(chart: Chart, name: str) -> Markup:
    """The figure as SVG: our own drawing, its texts escaped there."""
    return Markup(inline(draw_svg(chart), name))  # noqa: S704
