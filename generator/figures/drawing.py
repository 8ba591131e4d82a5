"""Charts drawn by matplotlib: the same bytes for the same chart, for screen and paper."""

from __future__ import annotations

import io
import logging
import os
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Literal

# A font cache that is written for the first time is nothing a user has to act on.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
# Nothing opens a window here, and a backend of a name that is none would end the import.
os.environ.pop("MPLBACKEND", None)

from generator.errors import InvalidInput, Problem, one_line  # noqa: E402

try:
    import matplotlib as mpl  # it reads its settings, whatever is imported from it
except (ValueError, OSError) as error:
    raise InvalidInput(
        Problem(message=f"figures cannot be drawn: {error}", hint="look at your matplotlibrc")
    ) from error

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.axis import Axis  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator  # noqa: E402

from generator.figures.chart import AxisText, Chart, Line, Series  # noqa: E402
from generator.figures.labels import Anchor, Box, place_labels  # noqa: E402
from generator.figures.palette import (  # noqa: E402
    ALERT,
    FAINT,
    GRID,
    INK,
    PAPER,
    REST,
    STYLES,
    Style,
)
from generator.figures.svg_text import with_text_alternative  # noqa: E402

_POINTS_PER_INCH = 72
_WIDTH = 660.0
_PLOT_HEIGHT = 330.0
_LEFT, _RIGHT = 66.0, 18.0
_X_AXIS_HEIGHT = 46.0
_LEGEND_ROW, _NOTE_ROW = 17.0, 13.0
_TITLE_SIZE, _TEXT_SIZE, _TICK_SIZE, _LABEL_SIZE, _NOTE_SIZE = 14.0, 10.5, 9.5, 8.5, 8.5
_CHARACTER = 0.62  # width of a character over its size; that of the widest font in use
_MARK, _REST_MARK = 6.6, 4.2
_SCALE = {"P": 1.25, "X": 1.25}  # these look smaller than they are
_PNG_DPI = 180
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "pdrecipe",
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "text.parse_math": False,  # names may have dollar signs
    "axes.edgecolor": FAINT[0],
    "axes.labelcolor": INK[0],
    "text.color": INK[0],
}


def draw_svg(chart: Chart) -> str:
    """The chart as an SVG document, byte for byte the same for the same chart."""
    out = io.StringIO()
    with _own_settings():
        figure = Figure(dpi=_POINTS_PER_INCH)  # a pixel is a point, so that labels can be placed
        FigureCanvasSVG(figure)
        _compose(figure, chart)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing)
    title, description = one_line(chart.title), one_line(chart.description)
    return with_text_alternative(out.getvalue(), title, description)


def draw_png(chart: Chart) -> bytes:
    """The chart as a PNG image, sharp enough for slides."""
    out = io.BytesIO()
    with _own_settings():
        figure = Figure(dpi=_POINTS_PER_INCH)  # a pixel is a point, so that labels can be placed
        FigureCanvasAgg(figure)
        _compose(figure, chart)
        figure.savefig(out, format="png", dpi=_PNG_DPI, metadata={"Software": None})
    return out.getvalue()


