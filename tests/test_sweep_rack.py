"""Sweeps on a real Slurm, through the command line: sent, held, followed, cancelled, retried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rack.fixture import RunningRack
from tests.rack_sweeps import (
    assert_all_done_once,
    command,
    document,
    eventually,
    jobs_last,
    known_jobs,
    states,
    submission,
    submit,
    watch,
    write_recipe,
    write_recipes,
)
from tests.small_specs import run

pytestmark = pytest.mark.slurm


def test_sweep_from_plan_to_result(home: Path, rack: RunningRack) -> None:
    write_recipes(3, loads="1x2")
    scripts = run("submit", "recipes", *command(home), "--dry-run").stdout
    assert "#SBATCH --segment=4" in scripts
    assert "#SBATCH --nodes=8" in scripts
    assert not Path("s").exists()
    before = known_jobs(rack)
    result = run("submit", "recipes", *command(home), "--yes")
    assert result.exit_code == 0, result.output
    added = [name for job, name in known_jobs(rack).items() if job not in before]
    assert [name.partition(".")[0] for name in added] == ["tiny"] * 3
    assert watch() == 0
    assert_all_done_once(home, 6)
    assert run("resume", "s", "--yes").stdout.splitlines()[-1] == "Nothing to send."


def test_canary_holds_the_rest_on_slurm(home: Path) -> None:
    write_recipes(3, sizes=1)
    result = run("submit", "recipes", *command(home), "--yes")
    assert result.exit_code == 0, result.output
    assert [each["why"][:10] for each in document()["points"][1:]] == ["held until"] * 2
    assert eventually(lambda: states()["done"] == 3)
    assert_all_done_once(home, 3)


def test_what_slurm_cannot_take_is_known_before_anything_is_sent(
    home: Path, rack: RunningRack
) -> None:
    """A partition that is not there, a path in which Slurm would put something else."""
    write_recipe("r000", ("time_limit: '1:00:00'", "time_limit: '1:00:00', partition: nightly"))
    before = known_jobs(rack)
    refused = run(*submission(home))
    assert refused.exit_code == 3, refused.output
    assert (
        "recipes/r000.yaml: slurm.partition: this Slurm has no partition 'nightly'"
        " (it has batch, urgent)" in refused.stderr
    )
    write_recipe("r000")
    refused = run(*submission(home, sweep="at 100%"))
    assert refused.exit_code == 3, refused.output
    assert "at 100%: has % in its path" in refused.stderr
    assert {each.name for each in home.iterdir()} == {"note.py", "recipes", "seconds"}
    assert known_jobs(rack) == before


def test_refusal_of_sbatch_is_the_reason_that_status_tells(home: Path) -> None:
    nowhere = ("'1:00:00'}", "'1:00:00'}\nsbatch_directives: {constraint: nowhere}")
    write_recipe("r000", nowhere)
    refused = run(*submission(home))
    assert refused.exit_code == 5, refused.output
    assert "sbatch refused: " in refused.stderr
    (point,) = document()["points"]
    assert point["state"] == "lost"
    assert point["why"].startswith("sbatch refused: ")
    assert "Invalid feature specification" in point["why"]
    write_recipe("r000")
    assert "lost: sbatch refused: " in run("resume", "s", "--dry-run").stdout


@pytest.mark.faults
def test_failures_cancellations_and_retries(home: Path, rack: RunningRack) -> None:
    write_recipes(3)
    jobs_last(home, "x")
    submit(home)
    assert eventually(lambda: states()["failed"] == 3)
    (first, *_) = document()["points"]
    assert first["why"].endswith("ended with 1")
    assert "ValueError" in first["log_tail"]
    assert run("logs", "s", first["point"]).stdout.strip().endswith("'x'")

    jobs_last(home, 60)
    assert run("retry", "s", "--failed", "--yes").exit_code == 0
    assert eventually(lambda: states()["running"] >= 2)
    one, two, three = document()["points"]
    assert [each["attempts"] for each in (one, two, three)] == [2, 2, 2]
    rack.ask("scancel", one["job"])
    assert run("cancel", "s", two["point"], "--yes").exit_code == 0
    assert eventually(lambda: states()["cancelled"] == 2)
    assert document()["points"][0]["why"] == "cancelled on the cluster"
    assert document()["points"][2]["state"] in ("running", "submitted")

    jobs_last(home, 0)
    assert run("cancel", "s", "--yes").exit_code == 0
    assert run("retry", "s", "tiny-r000", "tiny-r001", "tiny-r002", "--yes").exit_code == 0
    assert watch() == 0
    assert_all_done_once(home, 3)


@pytest.mark.faults
def test_slurm_in_the_environment_changes_nothing(
    home: Path, rack: RunningRack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "urgent")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    monkeypatch.setenv("SLURM_NNODES", "1")
    write_recipes(1)
    jobs_last(home, 5)
    submit(home)
    job = rack.ask("squeue", "-h", "-o", "%P %l %D").split()
    assert job == ["batch", "1:00:00", "4"]
    assert eventually(lambda: states()["done"] == 1)
