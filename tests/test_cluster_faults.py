"""What becomes of jobs when a real Slurm loses nodes, daemons or patience."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.cluster.job_file import CommandLauncher
from generator.cluster.protocol import Phase, SubmittedArray
from generator.cluster.slurm import SlurmCluster
from generator.errors import ClusterFailure
from tests.cluster_jobs import all_over, an_array, eventually, python, result, written_job
from tests.rack.fixture import RunningRack

pytestmark = [pytest.mark.slurm, pytest.mark.faults]


def counted(seconds: float) -> CommandLauncher:
    """A launcher that notes its start and its end, then is done."""
    return python(
        "import pathlib, sys, time\n"
        "note = lambda kind: open(pathlib.Path(sys.argv[1]).with_suffix(kind), 'a').write('x')\n"
        "note('.began')\n"
        "time.sleep(float(sys.argv[2]))\n"
        "note('.ended')",
        "{recipe}",
        str(seconds),
    )


def count(sweep: Path, name: str, kind: str) -> int:
    """How often the launcher of a job began, or ended."""
    path = sweep / f"{name}.{kind}"
    return len(path.read_text()) if path.exists() else 0


def phases(cluster: SlurmCluster, array: SubmittedArray) -> list[Phase]:
    found = cluster.states([array.job_id]).states
    return [found[task_id].phase for task_id in array.task_ids if task_id in found]


def have_results(sweep: Path, names: Sequence[str]) -> bool:
    return all(result(sweep, name) is not None for name in names)


def test_two_hundred_jobs_are_sent_in_seconds_and_run_once_each(
    rack: RunningRack, tmp_path: Path
) -> None:
    del rack
    names = [f"j{index}" for index in range(200)]
    jobs = [written_job(tmp_path, name, counted(0)) for name in names]
    cluster = SlurmCluster()
    began = time.monotonic()
    array = cluster.submit(an_array(tmp_path, jobs, nodes=4, segment=4))
    assert time.monotonic() - began < 10
    assert eventually(lambda: all_over(cluster, array.job_id), 300, every=1)
    assert [count(tmp_path, name, "ended") for name in names] == [1] * 200
    results = [result(tmp_path, name) for name in names]
    assert [(each and each.status, each and each.run) for each in results] == [("done", 1)] * 200
    assert eventually(lambda: phases(cluster, array) == [Phase.COMPLETED] * 200, 30, every=1)


def test_a_time_limit_is_a_failure_with_the_end_of_the_log(
    rack: RunningRack, tmp_path: Path
) -> None:
    del rack
    code = "import time; print('step 1', flush=True); time.sleep(400)"
    jobs = [
        written_job(tmp_path, "long", python(code), time_minutes=1),
        written_job(tmp_path, "short", python("pass"), time_minutes=1),
    ]
    cluster = SlurmCluster()
    array = cluster.submit(an_array(tmp_path, jobs, time_minutes=1))
    assert eventually(lambda: have_results(tmp_path, ["long", "short"]), 120, every=1)
    found = result(tmp_path, "long")
    assert found is not None
    assert (found.status, found.reason) == ("failed", "time limit of 1 minutes")
    assert found.log_tail == "step 1"
    assert eventually(lambda: phases(cluster, array) == [Phase.FAILED, Phase.COMPLETED], 30)


def test_the_warning_does_not_reach_the_steps(rack: RunningRack, tmp_path: Path) -> None:
    """A server in a step must hear nothing of USR2; its launcher ends it in order."""
    del rack
    code = (
        "import signal, subprocess, sys\n"
        "step = subprocess.Popen(['srun', '--overlap', 'sleep', '400'])\n"
        "def end(*_):\n"
        "    print('step', step.poll(), flush=True); step.terminate(); step.wait(); sys.exit(5)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "step.wait()\n"
        "print('step ended with', step.returncode)"
    )
    cluster = SlurmCluster()
    launcher = CommandLauncher(argv=("sh", "-c", 'exec "$@"', "sh", *python(code).argv))
    job = written_job(tmp_path, "a", launcher, time_minutes=1)
    array = cluster.submit(an_array(tmp_path, [job], time_minutes=1))
    assert eventually(lambda: have_results(tmp_path, ["a"]), 120, every=1)
    found = result(tmp_path, "a")
    assert found is not None
    assert found.reason == "time limit of 1 minutes"
    assert "step None" in (Path(found.output) / "launcher.log").read_text()
    assert eventually(lambda: all_over(cluster, array.job_id), 30)


def test_out_of_memory(rack: RunningRack, tmp_path: Path) -> None:
    del rack
    jobs = [
        written_job(tmp_path, "greedy", python("x = bytearray(10**9); import time; time.sleep(9)")),
        written_job(tmp_path, "modest", python("pass")),
    ]
    cluster = SlurmCluster()
    array = cluster.submit(an_array(tmp_path, jobs, directives=(("mem", "200M"),)))
    wanted = [Phase.OUT_OF_MEMORY, Phase.COMPLETED]
    assert eventually(lambda: phases(cluster, array) == wanted, 60)
    assert result(tmp_path, "modest") is not None
    found = result(tmp_path, "greedy")
    assert found is not None
    assert (found.status, found.reason) == ("failed", "out of memory")


def test_preemption_puts_a_job_back_and_it_counts_once(rack: RunningRack, tmp_path: Path) -> None:
    cluster, everything = SlurmCluster(), len(rack.nodes)
    low_job = written_job(tmp_path, "low", counted(15))
    low = cluster.submit(an_array(tmp_path, [low_job], nodes=everything))
    assert eventually(lambda: count(tmp_path, "low", "began") == 1, 20)
    high_job = written_job(tmp_path, "high", counted(1), token="t2")
    request = an_array(tmp_path, [high_job], token="t2", nodes=everything, partition="urgent")
    cluster.submit(request)
    seen: set[Phase] = set()

    def is_done() -> bool:
        seen.update(phases(cluster, low))
        return have_results(tmp_path, ["low", "high"])

    assert eventually(is_done, 150, every=0.3)
    assert not seen & {Phase.FAILED, Phase.CANCELLED, Phase.NODE_FAILURE, Phase.TIME_LIMIT}
    found = result(tmp_path, "low")
    assert found is not None
    assert (found.status, found.run) == ("done", 2)
    assert (count(tmp_path, "low", "began"), count(tmp_path, "low", "ended")) == (2, 1)
    assert eventually(lambda: phases(cluster, low) == [Phase.COMPLETED], 30)


def test_a_lost_node_costs_its_job_a_run_and_the_others_nothing(
    rack: RunningRack, tmp_path: Path
) -> None:
    cluster, names = SlurmCluster(), ["a", "b", "c", "d"]
    jobs = [written_job(tmp_path, name, counted(20)) for name in names]
    array = cluster.submit(an_array(tmp_path, jobs, nodes=2))
    assert eventually(lambda: all(count(tmp_path, n, "began") == 1 for n in names), 30)
    lost = cluster.states([array.job_id]).states[array.task_ids[1]].nodes[0]
    rack.verb("lose", lost)
    seen: set[Phase] = set()

    def is_done() -> bool:
        states = cluster.states([array.job_id]).states
        seen.update(state.phase for state in states.values())
        return have_results(tmp_path, names)

    assert eventually(is_done, 200, every=0.5)
    assert seen <= {Phase.RUNNING, Phase.REQUEUED, Phase.PENDING, Phase.COMPLETED}
    assert [count(tmp_path, name, "ended") for name in names] == [1] * 4
    assert [count(tmp_path, name, "began") for name in names] == [1, 2, 1, 1]
    found = result(tmp_path, "b")
    assert found is not None
    assert (found.status, found.run, lost in found.nodes) == ("done", 2, False)
    assert [problem.node for problem in cluster.node_problems()] == [lost]


def test_a_restart_of_the_controller_changes_nothing(rack: RunningRack, tmp_path: Path) -> None:
    cluster, names = SlurmCluster(), [f"j{index}" for index in range(24)]
    jobs = [written_job(tmp_path, name, counted(3)) for name in names]
    array = cluster.submit(an_array(tmp_path, jobs, max_parallel=6))
    assert eventually(lambda: sum(count(tmp_path, n, "ended") for n in names) >= 4, 60)
    rack.verb("stop", "slurmctld")
    with pytest.raises(ClusterFailure):
        cluster.find("anything")
    time.sleep(5)
    rack.verb("start", "slurmctld")
    assert eventually(lambda: have_results(tmp_path, names), 120, every=0.5)
    assert [count(tmp_path, name, "began") for name in names] == [1] * 24
    assert eventually(lambda: phases(cluster, array) == [Phase.COMPLETED] * 24, 30)


def test_a_killed_controller_costs_time_and_no_work(rack: RunningRack, tmp_path: Path) -> None:
    """Slurm forgets its last seconds: it runs jobs again, whose results then speak for them."""
    cluster, names = SlurmCluster(), [f"j{index}" for index in range(24)]
    jobs = [written_job(tmp_path, name, counted(3)) for name in names]
    array = cluster.submit(an_array(tmp_path, jobs, max_parallel=6))
    assert eventually(lambda: sum(count(tmp_path, n, "ended") for n in names) >= 8, 60)
    rack.verb("kill", "slurmctld")
    time.sleep(5)
    rack.verb("start", "slurmctld")

    def is_over() -> bool:
        held = [
            task_id
            for task_id, state in cluster.states([array.job_id]).states.items()
            if state.phase is Phase.HELD
        ]
        if held:
            cluster.release(held)
        return all_over(cluster, array.job_id)

    assert eventually(is_over, 400, every=1)
    assert have_results(tmp_path, names)
    assert [count(tmp_path, name, "ended") for name in names] == [1] * 24
    for problem in cluster.node_problems():
        assert problem.reason == "Duplicate jobid"


def test_the_largest_array_and_one_more(rack: RunningRack, tmp_path: Path) -> None:
    cluster = SlurmCluster()
    largest = cluster.features().max_array_tasks
    job = written_job(tmp_path, "a", python("pass"))
    array = cluster.submit(an_array(tmp_path, [job] * largest, held=True))
    assert array.task_ids[-1] == f"{array.job_id}_{largest - 1}"
    assert len(cluster.states([array.job_id]).states) == largest == rack.layout.max_array_size
    cluster.cancel([array.job_id])
    with pytest.raises(ClusterFailure, match="Invalid job array specification"):
        cluster.submit(an_array(tmp_path, [job] * (largest + 1), token="t2", held=True))
