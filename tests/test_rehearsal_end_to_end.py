"""The whole way with nothing in a program's place: Slurm, Dynamo, AIPerf, figures, a page.

`make e2e` runs these. The environments are installed where they are missing (1.9 GB).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.rehearsal_host.environments import default_cache
from tests.rack.fixture import RunningRack
from tests.rack_sweeps import watch
from tests.small_specs import run

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml"
CC2560 = "4xtp2dep4-1xtp4dep4-cc2560.yaml"
DEPLOYMENTS = 8
SCALE = "64"  # one for all, so that points can be compared
TOLERANCE = 0.15
"""What two rehearsals of a recipe may differ by in throughput, on a machine with other work."""


@pytest.fixture(scope="module")
def cache() -> Path:
    """Return the folder of the environments, made once for all runs."""
    result = run("rehearse", "--setup")
    assert result.exit_code == 0, result.output
    return default_cache(os.environ)


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the deployments of the article as the spec gives them, those of its frontier alone."""
    folder = tmp_path_factory.mktemp("spec")
    shutil.copytree(ROOT / "recipes/models", folder / "models")
    result = run("generate", str(SPEC), "--out", str(folder / "all"))
    assert result.exit_code == 0, result.output
    (folder / "recipes").mkdir()
    for file in (folder / "all").glob("*.yaml"):
        file.rename(folder / "recipes" / file.name)
    assert len(list((folder / "recipes").iterdir())) == DEPLOYMENTS
    return folder / "recipes"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert list(Path("/tmp").glob("pdrecipe-rehearsal-*")) == []  # noqa: S108


def rehearsed(recipe: Path, out: str, *loads: str) -> dict[str, Any]:
    """The JSON document of a rehearsal."""
    result = run("rehearse", str(recipe), "--out", out, "--concurrency", ",".join(loads), "--json")
    assert result.exit_code in (0, 10), result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.usefixtures("cache", "home")
def test_the_article_s_deployment_takes_its_load_and_falls_over_half_beyond(
    recipes: Path,
) -> None:
    first = rehearsed(recipes / CC2560, "first", "90%", "150%")
    print(json.dumps(first, indent=1))


@pytest.mark.slurm
@pytest.mark.usefixtures("home")
def test_a_sweep_of_rehearsals_through_slurm_to_the_frontier(
    rack: RunningRack, recipes: Path, cache: Path
) -> None:
    site = ROOT / "recipes/sites/rack.yaml"
    launcher = ["--launcher", "rehearse", "--scale", SCALE, "--cache", str(cache)]
    options = ["--site", str(site), "--max-parallel", "1", "--no-canary", "--yes"]
    result = run("submit", str(recipes), *launcher, *options, "--sweep", "s")
    assert result.exit_code == 0, result.output
    assert watch() == 0
    assert rack.ask("squeue", "-h") == ""
    collected = run("collect", "s", "--out", "results.jsonl")
    assert collected.exit_code == 0, collected.output
    figure = run("pareto", "results.jsonl", "--out", "frontier.svg")
    assert figure.exit_code == 0, figure.output
    assert "REHEARSAL - simulated engines" in Path("frontier.svg").read_text()
    page = run("report", "results.jsonl", str(SPEC))
    assert page.exit_code == 0, page.output
    assert "rehearsal" in Path("report.html").read_text().lower()
