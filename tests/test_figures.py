"""Figures as files: their text alternative, their bytes, and how they stand inside a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from generator.figures.chart import Chart
from generator.figures.drawing import draw_png, draw_svg
from generator.figures.palette import PAIRS, PAPER, REST, STYLES, Style
from generator.figures.svg_text import inline, with_text_alternative
from generator.pareto.axes import axis
from generator.pareto.charts import FigureKind, chart
from generator.pareto.study import ParetoQuestion, study
from tests.synthetic_points import Deployment, synthetic_point
from tests.synthetic_study import study_points

SVG = "{http://www.w3.org/2000/svg}"


def figure(kind: FigureKind, phase: str | None = None) -> Chart:
    x, y = axis("tokens_per_s_per_user"), axis("total_tokens_per_s_per_gpu")
    return chart(study(study_points(), ParetoQuestion(x=x, y=y, phase=phase)), kind)


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()).strip() for each in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314 - our own


def test_text_alternative_says_what_is_seen() -> None:
    root = ET.fromstring(draw_svg(figure(FigureKind.FRONTIER)))  # noqa: S314 - our own
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert description.text is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert "16 of 22 points are on it, from x 17.4, y 8,316" in description.text
    assert "nothing here was measured" in description.text


def test_text_stays_text_and_says_the_origin() -> None:
    shown = texts(draw_svg(figure(FigureKind.CURVES)))
    assert "SYNTHETIC - computed from a stated model, nothing here was measured" in shown
    assert "2560" in shown
    assert "4xTP2DP4+EP + 1xTP4DP4+EP" in shown


def test_no_date_and_no_version_in_a_figure() -> None:
    svg = draw_svg(figure(FigureKind.CURVES))
    assert "metadata" not in svg
    assert "Created with" not in svg
    assert not re.search(r"20\d\d-\d\d-\d\d", svg)


def test_png_is_the_same_bytes_again() -> None:
    drawn = figure(FigureKind.PHASE, "prefill")
    assert draw_png(drawn) == draw_png(drawn)


def test_phase_figure_has_the_concurrencies_that_were_run_as_ticks() -> None:
    drawn = figure(FigureKind.PHASE, "prefill")
    assert drawn.x.is_log
    assert drawn.x.ticks == (1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert {"1", "256"} <= {*texts(draw_svg(drawn))}


def test_names_may_have_any_characters() -> None:
    drawn = figure(FigureKind.CURVES)
    series = (replace(drawn.series[0], name="$x_1$ <&> 'quoted'"), *drawn.series[1:])
    assert "$x_1$ <&> 'quoted'" in texts(draw_svg(replace(drawn, series=series)))


def test_curves_beyond_a_dozen_are_grey_and_counted() -> None:
    points = [
        synthetic_point(Deployment(configuration=f"c{i}", digest=f"{i:016x}", base_ms=5 + i), c)
        for i in range(20)
        for c in (1, 8)
    ]
    x, y = axis("tokens_per_s_per_user"), axis("total_tokens_per_s_per_gpu")
    drawn = chart(study(points, ParetoQuestion(x=x, y=y)), FigureKind.CURVES)
    assert len(drawn.series) == 13
    assert "8 others" in {series.name for series in drawn.series}
    assert any(note.startswith("12 of 20 curves are named") for note in drawn.notes)


def test_styles_differ_without_colour() -> None:
    assert len({(style.marker, style.is_hollow) for style in STYLES}) == len(STYLES)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("style", [*STYLES, REST], ids=str)
def test_labels_can_be_read(style: Style) -> None:
    """On white 4.5 to 1, the least of WCAG for small text; on a dark page too."""
    dark = dict(PAIRS)[style.text]
    assert 1.05 / (_luminance(style.text) + 0.05) >= 4.5
    assert (_luminance(dark) + 0.05) / (_luminance(PAPER[1]) + 0.05) >= 4.5


def test_two_figures_stand_in_one_page_without_a_common_name() -> None:
    svg = draw_svg(figure(FigureKind.CURVES))
    one, two = inline(svg, "a"), inline(svg, "b")
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, two)]
    assert not ids[0] & ids[1]
    for text, names in ((one, ids[0]), (two, ids[1])):
        used = re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", text)
        assert {name for pair in used for name in pair if name} <= names
    assert "var(--c-0072b2, #0072b2)" in one
    assert one.startswith("<svg ")


def test_what_is_no_svg_is_refused() -> None:
    with pytest.raises(ValueError, match="no SVG"):
        with_text_alternative("<html>", "", "")


DRAWING = """
from generator.errors import InvalidInput
try:
    from generator.figures.drawing import draw_svg
    print("draws")
except InvalidInput as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("environment", "settings", "said"),
    [
        pytest.param({"MPLBACKEND": "nonsense"}, b"", "draws", id="a backend of no name"),
        pytest.param({}, b"svg.fonttype: [", "draws", id="a setting that is none"),
        pytest.param({}, b"\xff", "look at your matplotlibrc", id="settings that are no text"),
    ],
)
def test_settings_of_others_do_not_end_in_a_traceback(
    environment: dict[str, str], settings: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / "matplotlibrc").write_bytes(settings)
    done = subprocess.run(
        [sys.executable, "-c", DRAWING],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said in done.stdout
    assert done.stderr == ""


def test_names_of_any_script_draw_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    named = replace(figure(FigureKind.CURVES), title="\u541e\u5410\u91cf \U0001f600")
    assert "\u541e\u5410\u91cf" in draw_svg(named)
    assert draw_png(named).startswith(b"\x89PNG")
    assert not recwarn.list
