"""The plan screen: what would be sent, what it may cost, what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from generator.sweep.planning import Plan, PlannedArray
from generator.sweep.statuses import PointState, PointStatus
from generator.sweep.time_limit import format_time_limit
from generator.units import format_gpu_hours
from generator.wording import plural

Row = tuple[str, ...]
_MOST_REASONS = 6


def plan_headers() -> Row:
    """The columns of ``plan_rows``."""
    return ("array", "jobs", "points", "nodes", "time limit", "segment", "GPU-hours", "starts")


def plan_rows(plan: Plan) -> list[Row]:
    """One row for each array."""
    return [_row(plan, place) for place in range(len(plan.arrays))]


def plan_summary(plan: Plan, waited_for: int = 0) -> list[str]:
    """The whole plan in a few sentences; ``waited_for`` arrays that are on their way come first."""
    size = ", ".join(
        (
            f"{plural(len(plan.jobs), 'job')} in {plural(len(plan.arrays), 'array')}",
            plural(plan.points, "point"),
            f"at most {format_gpu_hours(plan.gpu_hours)} GPU-hours",
            f"{plural(plan.most_nodes, 'node')} at once",
        )
    )
    lines = [f"{size}."]
    if plan.held_jobs:
        lines.append(
            f"{plural(plan.held_jobs, 'job')} wait until the first of their configuration has a"
            " result (--no-canary sends all at once)."
        )
    if plan.max_parallel:
        order = any(map(plan.before, range(len(plan.arrays))))
        lines.append(
            f"At most {plural(plan.max_parallel, 'job')} at once"
            + ("; Slurm starts an array when those it comes after are over." if order else ".")
        )
    if waited_for:
        lines.append(f"All of it waits for {plural(waited_for, 'array')} sent before.")
    return lines


def sent_lines(plan: Plan, folder: str) -> list[str]:
    """What was sent, and which command goes on; ``folder`` as users paste it."""
    what = f"{plural(len(plan.jobs), 'job')} in {plural(len(plan.arrays), 'array')}"
    if not plan.held_jobs:
        return [f"Sent {what}; pdrecipe status --watch {folder} follows them."]
    return [
        f"Sent {what}; {plural(plan.held_jobs, 'job')} held until a canary has a result.",
        f"pdrecipe status --watch {folder} follows them, and releases what is held.",
    ]


def reasons(plan: Plan) -> list[Row]:
    """How many points go out for which reason, the most frequent first."""
    met: Counter[str] = Counter()
    for job in plan.jobs:
        met[job.why] += len(job.points)
    listed: list[Row] = [
        (plural(count, "point"), why) for why, count in met.most_common(_MOST_REASONS)
    ]
    rest = sum(met.values()) - sum(count for _, count in met.most_common(_MOST_REASONS))
    return [*listed, (plural(rest, "point"), "other reasons")] if rest else listed


def left_out(statuses: Iterable[PointStatus], plan: Plan) -> str:
    """What of the sweep is not sent, by state; empty where everything is."""
    sent = {point for job in plan.jobs for point in job.points}
    states = Counter(each.state for each in statuses if each.point not in sent)
    return ", ".join(f"{states[state]} {state}" for state in PointState if states[state])


def _row(plan: Plan, place: int) -> Row:
    array = plan.arrays[place]
    parameters = array.parameters
    return (
        str(place + 1),
        str(len(array.jobs)),
        str(sum(len(job.points) for job in array.jobs)),
        str(parameters.nodes),
        format_time_limit(60 * parameters.time_minutes),
        "-" if parameters.segment is None else str(parameters.segment),
        format_gpu_hours(sum(job.gpu_hours for job in array.jobs)),
        _start(array, plan.before(place)),
    )


def _start(array: PlannedArray, before: tuple[int, ...]) -> str:
    """When an array's jobs start: ``held, up to 2 after 3``."""
    limit = f"up to {array.max_parallel}" if array.max_parallel else ""
    how = f"{limit} after {before[-1] + 1}" if before else f"{limit} at once".strip()
    if not array.held:
        return how
    return f"held, {how}" if limit else "held"
