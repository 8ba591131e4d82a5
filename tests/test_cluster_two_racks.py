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
from tests.cluster_jobs import an_array, eventually, python, written_job
from tests.rack.fixture import RunningRack, running_rack, why_not
from tests.rack.slurm24 import unpack
from tests.rack_sweeps import (
    assert_all_done_once,
    assert_states,
    document,
    jobs_last,
    prepared,
    submission,
    submit,
    write_recipes,
)
from tests.small_specs import run

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


@pytest.fixture
def two_racks_home(two_racks: RunningRack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder, which is the current one, from which a test sends sweeps there."""
    del two_racks
    monkeypatch.chdir(tmp_path)
    return prepared(tmp_path)


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
    assert eventually(lambda: phase(array) == (Phase.RUNNING, ""))
    return array


def phase(array: SubmittedArray) -> tuple[Phase, str]:
    state = SlurmCluster().states([array.job_id]).states[array.task_ids[0]]
    return state.phase, state.reason


def test_this_slurm_has_segments_of_its_own(two_racks: RunningRack) -> None:
    features = SlurmCluster().features()
    assert features.version.startswith("24.11")
    assert features.segment
    assert len(two_racks.nodes) == 36


def test_a_deployment_never_straddles_racks(two_racks_home: Path, two_racks: RunningRack) -> None:
    home = two_racks_home
    occupied(two_racks, home, 10, 9)  # 8 and 9 nodes are left: one deployment in each
    write_recipes(8, nodes=6, sizes=1)
    jobs_last(home, 0.5)
    submit(home)
    assert_states(done=8)
    assert_all_done_once(home, 8)
    used = [each["nodes"] for each in document()["points"]]
    assert [len(nodes) for nodes in used] == [6] * 8
    racks = [{node.split("-")[1] for node in nodes} for nodes in used]
    assert {frozenset(each) for each in racks} == {frozenset({"r0"}), frozenset({"r1"})}


def test_one_that_cannot_be_placed_yet_says_why(
    two_racks_home: Path, two_racks: RunningRack
) -> None:
    filler = occupied(two_racks, two_racks_home, 10, 10)  # 16 nodes are idle, 8 in each rack
    write_recipes(1, nodes=12)
    submit(two_racks_home)
    assert eventually(lambda: waits_for() == "Resources"), waits_for()
    assert "Resources" in run("status", "s").stdout
    SlurmCluster().cancel([filler.job_id])
    assert_states(done=1)
    (point,) = document()["points"]
    assert len({node.split("-")[1] for node in point["nodes"]}) == 1


def waits_for() -> str:
    (point,) = document()["points"]
    assert point["state"] == "submitted"
    return str(point["why"])


def test_one_that_can_never_be_placed_is_refused(two_racks: RunningRack, tmp_path: Path) -> None:
    del two_racks
    job = written_job(tmp_path, "huge", python("pass"))
    with pytest.raises(ClusterFailure, match="topology configuration is not available"):
        SlurmCluster().submit(an_array(tmp_path, [job], nodes=20, segment=20))


def test_a_deployment_larger_than_a_rack_in_equal_segments(two_racks_home: Path) -> None:
    write_recipes(1, nodes=20)
    refused = run(*submission(two_racks_home))
    assert refused.exit_code == 3
    assert "20 nodes are more than a rack of 18" in refused.stderr
    Path("site.yaml").write_text("{version: 1, name: two, slurm: {racks: 2}}", encoding="utf-8")
    submit(two_racks_home, "--site", "site.yaml")
    assert_states(done=1)
    racks = [node.split("-")[1] for node in document()["points"][0]["nodes"]]
    assert (racks.count("r0"), racks.count("r1")) == (10, 10)
