"""The recipe of derived roles: what a spec says of every job, and the comments on its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.derivation.role_flags import RoleFlags
from generator.parallel import WorkerPool
from generator.recipe.recipe import FieldPath, Recipe, Role
from generator.spec.sizing import Derived
from generator.spec.spec import Spec
from generator.workload import Workload, format_concurrencies


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRole:
    """A role with all its numbers: workers, the nodes they take, flags and environment."""

    pool: WorkerPool
    nodes: Derived
    flags: RoleFlags
    environment: Mapping[str, str]


def write_recipe(
    spec: Spec,
    name: str,
    roles: Mapping[str, WrittenRole],
    benchmark: Mapping[str, Any],
    time_limit: str | None,
) -> Recipe:
    """A recipe of these roles under the spec's model, cluster and engine."""
    return Recipe(
        name=name,
        gpu_type=spec.cluster.gpu,
        gpus_per_node=spec.cluster.gpus_per_node,
        model=spec.model,
        engine=spec.engine.type,
        has_connector=spec.engine.has_connector,
        connector=spec.engine.connector,
        roles=tuple(
            Role(
                name=role,
                nodes=written.nodes.value,
                workers=written.pool.workers,
                gpus=written.pool.layout.ranks,
                environment=written.environment,
                args=written.flags.flags,
            )
            for role, written in roles.items()
        ),
        benchmark=benchmark,
        identity=spec.identity,
        time_limit=time_limit,
        dynamo=spec.dynamo,
        frontend=spec.frontend,
        sections=spec.sections,
        comments=_comments(roles),
    )


def _comments(roles: Mapping[str, WrittenRole]) -> dict[FieldPath, str]:
    comments: dict[FieldPath, str] = {}
    for role, written in roles.items():
        comments["roles", role, "nodes"] = written.nodes.how
        comments["roles", role, "gpus"] = written.pool.layout.ranks_text
        for flag, how in written.flags.comments.items():
            comments["roles", role, "args", flag] = how
    return comments


def load_benchmark(
    benchmark: Mapping[str, Any], workload: Workload, concurrencies: tuple[int, ...]
) -> dict[str, Any]:
    """A benchmark section that holds these loads; without any (accuracy) it stays as it is."""
    if not concurrencies:
        return dict(benchmark)
    kind = {key: value for key, value in benchmark.items() if key == "type"}
    return {
        **kind,
        "isl": workload.isl,
        "osl": workload.osl,
        "concurrencies": format_concurrencies(concurrencies),
        **{key: value for key, value in benchmark.items() if key != "type"},
    }
