"""Measured points of phase studies in the terms of the workload that deployments are to serve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from generator.errors import InvalidInput, Problem
from generator.parallel import ParallelLayout, parse_pool
from generator.results.contract import (
    ContractDifference,
    by_phase,
    contract_differences,
    differences_of,
    each_once,
    held_fixed,
    mixed_note,
    refusals,
)
from generator.results.engine_pool import EnginePool
from generator.results.point import MeasuredPoint, Origin
from generator.results.wording import changed_recipes
from generator.spec.studies import PHASES
from generator.units import ceil_div
from generator.workload import Workload

_LENGTH_TOLERANCE = 0.05
_WORKLOAD = "workload."


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class EngineKind:
    """What a study compares: the layout of one engine and the tokens it drafts."""

    name: str
    num_speculative_tokens: int = 0

    @property
    def layout(self) -> ParallelLayout:
        return parse_pool(self.name).layout

    @property
    def gpus(self) -> int:
        return self.layout.ranks

    def __str__(self) -> str:
        tokens = self.num_speculative_tokens
        return f"{self.name} MTP{tokens}" if tokens else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePoint:
    """One engine alone at one concurrency: its share, where several ran side by side.

    ``requests_per_s`` counts requests of the target workload: prompts of its length read, or
    outputs of its length generated. ``wait_ms`` is what a user of the phase waits for, less being
    better: the median TTFT of prefill, the median TPOT of decode; None where not recorded.
    """

    kind: EngineKind
    concurrency: int
    requests_per_s: float
    wait_ms: float | None
    gpus: int
    duration_s: float
    origin: Origin

    @property
    def requests_per_s_per_gpu(self) -> float:
        return self.requests_per_s / self.kind.gpus

    @property
    def gpu_hours(self) -> float:
        """What the measured interval cost, of all GPUs that were allocated."""
        return self.gpus * self.duration_s / 3600


Curve = Mapping[int, PhasePoint]
"""An engine's points by concurrency, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Both phases: a curve for each kind of engine, all points that were paid for, and notes."""

    prefill: Mapping[EngineKind, Curve]
    decode: Mapping[EngineKind, Curve]
    paid: tuple[PhasePoint, ...]
    notes: tuple[str, ...]

    @property
    def origins(self) -> tuple[Origin, ...]:
        return tuple(sorted({point.origin for point in self.paid}))

    def prefill_for(self, decode: EngineKind) -> Mapping[str, Curve]:
        """One curve for each prefill layout, by its name, before a decode engine.

        Roles draft alike: that of an engine with as many drafted tokens where it was measured.
        """
        tokens = decode.num_speculative_tokens
        kinds = sorted(self.prefill, key=lambda kind: (kind.num_speculative_tokens == tokens, kind))
        return {kind.name: self.prefill[kind] for kind in kinds}


def read_phases(
    points: Iterable[MeasuredPoint],
    workload: Workload,
    gpu: str,
    *,
    planned: Mapping[str, frozenset[str]] | None = None,
    may_mix: bool = False,
) -> Phases:
    """The phase studies among measured points, for a workload and a type of GPU.

    Of repeated points the one with the median rate stands; ``may_mix`` lets contracts differ, which
    a note then says. ``planned`` are the digests of the spec's studies by the name of the recipe:
    a note tells of results that another recipe of that name had. Raises InvalidInput where a phase
    has no valid point, where contracts differ and may not, or where points are of another GPU or
    their engines are not of one known kind.
    """
    of_phases = [point for point in points if point.subject.phase in PHASES]
    problems = [*_other_gpus(of_phases, gpu)]
    valid = [point for point in of_phases if point.is_valid]
    mixed = phase_differences(valid)
    if not may_mix:
        problems += refusals(mixed)
    read: dict[str, list[PhasePoint]] = {phase: [] for phase in PHASES}
    for point in valid:
        try:
            read[point.subject.phase].append(_phase_point(point, workload))
        except InvalidInput as error:
            problems += error.problems
    problems = problems or [_unmeasured(phase) for phase in PHASES if not read[phase]]
    if problems:
        raise InvalidInput(dict.fromkeys(problems))
    return Phases(
        prefill=_curves(read["prefill"]),
        decode=_curves(read["decode"]),
        paid=tuple(each for phase in PHASES for each in read[phase]),
        notes=(
            *map(mixed_note, mixed),
            *_changed(valid, planned or {}),
            *_notes(of_phases, workload),
        ),
    )


def _unmeasured(phase: str) -> Problem:
    return Problem(
        message=f"no valid result of a {phase} study",
        hint=f"run the recipes of the spec's studies.{phase} and collect them",
    )


