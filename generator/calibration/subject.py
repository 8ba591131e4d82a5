"""The engine that a log is of: named by a spec or by flags, completed and checked by the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.architecture import ModelArchitecture
from generator.calibration.settings import (
    LoggedSettings,
    captures_full_graphs_only,
    fill_in,
    gpu_conflicts,
    layout_conflicts,
    layout_told,
    logged_settings,
    option_conflicts,
    version_conflicts,
)
from generator.derivation.derivation import Derivation, Probe, derive
from generator.engine.options import EngineOptions, options_from_flags
from generator.engine.plan import Engine, plan_engine
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, Gpu, engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.parallel import WorkerPool, parse_layout
from generator.spec.reader import load_spec
from generator.spec.spec import Spec
from generator.startup_log import StartupLog
from generator.wording import did_you_mean
from generator.workload import Workload

_ENGINE = "vllm"
_DEFAULT_VERSION = "0.26.0"
_SWITCHES = ("language_model_only", "hybrid_kv_cache_manager_disabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An engine as it was started, with the load it is meant for.

    ``concurrency`` is that of all workers of its role, None where no load is known.
    ``assumed`` names settings that neither the log nor a person tells: enough to compare with, too
    little to file figures under.
    """

    engine: Engine
    architecture: ModelArchitecture
    gpu: Gpu
    defaults: EngineDefaults
    workload: Workload | None
    concurrency: int | None
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescription:
    """An engine in a person's words: what `pdrecipe capacity` takes, and its load.

    ``flags`` are in vLLM's spelling. ``layout`` and ``engine_version`` may be left to the log.
    """

    model: Path
    gpu: str
    layout: str | None
    engine_version: str | None
    flags: Mapping[str, Any]
    workload: Workload | None
    concurrency: int | None


def subject_of_description(description: EngineDescription, log: StartupLog) -> Subject:
    """The engine described, with the log's settings where nothing was said.

    Raises InvalidInput where the two disagree, naming both, or where nobody says the layout.
    """
    told = logged_settings(log)
    options = options_from_flags(description.flags)
    given = _given(options) | _given_tokens(description.flags)
    layout = parse_layout(description.layout) if description.layout else layout_told(told)
    if layout is None:
        raise InvalidInput(
            Problem(
                message="the parallel layout is not in the log",
                hint="add --layout, such as TP4DP4+EP",
                source=log.source,
            )
        )
    logged_version = log.engine_version.value if log.engine_version else None
    said_version = description.engine_version or logged_version
    version = said_version or _DEFAULT_VERSION
    accelerator = gpu(description.gpu)
    _require_none(
        [
            *version_conflicts(log, version, "--engine-version"),
            *gpu_conflicts(log, accelerator.name, accelerator.engine_total.value),
            *layout_conflicts(layout, told, "--layout"),
        ]
    )
    defaults = engine_defaults(_ENGINE, version, accelerator)
    architecture = load_architecture(description.model)
    options = _with_graph_mode(fill_in(replace(options, layout=layout), told, given), log)
    pool = WorkerPool(workers=1, layout=layout)
    engine = plan_engine(str(layout), "agg", pool, options, architecture, defaults)
    _require_none(list(option_conflicts(engine, log, told, given, _option_name)))
    assumed = _assumed(engine, log, given | frozenset(told.options))
    return Subject(
        engine=replace(engine, name=_name(engine)),
        architecture=architecture,
        gpu=accelerator,
        defaults=defaults,
        workload=description.workload,
        concurrency=description.concurrency,
        assumed=(*([] if said_version else ["engine-version"]), *assumed),
    )


def _require_none(problems: list[Problem]) -> None:
    if problems:
        raise InvalidInput(problems)


def _name(engine: Engine) -> str:
    """What a profile calls the run: its layout, drafted tokens and sequences."""
    tokens = engine.options.num_speculative_tokens
    mtp = f" mtp{tokens}" if tokens else ""
    return f"{engine.pool.layout}{mtp} s{engine.resolved.max_num_seqs}"


def _given(options: EngineOptions) -> frozenset[str]:
    """The options that say something; automatic choices and switches left off do not."""
    unsaid = {name for name in _SWITCHES if not getattr(options, name)}
    values = {name: getattr(options, name) for name in EngineOptions.__dataclass_fields__}
    unsaid |= {name for name, value in values.items() if value is None or value == "auto"}
    return frozenset(values) - unsaid - {"layout", "num_speculative_tokens"}


def _given_tokens(flags: Mapping[str, Any]) -> frozenset[str]:
    """Speculative tokens count as given where the flag is there, even as 0."""
    spelled = any("num_speculative_tokens" in flag.replace("-", "_") for flag in flags)
    return frozenset({"num_speculative_tokens"} if spelled else ())


def _option_name(name: str) -> str:
    return {"num_speculative_tokens": "--mtp"}.get(name, f"--{name.replace('_', '-')}")


def _with_graph_mode(options: EngineOptions, log: StartupLog) -> EngineOptions:
    """FULL graphs alone, and no mode said: as a decode engine's."""
    if options.cudagraph_mode is None and captures_full_graphs_only(log):
        return replace(options, cudagraph_mode="FULL_DECODE_ONLY")
    return options


