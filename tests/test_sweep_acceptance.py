"""What a cluster would not take: refused before anything is sent, or kept as the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.errors import ClusterFailure, InvalidInput
from generator.sweep.folder import create_sweep
from generator.sweep.selection import never_sent, unfinished
from generator.sweep.statuses import PointState
from generator.sweep.swept_recipe import SweptRecipe
from tests.fake_cluster import FakeCluster
from tests.small_sweeps import client, recipes, resume, states, submit, sweep_folder
from tests.swept_recipes import numbered, recipe

REFUSAL = "sbatch refused: Batch job submission failed: Invalid feature specification"


def problems(root: Path, cluster: FakeCluster, swept: list[SweptRecipe]) -> list[str]:
    """Why a plan of these recipes is refused, once the sweep has them."""
    folder = sweep_folder(root)
    work = client(folder, cluster)
    with folder.locked():
        work.add(swept)
        view = work.look()
        with pytest.raises(InvalidInput) as refused:
            work.plan(view, never_sent, swept)
    assert cluster.submissions == 0
    return [str(each) for each in refused.value.problems]


def with_partition(name: str) -> SweptRecipe:
    return recipe(("time_limit: '1:00:00'", f"time_limit: '1:00:00', partition: '{name}'"))


def test_deployments_larger_than_a_rack_are_all_named(tmp_path: Path) -> None:
    swept = [numbered(0, nodes=20), numbered(1), numbered(2, nodes=22)]
    found = problems(tmp_path, FakeCluster(), swept)
    assert [each.split(" are ")[0] for each in found] == [
        "tiny.yaml: 20 nodes",
        "tiny.yaml: 22 nodes",
    ]


def test_partitions_that_the_cluster_does_not_have_are_all_named(tmp_path: Path) -> None:
    cluster = FakeCluster(partitions=("batch", "urgent"))
    found = problems(tmp_path, cluster, [with_partition("batch,nightly"), numbered(1)])
    assert found == [
        "tiny.yaml: slurm.partition: this Slurm has no partition 'nightly' (it has batch, urgent)"
    ]


@pytest.mark.parametrize("known", [("batch", "nightly"), ()], ids=["both", "no partitions at all"])
def test_partition_that_is_there_or_that_nobody_asks_for(
    tmp_path: Path, known: tuple[str, ...]
) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster(partitions=known)
    submit(folder, cluster, [with_partition("batch,nightly")])
    assert cluster.submissions == 1


def test_path_in_which_slurm_would_put_something_else(tmp_path: Path) -> None:
    root = tmp_path / "100%"
    root.mkdir()
    (found,) = problems(root, FakeCluster(expands_in_paths="%"), recipes(1))
    assert found.startswith(f"{root}/sweep: has % in its path, which Slurm replaces")
    folder, cluster = sweep_folder(root), FakeCluster()
    submit(folder, cluster, recipes(1))  # processes on this machine have no such rule
    assert cluster.submissions == 1
    assert create_sweep(folder.root) == folder


def test_refusal_is_kept_as_the_reason_until_it_is_sent_again(tmp_path: Path) -> None:
    folder, cluster = sweep_folder(tmp_path), FakeCluster(refuses=REFUSAL)
    with pytest.raises(ClusterFailure, match="Invalid feature"):
        submit(folder, cluster, recipes(1))
    cluster.refuses = ""
    with folder.locked():
        view = client(folder, cluster).look()
    assert {(each.state, each.why) for each in view.statuses} == {(PointState.LOST, REFUSAL)}
    assert states(resume(folder, cluster, unfinished)) == {PointState.SUBMITTED: 2}
    assert cluster.submissions == 1
