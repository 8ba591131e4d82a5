"""Arrays on this machine: the same requests, states and files as on Slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from generator.cluster.debug import DebugCluster
from generator.cluster.local import LocalCluster
from generator.cluster.processes import noted_process, start_time
from generator.cluster.protocol import Cluster, Phase, SubmittedArray
from generator.cluster.registry import CLUSTERS, connect
from generator.errors import InvalidInput
from tests.cluster_jobs import all_over, an_array, eventually, python, result, written_job

FAILS_AT_C = python("import sys; sys.exit(4 if sys.argv[1].endswith('c.yaml') else 0)", "{recipe}")
SLEEPS = python("import time; time.sleep(60)")


def phases(cluster: Cluster, array: SubmittedArray) -> list[Phase | None]:
    states = cluster.states([array.job_id]).states
    return [states[task].phase if task in states else None for task in array.task_ids]


@pytest.mark.parametrize("name", ["local", "debug"])
def test_an_array_runs_to_its_end(tmp_path: Path, name: str) -> None:
    cluster = connect(name, tmp_path / "arrays")
    jobs = [written_job(tmp_path, each, FAILS_AT_C) for each in "abcd"]
    array = cluster.submit(an_array(tmp_path, jobs, max_parallel=2))
    assert array.task_ids == tuple(f"local-t1_{index}" for index in range(4))
    assert eventually(lambda: all_over(cluster, array.job_id), 30)
    done = Phase.COMPLETED
    assert phases(cluster, array) == [done, done, Phase.FAILED, done]
    state = cluster.states([array.job_id]).states["local-t1_2"]
    assert (state.exit_code, state.nodes) == (4, ("localhost",))
    found = [result(tmp_path, each) for each in "abcd"]
    assert [each and each.status for each in found] == ["done", "done", "failed", "done"]
    assert [each and each.job_id for each in found] == list(array.task_ids)


def test_a_held_array_waits_and_max_parallel_holds(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "arrays")
    jobs = [written_job(tmp_path, each, python("import time; time.sleep(.3)")) for each in "abc"]
    request = an_array(tmp_path, jobs, max_parallel=1, held=True)
    array = cluster.submit(request)
    assert phases(cluster, array) == [Phase.HELD] * 3
    assert cluster.find(request.job_name) == array.job_id
    cluster.release([array.job_id])
    most = 0
    while not all_over(cluster, array.job_id):
        most = max(most, phases(cluster, array).count(Phase.RUNNING))
        time.sleep(0.02)
    assert most == 1
    assert phases(cluster, array) == [Phase.COMPLETED] * 3


def test_one_job_is_cancelled_and_then_the_array(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "arrays")
    jobs = [written_job(tmp_path, each, SLEEPS) for each in "abc"]
    array = cluster.submit(an_array(tmp_path, jobs, max_parallel=2))
    assert eventually(lambda: phases(cluster, array)[1] is Phase.RUNNING, 20)
    cluster.cancel([array.task_ids[1]])
    wanted = [Phase.RUNNING, Phase.CANCELLED, Phase.RUNNING]
    assert eventually(lambda: phases(cluster, array) == wanted, 20)
    cluster.cancel([array.job_id])
    assert eventually(lambda: phases(cluster, array) == [Phase.CANCELLED] * 3, 20)
    assert [result(tmp_path, each) for each in "abc"] == [None] * 3


def test_a_held_array_can_be_cancelled(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "arrays")
    array = cluster.submit(an_array(tmp_path, [written_job(tmp_path, "a", SLEEPS)], held=True))
    cluster.cancel([array.job_id])
    assert eventually(lambda: phases(cluster, array) == [Phase.CANCELLED], 20)


def test_an_array_waits_for_those_before_it(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "arrays")
    naps = python("import time; time.sleep(.5)")
    first = cluster.submit(an_array(tmp_path, [written_job(tmp_path, "a", naps)]))
    jobs = [written_job(tmp_path, "b", SLEEPS, token="t2")]
    second = cluster.submit(an_array(tmp_path, jobs, token="t2", after=(first.job_id,)))
    jobs = [written_job(tmp_path, "c", naps, token="t3")]
    before = (first.job_id, second.job_id)
    third = cluster.submit(an_array(tmp_path, jobs, token="t3", after=before))
    assert eventually(lambda: phases(cluster, first) == [Phase.COMPLETED], 20)
    assert eventually(lambda: phases(cluster, second) == [Phase.RUNNING], 20)
    assert phases(cluster, third) == [Phase.PENDING]
    cluster.cancel([second.job_id])
    assert eventually(lambda: phases(cluster, third) == [Phase.COMPLETED], 20)


def test_an_array_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "arrays")
    first = cluster.submit(an_array(tmp_path, [written_job(tmp_path, "a", SLEEPS)]))
    jobs = [written_job(tmp_path, "b", SLEEPS, token="t2")]
    second = cluster.submit(an_array(tmp_path, jobs, token="t2", after=(first.job_id,)))
    cluster.cancel([second.task_ids[0]])
    assert eventually(lambda: phases(cluster, second) == [Phase.CANCELLED], 20)
    cluster.cancel([first.job_id])
    assert eventually(lambda: phases(cluster, first) == [Phase.CANCELLED], 20)


def test_another_client_finds_the_array_and_a_dead_runner_is_seen(tmp_path: Path) -> None:
    first, second = LocalCluster(tmp_path / "arrays"), LocalCluster(tmp_path / "arrays")
    request = an_array(tmp_path, [written_job(tmp_path, each, SLEEPS) for each in "ab"])
    array = first.submit(request)
    assert second.find(request.job_name) == array.job_id
    assert second.adopt(request, array.job_id) == array
    assert eventually(lambda: phases(second, array)[0] is Phase.RUNNING, 20)
    runner = json.loads((request.folder / "runner.json").read_text())["pid"]
    cluster_job = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(runner)], capture_output=True, text=True, check=True
    )
    second.cancel([array.task_ids[0]])
    assert eventually(lambda: phases(second, array)[0] is Phase.CANCELLED, 20)
    assert cluster_job.stdout.split()
    subprocess.run(["kill", "-KILL", str(runner)], check=True)
    assert eventually(lambda: second.find(request.job_name) is None, 20)
    assert eventually(lambda: phases(second, array) == [Phase.CANCELLED, None], 10)


def test_debug_finds_nothing_alive_and_scripts_are_shown(tmp_path: Path) -> None:
    cluster = DebugCluster(tmp_path / "arrays")
    request = an_array(tmp_path, [written_job(tmp_path, "a", python("pass"))])
    line = [sys.executable, "-m", "generator.cluster.job", str(tmp_path / "jobs" / "t1" / "a")]
    assert [json.loads(each) for each in cluster.script(request).splitlines()] == [line]
    array = cluster.submit(request)
    assert cluster.find(request.job_name) is None
    assert phases(cluster, array) == [Phase.COMPLETED]


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_cluster_keeps_the_protocol(tmp_path: Path, name: str) -> None:
    assert connect(name, tmp_path).name == name


# Notes its start and the process it leaves, which has no ear for SIGTERM.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
with open(sys.argv[1], "a") as starts:
    starts.write(f"{os.getpid()} {child.pid}\\n")
time.sleep(600)
"""


