"""Worker pools onto the nodes of one NVLink domain, as srt-slurm will place them."""

from __future__ import annotations

from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.parallel import WorkerPool
from generator.spec.sizing import Derived
from generator.units import ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The allocation a deployment may use: nodes of one NVLink domain."""

    gpu: str
    gpus_per_node: int
    nodes: int


def nodes_for_pool(pool: WorkerPool, gpus_per_node: int) -> Derived:
    """Nodes a pool of workers takes, and why.

    A worker that fills a node or more takes whole nodes; smaller workers share a node but never
    straddle two (srt-slurm's endpoint allocation). Raises InvalidInput where one TP x PP replica
    neither divides a node nor is a whole number of nodes.
    """
    layout = pool.layout
    if gpus_per_node % layout.replica_ranks and layout.replica_ranks % gpus_per_node:
        raise InvalidInput(
            Problem(
                message=(
                    f"layout '{layout}': one replica takes TP{layout.tensor} x PP{layout.pipeline}"
                    f" = {layout.replica_ranks} GPUs, which neither divides a node of"
                    f" {gpus_per_node} GPUs nor is a whole number of nodes"
                ),
                hint=f"choose TP x PP that divides {gpus_per_node} or is a multiple of it",
            )
        )
    ranks = layout.ranks
    if ranks >= gpus_per_node:
        nodes_per_worker = ceil_div(ranks, gpus_per_node)
        return Derived(
            value=pool.workers * nodes_per_worker,
            how=f"{pool.workers} x ceil({ranks} / {gpus_per_node} GPUs per node)",
        )
    workers_per_node = gpus_per_node // ranks
    return Derived(
        value=ceil_div(pool.workers, workers_per_node),
        how=f"ceil({pool.workers} workers / {workers_per_node} per node of {gpus_per_node} GPUs)",
    )


def check_nodes(role_nodes: dict[str, Derived], cluster: Cluster) -> None:
    """Raise InvalidInput, with the sum, where a deployment needs more nodes than the cluster."""
    total = sum(nodes.value for nodes in role_nodes.values())
    if total > cluster.nodes:
        terms = [f"{nodes.value} {role}" for role, nodes in role_nodes.items()]
        parts = f"{' + '.join(terms)} = " if len(terms) > 1 else ""
        gpus, limit = total * cluster.gpus_per_node, cluster.nodes * cluster.gpus_per_node
        raise InvalidInput(
            Problem(
                message=(
                    f"needs {parts}{total} nodes ({gpus} GPUs), but the cluster has"
                    f" {cluster.nodes} nodes ({limit} GPUs) in one NVLink domain"
                ),
                hint="use fewer or smaller workers",
            )
        )
