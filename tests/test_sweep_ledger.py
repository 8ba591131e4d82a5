"""The ledger on disk: torn lines, full disks, clocks that run backwards, newer versions."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from generator.cluster.protocol import SbatchParameters
from generator.errors import InvalidInput
from generator.sweep.events import (
    Asked,
    End,
    Ended,
    Event,
    Foreign,
    Intended,
    IntendedTask,
    Running,
    Submitted,
)
from generator.sweep.history import Seen, history
from generator.sweep.ledger import Ledger, parse_ledger

ASKED = Asked(
    name="tiny",
    parameters=SbatchParameters(
        nodes=4, time_minutes=60, directives=(("mem", "0"), ("contiguous", None))
    ),
)
INTENDED = Intended(
    token="t1", tasks=(IntendedTask(recipe="d", points=("d-c1", "d-c2")),), asked=ASKED
)
SUBMITTED = Submitted(token="t1", job_id="7", task_ids=("7",))
RUNNING = Running(token="t1", index=0, nodes=("n1", "n2"))
DONE = Ended(state=End.DONE, point="d-c1", token="t1", index=0)
EVENTS: list[Event] = [INTENDED, SUBMITTED, RUNNING, DONE]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(path=tmp_path / "ledger.jsonl", clock=lambda: "2026-11-30T00:00:00Z")


def test_nothing_yet(ledger: Ledger) -> None:
    assert ledger.read().events == ()
    ledger.append([])
    assert not ledger.path.exists()


def test_events_come_back(ledger: Ledger) -> None:
    for event in EVENTS:
        ledger.append([event])
    assert list(ledger.read().events) == EVENTS
    assert ledger.path.read_text("ascii").splitlines()[3] == (
        '{"version":1,"at":"2026-11-30T00:00:00Z","event":"done","point":"d-c1","token":"t1",'
        '"index":0,"why":"","cause":""}'
    )


def test_order_is_that_of_the_lines_and_not_of_the_clock(tmp_path: Path) -> None:
    times = iter(["2026-11-30T00:00:09Z", "2026-11-30T00:00:05Z", "1970-01-01T00:00:00Z", "?"])
    ledger = Ledger(path=tmp_path / "ledger.jsonl", clock=lambda: next(times))
    for event in EVENTS:
        ledger.append([event])
    (attempt,) = history(ledger.read().events).arrays["t1"].attempts
    assert (attempt.seen, attempt.open_points) == (Seen.RUNNING, ("d-c2",))


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_torn_last_line_is_named_and_ignored_and_cut_off(ledger: Ledger, cut: int) -> None:
    ledger.append(EVENTS)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-cut])
    text = ledger.read()
    assert list(text.events) == EVENTS[:3]
    assert text.notice == f"{ledger.path}:4: the last line is torn and ignored"
    ledger.append([DONE])
    assert list(ledger.read().events) == EVENTS
    assert ledger.read().notice == ""


def test_last_line_of_zeros_after_a_power_cut(ledger: Ledger) -> None:
    ledger.append(EVENTS)
    with ledger.path.open("ab") as stream:
        stream.write(b"\0" * 80 + b"\n")
    assert list(ledger.read().events) == EVENTS
    assert ledger.read().notice.endswith(":5: the last line is torn and ignored")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"[]", "Expected `object`, got `array`"),
        (
            b'{"version":1,"at":"","event":"running","token":7,"index":0}',
            "`int` - at `$.token`",
        ),
        (b'{"version":1,"at":"","event":"running","token":"t1"}', "required field `index`"),
        (
            b'{"version":1,"at":"","event":"running","token":"t1","index":true}',
            "`bool` - at `$.index`",
        ),
        (b'{"at":"","event":"running"}', "required field `version`"),
    ],
)
def test_broken_line_is_refused_by_number(ledger: Ledger, line: bytes, reason: str) -> None:
    ledger.append(EVENTS)
    lines = ledger.path.read_bytes().splitlines()
    content = b"\n".join([lines[0], line, *lines[1:], b""])
    with pytest.raises(InvalidInput, match=r"x:2: not a line of a ledger: ") as refused:
        parse_ledger(content, "x")
    assert reason in str(refused.value)


def test_valid_json_of_another_kind_is_never_cut_off(ledger: Ledger) -> None:
    """A last line that a newer version wrote is a record, not a torn line."""
    ledger.append(EVENTS)
    with ledger.path.open("ab") as stream:
        stream.write(b'{"version":2,"at":"","event":"running","token":{"new":"form"},"index":0}\n')
    before = ledger.path.read_bytes()
    with pytest.raises(InvalidInput, match=r"\$\.token"):
        ledger.read()
    assert ledger.path.read_bytes() == before


def test_fields_and_events_of_a_newer_version(ledger: Ledger) -> None:
    ledger.path.write_text(
        '{"version":1,"at":"x","event":"running","token":"t1","index":0,"mood":"good"}\n'
        '{"version":1,"at":"x","event":"moved","to":"mars"}\n',
        encoding="ascii",
    )
    first, second = ledger.read().records
    assert (first.event, first.extra) == (Running(token="t1", index=0), {"mood": "good"})
    assert (second.event, second.extra) == (Foreign(event="moved"), {"to": "mars"})
    assert history(ledger.read().events).foreign == 1


def test_full_disk_leaves_the_ledger_as_it_was(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append(EVENTS[:2])
    before = ledger.path.read_bytes()
    write = os.write

    def half_written(descriptor: int, content: bytes) -> int:
        if len(content) < 30:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, content[:30])

    monkeypatch.setattr(os, "write", half_written)
    with pytest.raises(InvalidInput, match="no space left on the device"):
        ledger.append([RUNNING])
    assert ledger.path.read_bytes() == before


def test_sync_that_fails_leaves_the_ledger_as_it_was(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append(EVENTS[:2])
    before = ledger.path.read_bytes()

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(InvalidInput, match="the disk quota is used up"):
        ledger.append([RUNNING])
    assert ledger.path.read_bytes() == before


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_read_only_folder(ledger: Ledger, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InvalidInput, match=r"read-only|permission denied"):
        ledger.append([RUNNING])


def test_events_of_unknown_tokens_are_passed_over() -> None:
    assert history([RUNNING, DONE, SUBMITTED]).arrays == {}


def test_job_that_was_given_up_and_runs_is_not_lost() -> None:
    lost = Ended(state=End.LOST, point="d-c1", token="t1", index=0)
    (attempt,) = history([INTENDED, SUBMITTED, lost, RUNNING]).arrays["t1"].attempts
    assert attempt.open_points == ("d-c1", "d-c2")


def test_done_stays_done() -> None:
    failed = Ended(state=End.FAILED, point="d-c1", token="t1", index=0)
    (attempt,) = history([*EVENTS, failed]).arrays["t1"].attempts
    assert attempt.ended["d-c1"].state is End.DONE
