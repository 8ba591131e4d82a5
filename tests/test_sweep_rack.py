"""Sweeps on a real Slurm, through the command line: sent, killed, broken, resumed, counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rack.fixture import RunningRack
from tests.small_specs import run
from tests.swept_recipes import V2, edited

pytestmark = [pytest.mark.slurm, pytest.mark.faults]

# Notes its start and its end beside the recipes, then sleeps as long as the file there says.
NOTE = """\
import pathlib, sys, time
home, load = pathlib.Path(sys.argv[1]), sys.argv[2]
name = pathlib.Path(sys.argv[3]).stem
note = lambda kind: (home / f"{name}-{load}.{kind}").open("a").write("x")
note("began")
time.sleep(float((home / "seconds").read_text()))
note("ended")
"""


@pytest.fixture
def home(rack: RunningRack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    del rack
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.py").write_text(NOTE, encoding="utf-8")
    (tmp_path / "seconds").write_text("0", encoding="utf-8")
    (tmp_path / "recipes").mkdir()
    return tmp_path


def write_recipes(count: int, *, loads: str = "1", nodes: int = 4) -> None:
    """Recipes of 4 nodes and up: every fifth size."""
    for number in range(count):
        more = nodes + 2 * (number % 5) - 2
        text = edited(
            V2,
            ("tiny-1p1d", f"tiny-{number}"),
            ("64x128", f"'{loads}'"),
            ("decode: {nodes: 2", f"decode: {{nodes: {more}"),
        )
        Path(f"recipes/r{number:03}.yaml").write_text(text, encoding="utf-8")


def command(home: Path) -> list[str]:
    words = f"{sys.executable} {home}/note.py {home} {{concurrency}} {{recipe}}"
    return ["--launcher", "command", "--command", words, "--sweep", "s", "--name", "tiny"]


def submit(home: Path, *more: str) -> None:
    result = run("submit", "recipes", *command(home), "--yes", "--no-canary", *more)
    assert result.exit_code == 0, result.output


def document() -> dict[str, Any]:
    result = run("status", "s", "--json")
    assert result.exit_code in (0, 10), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def states() -> Counter[str]:
    return Counter(each["state"] for each in document()["points"])


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.5)
    return condition()


def notes(home: Path, kind: str) -> Counter[str]:
    return Counter({path.stem: path.stat().st_size for path in home.glob(f"*.{kind}")})


def assert_all_done_once(home: Path, points: int) -> None:
    found = document()
    assert (found["complete"], found["counts"]["done"]) == (True, points)
    assert sorted(notes(home, "ended").values()) == [1] * points


def test_sweep_from_plan_to_result(home: Path, rack: RunningRack) -> None:
    write_recipes(3, loads="1x2")
    scripts = run("submit", "recipes", *command(home), "--dry-run").stdout
    assert "#SBATCH --segment=4" in scripts
    assert "#SBATCH --nodes=8" in scripts
    assert not Path("s").exists()
    result = run("submit", "recipes", *command(home), "--yes")
    assert result.exit_code == 0, result.output
    names = rack.ask("squeue", "-h", "-r", "-o", "%j %k").split()
    assert all(name.startswith("tiny.") for name in names if "." in name)
    assert run("status", "s", "--watch", "--every", "1").exit_code == 0
    assert_all_done_once(home, 6)
    assert run("resume", "s", "--yes").stdout.splitlines()[-1] == "Nothing to send."


def test_canary_holds_the_rest_on_slurm(home: Path) -> None:
    for number in range(3):
        text = edited(V2, ("tiny-1p1d", f"tiny-{number}"), ("64x128", "'1'"))
        Path(f"recipes/r{number:03}.yaml").write_text(text, encoding="utf-8")
    result = run("submit", "recipes", *command(home), "--yes")
    assert result.exit_code == 0, result.output
    assert [each["why"][:10] for each in document()["points"][1:]] == ["held until"] * 2
    assert eventually(lambda: states()["done"] == 3)
    assert_all_done_once(home, 3)


def test_failures_cancellations_and_retries(home: Path, rack: RunningRack) -> None:
    write_recipes(3)
    Path("seconds").write_text("x", encoding="utf-8")
    submit(home)
    assert eventually(lambda: states()["failed"] == 3)
    (first, *_) = document()["points"]
    assert first["why"].endswith("ended with 1")
    assert "ValueError" in first["log_tail"]
    assert run("logs", "s", first["point"]).stdout.strip().endswith("'x'")

    Path("seconds").write_text("60", encoding="utf-8")
    assert run("retry", "s", "--failed", "--yes").exit_code == 0
    assert eventually(lambda: states()["running"] >= 2)
    one, two, three = document()["points"]
    assert [each["attempts"] for each in (one, two, three)] == [2, 2, 2]
    rack.ask("scancel", one["job"])
    assert run("cancel", "s", two["point"], "--yes").exit_code == 0
    assert eventually(lambda: states()["cancelled"] == 2)
    assert document()["points"][0]["why"] == "cancelled on the cluster"
    assert document()["points"][2]["state"] in ("running", "submitted")

    Path("seconds").write_text("0", encoding="utf-8")
    assert run("cancel", "s", "--yes").exit_code == 0
    assert run("retry", "s", "tiny-0", "tiny-1", "tiny-2", "--yes").exit_code == 0
    assert run("status", "s", "--watch", "--every", "1").exit_code == 0
    assert_all_done_once(home, 3)


def test_slurm_in_the_environment_changes_nothing(
    home: Path, rack: RunningRack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "urgent")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    monkeypatch.setenv("SLURM_NNODES", "1")
    write_recipes(1)
    Path("seconds").write_text("5", encoding="utf-8")
    submit(home)
    job = rack.ask("squeue", "-h", "-o", "%P %l %D").split()
    assert job == ["batch", "1:00:00", "4"]
    assert eventually(lambda: states()["done"] == 1)


# --- faults -----------------------------------------------------------------------------------


@pytest.mark.faults
def test_two_hundred_points_are_sent_in_seconds_and_agree_with_accounting(
    home: Path, rack: RunningRack
) -> None:
    write_recipes(200)
    began = time.monotonic()
    submit(home)
    assert time.monotonic() - began < 10
    assert run("status", "s", "--watch", "--every", "2").exit_code == 0
    assert_all_done_once(home, 200)
    jobs = [each["job"] for each in document()["points"]]
    assert len(set(jobs)) == 200

    def accounted() -> set[str | None]:
        listed = rack.ask("sacct", "-n", "-P", "-X", "-o", "jobid,state").split()
        by_job = dict(line.split("|") for line in listed)
        return {by_job.get(job) for job in jobs}

    assert eventually(lambda: accounted() == {"COMPLETED"}, 10), accounted()


KILLED = """
import os, signal, sys
from generator.cli import main
from generator.cluster.slurm import SlurmCluster
from generator.sweep.ledger import Ledger
where, at = sys.argv[1], int(sys.argv[2])
count = 0
def dying(function, moment):
    def wrapped(*arguments, **more):
        global count
        count += moment == where
        if count == at and moment == where and where.startswith("before"):
            os.kill(os.getpid(), signal.SIGKILL)
        answer = function(*arguments, **more)
        if count == at and moment == where:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    return wrapped