def test_a_launcher_is_noted_before_it_begins(tmp_path: Path) -> None:
    """So that it is known whenever the job is killed."""
    note = tmp_path / "jobs" / "t1" / "a" / "launcher.json"
    code = "import json, os, sys; sys.exit(json.load(open(sys.argv[1]))['pid'] != os.getpid())"
    cluster = DebugCluster(tmp_path / "arrays")
    array = cluster.submit(
        an_array(tmp_path, [written_job(tmp_path, "a", python(code, str(note)))])
    )
    assert phases(cluster, array) == [Phase.COMPLETED]
    assert not note.exists()


def test_a_launcher_that_cannot_be_noted_is_not_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    job = written_job(tmp_path, "a", python("open(__import__('sys').argv[1], 'w')", str(started)))
    (job / "launcher.json").mkdir()
    cluster = DebugCluster(tmp_path / "arrays")
    with pytest.raises(InvalidInput, match=r"launcher\.json: cannot be written"):
        cluster.submit(an_array(tmp_path, [job]))
    assert not started.exists()


def test_a_job_counts_as_running_while_its_launcher_lives(tmp_path: Path) -> None:
    """Runner and job are killed: the launcher dies of it, what it had started does not."""
    starts = tmp_path / "starts"
    launcher = python(STUBBORN, str(starts))
    cluster = LocalCluster(tmp_path / "arrays")
    job = written_job(tmp_path, "a", launcher)
    request = an_array(tmp_path, [job])
    array = cluster.submit(request)
    assert eventually(starts.exists, 20)
    assert eventually(lambda: len(starts.read_text().split()) == 2, 20)
    own, child = map(int, starts.read_text().split())
    runner = noted_process(request.folder / "runner.json")
    process = noted_process(job / "process.json")
    assert runner
    assert process
    os.kill(runner, signal.SIGKILL)
    os.kill(process, signal.SIGKILL)
    assert eventually(lambda: start_time(own) is None, 20)
    assert eventually(lambda: noted_process(request.folder / "runner.json") is None, 20)
    assert start_time(child) is not None
    assert phases(cluster, array) == [Phase.RUNNING]
    assert cluster.find(request.job_name) == array.job_id
    cluster.cancel([array.job_id])
    assert eventually(lambda: start_time(child) is None, 20)
    assert phases(cluster, array) == [None]
    assert cluster.find(request.job_name) is None