@contextmanager
def _own_settings() -> Iterator[None]:
    """The library's defaults and ours, whatever a matplotlibrc on this machine says.

    It warns of characters that its font lacks, such as Chinese ones: readers of the SVG have fonts
    of their own, and nobody can act on it.
    """
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def _compose(figure: Figure, chart: Chart) -> None:
    """The parts of a figure from the top down; notes are last, for labels may add one."""
    named = [series for series in chart.series if series.name]
    columns = _legend_columns(named)
    rows = -(-len(named) // columns)
    title = _wrapped(chart.title, _TITLE_SIZE)
    # A line is kept for what the labels may have to say.
    notes = [line for note in chart.notes for line in _wrapped(note, _NOTE_SIZE)]
    top = 16.0 + 18.0 * len(title) + 24.0
    below = _X_AXIS_HEIGHT + rows * _LEGEND_ROW + (len(notes) + 1) * _NOTE_ROW + 10
    height = top + _PLOT_HEIGHT + below
    figure.set_size_inches(_WIDTH / _POINTS_PER_INCH, height / _POINTS_PER_INCH)
    figure.set_facecolor(PAPER[0])
    axes = figure.add_axes(
        (_LEFT / _WIDTH, below / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, _PLOT_HEIGHT / height)
    )
    _write_head(figure, chart, title, height)
    _frame_axes(axes, chart)
    for order, series in enumerate(chart.series):
        _draw_series(axes, series, order)
    missing = _label_marks(axes, chart.series)
    if named:
        _write_legend(figure, named, columns, (below - _X_AXIS_HEIGHT) / height)
    if missing:
        notes.append(f"{missing} labels left out where there was no room for them")
    y = below - _X_AXIS_HEIGHT - rows * _LEGEND_ROW - _NOTE_ROW
    for note in notes:
        figure.text(_LEFT / _WIDTH, y / height, note, size=_NOTE_SIZE, color=FAINT[0])
        y -= _NOTE_ROW


def _wrapped(text: str, size: float) -> list[str]:
    return textwrap.wrap(one_line(text), int((_WIDTH - _LEFT - _RIGHT) / (size * _CHARACTER)))


# --- what is around the plot ------------------------------------------------------------------


def _write_head(figure: Figure, chart: Chart, title: Sequence[str], height: float) -> None:
    y = height - 24
    for line in title:
        figure.text(_LEFT / _WIDTH, y / height, line, size=_TITLE_SIZE, weight="bold")
        y -= 18
    is_measured = chart.origin == "measured"
    figure.text(
        _LEFT / _WIDTH,
        (y - 1) / height,
        chart.origin,
        size=_TEXT_SIZE,
        color=FAINT[0] if is_measured else ALERT[0],
        weight="normal" if is_measured else "bold",
    )


def _legend_columns(named: Sequence[Series]) -> int:
    widest = max((len(series.name) for series in named), default=0)
    room = _WIDTH - _LEFT - _RIGHT
    return max(1, min(3, len(named), int(room / (widest * _TICK_SIZE * _CHARACTER + 44))))


def _write_legend(figure: Figure, named: Sequence[Series], columns: int, top: float) -> None:
    legend = figure.legend(
        handles=[_sample(series) for series in named],
        loc="upper left",
        bbox_to_anchor=((_LEFT - 4) / _WIDTH, top),
        ncols=columns,
        frameon=False,
        fontsize=_TICK_SIZE,
        handlelength=2.6,
        columnspacing=1.6,
        labelspacing=0.55,
        borderpad=0.0,
        borderaxespad=0.0,
    )
    for text in legend.get_texts():
        text.set_color(INK[0])


def _sample(series: Series) -> Line2D:
    sample = Line2D([], [], label=one_line(series.name))
    _look(sample, series)
    return sample


def _frame_axes(axes: Axes, chart: Chart) -> None:
    axes.set_facecolor(PAPER[0])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(visible=True, color=GRID[0], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6, labelsize=_TICK_SIZE, labelcolor=FAINT[0])
    axes.set_xlabel(chart.x.label, size=_TEXT_SIZE, labelpad=7)
    axes.set_ylabel(chart.y.label, size=_TEXT_SIZE, labelpad=9)
    marks = [mark for series in chart.series for mark in series.marks]
    x_low, x_high = _limits([mark.x for mark in marks], is_log=chart.x.is_log)
    y_low, y_high = _limits([mark.y for mark in marks], is_log=chart.y.is_log)
    axes.set_xscale("log" if chart.x.is_log else "linear")
    axes.set_yscale("log" if chart.y.is_log else "linear")
    axes.set_xlim(x_low, x_high)
    axes.set_ylim(y_low, y_high)
    _count(axes.xaxis, chart.x)
    _count(axes.yaxis, chart.y)


def _limits(values: Sequence[float], *, is_log: bool) -> tuple[float, float]:
    """From 0, so that heights compare as they look; on a log axis from a little below the least."""
    high = max(values, default=1.0) or 1.0
    if not is_log:
        return 0.0, high * 1.08
    low = min(values, default=1.0)
    margin = max(high / low, 2.0) ** 0.05
    return low / margin, high * margin


def _count(axis: Axis, text: AxisText) -> None:
    """Ticks with commas between thousands, at the given places where the chart names some."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if text.ticks:
        axis.set_major_locator(FixedLocator(text.ticks))
        axis.set_minor_locator(NullLocator())
    elif not text.is_log:
        axis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))


# --- what is in it ----------------------------------------------------------------------------


def _draw_series(axes: Axes, series: Series, order: int) -> None:
    xs, ys = [mark.x for mark in series.marks], [mark.y for mark in series.marks]
    line = Line2D(xs, ys, zorder=2.5 + order / 100)
    _look(line, series)
    axes.add_line(line)
    if series.line in _STEPS and not series.shows_marks:
        step: Literal["pre", "post"] = "pre" if series.line is Line.STEPS_TO_RIGHT else "post"
        axes.fill_between(xs, ys, step=step, color=INK[0], alpha=0.05, linewidth=0, zorder=1)


_STEPS: dict[Line, Literal["steps-pre", "steps-post"]] = {
    Line.STEPS_TO_RIGHT: "steps-pre",
    Line.STEPS_TO_LEFT: "steps-post",
}


def _style(series: Series) -> Style:
    return REST if series.style is None else STYLES[series.style % len(STYLES)]


def _look(line: Line2D, series: Series) -> None:
    """Line and marker of a series, the same in the plot and in the legend."""
    style = _style(series)
    colour = style.colour if series.shows_marks else FAINT[0]
    line.set(color=colour, linewidth=1.6 if series.shows_marks else 1.3)
    if series.line is Line.NONE:
        line.set_linestyle("none")
    elif series.line in _STEPS:
        line.set_drawstyle(_STEPS[series.line])
    elif style.dashes:
        line.set_linestyle((0, style.dashes))
    if series.shows_marks:
        line.set_marker(style.marker)
        line.set(
            markersize=_REST_MARK if series.style is None else _MARK * _SCALE.get(style.marker, 1),
            markerfacecolor=PAPER[0] if style.is_hollow else colour,
            markeredgecolor=colour if style.is_hollow else PAPER[0],
            markeredgewidth=0.0 if series.style is None else 1.3 if style.is_hollow else 0.7,
        )


def _label_marks(axes: Axes, drawn: Sequence[Series]) -> int:
    """Write the labels of marks; how many had no room."""
    anchors, texts, colours, marks = [], [], [], []
    for series in drawn:
        radius = (_REST_MARK if series.style is None else _MARK) / 2
        places = _places(axes, [(mark.x, mark.y) for mark in series.marks])
        for mark, (x, y) in zip(series.marks, places, strict=True):
            if not mark.label:
                if series.shows_marks:
                    marks.append(Box(x - radius, y - radius, x + radius, y + radius))
                continue
            width = len(mark.label) * _LABEL_SIZE * _CHARACTER
            anchors.append(Anchor(x=x, y=y, radius=radius, width=width, height=_LABEL_SIZE))
            texts.append(mark.label)
            colours.append(_style(series).text)
    lines = [box for series in drawn for box in _along(axes, series)]
    frame = Box(*axes.get_window_extent().extents)
    boxes = place_labels(anchors, marks, lines, frame)
    for text, colour, box in zip(texts, colours, boxes, strict=True):
        if box is not None:
            _write_label(axes, text, colour, box)
    return boxes.count(None)


def _write_label(axes: Axes, text: str, colour: str, box: Box) -> None:
    axes.annotate(
        text,
        ((box.left + box.right) / 2, (box.bottom + box.top) / 2),
        xycoords="figure points",
        ha="center",
        va="center",
        size=_LABEL_SIZE,
        color=colour,
        zorder=4,
    )


def _places(axes: Axes, pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Where pairs of values are on the page, in points."""
    listed = list(pairs)
    if not listed:
        return []
    return [(float(x), float(y)) for x, y in axes.transData.transform(listed)]


def _along(axes: Axes, series: Series) -> Iterator[Box]:
    """Small boxes along the line of a series, for labels to keep off."""
    if series.line is Line.NONE:
        return
    pairs = [(mark.x, mark.y) for mark in series.marks]
    if series.line is not Line.STRAIGHT:
        corners = []
        for (x, y), (next_x, next_y) in pairwise(pairs):
            is_pre = series.line is Line.STEPS_TO_RIGHT
            corners += [(x, y), (x, next_y) if is_pre else (next_x, y)]
        pairs = [*corners, *pairs[-1:]]
    for (x, y), (next_x, next_y) in pairwise(_places(axes, pairs)):
        count = int(max(abs(next_x - x), abs(next_y - y)) // 4) + 1
        for index in range(count):
            share = index / count
            at_x, at_y = x + (next_x - x) * share, y + (next_y - y) * share
            yield Box(at_x - 1, at_y - 1, at_x + 1, at_y + 1)
