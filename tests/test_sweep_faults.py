"""What becomes of a sweep when jobs end badly, and when Slurm loses nodes or its controller."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rack.fixture import RunningRack
from tests.rack_sweeps import (
    assert_all_done_once,
    assert_states,
    by_recipe,
    document,
    eventually,
    notes,
    states,
    submit,
    write_recipe,
    write_recipes,
)
from tests.small_specs import run

pytestmark = [pytest.mark.slurm, pytest.mark.faults]

# A server in a step must hear nothing of the warning; its launcher ends it in order.
SERVES = """\
import signal, subprocess
step = subprocess.Popen(["srun", "--overlap", "sleep", "400"], start_new_session=True)
def end(*_):
    print("step", step.poll(), flush=True)
    step.terminate()
    step.wait()
    sys.exit(5)
signal.signal(signal.SIGTERM, end)
print("serving", flush=True)
step.wait()
"""
ENDS = {
    "long": SERVES,
    "greedy": "x = bytearray(10**9); time.sleep(9)",
    "exits": "print('giving up', flush=True); sys.exit(9)",
    "crashes": "import os; os.kill(os.getpid(), 11)",
    "victim": "time.sleep(300)",
    "good": "pass",
    "better": "pass",
}
# state, why, cause, exit code
BECAME: dict[str, tuple[str, str, str, int | None]] = {
    "long": ("failed", "time limit of 2 minutes", "time limit", 143),
    "greedy": ("failed", "out of memory", "out of memory", 137),
    "exits": ("failed", "the launcher ended with 9", "the launcher ended with 9", 9),
    "crashes": (
        "failed",
        "the launcher was killed by SIGSEGV",
        "the launcher was killed by SIGSEGV",
        139,
    ),
    "victim": ("cancelled", "cancelled on the cluster", "", None),
    "good": ("done", "", "", None),
    "better": ("done", "", "", None),
}


def test_bad_ends_have_a_state_and_a_reason_each_and_harm_no_other(
    home: Path, rack: RunningRack
) -> None:
    for name, program in ENDS.items():
        Path(f"{name}.py").write_text(program, encoding="utf-8")
        write_recipe(
            name,
            ("time_limit: '1:00:00'}", "time_limit: '0:02:00'}\nsbatch_directives: {mem: 200M}"),
        )
    submit(home)
    assert eventually(lambda: by_recipe(document())["victim"]["state"] == "running")
    tasks = {name: each["job"] for name, each in by_recipe(document()).items()}
    assert len({task.partition("_")[0] for task in tasks.values()}) == 1  # one array
    rack.ask("scancel", tasks["victim"])
    assert_states(failed=4, cancelled=1, done=2)
    found = by_recipe(document(exit_codes=(10,)))
    became = {
        name: tuple(each[key] for key in ("state", "why", "cause", "exit_code"))
        for name, each in found.items()
    }
    assert became == BECAME
    assert found["long"]["log_tail"].splitlines()[:2] == ["serving", "step None"]
    assert found["exits"]["log_tail"] == "giving up"
    assert notes(home, "ended") == {"good-1": 1, "better-1": 1}

    for name in ENDS:
        Path(f"{name}.py").write_text("pass", encoding="utf-8")
    assert run("resume", "s", "--yes").exit_code == 0
    assert eventually(lambda: states()["done"] == len(ENDS))
    assert_all_done_once(home, len(ENDS))
    assert [by_recipe(document())[name]["attempts"] for name in ENDS] == [2] * 5 + [1] * 2


# The first run lasts until something happens to it.
TWO_RUNS = 'time.sleep(3600 if (home / f"{name}-{load}.began").stat().st_size == 1 else 1)'
# The first run fails of the lost node, long before Slurm notices that it is lost.
HASTY = """\
if (home / f"{name}-{load}.began").stat().st_size == 1:
    while not (home / "lost").exists():
        time.sleep(0.2)
    sys.exit("no answer from a peer")
