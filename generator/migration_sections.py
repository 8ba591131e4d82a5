"""Sections of a v1 recipe rearranged as layout v2 has them, every line as it was written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.dialects import V1_ROLE_NAMES
from generator.normal_form.consumer_types import as_consumed
from generator.normal_form.readings import DYNAMO_REPOSITORY
from generator.recipe import Dialect
from generator.wording import FieldPath
from generator.yaml_entries import Entry, TextEntries
from generator.yaml_scalars import dump_yaml_scalar

_PARTS = ("nodes", "workers", "gpus", "env", "kv_events", "args")
_DYNAMO_SOURCES = {"version": "pypi", "wheel": "wheel", "hash": "rev"}
_RENAMED_IN_ENGINE = {"set_cuda_visible_devices": "set_visible_devices"}
_ZERO = re.compile(r"(?<![\w.])([\"']?)\+?0+\1(?![\w.])")
_DEFAULT_ENGINE = "sglang"


@dataclass(slots=True)
class SectionMigration:
    """One recipe of a document: the whole of it, its ``base``, or one override.

    ``data`` is what the recipe says, ``base`` what an override is laid over; the recipe itself
    where it is none. An override says only parts, and nothing is added to it.
    """

    entries: TextEntries
    data: Mapping[str, Any]
    base: Mapping[str, Any]
    is_override_file: bool = False
    is_partial: bool = False
    _roles: dict[str, dict[str, Entry]] = field(default_factory=dict)
    _services: list[Entry] = field(default_factory=list)
    _roles_above: list[str] = field(default_factory=list)

    def migrated(self, sections: list[Entry]) -> list[Entry]:
        """The sections in their order, with engine, roles and services where they belong."""
        result: list[Entry] = []
        place = {"engine": -1, "services": -1}
        engine: Entry | None = None
        for entry in sections:
            key = str(entry.path[-1]) if entry.path else entry.key
            if key == "backend":
                engine = self._engine(entry)
                place["engine"] = len(result)
            elif key == "infra" and self._opened(entry):
                place["services"] = len(result)
                self._infra(entry)
            elif key == "resources" and self._opened(entry):
                result += self._resources(entry)
            else:
                result.append(self._renamed(key, entry))
        if engine is None and not self.is_partial:
            engine = Entry(key="engine", inline=f" {_DEFAULT_ENGINE}")
        roles = self._roles_entry()
        workers = [each for each in (engine, roles) if each is not None]
        self._insert(result, place, workers)
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

    def _opened(self, entry: Entry) -> bool:
        return self.entries.open(entry)

    def _value(self, entry: Entry) -> Any:
        """What an entry says; the path is the document's, the data the recipe's."""
        here: Any = self.data
        for step in entry.path[len(self._prefix(entry)) :]:
            here = here.get(step) if isinstance(here, Mapping) else None
        return here

    def _prefix(self, entry: Entry) -> FieldPath:
        return entry.path[:1] if self.is_override_file else ()

    def _own_path(self, entry: Entry) -> FieldPath:
        return entry.path[len(self._prefix(entry)) :]

    def _consumed(self, entry: Entry) -> Any:
        return as_consumed(self._value(entry), self._own_path(entry), Dialect.V1)

    # --- roles --------------------------------------------------------------------------------

    def _resources(self, entry: Entry) -> list[Entry]:
        kept = []
        for child in _taken(entry):
            role, part = _role_key(child)
            if not role:
                kept.append(child)
                continue
            if (role, part) == ("decode", "nodes"):
                self._colocate(child)
            self._give(role, part, child)
        entry.children = kept
        if kept:
            return [entry]
        self._roles_above += [*entry.above, *_as_comment(entry)]
        return []

    def _colocate(self, entry: Entry) -> None:
        """Decode workers on no nodes of their own share the prefill workers'."""
        resources = self.data.get("resources", {})
        base = self.base.get("resources")
        workers = resources.get("decode_workers") or (
            isinstance(base, Mapping) and base.get("decode_workers")
        )
        values = self._value(entry)
        zeros = [
            as_consumed(value, self._own_path(entry), Dialect.V1) == 0
            for value in (values if isinstance(values, list) else [values])
        ]
        if not workers or not any(zeros):
            return
        text, mark, comment = entry.inline.partition(" #")
        entry.inline = _ZERO.sub("colocate", text) + mark + comment
        entry.below = [_ZERO.sub("colocate", line) for line in entry.below]

    def _give(self, role: str, part: str, entry: Entry) -> None:
        entry.key = part
        _without_first_blanks([entry])
        self._roles.setdefault(role, {})[part] = entry

    def _roles_entry(self) -> Entry | None:
        if not self._roles:
            return None
        roles = []
        for role in V1_ROLE_NAMES:
            parts = self._roles.get(role, {})
            if parts:
                children = _without_first_blanks([parts[part] for part in _PARTS if part in parts])
                roles.append(Entry(key=role, children=children))
        return Entry(key="roles", above=self._roles_above, children=roles)

    # --- engine -------------------------------------------------------------------------------

    def _engine(self, backend: Entry) -> Entry | None:
        """What is left of the backend once roles and services took theirs."""
        value = self._value(backend)
        if value in (None, {}):
            if self.is_partial:
                backend.key = "engine"
                return backend
            inline = f" {_DEFAULT_ENGINE}"
            return Entry(key="engine", inline=inline, above=backend.above, after=backend.after)
        if not self._opened(backend):
            backend.key = "engine"
            return backend
        kept = []
        for child in _taken(backend):
            if not self._moved_from_backend(child):
                child.key = _RENAMED_IN_ENGINE.get(child.key, child.key)
                kept.append(child)
        above = [*backend.above, *_as_comment(backend)]
        if not any(child.path[-1] == "type" for child in kept) and not self.is_partial:
            kept.insert(0, Entry(key="type", inline=f" {_DEFAULT_ENGINE}"))
        if not kept:
            self._roles_above = above + self._roles_above
            return None
        if len(kept) == 1 and kept[0].key == "type" and not self.is_override_file:
            only = kept[0]
            above += only.above
            return Entry(
                key="engine", inline=only.inline, below=only.below, above=above, after=only.after
            )
        return Entry(key="engine", above=above, children=_without_first_blanks(kept))

    def _moved_from_backend(self, child: Entry) -> bool:
        """Whether a key of the backend went to a role or a service."""
        for role, section in V1_ROLE_NAMES.items():
            if child.path[-1] == f"{section}_environment":
                self._give(role, "env", child)
                return True
        if child.path[-1] == f"{self._engine_name()}_config" and self._opened(child):
            self._roles_above += [*child.above, *_as_comment(child)]
            self._give_each_role(child, "args")
            return True
        if child.path[-1] == "kv_events_config":
            return self._kv_events(child)
        if child.path[-1] == "mooncake_kv_store" and self._opened(child):
            self._mooncake(child)
            return True
        return False

    def _engine_name(self) -> str:
        for data in (self.data, self.base):
            backend = data.get("backend")
            if isinstance(backend, Mapping) and "type" in backend:
                return str(backend["type"])
        return _DEFAULT_ENGINE

    def _give_each_role(self, entry: Entry, part: str) -> None:
        sections = {section: role for role, section in V1_ROLE_NAMES.items()}
        for child in _taken(entry):
            role = sections.get(str(child.path[-1]))
            if role:
                self._give(role, part, child)

    def _kv_events(self, entry: Entry) -> bool:
        if self._opened(entry):
            self._roles_above += [*entry.above, *_as_comment(entry)]
            self._give_each_role(entry, "kv_events")
            return True
        if not isinstance(self._value(entry), bool):
            return False
        for index, role in enumerate(role for role in ("prefill", "decode") if self._has(role)):
            copy = Entry(key="kv_events", inline=entry.inline)
            if not index:
                copy.above = entry.above
            self._give(role, "kv_events", copy)
        return True

    def _has(self, role: str) -> bool:
        keys = (f"{role}_nodes", f"{role}_workers", f"gpus_per_{role}")
        section = V1_ROLE_NAMES[role]
        for data in (self.data, self.base):
            backend, resources = data.get("backend"), data.get("resources")
            if isinstance(resources, Mapping) and any(key in resources for key in keys):
                return True
            config = backend.get(f"{self._engine_name()}_config") if backend else None
            if isinstance(config, Mapping) and section in config:
                return True
        return False

    # --- services -----------------------------------------------------------------------------

    def _infra(self, infra: Entry) -> None:
        found = {str(child.path[-1]): child for child in _taken(infra)}
        switch = found.pop("etcd_nats_dedicated_node", None)
        limit = found.pop("nats_max_payload_mb", None)
        above = [*infra.above, *_as_comment(infra)]
        node = None
        if switch is not None:
            above += [*switch.above, *_as_comment(switch, switch.inline)]
            node = "dedicated" if self._consumed(switch) is True else "infra"
            self._services.append(_service("etcd", node, above=above))
            above = []
        has_limit = limit is not None and self._value(limit) is not None
        if limit is not None and has_limit:
            limit.key = "max_payload_mb"
            limit.above = [line for line in limit.above if line.strip()]
        options = Entry(key="options", children=[limit]) if limit and has_limit else None
        if switch is not None or options:
            self._services.append(_service("nats", node, options, above=above))
        for rest in found.values():
            self._roles_above += rest.commented("not in schema 2: ")

    def _mooncake(self, store: Entry) -> None:
        children = {str(child.path[-1]): child for child in _taken(store)}
        parts = []
        for key in ("container", "master_extra_args", "store_config"):
            if key not in children:
                continue
            child = children[key]
            child.key = {"master_extra_args": "args"}.get(key, key)
            parts.append(Entry(key="options", children=[child]) if key == "store_config" else child)
        above = [*store.above, *_as_comment(store)]
        self._services.append(_service("mooncake-master", None, *parts, above=above))
        environment = children.get("env")
        if environment is not None and self._opened(environment):
            for role in (role for role in V1_ROLE_NAMES if self._has(role)):
                self._add_environment(role, environment)

    def _add_environment(self, role: str, environment: Entry) -> None:
        own = self._roles.setdefault(role, {}).get("env")
        if own is None:
            own = Entry(key="env", children=[])
            self._roles[role]["env"] = own
        elif not self._opened(own):
            own.children = []
        own.children = [*(own.children or []), *(environment.children or [])]

    def _services_entry(self) -> Entry:
        below = [line for service in self._services for line in _as_item(service)]
        above = self._services[0].above
        return Entry(key="services", above=above, below=below)

    # --- sections with renamed keys -------------------------------------------------------------

    def _renamed(self, key: str, entry: Entry) -> Entry:
        if key in ("frontend", "benchmark", "dynamo") and self._opened(entry):
            children = _taken(entry)
            match key:
                case "frontend":
                    children = self._placed(children, "dedicated_node", "orchestrator_placement")
                    children = [self._router(child) for child in children]
                case "benchmark":
                    children = self._placed(children, "client_dedicated_node", "client_placement")
                case "dynamo":
                    children = self._sourced(children)
            entry.children = children
        return entry

    def _router(self, child: Entry) -> Entry:
        if child.path[-1:] == ("type",) and self._value(child) == "sglang":
            child.inline = child.inline.replace("sglang", "sglang-router", 1)
        return child

    def _placed(self, children: list[Entry], switch: str, placement: str) -> list[Entry]:
        """A node of one's own and another placement are one key in v2."""
        found = {child.path[-1]: child for child in children if child.path}
        moved = [found[key] for key in (switch, placement) if key in found]
        if not moved:
            return children
        dedicated = self._consumed(found[switch]) is True if switch in found else False
        if not dedicated and placement in found:
            node = Entry(key="node", inline=found[placement].inline)
        else:
            comment = _trailing_comment(found[switch].inline) if switch in found else ""
            node = Entry(key="node", inline=f" {'dedicated' if dedicated else 'head'}{comment}")
        above = [line for each in moved for line in each.above]
        after = [line for each in moved for line in each.after]
        nested = Entry(key="placement", above=above, after=after, children=[node])
        return _replaced(children, moved, nested)

    def _sourced(self, children: list[Entry]) -> list[Entry]:
        moved, parts = [], []
        for child in children:
            name = str(child.path[-1])
            if name == "cargo_patches":
                child.key = "patches"
            if name in _DYNAMO_SOURCES or name == "cargo_patches":
                moved.append(child)
                if name == "hash":
                    if self._value(child) is None:
                        continue
                    git = dump_yaml_scalar(DYNAMO_REPOSITORY)
                    parts.append(Entry(key="git", inline=f" {git}", above=child.above))
                    child.above = []
                child.key = _DYNAMO_SOURCES.get(name, child.key)
                parts.append(child)
        if not moved:
            return children
        source = Entry(key="source", children=_without_first_blanks(parts))
        return _replaced(children, moved, source)


