"""Which points may not stand on a frontier, and why: rules on figures alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from generator.collection.aiperf import CLIENT as AIPERF
from generator.collection.measurement import Timing
from generator.results.point import Invalidity, MeasuredPoint

NO_OUTPUT = "no-output"
FAILED_REQUESTS = "failed-requests"
LATENCY_MISMATCH = "latency-mismatch"
TOKEN_MISMATCH = "token-mismatch"  # noqa: S105 - of generated tokens
ACCURACY = "accuracy"
FEWER_REQUESTS = "fewer-requests-than-concurrency"
DUPLICATE = "duplicate"

MOST_FAILED_PERCENT = 5
MOST_LATENCY_APART_PERCENT = 10
MOST_TOKENS_APART_PERCENT = 5
_ROUNDING = 1e-9  # means are sums of rounded times: at exactly 10 % they come out on either side


def invalidities(
    point: MeasuredPoint, timing: Timing | None, in_flight: int | None = None
) -> tuple[Invalidity, ...]:
    """Everything that a point's own figures say against it; a limit itself is still met.

    ``in_flight`` is the load that the client ran, where it stood for that of the point.
    """
    rules = (
        (NO_OUTPUT, _no_output(point)),
        (FAILED_REQUESTS, _failed_requests(point)),
        (LATENCY_MISMATCH, _latency_mismatch(timing)),
        (TOKEN_MISMATCH, _token_mismatch(point)),
        (ACCURACY, _accuracy(point)),
        (FEWER_REQUESTS, _fewer_requests(point, in_flight)),
    )
    return tuple(Invalidity(code=code, message=message) for code, message in rules if message)


def _no_output(point: MeasuredPoint) -> str:
    return "" if point.tokens.output else "no output tokens"


def _failed_requests(point: MeasuredPoint) -> str:
    failed, offered = point.requests.failed, point.requests.offered
    if not failed or not offered or failed * 100 <= offered * MOST_FAILED_PERCENT:
        return ""
    share = 100 * failed / offered
    return f"{failed:,} of {offered:,} requests failed, {share:.1f} %"


def _latency_mismatch(timing: Timing | None) -> str:
    if timing is None:
        return ""
    apart = abs(timing.summed_ms - timing.reported_ms)
    most = timing.reported_ms * MOST_LATENCY_APART_PERCENT / 100
    if apart <= most + timing.reported_ms * _ROUNDING:
        return ""
    return (
        f"TTFT and the tokens after it take {timing.summed_ms:,.1f} ms on average, the requests"
        f" {timing.reported_ms:,.1f} ms"
    )


def _token_mismatch(point: MeasuredPoint) -> str:
    tokens = point.tokens
    different = (
        f"{name} {by_client:,} by the client, {by_server:,} by the server"
        for name, by_client, by_server in (
            ("input", tokens.input, tokens.server_input),
            ("output", tokens.output, tokens.server_output),
        )
        if by_server is not None
        and abs(by_client - by_server) * 100 > by_server * MOST_TOKENS_APART_PERCENT
    )
    found = "; ".join(different)
    return f"tokens are counted differently: {found}" if found else ""


def _accuracy(point: MeasuredPoint) -> str:
    accuracy = point.accuracy
    if accuracy is None or accuracy.threshold is None or accuracy.score >= accuracy.threshold:
        return ""
    return f"{accuracy.benchmark} is {accuracy.score:.4g}, below {accuracy.threshold:g}"


def _fewer_requests(point: MeasuredPoint, in_flight: int | None) -> str:
    requests = point.requests
    sent = requests.completed if requests.offered is None else requests.offered
    concurrency = point.subject.concurrency if in_flight is None else in_flight
    if sent >= concurrency:
        return ""
    return f"{sent:,} requests at a concurrency of {concurrency:,}"


def with_duplicates(points: Iterable[MeasuredPoint]) -> list[MeasuredPoint]:
    """The points, with every one but the first invalid that measures the same thing once more.

    Those are a second report on one load of one run, and copies of a run. Another run of the same
    recipe and load is a repetition, and valid; so is another trial of AIPerf, which repeats a load
    within one run and says when each began.
    """
    ordered = sorted(points, key=_place)
    return [
        point
        for _, group in groupby(ordered, key=lambda each: each.subject.point_id)
        for point in _first_of_each(list(group))
    ]


def _place(point: MeasuredPoint) -> tuple[str, str, str]:
    return (point.subject.point_id, point.run, point.sources.get("figures", ""))


def _first_of_each(points: Sequence[MeasuredPoint]) -> Iterator[MeasuredPoint]:
    seen: list[MeasuredPoint] = []
    for point in points:
        first = next((each for each in seen if _is_same(each, point)), None)
        if first is None:
            seen.append(point)
            yield point
        else:
            message = f"measured once already, in {first.sources.get('figures') or first.run}"
            duplicate = Invalidity(code=DUPLICATE, message=message)
            yield replace(point, invalid=(*point.invalid, duplicate))


def _is_same(one: MeasuredPoint, other: MeasuredPoint) -> bool:
    if one.run == other.run and not _are_trials(one, other):
        return True
    return (one.started_at, one.duration_s, one.requests, one.tokens, one.latencies) == (
        other.started_at,
        other.duration_s,
        other.requests,
        other.tokens,
        other.latencies,
    )


def _are_trials(one: MeasuredPoint, other: MeasuredPoint) -> bool:
    starts = {one.started_at, other.started_at}
    is_aiperf = all(each.client.startswith(AIPERF) for each in (one, other))
    return is_aiperf and len(starts) == 2 and None not in starts
