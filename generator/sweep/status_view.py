"""Where a sweep stands, for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from generator.cluster.protocol import NodeProblem
from generator.sweep.events import CancelledBy
from generator.sweep.looking import Look
from generator.sweep.observation import Unreadable
from generator.sweep.plan_view import Row
from generator.sweep.points import parse_point
from generator.sweep.statuses import PointState, PointStatus
from generator.wording import plural

MOST_ROWS = 40
NO_POINTS = "no points: the submission was cut short; submit the recipes again"
_LONGEST_WHY_CHARACTERS = 60
# What needs a person first; what is done last.
_ORDER = (
    PointState.FAILED,
    PointState.LOST,
    PointState.UNKNOWN,
    PointState.CANCELLED,
    PointState.INTENDED,
    PointState.RUNNING,
    PointState.REQUEUED,
    PointState.SUBMITTED,
    PointState.PLANNED,
    PointState.DONE,
)
_RESUMED = (PointState.FAILED, PointState.LOST, PointState.PLANNED, PointState.INTENDED)
_MOVING = frozenset(
    {
        PointState.INTENDED,
        PointState.SUBMITTED,
        PointState.RUNNING,
        PointState.REQUEUED,
        PointState.UNKNOWN,
    }
)


def moving_points(look: Look) -> frozenset[str]:
    """The points that may yet change without anybody's doing.

    A job never replaces a result that it cannot read: such a point waits for a person.
    """
    results = look.observation.results
    return frozenset(
        each.point
        for each in look.statuses
        if each.state in _MOVING and not isinstance(results.get(each.point), Unreadable)
    )


def status_summary(look: Look) -> str:
    """How many points are in which state: ``12 points: 4 done, 8 running``."""
    counts = Counter(each.state for each in look.statuses)
    listed = ", ".join(f"{counts[state]:,} {state}" for state in reversed(_ORDER) if counts[state])
    return f"{plural(len(look.statuses), 'point')}: {listed}" if listed else NO_POINTS


def status_headers() -> Row:
    """The columns of ``status_rows``."""
    return ("point", "recipe", "load", "state", "job", "tries", "why")


def status_rows(look: Look, *, all_points: bool) -> list[Row]:
    """A row for each point, what needs attention first; without the done ones unless asked for.

    A long reason is cut; with all points it has a row of two cells to itself.
    """
    rank = {state: place for place, state in enumerate(_ORDER)}
    listed = [each for each in look.statuses if all_points or each.state is not PointState.DONE]
    ordered = sorted(listed, key=lambda each: rank[each.state])
    if not all_points:
        return [_row(each, look, _shortened(each.why)) for each in ordered[:MOST_ROWS]]
    return [row for each in ordered for row in _whole_rows(each, look)]


def advice(look: Look, nodes: Iterable[NodeProblem], folder: str) -> list[str]:
    """What a person can do now; ``folder`` as users paste it."""
    counts = Counter(each.state for each in look.statuses)
    by_user = sum(each.by is CancelledBy.USER for each in look.statuses)
    lines = [_node_line(each) for each in nodes]
    results = look.observation.results.values()
    lines += [each.why for each in results if isinstance(each, Unreadable)][:MOST_ROWS]
    again = sum(counts[state] for state in _RESUMED) + counts[PointState.CANCELLED] - by_user
    if again:
        lines.append(f"pdrecipe resume {folder} sends what is missing, failed or lost")
    if by_user:
        lines.append(f"pdrecipe retry POINT... --sweep {folder} sends what you cancelled")
    return lines


def _node_line(node: NodeProblem) -> str:
    """A drained node has a reason and waits for its admin; one that is out of reach may return."""
    if not node.reason:
        return f"node {node.node} is {node.state}: Slurm does not reach it"
    return f"node {node.node} is {node.state}: {node.reason}; an admin resumes it"


def _shortened(why: str) -> str:
    if len(why) <= _LONGEST_WHY_CHARACTERS:
        return why
    return f"{why[: _LONGEST_WHY_CHARACTERS - 3]}..."


def _whole_rows(status: PointStatus, look: Look) -> list[Row]:
    if len(status.why) <= _LONGEST_WHY_CHARACTERS:
        return [_row(status, look, status.why)]
    return [_row(status, look, "below"), ("", status.why)]


def _row(status: PointStatus, look: Look, why: str) -> Row:
    load = parse_point(status.point).concurrency
    return (
        status.point,
        look.history.recipes[status.recipe].name,
        "-" if load is None else str(load),
        status.state.value,
        status.task_id or "-",
        str(status.attempts),
        why or ("on " + ",".join(status.nodes) if status.nodes else "-"),
    )
