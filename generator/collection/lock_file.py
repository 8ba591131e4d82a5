"""The ``lock`` section that srtctl adds to the recipe of a finished run: what really ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_MACHINE_FACTS = {"cuda_version": "cuda.version", "nccl_version": "nccl.version"}
_SEALED_VERSION = 2
_SEAL = "integrity"  # the last line of the section since version 2
_UNKNOWN = frozenset({"", "none", "unavailable", "unknown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Versions by the contract's names, each with every value that a worker had.

    ``gpus`` is what the allocation held, None where the lock does not say. ``is_there`` is false
    for a recipe without the section, ``is_whole`` for one whose end is missing.
    """

    is_there: bool = False
    is_whole: bool = True
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gpus: int | None = None


def lock_of(recipe: Mapping[str, Any]) -> Lock:
    """The lock of a parsed recipe; an empty one where there is none. Odd parts are left out."""
    lock = _mapping(recipe.get("lock"))
    found: dict[str, set[str]] = {}
    for print_ in _mapping(lock.get("fingerprints")).values():
        for name, value in _facts(_mapping(print_)):
            if value is not None and str(value).lower() not in _UNKNOWN:
                found.setdefault(name, set()).add(str(value))
    return Lock(
        is_there="lock" in recipe,
        is_whole=_SEAL in lock or lock.get("version") != _SEALED_VERSION,
        versions={name: tuple(sorted(values)) for name, values in sorted(found.items())},
        gpus=snapshot_gpus(_mapping(lock.get("resource_snapshot"))),
    )


def _facts(fingerprint: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, version in _mapping(fingerprint.get("frameworks")).items():
        yield f"{name}.version", version
    for key, name in _MACHINE_FACTS.items():
        yield name, fingerprint.get(key)
    gpu = _mapping(fingerprint.get("gpu"))
    yield "gpu.driver", gpu.get("driver_version")


def snapshot_gpus(snapshot: Mapping[str, Any]) -> int | None:
    """GPUs of the nodes in a ``resource_snapshot``: nodes times GPUs of one."""
    nodes = _mapping(snapshot.get("nodes")).get("count")
    per_node = _mapping(snapshot.get("gpus")).get("configured_per_node")
    if isinstance(nodes, int) and isinstance(per_node, int) and nodes > 0 and per_node > 0:
        return nodes * per_node
    return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
