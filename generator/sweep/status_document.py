"""``pdrecipe status --json``: where every point stands, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from generator.cluster.job_file import PointResult
from generator.cluster.protocol import NodeProblem
from generator.sweep.folder import SweepFolder, SweepSettings
from generator.sweep.looking import Look
from generator.sweep.points import parse_point
from generator.sweep.statuses import PointState, PointStatus


def status_document(
    folder: SweepFolder,
    settings: SweepSettings,
    look: Look,
    nodes: Iterable[NodeProblem],
    changed: Iterable[str] = (),
) -> dict[str, Any]:
    """The document that ``schemas/status.schema.json`` describes."""
    counts = Counter(each.state for each in look.statuses)
    return {
        "version": 1,
        "sweep": settings.name,
        "folder": str(folder.root),
        "cluster": settings.cluster,
        "complete": is_complete(look),
        "counts": {state.value: counts[state] for state in PointState},
        "points": [_point(each, look) for each in look.statuses],
        "nodes": [
            {"node": each.node, "state": each.state, "reason": each.reason} for each in nodes
        ],
        "changed": list(changed),
        "notices": list(look.notices),
    }


def is_complete(look: Look) -> bool:
    """Whether every point is done; a sweep without points was cut off before it had them."""
    return bool(look.statuses) and all(each.state is PointState.DONE for each in look.statuses)


def _point(status: PointStatus, look: Look) -> dict[str, Any]:
    recipe = look.history.recipes[status.recipe]
    result = look.observation.results.get(status.point)
    found = result if isinstance(result, PointResult) else None
    return {
        "point": status.point,
        "recipe": recipe.name,
        "file": recipe.file,
        "concurrency": parse_point(status.point).concurrency,
        "state": status.state.value,
        "why": status.why,
        "cause": status.cause,
        "attempts": status.attempts,
        "token": status.token or None,
        "job": status.task_id or None,
        "nodes": list(_nodes(status, found)),
        "exit_code": status.exit_code,
        "output": found.output if found else None,
        "started": found.started if found else None,
        "ended": found.ended if found else None,
        "log_tail": found.log_tail if found and status.state is PointState.FAILED else "",
    }


def _nodes(status: PointStatus, found: PointResult | None) -> tuple[str, ...]:
    """Where the point ran: a result knows best, unless it is of an earlier attempt."""
    if found is not None and (status.state is PointState.DONE or found.token == status.token):
        return found.nodes
    return status.nodes
