"""What the reader of a start-up log should look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from generator.calibration.account import ROUNDING_BYTES, LoggedAccount
from generator.calibration.blocks import LoggedBlocks, TokensMeaning
from generator.calibration.comparison import Compared, Unit
from generator.calibration.subject import Subject
from generator.startup_log import Reading, StartupLog
from generator.units import GIB, format_gib, gib

# An estimate is far above the use from a quarter of it on; below, it is a reserve.
_FAR_ABOVE = Fraction(5, 4)
_DIGIT_BYTES = GIB // 100
_RANK_FIGURES = {
    "weights_bytes": "weights",
    "block_tokens": "block size",
    "graph_estimate_bytes": "graph estimate",
    "graph_used_bytes": "graph use",
    "kv_cache_bytes": "KV cache memory",
    "kv_cache_tokens": "KV cache size",
    "max_model_len": "max-model-len",
    "concurrency": "maximum concurrency",
    "total_bytes": "GPU memory",
    "free_bytes": "free memory",
    "gpu_memory_utilization": "gpu-memory-utilization",
    "consumed_bytes": "consumed memory",
    "non_torch_bytes": "non-torch memory",
    "peak_activation_bytes": "peak activation",
    "peak_with_graphs_bytes": "peak activation",
}


# Ranks of one engine cannot differ in these; memory may, and with it what fits.
_ALIKE = ("block_tokens", "max_model_len", "gpu_memory_utilization")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at. ``kind`` is a name that does not change; warnings want action."""

    kind: str
    message: str
    is_warning: bool
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What findings are drawn from; ``blocks`` are the data rank's that binds."""

    log: StartupLog
    account: LoggedAccount | None
    blocks: LoggedBlocks | None
    compared: tuple[Compared, ...]
    subject: Subject | None


def find(evidence: Evidence) -> tuple[Finding, ...]:
    """Every finding, in the order of the start-up."""
    return (
        *_state_of_the_log(evidence.log),
        *_disagreeing_ranks(evidence.log),
        *_gap(evidence.account),
        *_graph_memory(evidence),
        *_suggestion(evidence),
        *_differences(evidence),
        *_meaning(evidence.blocks),
        *_load(evidence),
    )


def _state_of_the_log(log: StartupLog) -> Iterator[Finding]:
    if log.start_ups > 1:
        yield Finding(
            kind="several-start-ups",
            message=f"the log has {log.start_ups} start-ups; the last is read",
            is_warning=True,
        )
    for _, reading in log.readings("needed_bytes")[:1]:
        yield Finding(
            kind="refused",
            message=(
                f"the engine refused to start: one request of max-model-len needs"
                f" {format_gib(reading.value)}"
            ),
            is_warning=True,
            places=(reading.place,),
        )
    for _, reading in log.readings("kv_cache_as_given_bytes")[:1]:
        yield Finding(
            kind="profiling-skipped",
            message=(
                f"a flag fixed the KV cache to {format_gib(reading.value)}: the engine measured"
                " no memory"
            ),
            is_warning=False,
            places=(reading.place,),
        )
    elsewhere = log.readings("needed_bytes") or log.readings("kv_cache_as_given_bytes")
    if not elsewhere and log.ranks and not any(rank.has_budget for rank in log.ranks):
        yield Finding(
            kind="no-budget-line",
            message=(
                "no budget line (Free memory on device ...): the log ends early, or its level or"
                " release does not print it"
            ),
            is_warning=True,
        )


def _disagreeing_ranks(log: StartupLog) -> Iterator[Finding]:
    for name, label in _RANK_FIGURES.items():
        readings = log.readings(name)
        least = min(readings, key=lambda item: item[1].value, default=None)
        most = max(readings, key=lambda item: item[1].value, default=None)
        if least is None or most is None or least[1].value == most[1].value:
            continue
        text = f"{label} differs between ranks: "
        ends = [
            f"{_printed(name, reading)} of {process.tag or 'an untagged process'}"
            for process, reading in (least, most)
        ]
        yield Finding(
            kind="ranks-disagree",
            message=text + " to ".join(ends),
            is_warning=name in _ALIKE,
            places=(least[1].place, most[1].place),
        )


def _printed(name: str, reading: Reading[int] | Reading[float]) -> str:
    value = reading.value
    return format_gib(value) if name.endswith("_bytes") else f"{value:,}"


def _gap(account: LoggedAccount | None) -> Iterator[Finding]:
    """An account that rounding does not explain: something else takes or gives memory."""
    gap = account.gap_bytes if account else None
    if account is not None and gap is not None and abs(gap) > ROUNDING_BYTES:
        yield Finding(
            kind="account-does-not-close",
            message=(
                f"the terms and the KV cache leave {gib(gap):+.2f} GiB of what the engine may"
                " use unexplained"
            ),
            is_warning=True,
            places=account.places,
        )


def _graph_memory(evidence: Evidence) -> Iterator[Finding]:
    account = evidence.account
    if account is None or account.graph_used is None or account.graph_estimate is None:
        return
    estimate, used = account.graph_estimate.size_bytes, account.graph_used.size_bytes
    places = (*account.graph_estimate.places, *account.graph_used.places)
    figures = f"estimate {format_gib(estimate)}, use {format_gib(used)}"
    if account.graph_reserved is not None and account.graph_reserved.size_bytes == 0 < estimate:
        yield Finding(
            kind="graph-estimate-not-subtracted",
            message=(
                f"CUDA graphs ({figures}) are not taken off the KV cache: the share that"
                " gpu-memory-utilization leaves must hold them"
            ),
            is_warning=False,
            places=places,
        )
    elif estimate - used > _DIGIT_BYTES:
        yield Finding(
            kind="graph-estimate-above-use",
            message=f"CUDA graphs: {figures}: {_recovery(evidence, estimate - used)}",
            is_warning=estimate > _FAR_ABOVE * used,
            places=places,
        )
    elif used - estimate > _DIGIT_BYTES:
        yield Finding(
            kind="graph-use-above-estimate",
            message=(
                f"CUDA graphs: {figures}: {format_gib(used - estimate)} more than reserved"
                f" {_slack(account)}"
            ),
            is_warning=True,
            places=places,
        )


