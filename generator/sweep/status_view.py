"""Where a sweep stands, for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from generator.cluster.protocol import NodeProblem
from generator.sweep.looking import Look
from generator.sweep.observation import Unreadable
from generator.sweep.plan_view import Row
from generator.sweep.points import parse_point
from generator.sweep.statuses import PointState, PointStatus
from generator.wording import plural

MOST_ROWS = 40
NO_POINTS = "no points: the submission was cut short; submit again"
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
MOVING = frozenset(
    {
        PointState.INTENDED,
        PointState.SUBMITTED,
        PointState.RUNNING,
        PointState.REQUEUED,
        PointState.UNKNOWN,
    }
)
"""States that change without anybody's doing."""


def moving_points(look: Look) -> frozenset[str]:
    """The points that may yet change without anybody's doing.

    A job never replaces a result that it cannot read: such a point waits for a person.
    """
    results = look.observation.results
    return frozenset(
        each.point
        for each in look.statuses
        if each.state in MOVING and not isinstance(results.get(each.point), Unreadable)
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
    """A row for each point, what needs attention first; without the done ones unless asked for."""
    rank = {state: place for place, state in enumerate(_ORDER)}
    listed = [each for each in look.statuses if all_points or each.state is not PointState.DONE]
    ordered = sorted(listed, key=lambda each: rank[each.state])
    return [_row(each, look) for each in (ordered if all_points else ordered[:MOST_ROWS])]


def advice(look: Look, nodes: Iterable[NodeProblem]) -> list[str]:
    """What a person can do now."""
    counts = Counter(each.state for each in look.statuses)
    lines = [_node_line(each) for each in nodes]
    results = look.observation.results.values()
    lines += [each.why for each in results if isinstance(each, Unreadable)][:MOST_ROWS]
    again = counts[PointState.FAILED] + counts[PointState.LOST] + counts[PointState.PLANNED]
    if again or counts[PointState.INTENDED]:
        lines.append("pdrecipe resume sends what is missing, failed or lost")
    if counts[PointState.CANCELLED]:
        lines.append("pdrecipe retry POINT sends what was cancelled")
    return lines


def _node_line(node: NodeProblem) -> str:
    """A drained node has a reason and waits for its admin; one that is out of reach may return."""
    if not node.reason:
        return f"node {node.node} is {node.state}: Slurm does not reach it"
    return f"node {node.node} is {node.state}: {node.reason}; an admin resumes it"


def _row(status: PointStatus, look: Look) -> Row:
    load = parse_point(status.point).concurrency
    why = status.why
    if len(why) > _LONGEST_WHY_CHARACTERS:
        why = f"{why[: _LONGEST_WHY_CHARACTERS - 3]}..."
    return (
        status.point,
        look.history.recipes[status.recipe].name,
        "-" if load is None else str(load),
        status.state.value,
        status.task_id or "-",
        str(status.attempts),
        why or ("on " + ",".join(status.nodes) if status.nodes else "-"),
    )
