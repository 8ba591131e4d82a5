"""How far each phase study goes: its ladder of concurrencies up to what the engine holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from generator.architecture import ModelArchitecture
from generator.capacity.capacity import EngineCapacity, evaluate_engine
from generator.capacity.inverse import startup_fault
from generator.derivation.derivation import Probe, derive_probe
from generator.errors import InvalidInput, NothingFits, Problem
from generator.facts import EngineDefaults, Gpu, MeasuredProfile
from generator.spec.spec import Spec, StudySpec
from generator.units import format_count
from generator.workload import Workload, random_range_ratio

_HIGHEST = 999_999


class Limit(StrEnum):
    """What ends a ladder."""

    START_UP = "start-up"
    SLOTS = "slots"
    KV_CACHE = "KV cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderEnd:
    """What the rung after the last one lacks."""

    limit: Limit
    problems: tuple[Problem, ...]

    @property
    def message(self) -> str:
        return "; ".join(problem.message for problem in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A layout measured alone: its recipe, its engine's capacity, and why its ladder ends.

    ``capacity`` is of the study's own request length. ``end`` is None where the
    ladder is as long as the spec asks.
    """

    spec: StudySpec
    probe: Probe
    capacity: EngineCapacity
    end: LadderEnd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedStudy:
    """A layout that cannot be measured, and why; the other studies do not depend on it."""

    spec: StudySpec
    problems: tuple[Problem, ...]

    @property
    def reason(self) -> str:
        return "; ".join(problem.message for problem in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Studies:
    """The phase studies of a spec: those to run and those that are refused."""

    planned: tuple[Study, ...] = ()
    refused: tuple[RefusedStudy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    spec: Spec
    architecture: ModelArchitecture
    gpu: Gpu
    defaults: EngineDefaults
    profiles: tuple[MeasuredProfile, ...]


def plan_studies(
    spec: Spec,
    architecture: ModelArchitecture,
    gpu: Gpu,
    defaults: EngineDefaults,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> Studies:
    """Every study of a spec with its ladder, and every one that cannot run with its reasons.

    A ladder goes on while the engine sized for the next rung starts, has a slot (max-num-seqs on
    each data rank) for each of its requests, and holds as many requests of the study's length in
    its KV cache. Raises InvalidInput for a benchmark section that cannot be read.
    """
    setting = _Setting(
        spec=spec, architecture=architecture, gpu=gpu, defaults=defaults, profiles=profiles
    )
    outcomes = [_plan(setting, study) for study in spec.studies]
    return Studies(
        planned=tuple(each for each in outcomes if isinstance(each, Study)),
        refused=tuple(each for each in outcomes if isinstance(each, RefusedStudy)),
    )


def _plan(setting: _Setting, study: StudySpec) -> Study | RefusedStudy:
    workload = _workload(setting.spec, study)
    rungs: list[int] = []
    capacity: EngineCapacity | None = None
    end: LadderEnd | None = None
    for concurrency in ladder_rungs(study):
        outcome = _capacity_of_rung(setting, study, concurrency, workload)
        if isinstance(outcome, LadderEnd):
            end = outcome
            break
        capacity = outcome
        rungs.append(concurrency)
    if capacity is None:
        return RefusedStudy(spec=study, problems=end.problems if end else ())
    engine = replace(
        study.engine, concurrency=study.sized_for or rungs[-1], concurrencies=tuple(rungs)
    )
    return Study(
        spec=study,
        probe=derive_probe(setting.spec, engine, setting.architecture, setting.defaults),
        capacity=capacity,
        end=end,
    )


def ladder_rungs(study: StudySpec) -> Iterator[int]:
    """The rungs a study asks for, ascending: its list, or powers of two and the highest."""
    if study.concurrencies is not None:
        yield from study.concurrencies
        return
    highest = study.highest or _HIGHEST
    rung = 1
    while rung < highest:
        yield rung
        rung *= 2
    if study.highest is not None:
        yield highest


def _capacity_of_rung(
    setting: _Setting, study: StudySpec, concurrency: int, workload: Workload
) -> EngineCapacity | LadderEnd:
    """The engine sized for a concurrency, or what keeps it from running that."""
    sized = replace(
        study.engine, concurrency=study.sized_for or concurrency, concurrencies=(concurrency,)
    )
    architecture, defaults = setting.architecture, setting.defaults
    try:
        capacity = evaluate_engine(
            derive_probe(setting.spec, sized, architecture, defaults).engine,
            architecture,
            setting.gpu,
            defaults,
            workload,
            setting.profiles,
        )
    except (InvalidInput, NothingFits) as error:
        return LadderEnd(limit=Limit.START_UP, problems=error.problems)
    return _lack(capacity, concurrency) or capacity


def _lack(capacity: EngineCapacity, concurrency: int) -> LadderEnd | None:
    """What keeps an engine from running as many requests at once; None where nothing does."""
    fault = startup_fault(capacity)
    if fault is not None and fault.is_certain:
        return _ended(Limit.START_UP, concurrency, fault.message)
    engine = capacity.engine
    slots = engine.pool.data_ranks * engine.resolved.max_num_seqs
    if concurrency > slots:
        ranks = engine.pool.data_ranks_text
        message = f"{ranks} x max-num-seqs {engine.resolved.max_num_seqs} are {slots} slots"
        return _ended(Limit.SLOTS, concurrency, message)
    if concurrency > capacity.pool_requests:
        message = (
            f"the KV cache ({capacity.memory.kv_cache.basis}) holds"
            f" {format_count(float(capacity.pool_requests))} requests of"
            f" {capacity.at_workload.tokens} tokens"
        )
        return _ended(Limit.KV_CACHE, concurrency, message)
    return None


def _ended(limit: Limit, concurrency: int, message: str) -> LadderEnd:
    return LadderEnd(
        limit=limit, problems=(Problem(message=f"concurrency {concurrency}: {message}"),)
    )


def _workload(spec: Spec, study: StudySpec) -> Workload:
    """The study's lengths with the shares that its load generator draws."""
    try:
        ratio = random_range_ratio(study.engine.benchmark)
    except ValueError as error:
        path = (*study.engine.benchmark_path, "random_range_ratio")
        raise InvalidInput(spec.document.problem(path, str(error))) from None
    return replace(study.engine.workload, random_range_ratio=ratio)