def _recovery(evidence: Evidence, unused: int) -> str:
    """How to give the KV cache what the estimate took too much, and what that holds."""
    text = f"{format_gib(unused)} unused"
    kv_cache = evidence.account.kv_cache if evidence.account else None
    if kv_cache is None:
        return text
    recovered = kv_cache.size_bytes + unused
    text += (
        f"; --kv-cache-memory-bytes {recovered} ({format_gib(recovered)}) recovers it"
        f" within the same budget"
    )
    if evidence.subject is None:
        return text
    engine = evidence.subject.engine
    workload = evidence.subject.workload
    tokens = workload.request_tokens if workload else engine.resolved.max_model_len
    layout = engine.kv_cache
    more = layout.num_blocks(recovered) - layout.num_blocks(kv_cache.size_bytes)
    requests = Fraction(more, layout.blocks_per_request(tokens))
    return text + (
        f": {float(requests):,.1f} more requests of {tokens} tokens per rank,"
        f" {float(requests * engine.pool.layout.data):,.1f} per endpoint"
    )


def _slack(account: LoggedAccount) -> str:
    """What the share that the engine leaves alone still has, the CUDA context aside."""
    if account.total is None or account.requested is None:
        return "comes from the share that gpu-memory-utilization leaves"
    context = account.cuda_context.size_bytes if account.cuda_context else 0
    slack = account.total.size_bytes - account.requested.size_bytes - context
    return (
        f"comes from the {format_gib(slack)} that gpu-memory-utilization leaves beside the"
        " CUDA context"
    )


def _suggestion(evidence: Evidence) -> Iterator[Finding]:
    """Newer budget lines count graphs twice: in the peak, as estimated, and as captured."""
    account = evidence.account
    if account is None or account.kv_cache is None:
        return
    newer = {process for process, _ in evidence.log.readings("peak_with_graphs_bytes")}
    for process, reading in evidence.log.readings("suggested_kv_cache_bytes"):
        if process != account.process or process not in newer:
            continue
        if reading.value < account.kv_cache.size_bytes:
            yield Finding(
                kind="suggestion-below-use",
                message=(
                    f"the log's own --kv-cache-memory={reading.value}"
                    f" ({format_gib(reading.value)}) is less than the KV cache in use: it counts"
                    " graphs twice and keeps a reserve"
                ),
                is_warning=False,
                places=(reading.place,),
            )


def _differences(evidence: Evidence) -> Iterator[Finding]:
    wrong = [item for item in evidence.compared if item.agrees is False]
    layout = [item for item in wrong if item.unit is not Unit.BYTES]
    if layout:
        names = ", ".join(item.name for item in layout)
        yield Finding(
            kind="prediction-differs",
            message=(
                f"not as predicted: {names}; do the options say what the engine was started with"
                " (cache dtypes, prefix caching, layout, draft tokens)?"
            ),
            is_warning=True,
            places=tuple(dict.fromkeys(place for item in layout for place in item.places)),
        )
    for item in wrong:
        if item.name == "weights" and item.predicted:
            share = 100 * ((item.logged or 0) / item.predicted - 1)
            yield Finding(
                kind="weights-differ",
                message=f"weights are {share:+.1f} % of what is computed",
                is_warning=True,
                places=item.places,
            )


def _meaning(blocks: LoggedBlocks | None) -> Iterator[Finding]:
    if blocks is None or blocks.meaning not in (TokensMeaning.AMBIGUOUS, TokensMeaning.NEITHER):
        return
    yield Finding(
        kind="kv-cache-size-unclear",
        message=f"GPU KV cache size: {blocks.meaning}",
        is_warning=blocks.meaning is TokensMeaning.NEITHER,
        places=(blocks.kv_cache_tokens.place,) if blocks.kv_cache_tokens else (),
    )


def _load(evidence: Evidence) -> Iterator[Finding]:
    """The load that the engine is meant for, beside what it can take."""
    subject = evidence.subject
    if subject is None:
        return
    engine, workload = subject.engine, subject.workload
    longest = engine.resolved.max_model_len
    lengths = evidence.log.readings("max_model_len")
    if workload is not None and longest < workload.request_tokens:
        yield Finding(
            kind="max-model-len-below-request",
            message=(
                f"max-model-len {longest} is below ISL + OSL = {workload.isl} + {workload.osl} ="
                f" {workload.request_tokens}"
            ),
            is_warning=True,
            places=tuple(reading.place for _, reading in lengths[:1]),
        )
    if subject.concurrency is None or evidence.blocks is None or not evidence.blocks.counts:
        return
    tokens = workload.request_tokens if workload else longest
    per_rank = Fraction(evidence.blocks.counts[0], engine.kv_cache.blocks_per_request(tokens))
    held = per_rank * engine.pool.data_ranks
    if subject.concurrency > held:
        yield Finding(
            kind="concurrency-above-capacity",
            message=(
                f"concurrency {subject.concurrency} is above what the KV cache holds:"
                f" {engine.pool.data_ranks_text} x {float(per_rank):,.2f} requests of {tokens}"
                f" tokens = {float(held):,.1f}"
            ),
            is_warning=True,
            places=evidence.blocks.places,
        )
