"""What a job does on its node: guards, launchers, results; run as processes, without a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from generator.cluster.allocation import current_allocation, expand_nodes
from generator.cluster.job import run_job, signal_seconds
from generator.cluster.job_file import CommandLauncher, read_job_file, read_result
from generator.cluster.preflight import preflight_launcher
from tests.cluster_jobs import eventually, python, result, written_job


def run(folder: Path, **environment: str) -> int:
    """The exit code of a job that runs as a process of its own, as on a node."""
    command = [sys.executable, "-m", "generator.cluster.job", str(folder)]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


def started(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "generator.cluster.job", str(folder)])


def test_every_point_gets_a_result(tmp_path: Path) -> None:
    code = "import sys; print('at', sys.argv[1])"
    folder = written_job(tmp_path, "a", python(code, "{concurrencies}"), concurrencies=(4, 8))
    assert run(folder) == 0
    for load in (4, 8):
        found = result(tmp_path, "a", load)
        assert found is not None
        assert (found.status, found.reason, found.exit_code) == ("done", "", 0)
        assert (found.run, found.nodes, found.token) == (1, ("localhost",), "t1")
        assert (Path(found.output) / "launcher.log").read_text() == "at 4x8\n"


def test_a_command_with_one_concurrency_runs_once_a_point(tmp_path: Path) -> None:
    launcher = python("import sys; sys.exit(int(sys.argv[1]) == 8)", "{concurrency}")
    folder = written_job(tmp_path, "a", launcher, concurrencies=(4, 8, 16))
    assert run(folder) == 1
    found = [result(tmp_path, "a", load) for load in (4, 8, 16)]
    assert [each and each.status for each in found] == ["done", "failed", "done"]
    assert len({each.output for each in found if each}) == 3


@pytest.mark.parametrize(
    ("loads", "words", "told"),
    [
        ((4, 8), (), "4x8 None"),
        ((4, 8), ("{concurrency}",), "4 4"),
        ((4,), (), "4 4"),
        ((None,), (), " "),
    ],
    ids=["several loads", "one at a time", "one load", "no load"],
)
def test_what_a_command_is_told_of_its_loads(
    tmp_path: Path, loads: tuple[int | None, ...], words: tuple[str, ...], told: str
) -> None:
    """One of several loads, set alone, would look like all there is to run."""
    names = "PDRECIPE_CONCURRENCIES", "PDRECIPE_CONCURRENCY"
    code = f"import os; print(*map(os.environ.get, {names}))"
    folder = written_job(tmp_path, "a", python(code, *words), concurrencies=loads)
    assert run(folder, PDRECIPE_CONCURRENCY="99") == 0
    found = result(tmp_path, "a", loads[0])
    assert found is not None
    assert (Path(found.output) / "launcher.log").read_text() == f"{told}\n"


def test_arguments_reach_no_shell(tmp_path: Path) -> None:
    weird = "$(touch x); `id` ' \" * {unknown} é"
    launcher = python("import sys; print(sys.argv[1])", weird)
    assert run(written_job(tmp_path, "a", launcher)) == 0
    found = result(tmp_path, "a")
    assert found is not None
    assert (Path(found.output) / "launcher.log").read_text() == f"{weird}\n"


FAILURES = {
    "exit": ("print('boom'); import sys; sys.exit(7)", 7, "the launcher ended with 7"),
    "killed": ("import os; os.kill(os.getpid(), 9)", 137, "the launcher was killed by SIGKILL"),
    "exception": ("1 / 0", 1, "the launcher ended with 1"),
}


@pytest.mark.parametrize(("code", "exit_code", "reason"), FAILURES.values(), ids=FAILURES)
def test_failures(tmp_path: Path, code: str, exit_code: int, reason: str) -> None:
    assert run(written_job(tmp_path, "a", python(code))) == exit_code
    found = result(tmp_path, "a")
    assert found is not None
    assert (found.status, found.reason, found.exit_code) == ("failed", reason, exit_code)
    assert ("boom" in found.log_tail) == ("boom" in code)


def test_a_launcher_that_is_not_there(tmp_path: Path) -> None:
    assert run(written_job(tmp_path, "a", CommandLauncher(argv=("/no/such/program",)))) == 127
    found = result(tmp_path, "a")
    assert found is not None
    reason = "the launcher did not start: /no/such/program: No such file or directory"
    assert found.reason == reason


def test_a_point_with_a_result_is_not_run_again(tmp_path: Path) -> None:
    folder = written_job(tmp_path, "a", python("print('ran')"), concurrencies=(1, 2))
    assert run(folder) == 0
    first = result(tmp_path, "a", 1)
    assert run(folder) == 0
    assert result(tmp_path, "a", 1) == first
    assert len(list((folder / "runs").iterdir())) == 1


def test_a_failure_is_final_for_its_submission_and_kept_by_the_next(tmp_path: Path) -> None:
    assert run(written_job(tmp_path, "a", python("raise SystemExit(2)"), token="t1")) == 2
    assert run(tmp_path / "jobs" / "t1" / "a") == 0  # requeued after all: nothing to do
    assert run(written_job(tmp_path, "a", python("pass"), token="t2")) == 0
    found = result(tmp_path, "a")
    assert found is not None
    assert (found.status, found.token) == ("done", "t2")
    kept = json.loads((tmp_path / "points" / "a-cNone" / "attempts" / "t1.json").read_text())
    assert (kept["status"], kept["exit_code"]) == ("failed", 2)


def test_a_superseded_submission_leaves_its_points_alone(tmp_path: Path) -> None:
    old = written_job(tmp_path, "a", python("print('old')"), token="t1")
    new = written_job(tmp_path, "a", python("print('new')"), token="t2")
    assert run(old) == 0
    assert result(tmp_path, "a") is None
    assert run(new) == 0
    assert (found := result(tmp_path, "a")) is not None
    assert found.token == "t2"


def test_starts_are_bounded(tmp_path: Path) -> None:
    launcher = python("import os, signal; os.kill(os.getppid(), signal.SIGKILL)")
    folder = written_job(tmp_path, "a", launcher, max_runs=2)
    assert [run(folder) for _ in range(3)] == [-9, -9, 1]
    found = result(tmp_path, "a")
    assert found is not None
    assert (found.status, found.reason) == ("failed", "started 2 times without a result")


def test_sigterm_reaches_the_launcher_and_leaves_no_result(tmp_path: Path) -> None:
    launcher = python(
        "import pathlib, signal, sys, time\n"
        "def end(*_): pathlib.Path(sys.argv[1], 'ended').touch(); sys.exit(0 if 0 else 3)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "pathlib.Path(sys.argv[1], 'ready').touch()\n"
        "time.sleep(60)",
        str(tmp_path),
    )
    folder = written_job(tmp_path, "a", launcher)
    with started(folder) as process:
        assert eventually((tmp_path / "ready").exists, 20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert (tmp_path / "ended").exists()
    assert result(tmp_path, "a") is None


def test_the_warning_before_the_time_limit_is_a_failure_with_the_log(tmp_path: Path) -> None:
    launcher = python("import time; print('at work', flush=True); time.sleep(60)", "{concurrency}")
    folder = written_job(tmp_path, "a", launcher, concurrencies=(1, 2), time_minutes=1)
    log = folder / "runs"
    with started(folder) as process:
        assert eventually(lambda: any(p.stat().st_size for p in log.rglob("*.log")), 20)
        process.send_signal(signal.SIGUSR2)
        assert process.wait(20) == 143
    found = [result(tmp_path, "a", load) for load in (1, 2)]
    assert [each and each.reason for each in found] == ["time limit of 1 minute"] * 2
    assert found[0] is not None
    assert found[0].log_tail == "at work"


def test_a_folder_without_a_job(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        run_job(str(tmp_path))
    assert end.value.code == 3


def test_a_damaged_result_is_neither_done_nor_missing(tmp_path: Path) -> None:
    folder = written_job(tmp_path, "a", python("print('ran')"))
    path = tmp_path / "points" / "a-cNone" / "result.json"
    path.write_text('{"version": 1, "stat')
    assert run(folder) == 3
    assert path.read_text() == '{"version": 1, "stat'
    assert not (folder / "runs").exists()


def test_job_files_come_back_as_written(tmp_path: Path) -> None:
    launcher = CommandLauncher(argv=("a", "b c"), environment=(("K", "v"),))
    folder = written_job(tmp_path, "a", launcher, concurrencies=(None, 3))
    job = read_job_file(folder)
    assert (job.launcher, job.max_runs) == (launcher, 3)
    assert [point.concurrency for point in job.points] == [None, 3]
    assert read_result(tmp_path) is None


HOSTS = {
    "": (),
    "n1": ("n1",),
    "gb300-r0-n[01-03,07],x": ("gb300-r0-n01", "gb300-r0-n02", "gb300-r0-n03", "gb300-r0-n07", "x"),
    "r[0-1]-n[08-10]": ("r0-n08", "r0-n09", "r0-n10", "r1-n08", "r1-n09", "r1-n10"),
    "a[9-11]b": ("a9b", "a10b", "a11b"),
}


@pytest.mark.parametrize(("text", "names"), HOSTS.items())
def test_lists_of_hosts(text: str, names: tuple[str, ...]) -> None:
    assert expand_nodes(text) == names


def test_the_allocation_of_an_array_task() -> None:
    here = current_allocation(
        {
            "SLURM_JOB_ID": "131",
            "SLURM_ARRAY_JOB_ID": "127",
            "SLURM_ARRAY_TASK_ID": "4",
            "SLURM_RESTART_COUNT": "2",
            "SLURM_JOB_NODELIST": "n[1-2]",
        }
    )
    assert (here.job_id, here.task_id, here.restarts) == ("131", "127_4", 2)
    assert here.nodes == ("n1", "n2")
    assert here.began <= time.time()


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 15), (2, 30), (4, 60), (8, 120), (240, 120)])
def test_when_a_job_is_warned(minutes: int, seconds: int) -> None:
    assert signal_seconds(minutes) == seconds


def test_the_preflight_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    launcher = preflight_launcher([tmp_path / "model", tmp_path / "image.sqsh", tmp_path / "x"])
    assert run(written_job(tmp_path, "a", launcher)) == 2
    found = result(tmp_path, "a")
    assert found is not None
    assert found.log_tail.splitlines() == [
        f"{tmp_path / 'image.sqsh'}: not on this node",
        f"{tmp_path / 'x'}: not on this node",
    ]
