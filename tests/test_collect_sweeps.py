"""Sweeps of our own: which run counts for a point, and what is said of points without one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from generator.cli import main
from generator.cluster.job_file import DONE, FAILED, PointResult, read_job_file, write_result
from generator.results.point_file import read_points
from generator.sweep.folder import SweepFolder
from generator.sweep.points import parse_point
from tests.fake_cluster import FakeCluster
from tests.run_outputs import SA_BENCH_FOLDER, aiperf, sa_bench, write_json, write_run
from tests.small_sweeps import submit, sweep_folder
from tests.swept_recipes import numbered

SWEPT = numbered(0, loads="4x8")


@pytest.fixture(name="sweep")
def _sweep(tmp_path: Path) -> SweepFolder:
    """One job with two points, which the cluster took and nobody ran yet."""
    folder = sweep_folder(tmp_path)
    submit(folder, FakeCluster(), [SWEPT])
    return folder


def run_of(sweep: SweepFolder, name: str = "100_0.0") -> Path:
    (job,) = sweep.root.glob("arrays/*/jobs/*")
    return job / "runs" / name


def settle(sweep: SweepFolder, output: Path, status: str = DONE, reason: str = "") -> None:
    """What the job writes of its points at its end."""
    (folder,) = sweep.root.glob("arrays/*/jobs/*")
    job = read_job_file(folder)
    for point in job.points:
        result = PointResult(
            token=job.token,
            point_id=point.point_id,
            concurrency=point.concurrency,
            status=status,
            reason=reason,
            exit_code=0,
            started=1.0,
            ended=2.0,
            job_id="100_0",
            run=1,
            nodes=("n1",),
            output=str(output),
        )
        write_result(point, result)


def collected(root: Path) -> tuple[list[int], Result]:
    """The concurrencies collected, and what was said."""
    out = root.parent / "results.jsonl"
    out.unlink(missing_ok=True)
    result = CliRunner().invoke(main, ["collect", str(root), "--out", str(out)])
    points = read_points(out) if out.exists() else ()
    assert {point.subject.digest for point in points} <= {SWEPT.digest}
    return [point.subject.concurrency for point in points], result


def test_runs_of_done_points_count(sweep: SweepFolder) -> None:
    output = write_run(run_of(sweep), sa_bench(4), sa_bench(8), recipe=SWEPT.text)
    settle(sweep, output)
    loads, result = collected(sweep.root)
    assert loads == [4, 8]
    assert result.exit_code == 0
    assert "not collected" not in result.stdout


def test_a_sweep_that_was_moved(sweep: SweepFolder, tmp_path: Path) -> None:
    settle(sweep, write_run(run_of(sweep), sa_bench(4), sa_bench(8), recipe=SWEPT.text))
    shutil.move(sweep.root, tmp_path / "elsewhere")
    assert collected(tmp_path / "elsewhere")[0] == [4, 8]


def test_only_the_run_that_the_point_names_counts(sweep: SweepFolder) -> None:
    write_run(run_of(sweep, "100_0.0"), sa_bench(4, duration=9.0), recipe=SWEPT.text)
    second = write_run(run_of(sweep, "100_0.1"), sa_bench(4), sa_bench(8), recipe=SWEPT.text)
    settle(sweep, second)
    loads, result = collected(sweep.root)
    assert loads == [4, 8]
    assert "is left out: another run of its point counts" in result.stderr


@pytest.mark.parametrize("first", ["whole sweep", "its arrays", "its arrays alone"])
def test_a_part_of_a_sweep_counts_what_the_sweep_counts(
    sweep: SweepFolder, tmp_path: Path, first: str
) -> None:
    counted = write_run(run_of(sweep, "100_0.1"), sa_bench(4), recipe=SWEPT.text)
    lost = write_run(run_of(sweep, "100_0.0"), sa_bench(4, duration=9.0), recipe=SWEPT.text)
    settle(sweep, counted)
    folders = [sweep.root, sweep.root / "arrays"]
    if first != "whole sweep":
        folders = folders[::-1] if first == "its arrays" else folders[1:]
    out = tmp_path / "results.jsonl"
    arguments = ["collect", *map(str, folders), "--out", str(out)]
    result = CliRunner().invoke(main, arguments)
    (point,) = read_points(out)
    assert point.run.endswith("runs/100_0.1")
    assert point.invalid == ()
    assert ("not collected" in result.stdout) == (first != "its arrays alone")  # at 8
    alone = CliRunner().invoke(main, ["collect", str(lost), "--out", str(tmp_path / "none")])
    assert (alone.exit_code, "another run of its point counts" in alone.stderr) == (3, True)


def test_failed_points_are_not_collected(sweep: SweepFolder) -> None:
    output = write_run(run_of(sweep), sa_bench(4), recipe=SWEPT.text)
    settle(sweep, output, FAILED, "the launcher ended with 3")
    loads, result = collected(sweep.root)
    assert (loads, result.exit_code) == ([], 3)
    assert "its point failed: the launcher ended with 3" in result.stderr


def test_points_without_a_result_are_listed(sweep: SweepFolder) -> None:
    settle(sweep, write_run(run_of(sweep), sa_bench(4), recipe=SWEPT.text))
    loads, result = collected(sweep.root)
    assert loads == [4]
    line = "not collected: tiny-0 at 8: done: no usable result in its run"
    assert line in result.stdout.splitlines()
    assert "1 point from 1 run, 0 invalid, 1 not collected" in result.stderr


def test_jobs_that_are_not_over(sweep: SweepFolder) -> None:
    write_run(run_of(sweep), sa_bench(4), recipe=SWEPT.text)
    loads, result = collected(sweep.root)
    assert loads == []
    assert "its point has no result yet: the job was not over" in result.stderr


def test_a_recipe_that_was_changed_since(sweep: SweepFolder) -> None:
    text = SWEPT.text.replace("isl: 8192", "isl: 4096")
    settle(sweep, write_run(run_of(sweep), sa_bench(4), recipe=text))
    loads, result = collected(sweep.root)
    assert loads == []
    assert f"but the sweep planned {SWEPT.digest}: the recipe was changed since" in result.stderr


def test_runs_without_a_config_have_the_recipe_of_the_sweep(sweep: SweepFolder) -> None:
    """As of launchers that run a command once for each point."""
    output = run_of(sweep)
    for point in SWEPT.points:
        load = parse_point(point.id).concurrency or 0
        folder = output / point.id
        write_json(folder / "profile_export_aiperf.json", aiperf(load))
    settle(sweep, output)
    loads, result = collected(sweep.root)
    assert loads == []
    assert "another run of its point counts" in result.stderr
    for path in sweep.root.glob("points/*/result.json"):
        text = path.read_text("utf-8")
        own = f"{output}/{path.parent.name}"
        path.write_text(text.replace(str(output), own), encoding="utf-8")
    assert collected(sweep.root)[0] == [4, 8]


def test_a_broken_ledger_does_not_keep_runs_from_being_read(sweep: SweepFolder) -> None:
    output = write_run(run_of(sweep), sa_bench(4), recipe=SWEPT.text)
    settle(sweep, output)
    lines = sweep.ledger.path.read_text("utf-8")
    sweep.ledger.path.write_text(f"nonsense\n{lines}", encoding="utf-8")
    loads, result = collected(sweep.root)
    assert loads == [4]
    assert "is a sweep whose ledger cannot be read" in result.stderr
    assert (output / SA_BENCH_FOLDER).is_dir()