if where.endswith("sbatch"):  # before submitit gives the pickles the names that jobs look for
    from submitit.slurm.slurm import SlurmExecutor
    SlurmExecutor._submit_command = dying(SlurmExecutor._submit_command, where)
elif where.endswith("ledger"):
    Ledger.append = dying(Ledger.append, where)
else:
    SlurmCluster.submit = dying(SlurmCluster.submit, where)
main(sys.argv[3:], standalone_mode=True)
"""


@pytest.mark.faults
@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize(
    "where", ["before submit", "after sbatch", "after submit", "before ledger", "after ledger"]
)
def test_client_killed_while_it_submits(home: Path, where: str, at: int) -> None:
    write_recipes(5)
    Path("seconds").write_text("1", encoding="utf-8")
    words = ["submit", "recipes", *command(home), "--yes", "--no-canary"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, where, str(at), *words],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    if Path("s/sweep.json").exists():
        assert run("resume", "s", "--yes").exit_code == 0
    submit(home)
    assert run("status", "s", "--watch", "--every", "1").exit_code == 0
    assert_all_done_once(home, 5)


@pytest.mark.faults
def test_slurmctld_killed_and_restarted(home: Path, rack: RunningRack) -> None:
    write_recipes(12)
    Path("seconds").write_text("3", encoding="utf-8")
    submit(home)
    assert eventually(lambda: states()["done"] >= 2)
    finished = {each["point"] for each in document()["points"] if each["state"] == "done"}
    rack.verb("kill", "slurmctld")
    result = run("status", "s", "--json")
    assert result.exit_code == 5
    found = json.loads(result.stdout)
    assert {each["state"] for each in found["points"]} <= {"done", "unknown"}
    assert run("resume", "s", "--yes").exit_code == 5
    rack.verb("start", "slurmctld")
    assert eventually(lambda: run("status", "s").exit_code in (0, 10), 60)

    def settled() -> bool:
        rack.verb("resume")  # the admin's part: drained nodes
        return states()["done"] == 12

    assert eventually(settled, 300)
    ended = notes(home, "ended")
    assert len(ended) == 12
    assert {ended[point.replace("-c", "-")] for point in finished} == {1}
    assert run("resume", "s", "--yes").stdout.splitlines()[-1] == "Nothing to send."


@pytest.mark.faults
def test_accounting_that_is_down_loses_nothing(home: Path, rack: RunningRack) -> None:
    write_recipes(2)
    Path("seconds").write_text("60", encoding="utf-8")
    submit(home)
    assert eventually(lambda: states()["running"] >= 1)
    rack.verb("stop", "slurmdbd")
    running = next(each for each in document()["points"] if each["state"] == "running")
    rack.ask("scancel", running["job"])
    assert eventually(lambda: states()["unknown"] + states()["cancelled"] >= 1)
    assert states()["lost"] == 0
    rack.verb("start", "slurmdbd")
    assert eventually(lambda: states()["cancelled"] == 1, 90)
    assert run("cancel", "s", "--yes").exit_code == 0
