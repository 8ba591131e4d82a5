"""The two srt-slurm layouts as documents: reading either one into a Recipe, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.recipe.recipe import V1_ONLY_BENCHMARK_KEYS, Dialect, Recipe, Role

# v1 spells the aggregated role out where it names settings and short where it counts workers.
V1_ROLE_NAMES = {"prefill": "prefill", "decode": "decode", "agg": "aggregated"}

_STRUCTURE = {
    "schema",
    "name",
    "identity",
    "slurm",
    "model",
    "dynamo",
    "resources",
    "frontend",
    "backend",
    "engine",
    "roles",
    "benchmark",
}


def recipe_from_document(data: Mapping[str, Any], dialect: Dialect) -> Recipe:
    """The recipe a rendered document means, in the v1 spelling of its sections.

    ``data`` must be valid against the dialect's schema; a missing part raises KeyError.
    """
    reader = _from_v1 if dialect is Dialect.V1 else _from_v2
    return reader(data)


def v2_dynamo(dynamo: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The dynamo section as v2 writes it: version, wheel and hash move under ``source``."""
    if dynamo is None:
        return None
    source: dict[str, Any] = {}
    section: dict[str, Any] = {}
    for key, value in dynamo.items():
        if key == "hash":
            source |= {"git": _DYNAMO_GIT, "rev": value}
        elif key in _DYNAMO_SOURCES:
            source[_DYNAMO_SOURCES[key]] = value
        else:
            section[key] = value
    return {**({"source": source} if source else {}), **section}


def v2_frontend(frontend: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The frontend section as v2 writes it: sglang becomes sglang-router, placement is nested."""
    if frontend is None:
        return None
    section = dict(frontend)
    if section.get("type") == "sglang":
        section["type"] = "sglang-router"
    if section.pop("dedicated_node", False):
        section["placement"] = {"node": "dedicated"}
    return section


def v2_benchmark(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    """The benchmark section without the keys only release 1.0.98 knows."""
    return {key: value for key, value in benchmark.items() if key not in V1_ONLY_BENCHMARK_KEYS}


def v2_omissions(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the benchmark section that v2 cannot express, for its comments."""
    return {key: benchmark[key] for key in V1_ONLY_BENCHMARK_KEYS if key in benchmark}


_DYNAMO_SOURCES = {"version": "pypi", "wheel": "wheel"}
_DYNAMO_GIT = "https://github.com/ai-dynamo/dynamo.git"


def _from_v1(data: Mapping[str, Any]) -> Recipe:
    resources, backend = data["resources"], data["backend"]
    engine = backend["type"]
    configs = backend[f"{engine}_config"]
    roles = tuple(
        Role(
            name=role,
            nodes=resources[f"{role}_nodes"],
            workers=resources[f"{role}_workers"],
            gpus=resources[f"gpus_per_{role}"],
            environment=backend.get(f"{name}_environment", {}),
            args=configs[name],
        )
        for role, name in V1_ROLE_NAMES.items()
        if name in configs
    )
    return Recipe(
        **_shared(data),
        engine=engine,
        has_connector="connector" in backend,
        connector=backend.get("connector"),
        roles=roles,
        dynamo=data.get("dynamo"),
        frontend=data.get("frontend"),
    )


def _from_v2(data: Mapping[str, Any]) -> Recipe:
    engine = data["engine"]
    engine = {"type": engine} if isinstance(engine, str) else engine
    roles = tuple(
        Role(
            name=name,
            nodes=role["nodes"],
            workers=role["workers"],
            gpus=role["gpus"],
            environment=role.get("env", {}),
            args=role["args"],
        )
        for name, role in data["roles"].items()
    )
    return Recipe(
        **_shared(data),
        engine=engine["type"],
        has_connector="connector" in engine,
        connector=engine.get("connector"),
        roles=roles,
        dynamo=_v1_dynamo(data.get("dynamo")),
        frontend=_v1_frontend(data.get("frontend")),
    )


def _shared(data: Mapping[str, Any]) -> dict[str, Any]:
    """What both layouts write alike."""
    return {
        "name": data["name"],
        "gpu_type": data["resources"]["gpu_type"],
        "gpus_per_node": data["resources"]["gpus_per_node"],
        "model": data["model"],
        "identity": data.get("identity"),
        "time_limit": data.get("slurm", {}).get("time_limit"),
        "sections": {key: value for key, value in data.items() if key not in _STRUCTURE},
        "benchmark": data["benchmark"],
    }


def _v1_dynamo(dynamo: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if dynamo is None:
        return None
    section = {key: value for key, value in dynamo.items() if key != "source"}
    source = dynamo.get("source", {})
    for v1_key, v2_key in (*_DYNAMO_SOURCES.items(), ("hash", "rev")):
        if v2_key in source:
            section[v1_key] = source[v2_key]
    return section


def _v1_frontend(frontend: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if frontend is None:
        return None
    section = {key: value for key, value in frontend.items() if key != "placement"}
    if section.get("type") == "sglang-router":
        section["type"] = "sglang"
    if frontend.get("placement", {}).get("node") == "dedicated":
        section["dedicated_node"] = True
    return section
