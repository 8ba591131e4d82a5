"""SVG of a figure: its text alternative, and the form in which it stands inside a page."""

from __future__ import annotations

import re
from html import escape

from generator.figures.palette import PAIRS

_OPENING = re.compile(r"<svg [^>]*>")
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_PROLOGUE = re.compile(r"\A.*?(?=<svg )", re.DOTALL)
_FONT = re.compile(r"font: (?:(?P<weight>bold|[0-9]{3}) )?(?P<size>[0-9.]+px)[^;\"]*")
_FAMILY = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_SIZE = re.compile(r"(<svg [^>]*?)\bwidth=\"[^\"]*\"")
_HEIGHT = re.compile(r"(<svg [^>]*?)\bheight=\"[^\"]*\"")


def with_text_alternative(svg: str, title: str, description: str) -> str:
    """The SVG with a title and a description, which screen readers speak, and without metadata."""
    svg = _METADATA.sub("", svg, count=1)
    svg = _FONT.sub(_neutral_font, svg)
    opening = _OPENING.search(svg)
    if opening is None:
        raise ValueError("this is no SVG")
    labelled = opening[0].replace(
        "<svg ", '<svg role="img" aria-labelledby="figure-title figure-description" ', 1
    )
    words = (
        f'\n <title id="figure-title">{escape(title)}</title>'
        f'\n <desc id="figure-description">{escape(description)}</desc>'
    )
    return svg[: opening.start()] + labelled + words + svg[opening.end() :]


def _neutral_font(match: re.Match[str]) -> str:
    """Text in the reader's own sans-serif; the drawing's is wider than all of these."""
    weight = f"{match['weight']} " if match["weight"] else ""
    return f"font: {weight}{match['size']} {_FAMILY}"


def inline(svg: str, prefix: str) -> str:
    """The SVG element alone, for a page with several: names of its own, colours by the page.

    Each colour becomes a variable ``--c-<hex>`` that a page may set, with itself to fall back on.
    """
    body = _PROLOGUE.sub("", svg, count=1)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'href="#', f'href="#{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    body = re.sub(
        r'aria-labelledby="(\S+) (\S+)"', rf'aria-labelledby="{prefix}-\1 {prefix}-\2"', body
    )
    for light, _ in PAIRS:
        body = body.replace(light, f"var(--c-{light[1:]}, {light})")
    body = _SIZE.sub(r'\1width="100%"', body, count=1)
    return _HEIGHT.sub(r"\1", body, count=1).strip() + "\n"
