"""Colours that the colour-blind can tell apart, each with a marker of its own.

The colours follow Okabe and Ito (2008), without yellow and darker where text on white needs it,
and with two dark ones more; on a dark page lighter ones of the same hue take their places.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a series looks on white, on a dark page, and without colour.

    ``text`` is the colour on white of labels, which need more contrast than marks: 4.5 to 1.
    """

    colour: str
    dark: str
    text: str
    marker: str
    dashes: tuple[float, ...] = ()
    is_hollow: bool = False


_COLOURS = (
    ("#0072b2", "#4aa8e0", "#0072b2"),  # blue
    ("#d55e00", "#ff8a3d", "#b85100"),  # vermilion
    ("#009e73", "#2fc79b", "#008560"),  # bluish green
    ("#aa4499", "#e08ad0", "#aa4499"),  # purple
    ("#b07d00", "#e6b422", "#946900"),  # ochre
    ("#3a9ad9", "#8fd0f7", "#1d78b5"),  # sky blue
    ("#882255", "#d66a9c", "#882255"),  # wine
    ("#555b66", "#b3bac5", "#555b66"),  # slate
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2))

STYLES = tuple(
    Style(colour=colour, dark=dark, text=text, marker=marker, dashes=dashes, is_hollow=bool(dashes))
    for dashes in _DASHES
    for (colour, dark, text), marker in zip(_COLOURS, _MARKERS, strict=True)
)

INK = ("#1f2430", "#e6e9ef")
FAINT = ("#5c6470", "#a3acb9")
GRID = ("#e4e7ec", "#343b46")
PAPER = ("#ffffff", "#14181f")
ALERT = ("#a33a00", "#ffb070")

REST = Style(colour="#b8bec8", dark="#5a626e", text=FAINT[0], marker="o")

PAIRS = tuple(
    dict.fromkeys(
        (
            *(INK, FAINT, GRID, PAPER, ALERT, (REST.colour, REST.dark)),
            *((light, dark) for colour, dark, text in _COLOURS for light in (colour, text)),
        )
    )
)
"""Every colour of a figure with the one that stands for it on a dark page."""
