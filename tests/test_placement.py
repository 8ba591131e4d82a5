"""Pools onto nodes, and deployments that no rack holds."""

from __future__ import annotations

import pytest

from generator.errors import InvalidInput
from generator.parallel import parse_pool
from generator.spec.placement import Cluster, check_nodes, nodes_for_pool
from generator.spec.sizing import Derived


@pytest.mark.parametrize(
    ("pool", "gpus_per_node", "nodes", "how"),
    [
        ("1xTEP8", 4, 2, "1 x ceil(8 / 4 GPUs per node)"),
        ("4xTP2DP4+EP", 4, 8, "4 x ceil(8 / 4 GPUs per node)"),
        ("1xTP4DP4+EP", 4, 4, "1 x ceil(16 / 4 GPUs per node)"),
        ("4xDEP2", 4, 2, "ceil(4 workers / 2 per node of 4 GPUs)"),
        ("5xDEP2", 4, 3, "ceil(5 workers / 2 per node of 4 GPUs)"),
        ("7xDEP2", 4, 4, "ceil(7 workers / 2 per node of 4 GPUs)"),
        ("2xDEP3", 4, 2, "ceil(2 workers / 1 per node of 4 GPUs)"),
        ("2xDEP6", 4, 4, "2 x ceil(6 / 4 GPUs per node)"),
        ("1xTP1PP8+EP", 4, 2, "1 x ceil(8 / 4 GPUs per node)"),
    ],
)
def test_nodes(pool: str, gpus_per_node: int, nodes: int, how: str) -> None:
    derived = nodes_for_pool(parse_pool(pool), gpus_per_node)
    assert (derived.value, derived.how) == (nodes, how)


@pytest.mark.parametrize(
    ("pool", "arithmetic"),
    [
        ("1xTP1PP6+EP", "TP1 x PP6 = 6 GPUs, which neither divides a node of 4 GPUs"),
        ("1xTP3", "TP3 x PP1 = 3 GPUs, which neither divides a node of 4 GPUs"),
    ],
)
def test_replica_that_does_not_divide_its_nodes(pool: str, arithmetic: str) -> None:
    with pytest.raises(InvalidInput, match="is a whole number") as error:
        nodes_for_pool(parse_pool(pool), 4)
    assert arithmetic in error.value.problems[0].message


def test_more_nodes_than_the_rack() -> None:
    cluster = Cluster(gpu="gb300", gpus_per_node=4, nodes=18)
    nodes = {"prefill": Derived(value=16, how=""), "decode": Derived(value=4, how="")}
    with pytest.raises(InvalidInput) as error:
        check_nodes(nodes, cluster)
    assert error.value.problems[0].message == (
        "needs 16 prefill + 4 decode = 20 nodes (80 GPUs), but the cluster has 18 nodes (72 GPUs)"
        " in one NVLink domain"
    )
    check_nodes({"prefill": nodes["prefill"], "decode": Derived(value=2, how="")}, cluster)
