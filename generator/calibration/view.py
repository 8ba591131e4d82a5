"""The calibration answer as tables: the account, the comparison, findings and readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from generator.calibration import Calibration, Compared, Figure, Unit
from generator.startup_log import Reading
from generator.units import format_count, gib

NOT_FOUND = "NOT FOUND"
_ABSENT = "-"

_READINGS = {
    "weights_bytes": "weights",
    "block_tokens": "block size, tokens",
    "padding_percent": "padding, %",
    "graph_groups": "CUDA graphs",
    "graph_estimate_bytes": "graph estimate",
    "kv_cache_bytes": "KV cache memory",
    "kv_cache_tokens": "KV cache size, tokens",
    "max_model_len": "max-model-len",
    "concurrency": "maximum concurrency",
    "graph_used_bytes": "graph use",
    "free_bytes": "free memory",
    "total_bytes": "GPU memory",
    "gpu_memory_utilization": "gpu-memory-utilization",
    "requested_bytes": "desired memory",
}
# Either wording of the budget line has some of these.
_BUDGET_READINGS = {
    "consumed_bytes": "consumed: weights and non-torch",
    "peak_with_graphs_bytes": "peak activation with graphs",
    "non_torch_bytes": "non-torch",
    "peak_activation_bytes": "peak activation",
}
# Most start-ups print none of these, and lack nothing.
_RARE_READINGS = {
    "is_estimate_subtracted": "graph estimate subtracted",
    "kv_cache_as_given_bytes": "KV cache memory as given",
    "kv_cache_reduced_bytes": "KV cache memory after reserves",
    "num_blocks": "blocks as overridden",
    "suggested_kv_cache_bytes": "suggested --kv-cache-memory",
    "needed_bytes": "memory of one request",
    "refused_tokens": "max-model-len refused",
    "longest_request_tokens": "longest request",
}
# Short, so that the names of most logs and engines fit beside eight of them.
_ACCOUNT_COLUMNS = {
    "context": "cuda_context",
    "non-torch": "non_torch",
    "weights": "weights",
    "peak": "peak_activation",
    "graphs": "graph_reserved",
    "KV": "kv_cache",
    "used": "graph_used",
}

_UNITS = {
    Unit.BYTES: ", GiB",
    Unit.TOKENS: ", tokens",
    Unit.PERCENT: ", %",
    Unit.COUNT: "",
    Unit.REQUESTS: " tokens",
}

Table = tuple[Sequence[str], list[list[str]]]


def memory_table(calibrations: Sequence[Calibration]) -> Table | None:
    """The account each log implies, GiB per GPU: a row of the article's memory tables.

    None where no log has any of it.
    """
    rows = [
        [
            _label(item),
            *(_cell(getattr(item.account, name)) for name in _ACCOUNT_COLUMNS.values()),
            _graphs(item),
        ]
        for item in calibrations
        if item.account is not None
    ]
    return (["log", *_ACCOUNT_COLUMNS, "n"], rows) if rows else None


def memory_notes(calibrations: Sequence[Calibration]) -> Iterator[str]:
    """What the columns mean, and each log's budget with the lines it comes from."""
    yield (
        f"GiB of the GPU with the least KV cache; -: {NOT_FOUND}. Context: total less free memory."
        " Non-torch: consumed memory less weights, or as printed. Peak: the printed activation"
        " peak, less the graphs where they are in it. Graphs: what the engine reserved; used: what"
        " they took; n: how many. KV: the KV cache."
    )
    for item in calibrations:
        account = item.account
        if account is None:
            continue
        parts = [f"{_label(item)}:"]
        if account.total and account.requested:
            parts.append(
                f"the engine may use {gib(account.requested.size_bytes):.2f} of"
                f" {gib(account.total.size_bytes):.2f} GiB;"
            )
        if account.gap_bytes is not None:
            parts.append(f"terms and KV cache leave {gib(account.gap_bytes):+.2f} GiB of it.")
        elif account.missing:
            names = ", ".join(name.replace("_", " ") for name in account.missing)
            parts.append(f"{NOT_FOUND}: {names}.")
        parts.append(f"[{_places(account.places)}]")
        yield " ".join(parts)


def _label(calibration: Calibration) -> str:
    return calibration.subject.engine.name if calibration.subject else calibration.log.source


def _cell(figure: Figure | None) -> str:
    """GiB, or the sign for NOT FOUND: that in words would not leave the names room on a page."""
    return _ABSENT if figure is None else f"{gib(figure.size_bytes):.2f}"


def _graphs(calibration: Calibration) -> str:
    logged = [item.logged for item in calibration.compared if item.name == "CUDA graphs"]
    if not logged:
        readings = calibration.log.readings("graph_groups")
        logged = [sum(group.graphs for group in reading.value) for _, reading in readings[:1]]
    return _ABSENT if not logged or logged[0] is None else str(logged[0])


def heading(calibration: Calibration) -> str:
    """Which log this is, of what, and what had to be assumed to compare it."""
    log, subject = calibration.log, calibration.subject
    tags = [rank.process.tag for rank in log.ranks if rank.process.tag]
    version = log.engine_version
    parts = [
        f"{log.source}: {log.lines:,} lines, {_processes(len(log.ranks))}",
        *([f"({', '.join(tags)})"] if tags else []),
        f"of vLLM {version.value} ({version.place})" if version else f"of vLLM {NOT_FOUND}",
    ]
    text = " ".join(parts)
    if subject is None:
        return f"{text}. Nothing to compare with: add --spec, or --model, --gpu and --layout."
    text += f", read as {subject.engine.name} on {subject.gpu.name}."
    if subject.assumed:
        text += f" {NOT_FOUND} in the log, nor given, so assumed: {', '.join(subject.assumed)}."
    return text


