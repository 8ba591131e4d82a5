"""Which points are sent, and why: what is on its way, done or unknown never is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from generator.sweep.events import CancelledBy, End
from generator.sweep.failures import is_flake
from generator.sweep.history import History
from generator.sweep.statuses import PointState, PointStatus

Chosen = dict[str, str]
"""By point, why it is sent."""

Choice = Callable[[PointStatus], str]
"""Why a point is to be sent, or nothing."""


def never_sent(status: PointStatus) -> str:
    """What a first submission takes."""
    return "never submitted" if status.state is PointState.PLANNED else ""


def unfinished(status: PointStatus) -> str:
    """What a resumption takes: all without a result, save what its user cancelled."""
    match status.state:
        case PointState.PLANNED:
            return never_sent(status)
        case PointState.LOST:
            return f"lost: {status.why}"
        case PointState.FAILED:
            return f"failed: {status.why}"
        case PointState.CANCELLED if status.by is not CancelledBy.USER:
            return f"cancelled: {status.why}"
        case _:
            return ""


def failed(status: PointStatus) -> str:
    """What ``retry --failed`` takes."""
    return f"failed: {status.why}" if status.state is PointState.FAILED else ""


def named(points: Iterable[str]) -> Choice:
    """What ``retry POINT...`` takes: what ended without a result, cancelled ones too."""
    wanted = frozenset(points)

    def choice(status: PointStatus) -> str:
        ended = (PointState.FAILED, PointState.CANCELLED, PointState.LOST, PointState.PLANNED)
        if status.point in wanted and status.state in ended:
            return f"{status.state}: {status.why}" if status.why else status.state.value
        return ""

    return choice


def flakes(history: History) -> Choice:
    """What is tried once more by itself: failures of the infrastructure, once for each point."""

    def choice(status: PointStatus) -> str:
        if status.state is not PointState.FAILED or not is_flake(status.cause):
            return ""
        ends = (attempt.ended.get(status.point) for attempt in history.attempts(status.point))
        met = [end for end in ends if end and end.state is End.FAILED and is_flake(end.cause)]
        return f"failed: {status.cause}, one more attempt" if len(met) == 1 else ""

    return choice


def chosen(statuses: Iterable[PointStatus], choice: Choice) -> Chosen:
    """The points to send, in the order of the plan."""
    return {status.point: why for status in statuses if (why := choice(status))}
