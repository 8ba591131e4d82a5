"""An srt-slurm recipe apart from its layout: the same object for v1 and v2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

FieldPath = tuple[str, ...]


class Dialect(StrEnum):
    """The two layouts srt-slurm reads: v1 (releases 1.0.x) and v2 (``schema: 2``)."""

    V1 = "v1"
    V2 = "v2"


# What a benchmark section may say in v1.0.98 and nowhere else (srt-slurm facts).
V1_ONLY_BENCHMARK_KEYS = ("backend", "endpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Workers of one role: ``prefill``, ``decode`` or ``agg``. ``gpus`` are one worker's."""

    name: str
    nodes: int
    workers: int
    gpus: int
    environment: Mapping[str, str]
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One job: a deployment and the benchmark that runs against it.

    Sections are plain mappings in the v1 spelling. ``sections`` holds what both layouts write the
    same way. ``comments`` explain single values by path, e.g. ``("roles", "decode", "nodes")``;
    they are not part of a recipe's meaning.
    """

    name: str
    gpu_type: str
    gpus_per_node: int
    model: Mapping[str, Any]
    engine: str
    has_connector: bool
    connector: str | None
    roles: tuple[Role, ...]
    benchmark: Mapping[str, Any]
    identity: Mapping[str, Any] | None = None
    time_limit: str | None = None
    dynamo: Mapping[str, Any] | None = None
    frontend: Mapping[str, Any] | None = None
    sections: Mapping[str, Any] = field(default_factory=dict)
    comments: Mapping[FieldPath, str] = field(default_factory=dict, compare=False)

    def role(self, name: str) -> Role:
        """The role of that name; raises KeyError where the recipe has none."""
        for role in self.roles:
            if role.name == name:
                return role
        raise KeyError(name)