"""


def test_lost_nodes_and_a_preemption_cost_runs_and_no_point(home: Path, rack: RunningRack) -> None:
    programs = {"first": TWO_RUNS, "hasty": HASTY, "low": TWO_RUNS, "calm": "time.sleep(30)"}
    for name, program in programs.items():
        Path(f"{name}.py").write_text(program, encoding="utf-8")
        write_recipe(name)
    submit(home)
    assert eventually(lambda: len(notes(home, "began")) == 4)
    nodes = {name: each["nodes"] for name, each in by_recipe(document()).items()}
    lost = {nodes["first"][0], nodes["hasty"][1]}
    for node in lost:
        rack.verb("lose", node)
    Path("lost").touch()
    urgent = ["--partition=urgent", "--exclusive", f"--nodelist={','.join(nodes['low'])}"]
    rack.ask("sbatch", *urgent, "--nodes=4", "--output=/dev/null", "--wrap=sleep 1")
    seen: set[str] = set()

    def is_done() -> bool:
        seen.update(states())
        return states()["done"] == 4

    assert eventually(is_done)
    assert {"requeued", "done"} <= seen <= {"submitted", "running", "requeued", "done"}
    assert_all_done_once(home, 4)
    assert dict(notes(home, "began")) == {"first-1": 2, "hasty-1": 2, "low-1": 2, "calm-1": 1}
    found = document()
    assert {each["attempts"] for each in found["points"]} == {1}
    assert {each["node"] for each in found["nodes"]} == lost
    requeued = {each["index"] for each in ledger() if each["event"] == "requeued"}
    tasks = {name: int(each["job"].partition("_")[2]) for name, each in by_recipe(found).items()}
    assert requeued == {tasks[name] for name in ("first", "hasty", "low")}


def test_a_node_that_stays_lost_is_the_reason(home: Path, rack: RunningRack) -> None:
    """Where a job may not go back to the queue."""
    Path("hasty.py").write_text(HASTY, encoding="utf-8")
    write_recipe("hasty")
    submit(home)
    assert eventually(lambda: states()["running"] == 1)
    (point,) = document()["points"]
    rack.ask("scontrol", "update", f"jobid={point['job']}", "requeue=0")
    rack.verb("lose", point["nodes"][1])
    Path("lost").touch()
    assert eventually(lambda: states()["failed"] == 1)
    (found,) = document()["points"]
    assert found["why"] == f"node failure: {point['nodes'][1]} does not answer"
    assert (found["cause"], found["log_tail"]) == ("node failure", "no answer from a peer")


# It ends once it may.
WAITS = "while not (home / 'go').exists(): time.sleep(.2)\n"


def submit_two_quick_ones_and_more(home: Path) -> int:
    """Two points are done, others are amid their run and the rest waits for their nodes.

    When all was sent, in nanoseconds since the epoch.
    """
    write_recipes(8, sizes=3)
    for number in range(2, 8):
        Path(f"r{number:03}.py").write_text(WAITS, encoding="utf-8")
    submit(home)
    sent_ns = time.time_ns()

    def are_amid() -> bool:
        found = states()
        return found["done"] == 2 and found["running"] >= 1 and len(notes(home, "began")) > 2

    assert eventually(are_amid), document()
    return sent_ns


def wait_until_saved(rack: RunningRack, taken_ns: int) -> None:
    """Until slurmctld, which saves what is new every few seconds, has saved what it had then."""
    file = rack.layout.state / "slurmctld" / "job_state"
    assert eventually(lambda: file.exists() and file.stat().st_mtime_ns > taken_ns)


def end_what_runs(home: Path) -> None:
    Path("go").touch()
    assert eventually(lambda: notes(home, "ended").keys() == notes(home, "began").keys())


def ledger() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("s/ledger.jsonl").read_text("utf-8").splitlines()]


def test_slurmctld_stopped_and_started_again(home: Path, rack: RunningRack) -> None:
    submit_two_quick_ones_and_more(home)
    rack.verb("stop", "slurmctld")
    assert {each["state"] for each in document(exit_codes=(5,))["points"]} <= {"done", "unknown"}
    assert run("resume", "s", "--yes").exit_code == 5
    end_what_runs(home)
    rack.verb("start", "slurmctld")
    assert eventually(lambda: run("status", "s").exit_code == 0)
    assert_all_done_once(home, 8)
    assert set(notes(home, "began").values()) == {1}


def test_slurmctld_killed_before_it_saved_what_it_had_taken(home: Path, rack: RunningRack) -> None:
    """Slurm has never heard of the jobs then, whatever accounting says, and reuses their ids."""
    fills = ["--exclusive", "--nodes=18", "--output=/dev/null", "--wrap=sleep 1000"]
    job = rack.ask("sbatch", "--parsable", *fills).strip()
    assert eventually(lambda: rack.ask("squeue", "-h", "-t", "R").strip() != "")
    running_ns = time.time_ns()
    rack.ask("scontrol", "update", f"jobid={job}", "comment=new")
    wait_until_saved(rack, running_ns)
    write_recipes(3)
    submit(home)
    rack.verb("kill", "slurmctld")
    rack.verb("start", "slurmctld")
    assert eventually(lambda: set(states()) <= {"submitted", "lost"}), document()
    assert run("resume", "s", "--yes").exit_code == 0
    rack.ask("scancel", job)
    assert_states(done=3)
    assert_all_done_once(home, 3)


def test_slurmctld_killed_and_started_again(home: Path, rack: RunningRack) -> None:
    """Slurm forgets its last seconds and runs jobs again, whose results then speak for them."""
    wait_until_saved(rack, submit_two_quick_ones_and_more(home))
    finished = {name for name, each in by_recipe(document()).items() if each["state"] == "done"}
    rack.verb("kill", "slurmctld")
    found = document(exit_codes=(5,))
    assert {each["state"] for each in found["points"]} <= {"done", "unknown"}
    assert run("resume", "s", "--yes").exit_code == 5
    end_what_runs(home)
    rack.verb("start", "slurmctld")
    assert eventually(lambda: run("status", "s").exit_code in (0, 10))
    told: set[str] = set()

    def settled() -> bool:
        found = document()
        told.update(each["reason"] for each in found["nodes"] if each["reason"])
        rack.verb("resume")  # the admin's part
        return bool(found["complete"])

    assert eventually(settled, 300, every=1)
    assert told <= {"Duplicate jobid"}
    ended = notes(home, "ended")
    assert len(ended) == 8
    assert {ended[f"{name}-1"] for name in finished} == {1}
    assert run("resume", "s", "--yes").stdout.splitlines()[-1] == "Nothing to send."
