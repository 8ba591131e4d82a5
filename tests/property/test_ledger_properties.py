"""What holds for every ledger: written is read, cut off anywhere it is whole up to a line."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from generator.cluster.protocol import SbatchParameters
from generator.sweep.events import (
    Asked,
    CancelledBy,
    End,
    Ended,
    Event,
    Foreign,
    Intended,
    IntendedTask,
    Planned,
    PlannedRecipe,
    Record,
    Released,
    Requeued,
    Running,
    Submitted,
    parse_record,
    record_line,
)
from generator.sweep.history import history
from generator.sweep.ledger import Ledger, parse_ledger

TEXT = st.text(max_size=12)
INDEX = st.integers(0, 2)
TOKEN = st.sampled_from(["t1", "t2"])
POINT = st.sampled_from(["a", "b", "c"])
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
POINTS = st.lists(POINT, max_size=3).map(tuple)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Planned,
        recipes=st.lists(
            st.builds(PlannedRecipe, digest=TEXT, name=TEXT, file=TEXT, points=POINTS), max_size=2
        ).map(tuple),
    ),
    st.builds(
        Intended,
        token=TOKEN,
        tasks=st.lists(
            st.builds(IntendedTask, recipe=TEXT, points=POINTS, configuration=TEXT), max_size=3
        ).map(tuple),
        held=st.booleans(),
        asked=st.builds(
            Asked,
            name=TEXT,
            parameters=st.builds(
                SbatchParameters,
                nodes=st.integers(1, 99),
                time_minutes=st.integers(1, 999),
                account=st.none() | TEXT,
                segment=st.none() | st.integers(1, 18),
                directives=st.lists(st.tuples(TEXT, st.none() | TEXT), max_size=2).map(tuple),
            ),
            comment=TEXT,
            max_parallel=st.integers(0, 9),
            after=TEXTS,
        ),
    ),
    st.builds(Submitted, token=TOKEN, job_id=TEXT, task_ids=TEXTS, adopted=st.booleans()),
    st.builds(Released, token=TOKEN, index=INDEX),
    st.builds(Running, token=TOKEN, index=INDEX, nodes=TEXTS),
    st.builds(Requeued, token=TOKEN, index=INDEX, why=TEXT),
    st.builds(
        Ended,
        state=st.sampled_from(End),
        point=POINT,
        token=TOKEN,
        index=INDEX,
        why=TEXT,
        cause=TEXT,
        exit_code=st.none() | st.integers(-64, 255),
        by=st.none() | st.sampled_from(CancelledBy),
    ),
    st.builds(Foreign, event=TEXT.map(lambda text: f"x-{text}")),
)
LISTS = st.lists(EVENTS, max_size=8)


@given(EVENTS, TEXT, st.dictionaries(TEXT.map(lambda text: f"x-{text}"), JSON, max_size=2))
def test_record_comes_back(event: Event, at: str, extra: dict[str, Any]) -> None:
    line = record_line(Record(at=at, event=event, extra=extra))
    assert line.count(b"\n") == 1
    assert line.isascii()
    back = parse_record(line)
    assert (back.at, back.event, dict(back.extra)) == (at, event, extra)


@given(LISTS)
def test_ledger_comes_back(events: list[Event]) -> None:
    with TemporaryDirectory() as folder:
        ledger = Ledger(path=Path(folder) / "ledger.jsonl")
        for event in events:
            ledger.append([event])
        assert list(ledger.read().events) == events


@given(LISTS.filter(bool), st.data())
def test_cut_off_anywhere_the_whole_lines_are_left(
    events: list[Event], data: st.DataObject
) -> None:
    lines = [record_line(Record(at="", event=event)) for event in events]
    content = b"".join(lines)
    cut = data.draw(st.integers(0, len(content)))
    text = parse_ledger(content[:cut], "x")
    whole = sum(len(b"".join(lines[: count + 1])) <= cut for count in range(len(lines)))
    assert list(text.events) == events[:whole]
    assert bool(text.notice) == (content[:cut] not in (b"", *_beginnings(lines)))


def _beginnings(lines: list[bytes]) -> list[bytes]:
    return [b"".join(lines[:count]) for count in range(len(lines) + 1)]


@given(LISTS, LISTS.filter(bool), st.data())
def test_client_after_a_torn_line_loses_nothing(
    events: list[Event], more: list[Event], data: st.DataObject
) -> None:
    lines = [record_line(Record(at="", event=event)) for event in [*events, more[0]]]
    torn = data.draw(st.integers(0, len(lines[-1]) - 1))
    with TemporaryDirectory() as folder:
        ledger = Ledger(path=Path(folder) / "ledger.jsonl")
        ledger.path.write_bytes(b"".join(lines[:-1]) + lines[-1][:torn])
        ledger.append(more)
        assert list(ledger.read().events) == [*events, *more]


@given(LISTS)
def test_history_takes_any_order_of_events(events: list[Event]) -> None:
    """Nothing in a ledger is trusted to be there before: no order of lines breaks a reader."""
    state = history(events)
    for array in state.arrays.values():
        assert len(array.attempts) == len(array.intended.tasks)
    assert state.latest_attempts().keys() <= {
        point
        for array in state.arrays.values()
        for task in array.intended.tasks
        for point in task.points
    }


@given(LISTS, LISTS)
def test_done_is_never_undone(before: list[Event], after: list[Event]) -> None:
    def done(events: list[Event]) -> set[tuple[str, int, str]]:
        return {
            (token, attempt.index, point)
            for token, array in history(events).arrays.items()
            for attempt in array.attempts
            for point, ended in attempt.ended.items()
            if ended.state is End.DONE
        }

    assert done(before) <= done([*before, *after])
