"""Hundreds and thousands of points on a real Slurm: sent in seconds, told apart, each run once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.rack.fixture import RunningRack
from tests.rack_sweeps import (
    accounted,
    assert_all_done_once,
    document,
    eventually,
    jobs_in_the_queue,
    jobs_last,
    submission,
    submit,
    watch,
    write_recipes,
)
from tests.small_specs import run

pytestmark = [pytest.mark.slurm, pytest.mark.faults]


def test_two_hundred_points_are_sent_in_seconds_and_agree_with_accounting(
    home: Path, rack: RunningRack
) -> None:
    write_recipes(200)
    began = busy_seconds()
    submit(home)
    assert busy_seconds() - began < 10
    assert watch() == 0
    assert_all_done_once(home, 200)
    jobs = [each["job"] for each in document()["points"]]
    assert len(set(jobs)) == 200

    def ends() -> set[str | None]:
        told = accounted(rack)
        return {told.get(job) for job in jobs}

    assert eventually(lambda: ends() == {"COMPLETED"}), ends()


def busy_seconds() -> float:
    """What this process and the commands it waited for have used: what an idle clock would show."""
    return sum(os.times()[:4])


def test_more_points_than_two_arrays_may_hold(home: Path, rack: RunningRack) -> None:
    assert rack.layout.max_array_size == 1001
    write_recipes(2400, sizes=1)
    jobs_last(home, 600)
    submit(home)
    lines = Path("s/ledger.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    intended = [each for each in events if each["event"] == "intended"]
    submitted = {each["token"]: each for each in events if each["event"] == "submitted"}
    assert [len(each["tasks"]) for each in intended] == [1001, 1001, 398]
    told = {
        task_id: point
        for each in intended
        for task_id, task in zip(submitted[each["token"]]["task_ids"], each["tasks"], strict=True)
        for point in task["points"]
    }
    assert set(jobs_in_the_queue(rack)) == set(told)
    found = document()
    assert {each["job"]: each["point"] for each in found["points"]} == told
    assert len(set(told.values())) == 2400

    # Reworded recipes, and a client that knows nothing but the folder, send nothing again.
    for path in Path("recipes").iterdir():
        path.write_text(f"# a comment\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    assert "Nothing to send." in run(*submission(home)).stdout
    assert run("resume", "s", "--yes").stdout.splitlines()[-1] == "Nothing to send."
    assert len(jobs_in_the_queue(rack)) == 2400
    assert run("cancel", "--sweep", "s", "--yes").exit_code == 0
    assert eventually(lambda: jobs_in_the_queue(rack) == [])
    assert document()["counts"]["cancelled"] == 2400
