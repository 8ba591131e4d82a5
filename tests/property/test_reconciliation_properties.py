"""What holds whatever a cluster answers: done means a result, and silence ends nothing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from generator.cluster.job_file import PointResult
from generator.cluster.protocol import JobState, Phase, SbatchParameters, StateReport
from generator.cluster.starts import Start, requeues
from generator.sweep.events import (
    Asked,
    CancelledBy,
    End,
    Ended,
    Event,
    Intended,
    IntendedTask,
    Planned,
    PlannedRecipe,
    Requeued,
    Running,
    Submitted,
)
from generator.sweep.history import history
from generator.sweep.observation import Observation, Unreadable
from generator.sweep.reconciliation import reconcile
from generator.sweep.selection import chosen, unfinished
from generator.sweep.statuses import PointState, point_statuses

POINTS = ("a", "b", "c")
TOKENS = ("t1", "t2")
ASKED = Asked(name="x", parameters=SbatchParameters(nodes=1, time_minutes=1))
PLANNED = Planned(recipes=(PlannedRecipe(digest="d", name="r", file="r.yaml", points=POINTS),))
TASKS = st.lists(
    st.builds(
        IntendedTask,
        recipe=st.just("d"),
        points=st.lists(st.sampled_from(POINTS), min_size=1, unique=True).map(tuple),
    ),
    min_size=1,
    max_size=2,
).map(tuple)
INDEX = st.integers(0, 1)
NODES = st.sampled_from([(), ("n1",), ("n2",)])


@st.composite
def ledgers(draw: st.DrawFn) -> list[Event]:
    """Up to two arrays, submitted or not, and what was seen of their jobs."""
    events: list[Event] = [PLANNED]
    for token in TOKENS[: draw(st.integers(0, 2))]:
        tasks = draw(TASKS)
        events.append(Intended(token=token, tasks=tasks, asked=ASKED))
        if draw(st.booleans()):
            ids = tuple(f"{token}_{index}" for index in range(len(tasks)))
            events.append(Submitted(token=token, job_id=token, task_ids=ids))
        events += draw(st.lists(_seen(token), max_size=4))
    return events


def _seen(token: str) -> st.SearchStrategy[Event]:
    where = {"token": st.just(token), "index": INDEX}
    return st.one_of(
        st.builds(Running, **where, nodes=NODES),
        st.builds(Requeued, **where),
        st.builds(
            Ended,
            **where,
            state=st.sampled_from(End),
            point=st.sampled_from(POINTS),
            by=st.sampled_from(CancelledBy),
        ),
    )


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    ids = [f"{token}_{index}" for token in TOKENS for index in range(2)]
    states = {
        task_id: JobState(
            task_id=task_id,
            phase=draw(st.sampled_from(Phase)),
            state="X",
            exit_code=draw(st.none() | st.integers(0, 9)),
            nodes=draw(NODES),
            asked=draw(st.sampled_from(["squeue", "sacct"])),
        )
        for task_id in draw(st.lists(st.sampled_from(ids), unique=True))
    }
    report = StateReport(
        states=states, queue_answered=draw(st.booleans()), accounting_answered=draw(st.booleans())
    )
    result = st.builds(
        PointResult,
        token=st.sampled_from([*TOKENS, "t0"]),
        point_id=st.just("x"),
        concurrency=st.just(1),
        status=st.sampled_from(["done", "failed"]),
        reason=st.sampled_from(["", "x"]),
        exit_code=st.just(0),
        started=st.just(0.0),
        ended=st.just(0.0),
        job_id=st.just("1"),
        run=st.just(1),
        nodes=st.just(()),
        output=st.just(""),
    )
    return Observation(
        results=draw(
            st.dictionaries(
                st.sampled_from(POINTS), result | st.just(Unreadable(why="x")), max_size=3
            )
        ),
        report=draw(st.none() | st.just(report)),
        has_accounting=draw(st.booleans()),
        unsettled=frozenset(draw(st.lists(st.sampled_from(ids)))),
    )


def has_result(seen: Observation, point: str) -> bool:
    result = seen.results.get(point)
    return isinstance(result, PointResult) and result.status == "done"


@given(ledgers(), observations())
def test_done_is_what_has_a_result(events: list[Event], seen: Observation) -> None:
    recorded = [*events, *reconcile(history(events), seen).events]
    for status in point_statuses(history(recorded), seen):
        assert (status.state is PointState.DONE) == has_result(seen, status.point)


@given(ledgers(), observations())
def test_events_end_points_with_a_reason(events: list[Event], seen: Observation) -> None:
    answered = seen.report is not None and seen.report.queue_answered
    for event in reconcile(history(events), seen).events:
        if not isinstance(event, Ended):
            continue
        if event.state is End.DONE:
            assert has_result(seen, event.point)
        elif not answered or event.state is End.LOST:
            result = seen.results.get(event.point)
            failed = isinstance(result, PointResult) and result.token == event.token
            assert (event.state is End.FAILED and failed) or answered
            assert not has_result(seen, event.point)


@given(ledgers(), observations())
def test_the_first_look_at_a_job_that_is_over_ends_nothing(
    events: list[Event], seen: Observation
) -> None:
    found = reconcile(history(events), replace(seen, unsettled=frozenset()))
    for event in found.events:
        if isinstance(event, Ended):
            assert isinstance(seen.results.get(event.point), PointResult)


@given(ledgers(), observations())
def test_recorded_once(events: list[Event], seen: Observation) -> None:
    recorded = [*events, *reconcile(history(events), seen).events]
    assert reconcile(history(recorded), seen).events == ()


STARTS = st.dictionaries(
    st.tuples(st.sampled_from(TOKENS), INDEX),
    st.lists(
        st.builds(
            Start,
            token=st.just("t"),
            job_id=st.just("1"),
            restarts=st.integers(0, 3),
            at=st.just(0.0),
            nodes=NODES,
        ),
        max_size=3,
    ).map(tuple),
)


@given(ledgers(), observations(), STARTS)
def test_every_requeue_that_a_job_wrote_down_is_recorded(
    events: list[Event], seen: Observation, starts: dict[tuple[str, int], tuple[Start, ...]]
) -> None:
    """Whatever the queue told or did not tell, and whether the job still goes on."""
    recorded = [*events, *reconcile(history(events), replace(seen, starts=starts)).events]
    for array in history(recorded).arrays.values():
        for attempt in array.attempts:
            assert attempt.requeues >= requeues(starts.get((attempt.token, attempt.index), ()))


@given(ledgers(), observations(), observations())
def test_nothing_that_ended_begins_again_but_what_was_lost(
    events: list[Event], first: Observation, second: Observation
) -> None:
    def ended(listed: list[Event]) -> dict[tuple[str, int, str], End]:
        return {
            (attempt.token, attempt.index, point): end.state
            for array in history(listed).arrays.values()
            for attempt in array.attempts
            for point, end in attempt.ended.items()
        }

    one = [*events, *reconcile(history(events), first).events]
    two = [*one, *reconcile(history(one), second).events]
    before, after = ended(one), ended(two)
    for key, state in before.items():
        assert after.get(key) in ({state, End.DONE} | ({None} if state is End.LOST else set()))


@given(ledgers(), observations())
def test_what_may_be_alive_is_never_chosen(events: list[Event], seen: Observation) -> None:
    recorded = [*events, *reconcile(history(events), seen).events]
    state = history(recorded)
    sent = chosen(point_statuses(state, seen), unfinished)
    for point in sent:
        assert not has_result(seen, point)
        latest = state.latest_attempts().get(point)
        assert latest is None or point not in latest.open_points
