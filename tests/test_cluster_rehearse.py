"""The launcher that rehearses: its job file, its command line, and what it calls a result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from generator.cli import main
from generator.cluster.job_file import JobFile, JobPoint, RehearseLauncher, read_job_file
from generator.cluster.launching import LaunchEnd
from generator.cluster.rehearse import as_rehearsed, missing_rehearsal, rehearse_launch
from generator.documents import read_document
from generator.sweep.folder import open_sweep
from generator.sweep.swept_recipe import swept_recipes
from generator.validation import schema
from tests.cluster_jobs import written_job
from tests.rehearsals import CC2560
from tests.run_outputs import write_json

LAUNCHER = RehearseLauncher(
    cache=Path("/shared/cache"), scale=64, timing="roofline", environment=(("K", "v"),)
)


def test_the_job_file_keeps_it(tmp_path: Path) -> None:
    for launcher in (LAUNCHER, RehearseLauncher(cache=Path("/shared/cache"))):
        folder = written_job(tmp_path, "a", launcher, concurrencies=(4, 8))
        assert read_job_file(folder).launcher == launcher
        document = json.loads((folder / "job.json").read_text("utf-8"))
        assert list(Draft202012Validator(schema("job")).iter_errors(document)) == []


def test_the_command_line_names_the_points_that_are_missing(tmp_path: Path) -> None:
    points = [JobPoint(point_id=f"x-c{n}", concurrency=n, folder=tmp_path) for n in (64, 128)]
    job = JobFile(
        token="t",
        recipe=tmp_path / "recipe.yaml",
        points=tuple(points),
        launcher=LAUNCHER,
        time_minutes=5,
    )
    launch = rehearse_launch(LAUNCHER, job, points[1:], tmp_path / "out")
    assert launch.argv[:5] == (
        *(sys.executable, "-m", "generator.cli"),
        *("rehearse", str(tmp_path / "recipe.yaml")),
    )
    options = dict(zip(launch.argv[5::2], launch.argv[6::2], strict=True))
    assert options == {
        "--out": str(tmp_path / "out"),
        "--cache": "/shared/cache",
        "--scale": "64",
        "--timing": "roofline",
        "--concurrency": "128",
    }
    assert launch.environment["K"] == "v"


@pytest.mark.parametrize(("code", "ends_with"), [(0, 0), (10, 0), (5, 5), (-9, -9), (None, None)])
def test_a_load_that_is_not_taken_is_no_failure_of_the_job(
    code: int | None, ends_with: int | None
) -> None:
    assert as_rehearsed(LaunchEnd(exit_code=code)).exit_code == ends_with


def test_what_counts_as_a_result(tmp_path: Path) -> None:
    point = JobPoint(point_id="x-c64", concurrency=64, folder=tmp_path)
    assert missing_rehearsal(tmp_path, point) == "concurrency 64 was not rehearsed"
    write_json(tmp_path / "c64/rehearsed.json", {"measured": None})
    assert "did not end in time" in missing_rehearsal(tmp_path, point)
    write_json(tmp_path / "c64/rehearsed.json", {"measured": {"completed": 32}})
    assert missing_rehearsal(tmp_path, point) == ""


def test_a_rehearsal_takes_one_node_and_no_gpu() -> None:
    (recipe,) = swept_recipes(read_document(CC2560))
    alone = recipe.on_one_node()
    assert (recipe.nodes, alone.nodes, alone.gpu_hours) == (12, 1, 0)
    assert (alone.digest, alone.points) == (recipe.digest, recipe.points)


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep of rehearsals on this machine, which has no environments for them."""
    monkeypatch.chdir(tmp_path)
    words = ["--launcher", "rehearse", "--cluster", "debug", "--sweep", "sweep", "--yes"]
    more = ["--cache", "cache", "--scale", "32", "--timing", "roofline"]
    told = CliRunner().invoke(main, ["submit", str(CC2560), *words, *more])
    assert told.exit_code == 0, told.stderr
    return tmp_path / "sweep"


def test_submit_keeps_how_it_rehearses_and_says_why_it_failed(submitted: Path) -> None:
    settings = open_sweep(submitted).read_settings()
    assert (settings.launcher, settings.scale, settings.timing) == ("rehearse", 32, "roofline")
    assert settings.cache == str(submitted.parent / "cache")  # jobs run elsewhere
    (path,) = submitted.glob("points/*/result.json")
    result = json.loads(path.read_text("utf-8"))
    assert (result["status"], result["exit_code"]) == ("failed", 5)
    assert "pdrecipe rehearse --setup" in result["log_tail"]


def test_its_options_go_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["submit", str(CC2560), "--cluster", "debug", "--scale", "32", "--dry-run"]
    told = CliRunner().invoke(main, words)
    assert told.exit_code == 2
    assert "--scale, --timing and --cache go with --launcher rehearse" in told.stderr