def _assumed(engine: Engine, log: StartupLog, known: frozenset[str]) -> Iterator[str]:
    """Settings of a profile's key that nobody told.

    Where the log repeats its arguments, a flag that is not among them was left to the engine, and
    the engine's default holds.
    """
    if not log.has_arguments:
        for name in ("max_num_seqs", "max_num_batched_tokens"):
            if name not in known:
                yield name.replace("_", "-")
        if engine.resolved.graphs.graphs and "max_cudagraph_capture_size" not in known:
            yield "max-cudagraph-capture-size"
    if "cudagraph_mode" not in known:
        yield "cudagraph-mode"
    if "num_speculative_tokens" not in known:
        yield "mtp"


class SpecEngines:
    """The engines of a spec, to find the one a log is of."""

    def __init__(self, path: Path, studies: Iterable[Probe] = ()) -> None:
        """Read and derive the spec once; raises InvalidInput with every problem of it.

        ``studies`` are its phase studies, planned: how far they go takes capacity, which is not
        known here.
        """
        self._spec: Spec = load_spec(path)
        self._architecture = load_architecture(self._spec.model_config)
        self._gpu = gpu(self._spec.cluster.gpu)
        version = self._spec.engine.version
        self._defaults = engine_defaults(self._spec.engine.type, version, self._gpu)
        derivation = derive(self._spec, self._architecture, self._defaults)
        self._engines = {engine.name: engine for engine in derivation.engines}
        self._loads = dict(_loads(derivation))
        self._studies = {study.engine.name: study for study in studies}

    def subject(self, log: StartupLog, name: str | None) -> Subject:
        """The engine of that name, or the only kind of engine that the log can be of.

        Those of studies are looked at where no other fits. Raises InvalidInput where log and engine
        disagree, naming both, or where none or several kinds fit.
        """
        _require_none(
            [
                *version_conflicts(log, self._spec.engine.version, self._spec.document.source),
                *gpu_conflicts(log, self._gpu.name, self._gpu.engine_total.value),
            ]
        )
        told = logged_settings(log)
        if name is not None:
            engine = self._named(name)
            _require_none(self._conflicts(engine, log, told))
            return self._subject(engine, told)
        studied = [study.engine for study in self._studies.values()]
        kinds = self._fitting(self._engines.values(), log, told) or self._fitting(
            studied, log, told
        )
        if len(kinds) != 1:
            raise InvalidInput(self._undecided(kinds, log))
        return self._subject(kinds[0], told)

    def _fitting(
        self, engines: Iterable[Engine], log: StartupLog, told: LoggedSettings
    ) -> list[Engine]:
        """One engine of each kind that the log does not contradict."""
        return _distinct([each for each in engines if not self._conflicts(each, log, told)])

    def _named(self, name: str) -> Engine:
        engines = self._engines | {key: each.engine for key, each in self._studies.items()}
        found = engines.get(name)
        if found is None:
            hint = did_you_mean(name, engines) or f"such as {next(iter(engines))}"
            message = f"no engine is called '{name}'"
            raise InvalidInput(
                Problem(message=message, hint=hint, source=self._spec.document.source)
            )
        return found

    def _conflicts(self, engine: Engine, log: StartupLog, told: LoggedSettings) -> list[Problem]:
        origin = f"{engine.name} of {self._spec.document.source}"
        return [
            *layout_conflicts(engine.pool.layout, told, origin),
            *option_conflicts(engine, log, told, _spec_given(engine), lambda _: origin),
        ]

    def _subject(self, engine: Engine, told: LoggedSettings) -> Subject:
        options = fill_in(engine.options, told, _spec_given(engine))
        started = plan_engine(
            engine.name, engine.role, engine.pool, options, self._architecture, self._defaults
        )
        study = self._studies.get(engine.name)
        return Subject(
            engine=started,
            architecture=self._architecture,
            gpu=self._gpu,
            defaults=self._defaults,
            workload=study.spec.workload if study else self._spec.workload,
            concurrency=study.spec.concurrency if study else self._loads.get(engine.name),
            assumed=(),
        )

    def _undecided(self, kinds: list[Engine], log: StartupLog) -> Problem:
        source = self._spec.document.source
        if not kinds:
            return Problem(
                message=f"is of no engine of {source}",
                hint="name one with --engine to see where they differ",
                source=log.source,
            )
        names = ", ".join(engine.name for engine in kinds)
        return Problem(
            message=f"may be of {len(kinds)} engines of {source}: {names}",
            hint="name one with --engine",
            source=log.source,
        )


def _spec_given(engine: Engine) -> frozenset[str]:
    """A spec always says how many tokens are drafted, if only by silence."""
    return _given(engine.options) | {"num_speculative_tokens"}


def _distinct(engines: list[Engine]) -> list[Engine]:
    """One of each kind: engines with the same options start alike."""
    kinds: list[Engine] = []
    for engine in engines:
        if not any(engine.options == known.options for known in kinds):
            kinds.append(engine)
    return kinds


def _loads(derivation: Derivation) -> Iterator[tuple[str, int]]:
    """The highest concurrency each decode engine and probe is meant for."""
    for probe in derivation.probes:
        yield probe.engine.name, probe.spec.concurrency
    for deployment in derivation.deployments:
        if deployment.spec.concurrencies:
            yield deployment.decode.name, max(deployment.spec.concurrencies)
