"""The run folders that the README's tour reads are what their model gives."""

from __future__ import annotations

from pathlib import Path

from generator.collection.collect import CollectionOptions, collect
from generator.results.point import Origin
from tests.conftest import REPOSITORY
from tests.synthetic_runs import RUNS, run_files

FOLDER = REPOSITORY / "tests/data/runs"


def test_the_committed_runs_are_the_stated_model_s() -> None:
    files = dict(run_files(REPOSITORY))
    committed = {
        path.relative_to(FOLDER): path.read_text("utf-8")
        for path in FOLDER.rglob("*.*")
        if path.is_file() and path.parent != FOLDER
    }
    assert committed == files


def test_every_load_of_them_is_a_point() -> None:
    found = collect([FOLDER], CollectionOptions(origin=Origin.SYNTHETIC))
    assert found.problems == ()
    assert {(point.run, point.subject.concurrency) for point in found.points} == {
        (str(job), load) for job, run in RUNS.items() for load in run.loads
    }
    invalid = {point.run: point.invalid[0].code for point in found.points if not point.is_valid}
    assert invalid == {str(job): "failed-requests" for job, run in RUNS.items() if run.failed}
    assert Path(found.points[0].sources["recipe"]).name == "config.yaml"
