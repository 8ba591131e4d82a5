"""Colours that the colour-blind can tell apart, each with a marker of its own.

The colours follow Okabe and Ito (2008), without yellow and darker where text on white needs it,
and with two dark ones more; on a dark page lighter ones of the same hue take their places.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a series looks on white, on a dark page, and without colour."""

    colour: str
    dark: str
    marker: str
    dashes: tuple[float, ...] = ()
    is_hollow: bool = False


_COLOURS = (
    ("#0072b2", "#4aa8e0"),  # blue
    ("#d55e00", "#ff8a3d"),  # vermilion
    ("#009e73", "#2fc79b"),  # bluish green
    ("#aa4499", "#e08ad0"),  # purple
    ("#b07d00", "#e6b422"),  # ochre
    ("#3a9ad9", "#8fd0f7"),  # sky blue
    ("#882255", "#d66a9c"),  # wine
    ("#555b66", "#b3bac5"),  # slate
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2))

STYLES = tuple(
    Style(colour=colour, dark=dark, marker=marker, dashes=dashes, is_hollow=bool(dashes))
    for dashes in _DASHES
    for (colour, dark), marker in zip(_COLOURS, _MARKERS, strict=True)
)
REST = Style(colour="#b8bec8", dark="#5a626e", marker="o")

INK = ("#1f2430", "#e6e9ef")
FAINT = ("#5c6470", "#a3acb9")
GRID = ("#e4e7ec", "#343b46")
PAPER = ("#ffffff", "#14181f")
ALERT = ("#a33a00", "#ffb070")

PAIRS = (INK, FAINT, GRID, PAPER, ALERT, (REST.colour, REST.dark), *_COLOURS)
"""Every colour of a figure with the one that stands for it on a dark page."""
