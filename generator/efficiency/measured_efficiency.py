"""Efficiencies from points of one's own: which can be used, and the fit of each release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from generator.architecture import ModelArchitecture
from generator.bounds.speculation import acceptance_rate_of
from generator.efficiency.factors import Efficiency, MeasuredAcceptance, Phase
from generator.efficiency.fit import Observation, PhaseFit, fit_phases
from generator.efficiency.measured_engines import (
    MeasuredEngines,
    engine_version_of,
    measured_engines,
)
from generator.efficiency.measured_observations import observations_of, point_name, step_tokens
from generator.errors import InvalidInput, Problem
from generator.results.point import MeasuredPoint, Origin
from generator.wording import plural

ModelOf = Callable[[MeasuredPoint], ModelArchitecture]
"""The model of a point; raises InvalidInput where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedPoints:
    """How many points the fit could not use for one reason, with the first as an example."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyCalibration:
    """The efficiencies of every GPU and release in the points, and what was left out."""

    efficiencies: tuple[Efficiency, ...]
    acceptance: tuple[MeasuredAcceptance, ...]
    used: int
    unused: tuple[UnusedPoints, ...]


def calibrated(
    points: Sequence[MeasuredPoint],
    model_of: ModelOf,
    *,
    collective_latency_s: float,
    source: str,
    as_of: str,
) -> EfficiencyCalibration:
    """Fit factors to the measured points of a file, ``source``.

    ``as_of`` stands where a group of points has no day.

    Raises InvalidInput with every reason where no point can be used.
    """
    groups: dict[tuple[str, str | None], list[tuple[MeasuredPoint, Observation]]] = {}
    reasons: list[tuple[str, MeasuredPoint]] = []
    accepted: dict[int, list[float]] = {}
    used = 0
    for point in points:
        try:
            engines = _engines(point, model_of)
            seen = _observed(point, engines, collective_latency_s)
        except InvalidInput as error:
            reasons.append((_one_sentence(error), point))
            continue
        used += 1
        drafts = engines.decode.work.speculative_tokens
        if drafts and any(Phase.DECODE in each.work for each in seen):
            rate = acceptance_rate_of(drafts, step_tokens(point, drafts))
            accepted.setdefault(drafts, []).append(rate)
        key = (point.gpus.type.lower(), engine_version_of(point))
        groups.setdefault(key, []).extend((point, each) for each in seen)
    unused = tuple(_unused(reasons))
    if not used:
        raise InvalidInput(list(_nothing_usable(unused, source)))
    return EfficiencyCalibration(
        efficiencies=tuple(
            each for key, seen in groups.items() for each in _of_group(key, seen, source, as_of)
        ),
        acceptance=tuple(
            MeasuredAcceptance(
                speculative_tokens=drafts, acceptance_rate=median(rates), points=len(rates)
            )
            for drafts, rates in sorted(accepted.items())
        ),
        used=used,
        unused=unused,
    )


def _engines(point: MeasuredPoint, model_of: ModelOf) -> MeasuredEngines:
    if point.origin is not Origin.MEASURED:
        raise InvalidInput(Problem(message=f"is {point.origin}: no speed in it was measured"))
    if not point.is_valid:
        raise InvalidInput(Problem(message=f"is invalid: {point.invalid[0].code}"))
    return measured_engines(point, model_of(point))


def _observed(
    point: MeasuredPoint, engines: MeasuredEngines, collective_latency_s: float
) -> tuple[Observation, ...]:
    seen = observations_of(point, engines, collective_latency_s)
    for each in seen:
        if each.measured_s < each.bound_s:
            message = f"is faster than its bound of {each.bound_s * 1000:.3g} ms: {each.what}"
            hint = "do its flags, its model and its GPU say what ran?"
            raise InvalidInput(Problem(message=message, hint=hint))
    return seen


def _one_sentence(error: InvalidInput) -> str:
    problem = error.problems[0]
    return f"{problem.statement} ({problem.hint})" if problem.hint else problem.statement


def _unused(reasons: Iterable[tuple[str, MeasuredPoint]]) -> Iterator[UnusedPoints]:
    """Every reason with its count, the commonest first."""
    listed = list(reasons)
    first: dict[str, MeasuredPoint] = {}
    for reason, point in listed:
        first.setdefault(reason, point)
    for reason, count in Counter(reason for reason, _ in listed).most_common():
        yield UnusedPoints(reason=reason, count=count, example=point_name(first[reason]))


def _nothing_usable(unused: Sequence[UnusedPoints], source: str) -> Iterator[Problem]:
    if not unused:
        yield Problem(
            message="there are no points", hint="collect some: pdrecipe collect", source=source
        )
    for each in unused:
        message = f"{plural(each.count, 'point')}, such as {each.example}: {each.reason}"
        yield Problem(message=message, source=source)


def _of_group(
    key: tuple[str, str | None],
    seen: Sequence[tuple[MeasuredPoint, Observation]],
    source: str,
    as_of: str,
) -> Iterator[Efficiency]:
    gpu, engine_version = key
    days = [point.started_at[:10] for point, _ in seen if point.started_at]
    for phase, fit in fit_phases([each for _, each in seen]).items():
        yield Efficiency(
            gpu=gpu,
            engine_version=engine_version,
            phase=phase,
            factor=fit.factor,
            fixed_s_per_step=fit.fixed_s_per_step,
            residuals=fit.residuals,
            source=f"{source}, fitted by pdrecipe calibrate",
            as_of=max(days, default=as_of),
            note=_note(fit),
        )


def _note(fit: PhaseFit) -> str:
    """What the points do not allow, empty where they allow all."""
    notes = []
    if not fit.has_fixed_cost:
        notes.append("the points cannot tell a fixed cost from a factor")
    if fit.is_one_sided:
        notes.append("known from one side only: the phase takes no longer")
    return "; ".join(notes)
