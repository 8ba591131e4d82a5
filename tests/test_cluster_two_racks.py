"""Two racks with block topology: a deployment stays inside one, or says why it waits."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cluster.protocol import Phase, SubmittedArray
from generator.cluster.slurm import SlurmCluster
from generator.errors import ClusterFailure
from tests.cluster_jobs import all_over, an_array, eventually, python, result, written_job
from tests.rack.fixture import RunningRack, running_rack, why_not
from tests.rack.slurm24 import unpack

pytestmark = [pytest.mark.slurm, pytest.mark.faults]

SLEEPS = python("import time; time.sleep(300)")


@pytest.fixture(scope="module")
def two_racks_of_the_module() -> Iterator[RunningRack]:
    if reason := why_not():
        pytest.skip(reason)
    if platform.machine() != "x86_64":
        pytest.skip("Debian's packages of Slurm 24.11 are unpacked for x86-64 only")
    slurm = unpack(Path(tempfile.gettempdir()) / "pdrecipe-slurm-24.11")
    with running_rack("--racks", "2", "--slurm", str(slurm)) as rack:
        yield rack


@pytest.fixture
def two_racks(
    two_racks_of_the_module: RunningRack, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunningRack]:
    for name, value in two_racks_of_the_module.layout.environment.items():
        monkeypatch.setenv(name, value)
    yield two_racks_of_the_module
    two_racks_of_the_module.mend()


def occupied(rack: RunningRack, sweep: Path, *per_rack: int) -> SubmittedArray:
    """A job that takes the first nodes of each rack."""
    size = rack.layout.nodes
    names = [
        name
        for number, count in enumerate(per_rack)
        for name in rack.nodes[number * size : number * size + count]
    ]
    job = written_job(sweep, "filler", SLEEPS, token="filler")
    where = (("nodelist", ",".join(names)),)
    request = an_array(sweep, [job], token="filler", nodes=len(names), directives=where)
    array = SlurmCluster().submit(request)
    assert eventually(lambda: phase(array) == (Phase.RUNNING, ""), 20)
    return array


def phase(array: SubmittedArray) -> tuple[Phase, str]:
    state = SlurmCluster().states([array.job_id]).states[array.task_ids[0]]
    return state.phase, state.reason


def test_this_slurm_has_segments_of_its_own(two_racks: RunningRack) -> None:
    features = SlurmCluster().features()
    assert features.version.startswith("24.11")
    assert features.segment
    assert len(two_racks.nodes) == 36


def test_a_deployment_never_straddles_racks(two_racks: RunningRack, tmp_path: Path) -> None:
    occupied(two_racks, tmp_path, 10, 9)  # 8 and 9 nodes are left: one deployment in each
    names = [f"j{index}" for index in range(8)]
    jobs = [written_job(tmp_path, name, python("import time; time.sleep(.5)")) for name in names]
    cluster = SlurmCluster()
    array = cluster.submit(an_array(tmp_path, jobs, nodes=6, segment=6))
    assert eventually(lambda: all_over(cluster, array.job_id), 120)
    used = [found.nodes for name in names if (found := result(tmp_path, name))]
    assert [len(nodes) for nodes in used] == [6] * 8
    racks = [{node.split("-")[1] for node in nodes} for nodes in used]
    assert all(len(each) == 1 for each in racks)
    assert {"r0"} in racks
    assert {"r1"} in racks


def test_one_that_cannot_be_placed_yet_says_why(two_racks: RunningRack, tmp_path: Path) -> None:
    filler = occupied(two_racks, tmp_path, 10, 10)  # 16 nodes are idle, 8 in each rack
    job = written_job(tmp_path, "wide", python("pass"))
    cluster = SlurmCluster()
    array = cluster.submit(an_array(tmp_path, [job], nodes=12, segment=12))
    assert eventually(lambda: phase(array) == (Phase.PENDING, "Resources"), 20)
    cluster.cancel([filler.job_id])
    assert eventually(lambda: result(tmp_path, "wide") is not None, 60)
    found = result(tmp_path, "wide")
    assert found is not None
    assert len({node.split("-")[1] for node in found.nodes}) == 1


def test_one_that_can_never_be_placed_is_refused(two_racks: RunningRack, tmp_path: Path) -> None:
    del two_racks
    job = written_job(tmp_path, "huge", python("pass"))
    with pytest.raises(ClusterFailure, match="topology configuration is not available"):
        SlurmCluster().submit(an_array(tmp_path, [job], nodes=20, segment=20))


def test_a_deployment_larger_than_a_rack_in_equal_segments(
    two_racks: RunningRack, tmp_path: Path
) -> None:
    del two_racks
    job = written_job(tmp_path, "large", python("pass"))
    SlurmCluster().submit(an_array(tmp_path, [job], nodes=20, segment=10))
    assert eventually(lambda: result(tmp_path, "large") is not None, 60)
    found = result(tmp_path, "large")
    assert found is not None
    racks = [node.split("-")[1] for node in found.nodes]
    assert (racks.count("r0"), racks.count("r1")) == (10, 10)
