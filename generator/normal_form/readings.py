"""What a layout says by other means than a renamed key: values moved, implied or spelled short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from generator.normal_form.consumer_types import as_consumed
from generator.recipe.dialects import V1_ROLE_NAMES
from generator.recipe.recipe import Dialect
from generator.wording import FieldPath

DYNAMO_REPOSITORY = "https://github.com/ai-dynamo/dynamo.git"
"""Where v1 checks out ``dynamo.hash``."""

Values: TypeAlias = tuple[tuple[FieldPath, Any], ...]


@dataclass(slots=True)
class Readings:
    """``stated``: what stands in for the value at a path of the document, possibly nothing.

    ``implied``: what holds unless it is written, with the path in the document that implies it.
    """

    engine: str
    stated: dict[FieldPath, Values] = field(default_factory=dict)
    renamed: dict[FieldPath, FieldPath] = field(default_factory=dict)
    implied: list[tuple[FieldPath, Any, FieldPath]] = field(default_factory=list)


def readings(data: Mapping[str, Any], dialect: Dialect) -> Readings:
    """What to read differently in one recipe; parts of the wrong kind are left as they are."""
    return _v1_readings(data) if dialect is Dialect.V1 else _v2_readings(data)


def _section(data: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    here: Any = data
    for step in path:
        here = here.get(step) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}


# --- v1 ---------------------------------------------------------------------------------------


def _v1_readings(data: Mapping[str, Any]) -> Readings:
    backend = _section(data, "backend")
    written = backend.get("type", "sglang")
    found = Readings(engine=written if isinstance(written, str) else "")
    if "type" not in backend:
        found.implied.append((("engine", "type"), found.engine, ("backend",)))
        if data.get("backend", {}) in (None, {}):
            found.stated["backend",] = ()
    _read_v1_placement(data, found, "frontend", "dedicated_node", "orchestrator_placement")
    _read_v1_placement(data, found, "benchmark", "client_dedicated_node", "client_placement")
    _read_v1_services(data, found)
    _read_v1_mooncake(data, found)
    _read_v1_kv_events(data, found)
    if _section(data, "frontend").get("type") == "sglang":
        found.stated["frontend", "type"] = ((("frontend", "type"), "sglang-router"),)
    resources = _section(data, "resources")
    nodes = as_consumed(resources.get("decode_nodes"), ("resources", "decode_nodes"), Dialect.V1)
    if nodes == 0 and resources.get("decode_workers"):
        found.stated["resources", "decode_nodes"] = ((("roles", "decode", "nodes"), "colocate"),)
    if _section(data, "dynamo").get("hash") is not None:
        found.implied.append((("dynamo", "git"), DYNAMO_REPOSITORY, ("dynamo", "hash")))
    return found


def _read_v1_placement(
    data: Mapping[str, Any], found: Readings, name: str, switch: str, placement: str
) -> None:
    """A node of its own or another placement: two keys in v1, one in v2."""
    section = _section(data, name)
    if switch not in section and placement not in section:
        return
    target = (name, "placement", "node")
    dedicated = as_consumed(section.get(switch), (name, switch), Dialect.V1)
    if dedicated is True:
        found.stated[name, switch] = ((target, "dedicated"),)  # and the placement is idle
        return
    if dedicated is False:
        found.stated[name, switch] = () if placement in section else ((target, "head"),)
    if placement in section:
        found.stated[name, placement] = ((target, section[placement]),)


def _read_v1_services(data: Mapping[str, Any], found: Readings) -> None:
    infra = _section(data, "infra")
    switch = ("infra", "etcd_nats_dedicated_node")
    dedicated = as_consumed(infra.get(switch[1]), switch, Dialect.V1)
    if isinstance(dedicated, bool):
        node = "dedicated" if dedicated else "infra"
        found.stated[switch] = tuple(
            (("services", name, "placement", "node"), node) for name in ("etcd", "nats")
        )
        found.implied += [(("services", name, "type"), name, switch) for name in ("etcd", "nats")]
    if infra.get("nats_max_payload_mb") is not None:
        implied = (("services", "nats", "type"), "nats", ("infra", "nats_max_payload_mb"))
        found.implied.append(implied)


def _read_v1_mooncake(data: Mapping[str, Any], found: Readings) -> None:
    """The store is a service in v2; its environment is the workers', not the master's."""
    store = ("backend", "mooncake_kv_store")
    section = _section(data, *store)
    if not section:
        return
    found.implied.append((("services", "mooncake-master", "type"), "mooncake-master", store))
    roles = [role for role in V1_ROLE_NAMES if _has_v1_role(data, role)]
    for name, value in _section(section, "env").items():
        if roles and isinstance(value, str):
            values = tuple((("roles", role, "env", name), value) for role in roles)
            found.stated[*store, "env", name] = values


def _read_v1_kv_events(data: Mapping[str, Any], found: Readings) -> None:
    """One switch for both prefill and decode; an aggregated worker takes no notice of it."""
    path = ("backend", "kv_events_config")
    switch = _section(data, "backend").get("kv_events_config")
    roles = [role for role in ("prefill", "decode") if _has_v1_role(data, role)]
    if isinstance(switch, bool) and roles:
        found.stated[path] = tuple((("roles", role, "kv_events"), switch) for role in roles)


def _has_v1_role(data: Mapping[str, Any], role: str) -> bool:
    resources = _section(data, "resources")
    keys = (f"{role}_nodes", f"{role}_workers", f"gpus_per_{role}")
    backend = _section(data, "backend")
    return any(key in resources for key in keys) or any(
        V1_ROLE_NAMES[role] in _section(backend, key) for key in backend if key.endswith("_config")
    )


# --- v2 ---------------------------------------------------------------------------------------


def _v2_readings(data: Mapping[str, Any]) -> Readings:
    found = Readings(engine="")
    if data["schema"] in (2, "2"):
        found.stated["schema",] = ()
    if isinstance(data.get("engine"), str):
        found.stated["engine",] = ((("engine", "type"), data["engine"]),)
    for role, section in _section(data, "roles").items():
        for key, name in (("engine", "type"), ("restart", "policy")):
            if isinstance(_section(data, "roles", role).get(key), str):
                path = ("roles", role, key)
                found.stated[path] = (((*path, name), section[key]),)
    nodes = _section(data, "roles", "decode").get("nodes")
    if isinstance(nodes, str) and nodes.strip().lower() == "colocate":
        path = ("roles", "decode", "nodes")
        found.stated[path] = ((path, "colocate"),)
    if not _section(data, "dynamo", "source") and "source" in _section(data, "dynamo"):
        found.stated["dynamo", "source"] = ((("dynamo", "source"), data["dynamo"]["source"]),)
    services = data.get("services")
    for index, name in _service_names(services if isinstance(services, list) else []):
        found.renamed["services", index] = ("services", name)
        found.stated["services", index, "name"] = ()
    return found


def _service_names(services: list[Any]) -> Iterator[tuple[int, str]]:
    """Services that a name of their own, and something beside it, makes known."""
    names = [each.get("name") if isinstance(each, Mapping) else None for each in services]
    for index, name in enumerate(names):
        if isinstance(name, str) and names.count(name) == 1 and len(services[index]) > 1:
            yield index, name
