"""Sections of a v1 recipe rearranged as layout v2 has them, every line as it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.migration.entry_moves import (
    as_comment,
    as_item,
    role_key,
    service,
    taken,
    without_first_blanks,
)
from generator.migration.renames import RecipeValues, renamed_section
from generator.normal_form.consumer_types import as_consumed
from generator.recipe.dialects import V1_ROLE_NAMES
from generator.recipe.recipe import Dialect
from generator.yaml_text.entries import Entry

_PARTS = ("nodes", "workers", "gpus", "env", "kv_events", "args")
_RENAMED_IN_ENGINE = {"set_cuda_visible_devices": "set_visible_devices"}
_ZERO = re.compile(r"(?<![\w.])([\"']?)\+?0+\1(?![\w.])")
_DEFAULT_ENGINE = "sglang"


@dataclass(slots=True)
class SectionMigration:
    """One recipe of a document: the whole of it, its ``base``, or one override.

    ``base`` is what an override is laid over; the recipe itself where it is none. An override says
    only parts, and nothing is added to it.
    """

    values: RecipeValues
    base: Mapping[str, Any]
    is_partial: bool = False
    _roles: dict[str, dict[str, Entry]] = field(default_factory=dict)
    _services: list[Entry] = field(default_factory=list)
    _roles_above: list[str] = field(default_factory=list)

    def migrated(self, sections: list[Entry]) -> list[Entry]:
        """The sections in their order, with engine, roles and services where they belong."""
        result: list[Entry] = []
        place = {"engine": -1, "services": -1}
        engine: Entry | None = None
        tail: list[str] = []  # of the last section, should that be taken apart
        for entry in sections:
            key = str(entry.path[-1])
            if key in ("backend", "infra", "resources"):
                tail, entry.after = [*tail, *entry.after], []
            if key == "backend":
                engine = self._engine(entry)
                place["engine"] = len(result)
            elif key == "infra" and self.values.opened(entry):
                place["services"] = len(result)
                self._infra(entry)
            elif key == "resources" and self.values.opened(entry):
                result += self._resources(entry)
            else:
                result.append(renamed_section(key, entry, self.values))
        if engine is None and not self.is_partial:
            engine = Entry(key="engine", inline=f" {_DEFAULT_ENGINE}")
        roles = self._roles_entry()
        workers = [each for each in (engine, roles) if each is not None]
        self._insert(result, place, workers)
        if result:
            result[-1].after += tail
        return result

    def _insert(self, result: list[Entry], place: dict[str, int], workers: list[Entry]) -> None:
        """Engine and roles where the backend was, or after resources; services where infra was."""
        after_resources = next(
            (index + 1 for index, each in enumerate(result) if each.key == "resources"),
            len(result),
        )
        at = place["engine"] if place["engine"] >= 0 else after_resources
        services_at = place["services"] if place["services"] >= 0 else at
        services = [self._services_entry()] if self._services else []
        for index, entries in sorted(
            ((at, workers), (services_at, services)), key=lambda each: each[0], reverse=True
        ):
            result[index:index] = entries

    # --- roles --------------------------------------------------------------------------------

    def _resources(self, entry: Entry) -> list[Entry]:
        kept = []
        for child in taken(entry):
            role, part = role_key(child)
            if not role:
                kept.append(child)
                continue
            if (role, part) == ("decode", "nodes"):
                self._colocate(child)
            self._give(role, part, child)
        entry.children = kept
        if kept:
            return [entry]
        self._roles_above += [*entry.above, *as_comment(entry)]
        return []

    def _colocate(self, entry: Entry) -> None:
        """Decode workers on no nodes of their own share the prefill workers'."""
        resources = self.values.data.get("resources", {})
        base = self.base.get("resources")
        workers = resources.get("decode_workers") or (
            isinstance(base, Mapping) and base.get("decode_workers")
        )
        values = self.values.value(entry)
        zeros = [
            as_consumed(value, self.values.path(entry), Dialect.V1) == 0
            for value in (values if isinstance(values, list) else [values])
        ]
        if not workers or not any(zeros):
            return
        text, mark, comment = entry.inline.partition(" #")
        entry.inline = _ZERO.sub("colocate", text) + mark + comment
        entry.below = [_ZERO.sub("colocate", line) for line in entry.below]

    def _give(self, role: str, part: str, entry: Entry) -> None:
        entry.key = part
        without_first_blanks([entry])
        self._roles.setdefault(role, {})[part] = entry

    def _roles_entry(self) -> Entry | None:
        if not self._roles:
            return None
        roles = []
        for role in V1_ROLE_NAMES:
            parts = self._roles.get(role, {})
            if parts:
                children = without_first_blanks([parts[part] for part in _PARTS if part in parts])
                roles.append(Entry(key=role, children=children))
        return Entry(key="roles", above=self._roles_above, children=roles)

    # --- engine -------------------------------------------------------------------------------

    def _engine(self, backend: Entry) -> Entry | None:
        """What is left of the backend once roles and services took theirs."""
        value = self.values.value(backend)
        if value in (None, {}):
            if self.is_partial:
                backend.key = "engine"
                return backend
            inline = f" {_DEFAULT_ENGINE}"
            return Entry(key="engine", inline=inline, above=backend.above)
        if not self.values.opened(backend):
            backend.key = "engine"
            return backend
        kept = []
        for child in taken(backend):
            if not self._moved_from_backend(child):
                child.key = _RENAMED_IN_ENGINE.get(child.key, child.key)
                kept.append(child)
        above = [*backend.above, *as_comment(backend)]
        if not any(child.path[-1] == "type" for child in kept) and not self.is_partial:
            kept.insert(0, Entry(key="type", inline=f" {_DEFAULT_ENGINE}"))
        if not kept:
            self._roles_above = above + self._roles_above
            return None
        if len(kept) == 1 and kept[0].key == "type" and not self.values.depth:
            only = kept[0]
            above += only.above
            return Entry(
                key="engine", inline=only.inline, below=only.below, above=above, after=only.after
            )
        return Entry(key="engine", above=above, children=without_first_blanks(kept))

    def _moved_from_backend(self, child: Entry) -> bool:
        """Whether a key of the backend went to a role or a service."""
        for role, section in V1_ROLE_NAMES.items():
            if child.path[-1] == f"{section}_environment":
                self._give(role, "env", child)
                return True
        if child.path[-1] == f"{self._engine_name()}_config" and self.values.opened(child):
            self._roles_above += [*child.above, *as_comment(child), *child.after]
            self._give_each_role(child, "args")
            return True
        if child.path[-1] == "kv_events_config":
            return self._kv_events(child)
        if child.path[-1] == "mooncake_kv_store" and self.values.opened(child):
            self._mooncake(child)
            return True
        return False

    def _engine_name(self) -> str:
        for data in (self.values.data, self.base):
            backend = data.get("backend")
            if isinstance(backend, Mapping) and "type" in backend:
                return str(backend["type"])
        return _DEFAULT_ENGINE

    def _give_each_role(self, entry: Entry, part: str) -> None:
        sections = {section: role for role, section in V1_ROLE_NAMES.items()}
        for child in taken(entry):
            role = sections.get(str(child.path[-1]))
            if role:
                self._give(role, part, child)

    def _kv_events(self, entry: Entry) -> bool:
        if self.values.opened(entry):
            self._roles_above += [*entry.above, *as_comment(entry), *entry.after]
            self._give_each_role(entry, "kv_events")
            return True
        if not isinstance(self.values.value(entry), bool):
            return False
        above = [*entry.above, *entry.after]
        for role in (role for role in ("prefill", "decode") if self._has(role)):
            self._give(role, "kv_events", Entry(key="kv_events", inline=entry.inline, above=above))
            above = []
        return True

    def _has(self, role: str) -> bool:
        keys = (f"{role}_nodes", f"{role}_workers", f"gpus_per_{role}")
        section = V1_ROLE_NAMES[role]
        for data in (self.values.data, self.base):
            backend, resources = data.get("backend"), data.get("resources")
            if isinstance(resources, Mapping) and any(key in resources for key in keys):
                return True
            config = backend.get(f"{self._engine_name()}_config") if backend else None
            if isinstance(config, Mapping) and section in config:
                return True
        return False

    # --- services -----------------------------------------------------------------------------

    def _infra(self, infra: Entry) -> None:
        found = {str(child.path[-1]): child for child in taken(infra)}
        switch = found.pop("etcd_nats_dedicated_node", None)
        limit = found.pop("nats_max_payload_mb", None)
        above = [*infra.above, *as_comment(infra)]
        node = None
        if switch is not None:
            above += [*switch.above, *as_comment(switch, switch.inline), *switch.after]
            node = "dedicated" if self.values.consumed(switch) is True else "infra"
            self._services.append(service("etcd", node, above=above))
            above = []
        has_limit = limit is not None and self.values.value(limit) is not None
        if limit is not None and has_limit:
            limit.key = "max_payload_mb"
            limit.above = [line for line in limit.above if line.strip()]
        options = Entry(key="options", children=[limit]) if limit and has_limit else None
        if switch is not None or options:
            self._services.append(service("nats", node, options, above=above))
        for rest in found.values():
            self._roles_above += rest.commented("not in schema 2: ")

    def _mooncake(self, store: Entry) -> None:
        children = {str(child.path[-1]): child for child in taken(store)}
        parts = []
        for key in ("container", "master_extra_args", "store_config"):
            if key not in children:
                continue
            child = children[key]
            child.key = {"master_extra_args": "args"}.get(key, key)
            parts.append(Entry(key="options", children=[child]) if key == "store_config" else child)
        above = [*store.above, *as_comment(store)]
        self._services.append(service("mooncake-master", None, *parts, above=above))
        environment = children.get("env")
        if environment is not None and self.values.opened(environment):
            for role in (role for role in V1_ROLE_NAMES if self._has(role)):
                self._add_environment(role, environment)

    def _add_environment(self, role: str, environment: Entry) -> None:
        own = self._roles.setdefault(role, {}).get("env")
        if own is None:
            own = Entry(key="env", children=[])
            self._roles[role]["env"] = own
        elif not self.values.opened(own):
            own.children = []
        own.children = [*(own.children or []), *(environment.children or [])]

    def _services_entry(self) -> Entry:
        below = [line for service in self._services for line in as_item(service)]
        above = self._services[0].above
        return Entry(key="services", above=above, below=below)
