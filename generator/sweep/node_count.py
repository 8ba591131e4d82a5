"""How many nodes srt-slurm allocates for a recipe of either layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_GPUS_PER_NODE = 4  # srt-slurm's default where a recipe leaves it out
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})


def node_count(recipe: Mapping[str, Any]) -> int:
    """Nodes of one job: those of its workers and those reserved for other components.

    The recipe must be valid against its schema. Rules: srtctl's submission, read at c88ef731.
    """
    return _worker_nodes(recipe) + _reserved_nodes(recipe)


def gpus_per_node(recipe: Mapping[str, Any]) -> int:
    """GPUs of one node, 4 where the recipe names no number."""
    return _number((recipe.get("resources") or {}).get("gpus_per_node")) or _GPUS_PER_NODE


def is_heterogeneous(recipe: Mapping[str, Any]) -> bool:
    """Whether the recipe asks for a heterogeneous Slurm job: several allocations under one id."""
    return _is_true((recipe.get("resources") or {}).get("het_jobs"))


def _worker_nodes(recipe: Mapping[str, Any]) -> int:
    if "schema" in recipe:
        roles = recipe.get("roles") or {}
        written = {role: (each or {}).get("nodes") for role, each in roles.items()}
    else:
        resources = recipe["resources"]
        written = {role: resources.get(f"{role}_nodes") for role in ("prefill", "decode", "agg")}
    separate = (written.get("prefill"), written.get("decode"))
    if separate != (None, None):
        return sum(_number(nodes) for nodes in separate)
    return _number(written.get("agg")) or 1


def _reserved_nodes(recipe: Mapping[str, Any]) -> int:
    reserved = sum(_dedicated(recipe))
    shared = (recipe.get("benchmark") or {}).get("colocate_with_frontend", True)
    return min(reserved, 1) if _is_true(shared) else reserved


def _dedicated(recipe: Mapping[str, Any]) -> Iterable[bool]:
    """For infrastructure, frontend and client: whether each has a node reserved."""
    infra, frontend, benchmark = (
        recipe.get(section) or {} for section in ("infra", "frontend", "benchmark")
    )
    services = recipe.get("services") or []
    return (
        _is_true(infra.get("etcd_nats_dedicated_node"))
        or any(_is_placed_alone(service) for service in services),
        _is_true(frontend.get("dedicated_node")) or _is_placed_alone(frontend),
        _is_true(benchmark.get("client_dedicated_node")) or _is_placed_alone(benchmark),
    )


def _is_placed_alone(component: Mapping[str, Any]) -> bool:
    return (component.get("placement") or {}).get("node") == "dedicated"


def _number(value: object) -> int:
    """A count as the schema takes it: a number, digits, ``colocate`` or nothing (both 0)."""
    if value is None or str(value).strip().lower() == "colocate":
        return 0
    return int(str(value))


def _is_true(value: object) -> bool:
    """A boolean as the consumer casts it: words in quotes, 1 and 0 too."""
    return value is not None and str(value).lower() not in _FALSE