def comparison_table(calibration: Calibration) -> Table | None:
    """Each figure of the log beside its prediction; None where there is nothing to compare."""
    rows = [
        [
            f"{item.name}{_UNITS[item.unit]}",
            _number(item.logged, item.unit),
            _number(item.predicted, item.unit),
            _off(item),
            _known(item),
            _lines(item.places),
        ]
        for item in calibration.compared
    ]
    return (["figure", "log", "predicted", "off", "prediction", "lines"], rows) if rows else None


def comparison_notes(calibration: Calibration) -> Iterator[str]:
    """How the tokens were understood, and where several block counts fit."""
    if calibration.meaning is not None:
        yield f"GPU KV cache size: {calibration.meaning}."
    elif calibration.log.readings("kv_cache_tokens"):
        yield f"GPU KV cache size: {NOT_FOUND} what it means, for want of a concurrency line."
    for item in calibration.compared:
        if item.note:
            yield f"{item.name}: {item.note}."


def requests_lines(calibration: Calibration) -> Iterator[str]:
    """What the log's blocks hold, as vLLM counts it."""
    for requests in calibration.requests:
        yield (
            f"Requests of {requests.tokens} tokens, {requests.blocks_per_request} blocks each:"
            f" {format_count(float(requests.per_rank))} per rank,"
            f" {format_count(float(requests.per_endpoint))} per endpoint."
        )


def _number(value: int | float | None, unit: Unit) -> str:
    if value is None:
        return NOT_FOUND
    if unit is Unit.BYTES:
        return f"{gib(value):.2f}"
    if unit is Unit.PERCENT:
        return f"{value:.2f}"
    if unit is Unit.REQUESTS:
        return format_count(value)
    return f"{value:,}" if unit is Unit.TOKENS else str(value)


def _off(item: Compared) -> str:
    """How far the log is from the prediction; "=" where no digit of it differs."""
    if item.logged is None or item.predicted is None:
        return "-"
    if _number(item.logged, item.unit) == _number(item.predicted, item.unit):
        return "="
    difference = item.logged - item.predicted
    if item.unit is Unit.BYTES:
        return f"{gib(difference):+.2f}"
    return f"{difference:+,}" if isinstance(difference, int) else f"{difference:+,.2f}"


def _known(item: Compared) -> str:
    """How the prediction is known, and whether the log bears it out."""
    spread = f" +-{gib(item.uncertainty):.2f}" if item.uncertainty else ""
    verdict = "" if item.agrees is not False else ", DIFFERS"
    return f"{item.basis.value}{spread}{verdict}"


def _lines(places: Sequence[str]) -> str:
    """Lines of the log that the table's heading names: ``:23, :27``."""
    return ", ".join(f":{place.rpartition(':')[2]}" for place in places) or "-"


def _places(places: Sequence[str]) -> str:
    """Lines of a log, its name once: ``worker.log:23, :27``."""
    texts: list[str] = []
    named = ""
    for place in places:
        source, _, line = place.rpartition(":")
        texts.append(f":{line}" if source == named else place)
        named = source
    return ", ".join(texts) or "-"


def finding_lines(calibration: Calibration) -> Iterator[tuple[bool, str]]:
    """Each finding, and whether it is a warning."""
    for finding in calibration.findings:
        places = f" [{_places(finding.places)}]" if finding.places else ""
        yield finding.is_warning, f"{finding.message}{places}"


def readings_table(calibration: Calibration) -> Table:
    """Every value of the log, the least and most of its processes, with the lines of both."""
    log = calibration.log
    rows = [
        _single_row("engine version", log.engine_version),
        _single_row("model", log.model),
        _single_row(
            "capture sizes",
            log.capture_sizes and log.capture_sizes.with_value(_sizes(log.capture_sizes.value)),
        ),
        *(
            _single_row(flag.replace("_", "-"), reading)
            for flag, reading in sorted(log.settings.items())
        ),
        *(_rank_row(calibration, name, label) for name, label in _READINGS.items()),
    ]
    budget = [name for name in _BUDGET_READINGS if log.readings(name)]
    if not budget:
        rows.append(["consumed, peak activation, non-torch", NOT_FOUND, "-", "-"])
    rows += [_rank_row(calibration, name, _BUDGET_READINGS[name]) for name in budget]
    rows += [
        _rank_row(calibration, name, label)
        for name, label in _RARE_READINGS.items()
        if log.readings(name)
    ]
    return ["reading", "value", "of", "lines"], rows


def _single_row(label: str, reading: Reading[Any] | None) -> list[str]:
    if reading is None:
        return [label, NOT_FOUND, "-", "-"]
    return [label, str(reading.value), "log", _lines([reading.place])]


def _sizes(sizes: tuple[int, ...]) -> str:
    return f"{len(sizes)}: {sizes[0]} to {sizes[-1]}" if sizes else "none"


def _rank_row(calibration: Calibration, name: str, label: str) -> list[str]:
    readings = calibration.log.readings(name)
    if not readings:
        return [label, NOT_FOUND, "-", "-"]
    ordered = sorted((reading for _, reading in readings), key=lambda reading: reading.value)
    least, most = ordered[0], ordered[-1]
    ends = [least] if least.value == most.value else [least, most]
    value = " to ".join(_shown(name, reading.value) for reading in ends)
    return [label, value, _processes(len(readings)), _lines([reading.place for reading in ends])]


def _processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


def _shown(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return f"{gib(value):.2f} GiB"
    if isinstance(value, tuple):
        return ", ".join(
            f"{group.kind}={group.graphs} (largest {group.largest_tokens})" for group in value
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
