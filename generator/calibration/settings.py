"""What a log tells of the engine's flags, and where a person said otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from generator.engine.cuda_graphs import CudaGraphMode
from generator.engine.options import EngineOptions
from generator.engine.plan import Engine
from generator.errors import Problem
from generator.parallel import ParallelLayout
from generator.startup_log import ENCODER_GRAPHS, Reading, StartupLog
from generator.units import DTYPE_BITS, format_gib

_LAYOUT_FLAGS = {
    "tensor_parallel_size": "tensor",
    "pipeline_parallel_size": "pipeline",
    "data_parallel_size": "data",
    "decode_context_parallel_size": "decode_context",
    "enable_expert_parallel": "expert_parallel",
}
_FLAGS_OF_LAYOUT = {name: flag for flag, name in _LAYOUT_FLAGS.items()}
_OPTION_FIELDS = frozenset(field.name for field in fields(EngineOptions)) - {"layout"}
_GPU_TOTAL_TOLERANCE = 0.05
_FULL_MODES = (CudaGraphMode.FULL_DECODE_ONLY, CudaGraphMode.FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSettings:
    """Flags as a log shows them: of the layout by its fields, the others by EngineOptions'.

    ``least_ranks`` are the highest ranks that process tags name: the sizes are at least one more.
    """

    layout: Mapping[str, Reading[Any]]
    options: Mapping[str, Reading[Any]]
    least_ranks: Mapping[str, Reading[int]]


def logged_settings(log: StartupLog) -> LoggedSettings:
    """Every flag the log tells, by whichever of its lines."""
    options = {
        flag: reading
        for flag, reading in log.settings.items()
        if flag in _OPTION_FIELDS and reading.value != "auto"
    }
    for name in ("gpu_memory_utilization", "refused_tokens", "max_model_len"):
        for _, reading in log.readings(name)[:1]:
            options[{"refused_tokens": "max_model_len"}.get(name, name)] = reading
    if log.capture_sizes is not None and log.capture_sizes.value:
        sizes = log.capture_sizes
        options["max_cudagraph_capture_size"] = sizes.with_value(max(sizes.value))
    if "cudagraph_mode" in options:
        mode = options["cudagraph_mode"]
        options["cudagraph_mode"] = mode.with_value(mode.value.upper())
    elif (captured := _captured_mode(log)) is not None:
        options["cudagraph_mode"] = captured
    layout = {
        _LAYOUT_FLAGS[flag]: reading
        for flag, reading in log.settings.items()
        if flag in _LAYOUT_FLAGS
    }
    expert = _expert_parallel(log)
    if expert is not None:
        layout["expert_parallel"] = expert
    return LoggedSettings(layout=layout, options=options, least_ranks=dict(_least_ranks(log)))


def captures_full_graphs_only(log: StartupLog) -> bool:
    """Whether the engine captured FULL graphs alone, which two graph modes do."""
    return any(
        {group.kind for group in reading.value} - {ENCODER_GRAPHS} == {"FULL"}
        for _, reading in log.readings("graph_groups")
    )


def _captured_mode(log: StartupLog) -> Reading[str] | None:
    """The graph mode that the captured kinds betray; FULL graphs alone do not tell it."""
    for _, reading in log.readings("graph_groups"):
        kinds = {group.kind for group in reading.value}
        if "PIECEWISE" in kinds:
            mode = "FULL_AND_PIECEWISE" if "FULL" in kinds else "PIECEWISE"
            return reading.with_value(mode)
    return None


def _first_reading(log: StartupLog, tag: str) -> Reading[Any] | None:
    """The first value that a process printed, to cite its tag."""
    for rank in log.ranks:
        if rank.process.tag == tag:
            values = [getattr(rank, field.name) for field in fields(rank)]
            found = [value for value in values if isinstance(value, Reading)]
            return min(found, key=lambda reading: reading.line) if found else None
    return None


def _expert_parallel(log: StartupLog) -> Reading[Any] | None:
    """Workers of an engine with expert parallelism carry their expert rank in the tag."""
    if flag := log.settings.get("enable_expert_parallel"):
        return flag
    workers = [
        rank.process
        for rank in log.ranks
        if rank.process.tag.startswith("Worker_")
        and (rank.process.tensor is not None or rank.process.data is not None)
    ] + [rank.process for rank in log.ranks if rank.process.expert is not None]
    for process in workers:
        if cited := _first_reading(log, process.tag):
            return cited.with_value(process.expert is not None)
    return None


def _least_ranks(log: StartupLog) -> Iterator[tuple[str, Reading[int]]]:
    for name in ("data", "pipeline", "tensor"):
        ranked = [rank for rank in log.ranks if getattr(rank.process, name) is not None]
        if not ranked:
            continue
        last = max(ranked, key=lambda rank: getattr(rank.process, name))
        if cited := _first_reading(log, last.process.tag):
            yield name, cited.with_value(getattr(last.process, name))


def layout_told(told: LoggedSettings) -> ParallelLayout | None:
    """The parallel layout, where the log gives all of it that matters."""
    sizes = {name: reading.value for name, reading in told.layout.items()}
    if not {"tensor", "data"} <= set(sizes):
        return None
    if "expert_parallel" not in sizes and sizes["tensor"] * sizes["data"] > 1:
        return None
    return ParallelLayout(**sizes)


def fill_in(options: EngineOptions, told: LoggedSettings, given: frozenset[str]) -> EngineOptions:
    """The options with the log's values where nothing was ``given``."""
    return replace(
        options,
        **{name: reading.value for name, reading in told.options.items() if name not in given},
    )