def phase_differences(points: Sequence[MeasuredPoint]) -> tuple[ContractDifference, ...]:
    """The contract keys that points of a phase disagree on, and those that the phases do.

    Each phase has a workload of its own; all else, engine and model first of all, must be one.
    """
    without_workload = [
        {key: value for key, value in held_fixed(each).items() if not key.startswith(_WORKLOAD)}
        for each in points
    ]
    within = (each for of_phase in by_phase(points) for each in contract_differences(of_phase))
    return each_once((*within, *differences_of(without_workload)))


def _other_gpus(points: Iterable[MeasuredPoint], gpu: str) -> Iterable[Problem]:
    types = dict.fromkeys(point.gpus.type for point in points)
    return [
        Problem(message=f"results are of {each}, the spec is for {gpu}", hint="filter the results")
        for each in types
        if each.casefold() != gpu.casefold()
    ]


def _phase_point(point: MeasuredPoint, workload: Workload) -> PhasePoint:
    pool = _engine_pool(point)
    is_prefill = point.subject.phase == "prefill"
    rate = (
        point.input_tokens_per_s / workload.isl
        if is_prefill
        else point.output_tokens_per_s / workload.osl
    )
    if not rate > 0:
        raise InvalidInput(_unreadable(point, "its result counts no tokens of its phase"))
    wait = point.latencies.ttft if is_prefill else point.latencies.tpot
    return PhasePoint(
        kind=EngineKind(name=pool.layout or "", num_speculative_tokens=pool.num_speculative_tokens),
        concurrency=ceil_div(point.subject.concurrency, pool.workers),
        requests_per_s=rate / pool.workers,
        wait_ms=wait.median if wait else None,
        gpus=point.gpus.total,
        duration_s=point.duration_s,
        origin=point.origin,
    )


def _engine_pool(point: MeasuredPoint) -> EnginePool:
    """The engines of a point; raises InvalidInput unless they are of one known kind."""
    pools = point.subject.pools
    if len(pools) != 1 or pools[0].layout is None:
        raise InvalidInput(_unreadable(point, "it is no layout of one kind of engine"))
    (pool,) = pools
    if not pool.is_mtp:
        raise InvalidInput(_unreadable(point, f"it drafts by {pool.draft_method}, not MTP"))
    try:
        parse_pool(pools[0].layout)
    except InvalidInput as error:
        raise InvalidInput(_unreadable(point, error.problems[0].message)) from None
    return pool


def _unreadable(point: MeasuredPoint, reason: str) -> Problem:
    return Problem(
        message=f"configuration '{point.subject.configuration}' of {point.run}: {reason}",
        hint="collect the results anew",
    )


def _curves(points: Iterable[PhasePoint]) -> dict[EngineKind, Curve]:
    repeats: dict[EngineKind, dict[int, list[PhasePoint]]] = {}
    for point in points:
        repeats.setdefault(point.kind, {}).setdefault(point.concurrency, []).append(point)
    return {
        kind: {concurrency: _median(rungs[concurrency]) for concurrency in sorted(rungs)}
        for kind, rungs in sorted(repeats.items())
    }


def _median(repeats: list[PhasePoint]) -> PhasePoint:
    """The repeat with the median rate, the lower one of an even number."""
    ordered = sorted(repeats, key=lambda point: point.requests_per_s)
    return ordered[(len(ordered) - 1) // 2]


def _changed(
    points: Iterable[MeasuredPoint], planned: Mapping[str, frozenset[str]]
) -> Iterable[str]:
    """What was measured with a recipe of a study's name that is not what the spec gives now."""
    changed = [
        point
        for point in points
        if point.subject.digest not in planned.get(point.subject.recipe, {point.subject.digest})
    ]
    if changed:
        yield f"CHANGED: {changed_recipes(changed)}."


def _notes(points: Iterable[MeasuredPoint], workload: Workload) -> Iterable[str]:
    listed = list(points)
    invalid = sum(not point.is_valid for point in listed)
    if invalid:
        yield f"{invalid} invalid result{'s are' if invalid > 1 else ' is'} left out."
    prompts = {
        round(point.tokens.input / point.requests.completed)
        for point in listed
        if point.subject.phase == "prefill" and point.is_valid and point.requests.completed
    }
    far = sorted(
        each for each in prompts if abs(each - workload.isl) > _LENGTH_TOLERANCE * workload.isl
    )
    if far:
        yield (
            f"Prefill was measured with prompts of {', '.join(map(str, far))} tokens, not"
            f" {workload.isl}: rates are converted by tokens, attention grows faster."
        )
