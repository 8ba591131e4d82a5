"""The page: what it tells, where its figures are from, and what a real browser makes of it."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from generator.cli.main import main
from generator.report.inputs import recipes_below
from generator.results.point import (
    Accuracy,
    Goodput,
    Invalidity,
    Latencies,
    MeasuredPoint,
    Origin,
)
from generator.results.point_file import write_points
from tests.browser.chromium import look_at, printed, screenshot, why_not
from tests.synthetic_points import Deployment, synthetic_point
from tests.synthetic_study import decode_points, prefill_points, serving_points, study_points

SPEC = "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
MODELS = Path(__file__).resolve().parent.parent / "recipes/models"
SECTIONS = [
    *("model", "memory", "capacity", "prefill", "decode", "curves", "frontier", "accuracy"),
    *("invalid", "contract", "recipes", "reproduce", "files"),
]


def written(folder: Path, points: list[MeasuredPoint], *options: str) -> Any:
    write_points(folder / "results.jsonl", points)
    spec = Path(__file__).resolve().parent.parent / SPEC
    arguments = ["report", folder / "results.jsonl", spec, "--out", folder / "page.html", *options]
    return CliRunner().invoke(main, list(map(str, arguments)))


def page_of(folder: Path, points: list[MeasuredPoint], *options: str) -> str:
    done = written(folder, points, *options)
    assert done.exit_code == 0, done.stderr
    return (folder / "page.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def study_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(tmp_path_factory.mktemp("report"), study_points())


def test_sections_in_the_order_of_the_article(study_page: str) -> None:
    assert re.findall(r'<section id="([^"]+)"', study_page) == SECTIONS


TOLD = {
    "the model": "92: 69 GDN, 23 full attention, 92 MoE",
    "the engine that ran, not the release its rules are from": "vllm 0.26.1rc1.dev1177+ga9a17e709",
    "weights of a rank": "169.22",
    "run 1 of the article": "83.01 c",
    "a block size": "2176",
    "a study's ladder": "<td>KV cache</td>",
    "the layout that cannot be placed": "one replica takes TP1 x PP6 = 6 GPUs",
    "requests of a decode engine": "2,867.50",
    "the best total throughput": "<strong>8,316</strong>",
    "the best interactivity": "<strong>188</strong>",
    "the best at 150": "&gt;= 150",
    "the area": "Area under the frontier, in steps, for x from 17.4 to 188: 436,566",
    "the missing accuracy": "No accuracy run is among the results",
    "an invalid point": "9.1 % of the requests failed",
    "what was held fixed": "vllm/vllm-openai:nightly-a9a17e7",
    "the version": "by pdrecipe 0.1.0",
    "a command": "pdrecipe collect RUNS...",
    "a digest of the spec's recipes": "d0b160a6b1d8322e",
    "a digest without a file": "no such file",
    "the origin": "SYNTHETIC - computed from a stated model, nothing here was measured",
    "repeated runs": "3 +-1.7%",
}


@pytest.mark.parametrize("text", TOLD.values(), ids=TOLD)
def test_it_tells(study_page: str, text: str) -> None:
    assert text in study_page


class Rows(HTMLParser):
    """The cells of the tables of a section, row by row."""

    def __init__(self, page: str, section: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self._is_cell = False
        start = page.index(f'<section id="{section}"')
        self.feed(page[start : page.index("</section>", start)])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")
            self._is_cell = True
        if tag == "a":
            self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        self._is_cell &= tag != "td"

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.rows[-1][-1] += data.strip()


def test_every_point_leads_to_its_run_and_that_to_a_file(study_page: str) -> None:
    frontier, files = Rows(study_page, "frontier"), Rows(study_page, "files")
    named = {row[0]: row for row in files.rows if row}
    sources = [row[-1] for row in frontier.rows if len(row) == 7]
    assert len(sources) == 16
    assert "runs 12-14" in sources
    for source in sources:
        numbers = list(map(int, re.findall(r"\d+", source)))
        for number in range(numbers[0], numbers[-1] + 1):
            assert named[f"run {number}"][1].startswith("runs/")
            assert named[f"run {number}"][2] == "synthetic"


def test_sources_and_recipes_are_linked_where_they_are_files(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/a b.json").write_text("{}")
    sources = {"figures": "runs/a b.json", "gpus": "runs/none.yaml"}
    points = [replace(point, sources=sources) for point in serving_points()]
    page = page_of(tmp_path, points)
    assert "runs/a%20b.json" in Rows(page, "files").links
    assert "runs/none.yaml" not in Rows(page, "files").links
    for link in Rows(page, "recipes").links:
        assert (tmp_path / link).is_file()


def test_each_concurrency_leads_to_its_own_file(tmp_path: Path) -> None:
    """A run has a report for each load; a score is of several files, each with a link."""
    scores = [f"accuracy/gsm8k_run{number}.json" for number in (0, 1)]
    for name in ("c8.json", "c16.json", "config.yaml", *scores):
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / name).write_text("{}")
    points = [
        replace(
            synthetic_point(Deployment(configuration="c"), load, run="."),
            folder="runs",
            sources={
                "figures": f"c{load}.json",
                "gpus": "config.yaml",
                "accuracy": ", ".join(scores),
            },
        )
        for load in (8, 16)
    ]
    files = Rows(page_of(tmp_path, points), "files")
    assert [row[2:] for row in files.rows if row] == [
        ["c8.json", "figures at 8"],
        ["config.yaml", "gpus"],
        [scores[0], "accuracy"],
        [scores[1], "accuracy"],
        ["c16.json", "figures at 16"],
    ]
    assert files.links == [
        f"runs/{name}" for name in ("c8.json", "config.yaml", *scores, "c16.json")
    ]


@pytest.mark.parametrize("page_name", ["pages/report.html", "pages/frontier.html"])
def test_from_a_folder_of_runs_every_point_has_a_link_to_its_report(
    tmp_path: Path, page_name: str
) -> None:
    """By the commands alone: collect says where the runs are, so that pages can link them."""
    repository = Path(__file__).resolve().parent.parent
    shutil.copytree(repository / "tests/data/runs", tmp_path / "runs")
    results, page = tmp_path / "results.jsonl", tmp_path / page_name
    commands = [["collect", tmp_path / "runs", "--origin", "synthetic", "--out", results]]
    if "report" in page_name:
        commands.append(["report", results, repository / SPEC, "--out", page])
    else:
        commands.append(["pareto", results, "--out", page])
    for command in commands:
        done = CliRunner().invoke(main, list(map(str, command)))
        assert done.exit_code == 0, done.stderr
    links = Rows(page.read_text("utf-8"), "files").links
    assert all((page.parent / link).is_file() for link in links)
    reports = sorted((tmp_path / "runs").rglob("results_*.json"))
    invalid = [] if "report" in page_name else ["results_concurrency_1024_gpus_0_ctx_0_gen_0.json"]
    linked = {(page.parent / link).resolve() for link in links}
    assert [each.name for each in reports if each.resolve() not in linked] == invalid


@pytest.mark.parametrize("name", ["report.html", "frontier.html"])
def test_results_without_their_runs_beside_them_are_told_of(tmp_path: Path, name: str) -> None:
    """A page whose figures lead nowhere looks like any other one."""
    repository = Path(__file__).resolve().parent.parent
    shutil.copytree(repository / "tests/data/runs", tmp_path / "here/runs")
    results, page = tmp_path / "here/results.jsonl", tmp_path / name
    collect = ["collect", tmp_path / "here/runs", "--origin", "synthetic", "--out", results]
    write = ["report", repository / SPEC] if "report" in name else ["pareto"]

    def warned(results: Path) -> str:
        done = CliRunner().invoke(main, [*map(str, (write[0], results, *write[1:], "--out", page))])
        assert done.exit_code == 0, done.stderr
        return done.stderr.partition("wrote")[0]

    assert CliRunner().invoke(main, list(map(str, collect))).exit_code == 0
    assert warned(results) == ""
    assert "without a link" not in page.read_text("utf-8")
    (tmp_path / "there").mkdir()
    moved = results.rename(tmp_path / "there/results.jsonl")
    # Five recipes and seven reports; no page of the frontier has the invalid point and its recipe.
    count = 12 if "report" in name else 10
    assert f"warning: {count} of {count} source files not found below runs, beside" in warned(moved)
    assert f"{count} names without a link" in page.read_text("utf-8")


def test_results_of_one_folder_link_to_its_runs(tmp_path: Path) -> None:
    """Several files of results, and the page in another folder than they are."""
    repository = Path(__file__).resolve().parent.parent
    shutil.copytree(repository / "tests/data/runs", tmp_path / "runs")
    for name in ("9001", "9002"):
        command = ["collect", tmp_path / "runs" / name, "--origin", "synthetic"]
        command += ["--out", tmp_path / f"{name}.jsonl"]
        assert CliRunner().invoke(main, list(map(str, command))).exit_code == 0
    page = tmp_path / "pages/frontier.html"
    command = ["pareto", tmp_path / "9001.jsonl", tmp_path / "9002.jsonl", "--out", page]
    assert CliRunner().invoke(main, list(map(str, command))).exit_code == 0
    links = Rows(page.read_text("utf-8"), "files").links
    assert len(links) == 6
    assert all((page.parent / link).is_file() for link in links)


def test_results_of_recipes_that_changed_since_are_told_of(tmp_path: Path) -> None:
    name = "qwen38-2.4t-nvfp4-gb300-disagg-1xtp2dep4-1xtp4dep4-mtp-cc128"
    told = f"2 results of recipes that changed since: {name}; their files have other digests."
    points = [
        replace(point, subject=replace(point.subject, recipe=name))
        for point in list(serving_points())[:2]
    ]
    assert told in page_of(tmp_path, points)
    folder = Path(__file__).resolve().parent.parent / "recipes/qwen3.8-2.4t"
    (ran, *_) = (each.digest for each in recipes_below(folder, tmp_path) if each.name == name)
    points = [
        replace(point, subject=replace(point.subject, recipe=name, digest=ran)) for point in points
    ]
    assert "changed since, whose" not in page_of(tmp_path, points)


def test_before_any_layout_is_chosen(tmp_path: Path) -> None:
    """The first step of the method: a spec of studies alone, and the results of its phases."""
    text = (Path(__file__).resolve().parent.parent / SPEC).read_text("utf-8")
    parts = re.split(r"(?m)^(?=[a-z_]+:)", text.replace("../models", str(MODELS)))
    spec = tmp_path / "spec.yaml"
    chosen = ("groups", "accuracy", "probe", "output")
    spec.write_text("".join(part for part in parts if not part.startswith(chosen)))
    write_points(tmp_path / "results.jsonl", [*prefill_points(), *decode_points()])
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        main, ["report", str(tmp_path / "results.jsonl"), str(spec), "--out", str(page)]
    )
    assert done.exit_code == 0, done.stderr
    sections = re.findall(r'<section id="([^"]+)"', page.read_text("utf-8"))
    assert sections == [each for each in SECTIONS if each not in ("curves", "frontier")]
    studies = [row for row in Rows(page.read_text("utf-8"), "capacity").rows if "slots" in row]
    assert studies[0] == ["P TP4DP2+EP", "8", "64", "496.57", "1", "64", "slots"]


def test_where_memory_terms_are_from(study_page: str) -> None:
    assert (
        "Measured terms are from: GB300 NVL72 Qwen3.8-2.4T article, memory and CUDA-graph tables;"
        in study_page
    )


def test_how_to_make_this_very_page(tmp_path: Path) -> None:
    profile = Path(__file__).parent.parent / "generator/data/measured/qwen3.8-2.4t-gb300.yaml"
    page = page_of(tmp_path, list(serving_points()), "--mix", "--profile", str(profile))
    command = f"--profile {profile} --mix --out {tmp_path / 'page.html'}"
    assert command in page
    assert f"pdrecipe collect RUNS... --origin synthetic --out {tmp_path}" in page
    assert f"Measured memory terms: {profile}, else those that come with" in page


def test_results_of_another_model_are_said_to_be(tmp_path: Path, study_page: str) -> None:
    points = [
        replace(point, contract={**point.contract, "model.path": "hf:org/other"})
        for point in serving_points()
    ]
    said = "The spec is of model.path hf:Inferact/Qwen3.8-2.4T-A95B-NVFP4, results are of"
    assert f"{said} hf:org/other (25 points)." in page_of(tmp_path, points)
    assert said not in study_page


def test_points_without_an_axis_still_make_a_page(tmp_path: Path) -> None:
    points = [replace(point, latencies=Latencies()) for point in serving_points()]
    page = page_of(tmp_path, points)
    assert "No curve and no frontier: no median TPOT in 24 valid points." in page
    assert '<section id="frontier"' not in page


@pytest.mark.parametrize(
    "name",
    ["x" * 5000, "bell\x07", "a\udcffb", "模型", "nul\x00"],
    ids=["long", "control", "no text", "no glyph", "no path"],
)
def test_names_that_no_page_or_path_can_hold(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    points = [
        replace(
            synthetic_point(Deployment(configuration=name), load, run=name),
            sources={"figures": name, "accuracy": name},
        )
        for load in (1, 2)
    ]
    page = page_of(tmp_path, points)
    assert not re.search(r"[\x00-\x08\x7f-\x9f\ud800-\udfff]", page)
    assert "Glyph" not in capfd.readouterr().err


def test_one_file_without_a_script_or_anything_to_fetch(study_page: str) -> None:
    assert "<script" not in study_page
    assert not re.search(r'(?:src|action|data|poster)="', study_page)
    assert not re.search(r'<link (?!rel="icon" href="data:,")', study_page)
    assert "@import" not in study_page
    assert not re.search(r"url\((?!#)", study_page)


def test_the_same_page_again(tmp_path: Path, study_page: str) -> None:
    page = page_of(tmp_path, study_points())
    place = re.compile(r"[^\s\"'(]*/(?:results\.jsonl|page\.html)|(?:\.\./)+")
    assert place.sub("", page) == place.sub("", study_page)


def test_what_files_say_is_escaped(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\"'&"
    points = [
        synthetic_point(
            Deployment(configuration=hostile), load, run=hostile, sources={hostile: hostile}
        )
        for load in (1, 2)
    ]
    page = page_of(tmp_path, [*points, replace(points[0], invalid=(_invalid(hostile),), run="x")])
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


def _invalid(text: str) -> Invalidity:
    return Invalidity(code=text, message=text)


def test_accuracy_and_goodput_have_their_places(tmp_path: Path) -> None:
    points = [
        replace(
            point,
            accuracy=Accuracy(benchmark="gsm8k", score=0.951, threshold=0.94),
            goodput=Goodput(ttft_ms=250, max_gap_ms=50, requests_per_s=1, tokens_per_s=900),
        )
        for point in serving_points()
    ]
    page = page_of(tmp_path, points)
    options = "--origin synthetic --min-accuracy 0.94 --ttft-ms 250 --max-gap-ms 50 --out"
    assert f"pdrecipe collect RUNS... {options}" in page
    assert ["gsm8k", "95.1%", "94.0%"] in [row[1:4] for row in Rows(page, "accuracy").rows]
    assert '<section id="goodput"' in page


def test_measured_pages_are_not_loud(tmp_path: Path) -> None:
    points = [replace(point, origin=Origin.MEASURED) for point in serving_points()]
    page = page_of(tmp_path, points)
    assert 'class="origin">measured<' in page
    assert "SYNTHETIC" not in page
    rehearsed = [replace(point, origin=Origin.REHEARSAL) for point in serving_points()]
    assert "REHEARSAL - simulated engines" in page_of(tmp_path, rehearsed)


def test_long_tables_say_what_they_leave_out(tmp_path: Path) -> None:
    points = [
        synthetic_point(
            Deployment(configuration=f"c{number}", digest=f"{number:016x}", base_ms=5 + number),
            load,
        )
        for number in range(120)
        for load in (1, 8)
    ]
    page = page_of(tmp_path, points)
    assert "180 more rows left out here; all are in" in page
    assert len([row for row in Rows(page, "files").rows if row and row[0]]) == 100
    assert "Left out: 20 runs whose points no table above shows" in page
    # All recipes of the spec are there; those of results without a file are cut.
    recipes = [row for row in Rows(page, "recipes").rows if row]
    files = [row for row in recipes if row[1] != "no such file"]
    spec_recipes = Path(__file__).parent.parent / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm"
    assert len(files) == len(list(spec_recipes.rglob("*.yaml"))) > 60
    assert len(recipes) - len(files) == 60


def test_contracts_do_not_mix_unless_told_to(tmp_path: Path) -> None:
    points = list(serving_points())
    points[0] = replace(points[0], contract={**points[0].contract, "vllm.version": "0.27"})
    done = written(tmp_path, points)
    assert done.exit_code == 3
    assert "runs of different contracts, vllm.version: not stated (23), 0.27 (1)" in done.stderr
    assert "MIXED: these runs do not share one contract, vllm.version" in page_of(
        tmp_path, points, "--mix"
    )


def test_no_results(tmp_path: Path) -> None:
    done = written(tmp_path, [])
    assert done.exit_code == 3
    assert "there are no results in it" in done.stderr


def test_only_invalid_results_still_make_a_page(tmp_path: Path) -> None:
    points = [replace(point, invalid=(_invalid("x"),)) for point in serving_points()]
    page = page_of(tmp_path, points)
    assert '<section id="frontier"' not in page
    assert "25 of 25 points stand on no frontier" in page


# --- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_a_browser_shows_it_whole(study_page: str, tmp_path: Path) -> None:
    """At the widths of a phone, a tablet and a desk: nothing overflows, nothing is fetched."""
    look = look_at(study_page, (360, 820, 1440), tmp_path)
    assert look.console == []
    assert set(look.requested) == {"/", "/page.html"}
    for width in ("360", "820", "1440"):
        seen = look.seen[width]
        assert seen["page"] <= int(width)
        assert seen["wide"] == []
        assert seen["broken"] == seen["twice"] == seen["alike"] == []
        assert seen["headings"] == ["H1", *["H2"] * len(SECTIONS)]
        assert len(seen["figures"]) == 4
        assert all("nothing here was measured" in text for text in seen["figures"])


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_it_can_be_seen_and_printed(study_page: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(study_page, encoding="utf-8")
    for size in ((500, 900), (1440, 1000)):
        picture = screenshot(page, size, tmp_path / "profile", out=tmp_path / "page.png")
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 20_000  # a blank page is far smaller
    pdf = printed(page, tmp_path / "profile", out=tmp_path / "page.pdf")
    assert pdf.startswith(b"%PDF")