def layout_conflicts(
    layout: ParallelLayout, told: LoggedSettings, origin: str
) -> Iterator[Problem]:
    """Where the log shows another parallel layout than ``origin`` says."""
    said = f"{origin} says {layout}"
    for name, reading in told.layout.items():
        if getattr(layout, name) != reading.value:
            flag = _FLAGS_OF_LAYOUT[name].replace("_", "-")
            yield _conflict(reading, flag, reading.value, said)
    for name, reading in told.least_ranks.items():
        if getattr(layout, name) <= reading.value:
            yield _conflict(reading, f"the highest {name} parallel rank", reading.value, said)


def option_conflicts(
    engine: Engine,
    log: StartupLog,
    told: LoggedSettings,
    given: frozenset[str],
    origin: Callable[[str], str],
) -> Iterator[Problem]:
    """Every flag where the log says one thing and ``origin`` of a given flag another."""
    for name, reading in told.options.items():
        stated = _stated(engine, name)
        if name in given and not _same(name, stated, reading.value):
            said = f"{origin(name)} says {stated}"
            yield _conflict(reading, name.replace("_", "-"), reading.value, said)
    mode = engine.resolved.cudagraph_mode
    if "cudagraph_mode" in given and mode not in _FULL_MODES and captures_full_graphs_only(log):
        said = f"{origin('cudagraph_mode')} says {mode}"
        for _, reading in log.readings("graph_groups")[:1]:
            yield _conflict(reading, "cudagraph-mode", " or ".join(_FULL_MODES), said)


def _stated(engine: Engine, name: str) -> Any:
    """What an engine was told, in the form the log shows it."""
    if name == "kv_cache_dtype":
        return engine.kv_cache.kv_cache_dtype
    if name == "max_cudagraph_capture_size":
        return max(engine.resolved.graphs.capture_sizes, default=0)
    if name == "cudagraph_mode":
        return engine.resolved.cudagraph_mode.value
    return getattr(engine.options, name)


def _same(name: str, stated: Any, logged: Any) -> bool:
    if name.endswith("_dtype"):
        stated, logged = (DTYPE_BITS.get(str(dtype), dtype) for dtype in (stated, logged))
    return bool(stated == logged)


def _conflict(reading: Reading[Any], name: str, logged: Any, said: str) -> Problem:
    return Problem(
        message=f"{name} is {logged} in the log, but {said}",
        hint="leave the option out, or name the log's own engine",
        source=reading.source,
        line=reading.line,
    )


def version_conflicts(log: StartupLog, version: str, origin: str) -> Iterator[Problem]:
    """Where the log shows another engine release than ``origin`` says."""
    logged = log.engine_version
    if logged is not None and logged.value.removeprefix("v") != version.removeprefix("v"):
        yield _conflict(logged, "the engine's version", logged.value, f"{origin} says {version}")


def gpu_conflicts(log: StartupLog, gpu_name: str, total_bytes: int) -> Iterator[Problem]:
    """Why the log cannot be of this GPU: memory more than 5 % away from what is known of it."""
    for _, reading in log.readings("total_bytes")[:1]:
        if abs(reading.value - total_bytes) > _GPU_TOTAL_TOLERANCE * total_bytes:
            said = f"{gpu_name} has {format_gib(total_bytes)}"
            yield _conflict(reading, "the GPU's memory", format_gib(reading.value), said)
