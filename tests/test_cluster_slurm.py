"""Arrays on a real Slurm: what is sent, what comes back, what a job sees."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from generator.cluster.protocol import ArrayRequest, JobState, Phase, SubmittedArray
from generator.cluster.slurm import SlurmCluster
from generator.errors import ClusterFailure
from tests.cluster_jobs import all_over, an_array, eventually, python, result, written_job
from tests.rack.fixture import RunningRack

pytestmark = pytest.mark.slurm

SLEEPS = python("import time; time.sleep(300)")


def submitted(request: ArrayRequest) -> tuple[SlurmCluster, SubmittedArray]:
    cluster = SlurmCluster()
    return cluster, cluster.submit(request)


def states(cluster: SlurmCluster, array: SubmittedArray) -> list[JobState]:
    found = cluster.states([array.job_id]).states
    return [found[task_id] for task_id in array.task_ids if task_id in found]


def phases(cluster: SlurmCluster, array: SubmittedArray) -> list[Phase]:
    return [state.phase for state in states(cluster, array)]


def test_features(rack: RunningRack) -> None:
    features = SlurmCluster().features()
    assert features.segment
    assert features.accounting
    assert features.max_array_tasks == rack.layout.max_array_size
    assert features.partitions == ("batch", "urgent")
    options = rack.layout.etc / "plugstack.conf"  # without it, this Slurm has no --segment
    options.rename(options.with_suffix(".off"))
    try:
        assert SlurmCluster().features().segment == (features.version >= "24.05")
    finally:
        options.with_suffix(".off").rename(options)


def test_an_array_runs_once_each_on_its_nodes(rack: RunningRack, tmp_path: Path) -> None:
    launcher = python("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")
    jobs = [written_job(tmp_path, f"j{index}", launcher) for index in range(6)]
    request = an_array(tmp_path, jobs, nodes=6, segment=6)
    cluster, array = submitted(request)
    assert array.task_ids == tuple(f"{array.job_id}_{index}" for index in range(6))
    assert cluster.find(request.job_name) == array.job_id
    assert eventually(lambda: all_over(cluster, array.job_id))
    results = [result(tmp_path, f"j{index}") for index in range(6)]
    assert [found and found.status for found in results] == ["done"] * 6
    assert [found and found.job_id for found in results] == list(array.task_ids)
    assert all(found and len(found.nodes) == 6 for found in results)
    assert all(found and set(found.nodes) <= set(rack.nodes) for found in results)
    assert eventually(lambda: phases(cluster, array) == [Phase.COMPLETED] * 6)
    assert cluster.find(request.job_name) is None


def test_an_array_of_one_is_a_plain_job(rack: RunningRack, tmp_path: Path) -> None:
    del rack
    _, array = submitted(an_array(tmp_path, [written_job(tmp_path, "a", python("pass"))]))
    assert array.task_ids == (array.job_id,)
    assert eventually(lambda: result(tmp_path, "a") is not None)


def test_steps_run_beside_the_job_on_its_first_node(rack: RunningRack, tmp_path: Path) -> None:
    launcher = python(
        "import subprocess, sys\n"
        "sys.exit(subprocess.run(['srun', '--overlap', '--ntasks=3', '--ntasks-per-node=1',"
        " '--container-image=x.sqsh', 'printenv', 'SLURMD_NODENAME']).returncode)"
    )
    cluster, array = submitted(an_array(tmp_path, [written_job(tmp_path, "a", launcher)], nodes=3))
    assert eventually(lambda: result(tmp_path, "a") is not None)
    found = result(tmp_path, "a")
    assert found is not None
    log = (Path(found.output) / "launcher.log").read_text()
    assert (found.status, sorted(log.split())) == ("done", sorted(found.nodes))
    assert set(found.nodes) <= set(rack.nodes)
    assert eventually(lambda: all_over(cluster, array.job_id))


def test_ends_of_all_kinds_leave_the_rest_alone(rack: RunningRack, tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "name = os.path.basename(sys.argv[1])\n"
        "if name.startswith('exit'): sys.exit(9)\n"
        "if name.startswith('kill'): os.kill(os.getpid(), 11)\n"
        "if name.startswith('sleep'): time.sleep(300)\n"
    )
    names = ["good", "exit", "kill", "sleep", "more"]
    jobs = [written_job(tmp_path, name, python(code, "{recipe}")) for name in names]
    cluster, array = submitted(an_array(tmp_path, jobs))
    assert eventually(lambda: (phases(cluster, array) + [None] * 4)[3] is Phase.RUNNING)
    cluster.cancel([array.task_ids[3]])
    assert eventually(lambda: all_over(cluster, array.job_id))
    wanted = [Phase.COMPLETED, Phase.FAILED, Phase.FAILED, Phase.CANCELLED, Phase.COMPLETED]
    assert eventually(lambda: phases(cluster, array) == wanted)
    codes = [0, 9, 11]  # accounting is late, and Slurm drops the 128 of a signal
    assert eventually(lambda: [s.exit_code for s in states(cluster, array)][:3] == codes)
    results = [result(tmp_path, name) for name in names]
    reasons = [None if found is None else found.reason for found in results]
    assert reasons == [
        "",
        "the launcher ended with 9",
        "the launcher was killed by SIGSEGV",
        None,
        "",
    ]
    assert not cluster.node_problems()
    assert rack.nodes


def test_held_arrays_wait_and_at_most_so_many_run(rack: RunningRack, tmp_path: Path) -> None:
    del rack
    launcher = python("import time; time.sleep(1)")
    jobs = [written_job(tmp_path, f"j{index}", launcher) for index in range(5)]
    cluster, array = submitted(an_array(tmp_path, jobs, max_parallel=2, held=True))
    assert eventually(lambda: phases(cluster, array) == [Phase.HELD] * 5)
    time.sleep(1)
    assert phases(cluster, array) == [Phase.HELD] * 5
    cluster.release([array.job_id])
    most = 0
    while not all_over(cluster, array.job_id):
        most = max(most, phases(cluster, array).count(Phase.RUNNING))
    assert most == 2
    assert all(result(tmp_path, f"j{index}") for index in range(5))


def test_arrays_wait_for_those_before_them(rack: RunningRack, tmp_path: Path) -> None:
    """Two lanes of one job: a held array in between, one that is cancelled, one long gone."""
    del rack
    cluster, ids = SlurmCluster(), ["999999"]
    arrays = []
    naps = python("import time; time.sleep(1)")
    for number in range(4):
        token = f"t{number}"
        jobs = [written_job(tmp_path, f"{token}{each}", naps, token=token) for each in "ab"]
        after = (ids[0], *ids[1 + number % 2 :: 2])
        request = an_array(
            tmp_path, jobs, token=token, max_parallel=1, held=number == 2, after=after
        )
        arrays.append(cluster.submit(request))
        ids.append(arrays[-1].job_id)
    most, done = 0, [Phase.COMPLETED] * 2
    while not all_over(cluster, ids[4]):
        seen = cluster.states(ids[1:]).states.values()
        most = max(most, sum(each.phase is Phase.RUNNING for each in seen))
    assert eventually(lambda: phases(cluster, arrays[0]) == done)
    assert phases(cluster, arrays[2]) == [Phase.HELD] * 2
    cluster.release([ids[3]])
    assert eventually(lambda: all_over(cluster, ids[3]))
    assert most == 2
    assert eventually(lambda: phases(cluster, arrays[2]) == done)


def test_the_callers_environment_has_no_effect(
    rack: RunningRack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del rack
    for name, value in {
        "SBATCH_PARTITION": "nowhere",
        "SBATCH_TIMELIMIT": "7",
        "SBATCH_HOLD": "1",
        "SLURM_JOB_ID": "99",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_NNODES": "9",
        "SQUEUE_FORMAT": "%.7i",
        "SQUEUE_STATES": "TIMEOUT",
        "SACCT_FORMAT": "user",
        "SUBMITIT_EXECUTOR": "local",
    }.items():
        monkeypatch.setenv(name, value)
    launcher = python(
        "import json, os\n"
        "print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('S')}))"
    )
    cluster, array = submitted(an_array(tmp_path, [written_job(tmp_path, "a", launcher)]))
    assert eventually(lambda: result(tmp_path, "a") is not None)
    found = result(tmp_path, "a")
    assert found is not None
    seen = json.loads((Path(found.output) / "launcher.log").read_text())
    assert (seen["SLURM_JOB_ID"], seen["SLURM_JOB_PARTITION"]) == (array.job_id, "batch")
    assert (seen["SLURM_NNODES"], seen["SUBMITIT_EXECUTOR"]) == ("1", "slurm")
    assert not [name for name in seen if name.startswith(("SBATCH_", "SQUEUE_", "SACCT_"))]
    assert eventually(lambda: all_over(cluster, array.job_id))


def test_a_refusal_in_slurms_own_words(rack: RunningRack, tmp_path: Path) -> None:
    del rack
    job = written_job(tmp_path, "a", python("pass"))
    with pytest.raises(ClusterFailure, match="invalid partition specified: nowhere"):
        SlurmCluster().submit(an_array(tmp_path, [job], partition="nowhere"))


def test_a_submission_cut_short_is_adopted(rack: RunningRack, tmp_path: Path) -> None:
    del rack
    jobs = [written_job(tmp_path, f"j{index}", python("pass")) for index in range(3)]
    request = an_array(tmp_path, jobs, held=True)
    cluster, array = submitted(request)
    for file in request.folder.glob("*_submitted.pkl"):
        file.unlink()  # the client died between sbatch and the moving of its pickles
    found = SlurmCluster().find(request.job_name)
    assert found == array.job_id
    assert SlurmCluster().adopt(request, found) == array
    cluster.release([found])
    assert eventually(lambda: all_over(cluster, found))
    results = [result(tmp_path, f"j{index}") for index in range(3)]
    assert [each and each.job_id for each in results] == list(array.task_ids)


def test_the_script_that_is_shown_is_the_one_that_is_sent(
    rack: RunningRack, tmp_path: Path
) -> None:
    del rack
    jobs = [written_job(tmp_path, f"j{index}", python("pass")) for index in range(2)]
    extra = (("mail-type", "FAIL"), ("contiguous", None))
    request = an_array(tmp_path, jobs, nodes=2, segment=2, held=True, directives=extra)
    shown = SlurmCluster().script(request)
    cluster, array = submitted(request)
    assert (request.folder / f"{array.job_id}_submission.sh").read_text() == shown
    for line in ("--signal=B:USR2@120", "--segment=2", "--requeue", "--hold", "--contiguous"):
        assert f"#SBATCH {line}\n" in shown
    assert "wckey" not in shown
    cluster.cancel([array.job_id])
    assert eventually(lambda: phases(cluster, array) == [Phase.CANCELLED] * 2)


def test_nothing_is_concluded_while_the_queue_is_silent(rack: RunningRack, tmp_path: Path) -> None:
    cluster, array = submitted(an_array(tmp_path, [written_job(tmp_path, "a", SLEEPS)]))
    assert eventually(lambda: phases(cluster, array) == [Phase.RUNNING])
    rack.verb("stop", "slurmctld")
    report = cluster.states([array.job_id])
    assert (report.queue_answered, report.accounting_answered) == (False, True)
    assert report.states[array.job_id].phase.is_live  # sacct may not have seen it start
    assert "squeue refused" in report.problems[0]
    rack.verb("start", "slurmctld")
    assert eventually(lambda: cluster.states([array.job_id]).queue_answered)
    assert phases(cluster, array) == [Phase.RUNNING]


def test_without_accounting_the_queue_still_answers(rack: RunningRack, tmp_path: Path) -> None:
    rack.verb("stop", "slurmdbd")
    launcher = python("raise SystemExit(3)")
    cluster, array = submitted(an_array(tmp_path, [written_job(tmp_path, "a", launcher)]))
    assert eventually(lambda: result(tmp_path, "a") is not None)
    assert eventually(lambda: all_over(cluster, array.job_id))
    report = cluster.states([array.job_id])
    assert (report.queue_answered, report.accounting_answered) == (True, False)
    assert report.states[array.job_id].phase is Phase.FAILED
    assert report.states[array.job_id].exit_code is None


@pytest.mark.faults
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
