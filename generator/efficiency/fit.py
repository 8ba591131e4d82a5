"""The fit of efficiencies to measured times: least squares on relative residuals, within bounds.

A measured time may be of one phase or of both in turn, as of an aggregated engine whose decode
steps share the GPU with prefill, so that both phases of a release are fitted together:

    measured = sum over phases of factor * bound + fixed * steps,   factor >= 1, fixed >= 0
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from generator.bounds.numbers import Array
from generator.bounds.phase_work import PhaseWork
from generator.efficiency.factors import Phase, Residual

_LEAST_SPREAD = 1.5
"""Largest over smallest bound of a step below which a factor and a fixed cost look the same."""
_EXACT = 1e-9
_FULL_LEVERAGE = 0.99
_MOST_ROUNDS = 20


class Says(StrEnum):
    """What a measured time says of the work in it.

    ``AT_MOST`` is of work that something else may have held up, as of one phase of a deployment
    whose throughput is known: it counts only where the fit would be slower.
    """

    EQUAL = "equal"
    AT_MOST = "at most"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """A measured time and the work that was done in it: ``what`` was timed at ``point``."""

    point: str
    what: str
    measured_s: float
    work: Mapping[Phase, PhaseWork]
    says: Says = Says.EQUAL

    @property
    def bound_s(self) -> float:
        return sum(each.bound_s for each in self.work.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFit:
    """The factor and the fixed cost of a phase, and the times of it that the fit used.

    ``has_fixed_cost`` is False where the times cannot tell one from a factor: a single time, or
    steps whose bounds are all within 1.5 times the smallest. The factor then stands for both.
    ``is_one_sided`` where all times say AT_MOST.
    """

    factor: float
    fixed_s_per_step: float
    residuals: tuple[Residual, ...]
    has_fixed_cost: bool
    is_one_sided: bool


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One unknown: of which phase, and whether it is the cost of a step or multiplies the bound."""

    phase: Phase
    is_fixed_cost: bool

    @property
    def least(self) -> float:
        return 0.0 if self.is_fixed_cost else 1.0

    def weight(self, observation: Observation) -> float:
        """What the unknown is multiplied by, as a share of the measured time."""
        work = observation.work.get(self.phase)
        if work is None:
            return 0.0
        return (work.steps if self.is_fixed_cost else work.bound_s) / observation.measured_s


_Values = Mapping[_Parameter, float]


def fit_phases(observations: Sequence[Observation]) -> dict[Phase, PhaseFit]:
    """The fit of every phase in the observations that count.

    Those that say AT_MOST count while the fit is slower than they are. Until that settles, the fit
    is repeated; where it would go in circles, the last one stands.
    """
    counted = tuple(each for each in observations if each.says is Says.EQUAL)
    tried: set[tuple[Observation, ...]] = set()
    while True:
        values, leverages = _fitted(counted)
        tried.add(counted)
        following = tuple(
            each for each in observations if each.says is Says.EQUAL or _is_slower(values, each)
        )
        if following in tried or len(tried) == _MOST_ROUNDS:
            return _fits(counted, values, leverages)
        counted = following


def _fits(
    counted: Sequence[Observation], values: _Values, leverages: Sequence[float]
) -> dict[Phase, PhaseFit]:
    residuals = [
        Residual(
            point=each.point,
            what=each.what,
            bound_s=each.bound_s,
            measured_s=each.measured_s,
            predicted_s=_relative(values, each) * each.measured_s,
            is_by_construction=leverage > _FULL_LEVERAGE,
        )
        for each, leverage in zip(counted, leverages, strict=True)
    ]
    return {
        factor.phase: PhaseFit(
            factor=values[factor],
            fixed_s_per_step=values.get(_Parameter(factor.phase, is_fixed_cost=True), 0.0),
            residuals=tuple(
                residual
                for residual, each in zip(residuals, counted, strict=True)
                if factor.phase in each.work
            ),
            has_fixed_cost=_Parameter(factor.phase, is_fixed_cost=True) in values,
            is_one_sided=all(
                each.says is Says.AT_MOST for each in counted if factor.phase in each.work
            ),
        )
        for factor in values
        if not factor.is_fixed_cost
    }


def _relative(values: _Values, observation: Observation) -> float:
    """Predicted over measured."""
    return sum(value * parameter.weight(observation) for parameter, value in values.items())


def _is_slower(values: _Values, observation: Observation) -> bool:
    """Whether the fit is no faster than a time; of a phase that nothing else measures, it is."""
    if not observation.work.keys() <= {parameter.phase for parameter in values}:
        return True
    return _relative(values, observation) >= 1 - _EXACT


def _parameters(observations: Sequence[Observation]) -> Iterator[_Parameter]:
    """The unknowns that the observations can tell."""
    for phase in Phase:
        works = [each.work[phase] for each in observations if phase in each.work]
        if not works:
            continue
        yield _Parameter(phase, is_fixed_cost=False)
        steps = [work.bound_s / work.steps for work in works]
        if max(steps) >= _LEAST_SPREAD * min(steps):
            yield _Parameter(phase, is_fixed_cost=True)


def _fitted(observations: Sequence[Observation]) -> tuple[dict[_Parameter, float], list[float]]:
    """The unknowns of all phases together, and the leverage of each observation on its own fit."""
    parameters = tuple(_parameters(observations))
    rows = np.array([[each.weight(seen) for each in parameters] for seen in observations])
    least = np.array([each.least for each in parameters])
    if not parameters:
        return {}, []
    solved, free = _least_squares(rows, least)
    leverages = np.sum(rows[:, free] * np.linalg.pinv(rows[:, free]).T, axis=1)
    values = dict(zip(parameters, map(float, solved), strict=True))
    return values, [float(each) for each in leverages]


def _least_squares(rows: Array, least: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The x >= ``least`` that minimises |rows @ x - 1|, and which of x are above their least.

    Every set of variables held at their least value is tried: there are at most four variables, and
    the problem is convex, so that the best feasible of these solutions is the solution.
    """
    best, best_free = least, np.zeros(len(least), dtype=bool)
    best_error = _error(rows, least)
    for choice in itertools.product([False, True], repeat=len(least)):
        free = np.array(choice)
        rest = 1 - rows[:, ~free] @ least[~free]
        found = least.copy()
        found[free] = np.linalg.lstsq(rows[:, free], rest, rcond=None)[0]
        if np.all(found >= least) and _error(rows, found) < best_error:
            best, best_free, best_error = found, free, _error(rows, found)
    return best, best_free


def _error(rows: Array, found: Array) -> float:
    return float(np.sum((rows @ found - 1) ** 2))