def test_a_job_ends_with_its_runner(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}'); time.sleep(600)"
    cluster = LocalCluster(tmp_path / "arrays")
    request = an_array(tmp_path, [written_job(tmp_path, "a", python(code, str(starts)))])
    array = cluster.submit(request)
    assert eventually(lambda: starts.exists() and bool(starts.read_text()), 20)
    runner = noted_process(request.folder / "runner.json")
    assert runner
    os.kill(runner, signal.SIGKILL)
    assert eventually(lambda: start_time(int(starts.read_text())) is None, 20)
    assert eventually(lambda: phases(cluster, array) == [None], 20)


DEBUGS = """
import sys
from pathlib import Path
from generator.cluster.debug import DebugCluster
from tests.cluster_jobs import an_array, python, written_job

sweep, code = Path(sys.argv[1]), sys.argv[2]
jobs = [written_job(sweep, each, python(code, str(sweep / "starts"))) for each in "ab"]
DebugCluster(sweep / "arrays").submit(an_array(sweep, jobs))
"""


def debugging(sweep: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A client on debug, and the stubborn processes of its first job."""
    client = subprocess.Popen(
        [sys.executable, "-c", DEBUGS, str(sweep), STUBBORN],
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    starts = sweep / "starts"
    assert eventually(lambda: starts.exists() and len(starts.read_text().split()) == 2, 30)
    return client, [int(pid) for pid in starts.read_text().split()]


def test_a_second_interrupt_has_no_patience(tmp_path: Path) -> None:
    client, stubborn = debugging(tmp_path)
    with client:
        while client.poll() is None:
            client.send_signal(signal.SIGINT)
            time.sleep(0.3)
        assert client.stderr
        assert "interrupted by SIGINT" in client.stderr.read()
    assert [start_time(pid) for pid in stubborn] == [None, None]
    cluster = DebugCluster(tmp_path / "arrays")
    states = cluster.states(["local-t1"]).states
    assert [each.phase for each in states.values()] == [Phase.CANCELLED] * 2
    assert len((tmp_path / "starts").read_text().split()) == 2


def test_debug_finds_what_a_killed_client_left(tmp_path: Path) -> None:
    client, (own, child) = debugging(tmp_path)
    with client:
        client.kill()
    assert eventually(lambda: start_time(own) is None, 20)
    assert start_time(child) is not None
    cluster = DebugCluster(tmp_path / "arrays")
    assert cluster.find("sweep.t1") == "local-t1"
    states = cluster.states(["local-t1"]).states
    assert [each.phase for each in states.values()] == [Phase.RUNNING]
    cluster.cancel(["local-t1"])
    assert eventually(lambda: start_time(child) is None, 20)
    assert cluster.find("sweep.t1") is None


SUBMITS = """
import os
import sys
from pathlib import Path
for descriptor in map(int, sys.argv[2:]):
    os.close(descriptor)
from generator.cluster.local import LocalCluster
from tests.cluster_jobs import an_array, python, written_job

sweep = Path(sys.argv[1])
job = written_job(sweep, "a", python("import time; time.sleep(60)"))
LocalCluster(sweep / "arrays").submit(an_array(sweep, [job]))
print("sent")
"""


@pytest.mark.parametrize("closed", [(), ("0",), ("0", "2")], ids="".join)
def test_nobody_waits_for_the_output_of_a_runner(tmp_path: Path, closed: tuple[str, ...]) -> None:
    """The pipe is at its end once the client is, though the array runs on."""
    client = subprocess.run(
        [sys.executable, "-c", SUBMITS, str(tmp_path), *closed],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        cwd=Path(__file__).parent.parent,
    )
    assert (client.stdout, client.stderr) == ("sent\n", "")
    cluster = LocalCluster(tmp_path / "arrays")
    assert cluster.states(["local-t1"]).states["local-t1_0"].phase.is_live
    cluster.cancel(["local-t1"])
    assert eventually(lambda: all_over(cluster, "local-t1"), 20)
    assert (tmp_path / "arrays" / "t1" / "runner.log").exists()
