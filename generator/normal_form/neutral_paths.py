"""Where each layout's keys stand in the normal form: what v1 and v2 call differently."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from generator.recipe.dialects import V1_ROLE_NAMES
from generator.recipe.recipe import Dialect
from generator.wording import FieldPath

ROLES = tuple(V1_ROLE_NAMES)
V1_ENGINES = ("vllm", "sglang", "trtllm", "mocker")

_RENAMED: Mapping[Dialect, Mapping[FieldPath, FieldPath]] = {
    Dialect.V1: {
        ("backend",): ("engine",),
        ("backend", "set_cuda_visible_devices"): ("engine", "set_visible_devices"),
        ("backend", "mooncake_kv_store"): ("services", "mooncake-master"),
        ("backend", "mooncake_kv_store", "master_extra_args"): (
            *("services", "mooncake-master", "args"),
        ),
        ("backend", "mooncake_kv_store", "store_config"): (
            *("services", "mooncake-master", "options", "store_config"),
        ),
        ("dynamo", "cargo_patches"): ("dynamo", "patches"),
        ("infra", "nats_max_payload_mb"): ("services", "nats", "options", "max_payload_mb"),
    },
    Dialect.V2: {
        ("dynamo", "source"): ("dynamo",),
        ("dynamo", "source", "pypi"): ("dynamo", "version"),
        ("dynamo", "source", "rev"): ("dynamo", "hash"),
    },
}


@cache
def renamed_paths(dialect: Dialect, engine: str) -> Mapping[FieldPath, FieldPath]:
    """The paths of a layout whose normal form is another one, with that one; longest prefix wins.

    ``engine`` decides which of v1's ``<engine>_config`` sections holds the flags.
    """
    renamed = dict(_RENAMED[dialect])
    if dialect is Dialect.V1:
        for role, section in V1_ROLE_NAMES.items():
            renamed["resources", f"{role}_nodes"] = ("roles", role, "nodes")
            renamed["resources", f"{role}_workers"] = ("roles", role, "workers")
            renamed["resources", f"gpus_per_{role}"] = ("roles", role, "gpus")
            renamed["backend", f"{section}_environment"] = ("roles", role, "env")
            renamed["backend", f"{engine}_config", section] = ("roles", role, "args")
            renamed["backend", "kv_events_config", section] = ("roles", role, "kv_events")
        for other in V1_ENGINES:
            if other != engine:  # its flags are nobody's: they keep their own path
                renamed["backend", f"{other}_config"] = ("backend", f"{other}_config")
    return renamed


def neutral_path(path: FieldPath, dialect: Dialect, engine: str) -> FieldPath:
    """The normal form's path for a path of a layout; a path that no rule covers stays as it is."""
    renamed = renamed_paths(dialect, engine)
    for length in range(len(path), 0, -1):
        prefix = renamed.get(path[:length])
        if prefix is not None:
            return (*prefix, *path[length:])
    return path