# --- entries ----------------------------------------------------------------------------------


def _taken(entry: Entry) -> list[Entry]:
    """The children of an opened entry, to be given elsewhere."""
    return list(entry.children or [])


def _role_key(entry: Entry) -> tuple[str, str]:
    for role in V1_ROLE_NAMES:
        for name, part in (
            (f"{role}_nodes", "nodes"),
            (f"{role}_workers", "workers"),
            (f"gpus_per_{role}", "gpus"),
        ):
            if entry.path[-1] == name:
                return role, part
    return "", ""


def _as_comment(entry: Entry, inline: str | None = None) -> list[str]:
    """The comment on the line of a key that goes, as a line of its own."""
    comment = entry.comment if inline is None else _trailing_comment(inline).strip()
    return [comment] if comment else []


def _trailing_comment(inline: str) -> str:
    """The comment behind a plain scalar, with the blanks before it."""
    found = re.search(r"\s+#.*$", inline)
    return found[0] if found else ""


def _without_first_blanks(children: list[Entry]) -> list[Entry]:
    """Blank lines that parted a key from others make no sense above the first."""
    if children:
        first = children[0]
        while first.above and not first.above[0].strip():
            first.above = first.above[1:]
    return children


def _replaced(children: list[Entry], moved: list[Entry], by: Entry) -> list[Entry]:
    """Children with one in place of those that moved."""
    gone = {id(each) for each in moved}
    at = next(index for index, child in enumerate(children) if id(child) in gone)
    rest = [child for child in children if id(child) not in gone]
    return [*rest[:at], by, *rest[at:]]


def _service(name: str, node: str | None, *parts: Entry | None, above: Iterable[str] = ()) -> Entry:
    children = [Entry(key="name", inline=f" {name}"), Entry(key="type", inline=f" {name}")]
    if node is not None:
        children.append(Entry(key="placement", children=[Entry(key="node", inline=f" {node}")]))
    children += (part for part in parts if part is not None)
    return Entry(key=name, above=list(above), children=children)


def _as_item(service: Entry) -> Iterator[str]:
    """A service as an item of a list, below its key."""
    lines = [line for child in service.children or () for line in child.lines()]
    for index, line in enumerate(lines):
        yield f"  {'- ' if not index else '  '}{line}" if line else ""
