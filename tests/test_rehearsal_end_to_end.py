"""The whole way with nothing in a program's place: Slurm, Dynamo, AIPerf, figures, a page.

`make e2e` runs these.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.results.point import Origin
from generator.results.point_file import read_points
from tests.rack.fixture import RunningRack
from tests.rack_sweeps import known_jobs, watch
from tests.small_specs import run
from tests.started_processes import networks, networks_of, processes_in, until

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
CC2560 = "4xtp2dep4-1xtp4dep4-cc2560.yaml"
SWEPT = "*dep4-*.yaml"
LOADS = [32, 64, 128, 256, 512, 1024, 2560]
SCALE = "32"  # one for all, so that points can be compared
TOLERANCE = 0.25
"""What two rehearsals of a recipe may differ by in throughput on a machine with other work."""


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the article's deployments as the spec gives them."""
    folder = tmp_path_factory.mktemp("recipes")
    result = run("generate", str(SPEC), "--out", str(folder))
    assert result.exit_code == 0, result.output
    return folder


def rehearsed(recipe: Path, out: str, *loads: str) -> dict[str, Any]:
    """The JSON document of a rehearsal, of the recipe's own loads where none are named."""
    asked = ["--concurrency", ",".join(loads)] if loads else []
    result = run("rehearse", str(recipe), "--out", out, *asked, "--json")
    assert result.exit_code in (0, 10), result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.parametrize(
    "model", ["nvidia--MiniMax-M2.5-NVFP4", "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"]
)
@pytest.mark.usefixtures("rehearsal_cache")
def test_a_planned_deployment_takes_its_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Plan, generate, check and rehearse one after the other, and nothing edited in between."""
    monkeypatch.chdir(tmp_path)
    rack = ["--gpu", "gb300", "--nodes", "2", "--isl", "2048", "--osl", "256", "--top", "2"]
    for words in (
        [
            "plan",
            "--model",
            str(ROOT / "generator/data/models" / model),
            *rack,
            "--write",
            "s.yaml",
        ],
        ["generate", "s.yaml", "--out", "recipes"],
        ["check", "recipes"],
    ):
        result = run(*words)
        assert result.exit_code == 0, result.output
    recipe, *_ = sorted(Path("recipes").glob("*.yaml"))
    (load,) = rehearsed(recipe, "rehearsal")["loads"]
    assert (load["verdict"]["outcome"], load["seen"]["preemptions"]) == ("holds", 0)
    assert load["verdict"]["agrees_with_arithmetic"]
    assert load["measured"]["completed"] == load["requests"]


@pytest.mark.usefixtures("rehearsal_cache")
def test_the_article_s_deployment_takes_its_load_and_falls_over_half_beyond(
    recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (rehearsed(recipes / CC2560, out, "90%", "150%") for out in ("1", "2"))
    for document in (first, second):
        within, beyond = document["loads"]
        assert (within["concurrency"], beyond["concurrency"]) == (2577, 4296)
        assert (within["verdict"]["outcome"], within["seen"]["preemptions"]) == ("holds", 0)
        assert beyond["verdict"]["outcome"] == "beyond-capacity"
        assert all(load["verdict"]["agrees_with_arithmetic"] for load in (within, beyond))
        # Generation crosses a block boundary, so that beyond capacity engines preempt.
        assert beyond["seen"]["preemptions"] > 0
        assert figure(beyond, "ttft_p99_ms") > 3 * figure(within, "ttft_p99_ms")
        assert figure(beyond, "output_tokens_per_s") < figure(within, "output_tokens_per_s")
        assert all(load["measured"]["failed"] == 0 for load in (within, beyond))
    for one, other in zip(first["loads"], second["loads"], strict=True):
        speeds = [figure(load, "output_tokens_per_s") for load in (one, other)]
        assert speeds[0] == pytest.approx(speeds[1], rel=TOLERANCE)
        sent = [Path(out, f"c{one['concurrency']}", "inputs.json").read_bytes() for out in "12"]
        assert sent[0] == sent[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing_of_the_real_programs(
    recipes: Path, rehearsal_cache: Path, tmp_path: Path, number: signal.Signals
) -> None:
    words = ["rehearse", str(recipes / CC2560), "--out", str(tmp_path / "out")]
    rehearsal = subprocess.Popen([sys.executable, "-m", "generator.cli", *words], cwd=ROOT)
    try:
        assert until((tmp_path / "out/logs/aiperf-c2560.log").exists, seconds=120)
        assert len(processes_in(rehearsal_cache)) >= 7  # frontend, five workers, AIPerf
        closed = networks_of(rehearsal_cache)
        assert len(closed) == 1
        rehearsal.send_signal(number)
        rehearsal.wait(timeout=30)
    finally:
        rehearsal.kill()
        rehearsal.wait()
    assert until(lambda: not processes_in(rehearsal_cache), seconds=5)
    assert until(lambda: closed.isdisjoint(networks()), seconds=5)


def figure(load: Mapping[str, Any], name: str) -> float:
    value: float = load["measured"][name]
    return value


@pytest.mark.slurm
@pytest.mark.usefixtures("home")
def test_a_sweep_of_rehearsals_through_slurm_to_the_frontier(
    rack: RunningRack, recipes: Path, rehearsal_cache: Path
) -> None:
    files = sorted(map(str, recipes.glob(SWEPT)))
    site = str(ROOT / "recipes/sites/rack.yaml")
    launcher = ["--launcher", "rehearse", "--scale", SCALE, "--cache", str(rehearsal_cache)]
    options = ["--site", site, "--max-parallel", "1", "--no-canary", "--yes"]
    before = known_jobs(rack)
    result = run("submit", *files, *launcher, *options, "--sweep", "s")
    assert result.exit_code == 0, result.output
    assert watch() == 0, run("status", "s").stdout
    assert len(set(known_jobs(rack)) - set(before)) == len(files) == 6

    collected = run("collect", "s", "--out", "results.jsonl")
    assert collected.exit_code == 0, collected.output
    points = read_points(Path("results.jsonl"))
    assert sorted(each.subject.concurrency for each in points) == LOADS
    assert {each.origin for each in points} == {Origin.REHEARSAL}
    assert {(each.preemptions, each.invalid) for each in points} == {(0, ())}  # within capacity
    assert run("pareto", "results.jsonl", "--out", "frontier.svg").exit_code == 0
    assert run("report", "results.jsonl", str(SPEC)).exit_code == 0
    for file in ("frontier.svg", "report.html"):
        assert "REHEARSAL - simulated engines" in Path(file).read_text(encoding="utf-8")
