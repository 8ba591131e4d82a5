"""What a ledger records, one event a line, and how each is written and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from generator.cluster.protocol import SbatchParameters

VERSION = 1


class End(StrEnum):
    """How an attempt at a point can end."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


class CancelledBy(StrEnum):
    """Who ended an attempt: only what nobody asked for is taken up again by itself."""

    USER = "user"  # pdrecipe cancel
    SWEEP = "sweep"  # the sweep stopped itself
    CLUSTER = "cluster"  # scancel, or the admin


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRecipe:
    """A recipe of the sweep with the points it is to give.

    ``file`` is its name to the user, who saw it from the folder ``seen_from``; ledgers of before
    have no such folder.
    """

    digest: str
    name: str
    file: str
    points: tuple[str, ...]
    seen_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """These points belong to the sweep from here on."""

    kind: ClassVar[str] = "planned"
    recipes: tuple[PlannedRecipe, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntendedTask:
    """One job that is about to be sent: a recipe and the points it is to run.

    Jobs of one ``configuration`` would fail for the same reasons: one is the others' canary.
    """

    recipe: str
    points: tuple[str, ...]
    configuration: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The rest of what is asked of the cluster, to name the very same array for its adoption."""

    name: str
    parameters: SbatchParameters
    comment: str = ""
    max_parallel: int = 0
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Intended:
    """An array is about to be sent under this token; written before the cluster hears of it."""

    kind: ClassVar[str] = "intended"
    token: str
    tasks: tuple[IntendedTask, ...]
    asked: Asked
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The cluster has the array. ``adopted``: an earlier client sent it and was killed."""

    kind: ClassVar[str] = "submitted"
    token: str
    job_id: str
    task_ids: tuple[str, ...]
    adopted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A held job may start: its canary is healthy."""

    kind: ClassVar[str] = "released"
    token: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job was seen running on these nodes."""

    kind: ClassVar[str] = "running"
    token: str
    index: int
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """A job was put back into the queue by the cluster; it will run again by itself."""

    kind: ClassVar[str] = "requeued"
    token: str
    index: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt at one point is over; ``why`` is for people, ``cause`` for comparing failures."""

    kind: ClassVar[str] = "ended"
    state: End
    point: str
    token: str
    index: int
    why: str = ""
    cause: str = ""
    exit_code: int | None = None
    by: CancelledBy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """An event of a newer pdrecipe; kept, and nothing is concluded from it."""

    kind: ClassVar[str] = "foreign"
    event: str


Event = Planned | Intended | Submitted | Released | Running | Requeued | Ended | Foreign
_CLASSES: dict[str, type[Event]] = {
    each.kind: each for each in (Planned, Intended, Submitted, Released, Running, Requeued)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A line of the ledger: an event, when it was written by the writer's clock, and the rest.

    The order of lines counts, never ``at``: clocks run backwards. ``extra`` holds the fields that
    this version does not know.
    """

    at: str
    event: Event
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What every line has."""

    version: int
    at: str
    event: str


_HEAD = frozenset(each.name for each in fields(_Head))


def record_line(record: Record) -> bytes:
    """The line of a record, with its end."""
    event = record.event
    name = event.state.value if isinstance(event, Ended) else event.kind
    if isinstance(event, Foreign):
        name, body = event.event, {}
    else:
        body = {key: value for key, value in asdict(event).items() if value is not None}
        body.pop("state", None)
    document = {"version": VERSION, "at": record.at, "event": name, **body, **record.extra}
    return json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"


def parse_record(line: bytes) -> Record:
    """The record of a line; raises ValueError, saying what is wrong, for anything else."""
    document = json.loads(line)
    head = msgspec.convert(document, _Head)
    body = {key: value for key, value in document.items() if key not in _HEAD}
    event, extra = _event(head.event, body)
    return Record(at=head.at, event=event, extra=extra)


def _event(name: str, body: dict[str, Any]) -> tuple[Event, dict[str, Any]]:
    if name in frozenset(End):
        return _built(Ended, {**body, "state": name})
    if name in _CLASSES:
        return _built(_CLASSES[name], body)
    return Foreign(event=name), body


def _built(kind: type[Event], body: dict[str, Any]) -> tuple[Event, dict[str, Any]]:
    known = {each.name for each in fields(kind)}
    event = msgspec.convert({key: value for key, value in body.items() if key in known}, kind)
    return event, {key: value for key, value in body.items() if key not in known}
