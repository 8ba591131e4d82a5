"""What turns a bound into a prediction: a factor and a fixed cost of each step, fitted by phase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np

from generator.bounds.numbers import Array
from generator.engine_version import release

Seconds = TypeVar("Seconds", float, Array)

_NEWEST = (10**6, 10**6, 10**6)


class Phase(StrEnum):
    """Which work of a request a step does."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """How far the fit is from one time it used: ``relative`` is predicted / measured - 1.

    ``what`` was timed at ``point``. ``is_by_construction`` where the fit had to match: no other
    time says what this one does, so that its agreement is no evidence.
    """

    point: str
    what: str
    bound_s: float
    measured_s: float
    predicted_s: float
    is_by_construction: bool = False

    @property
    def relative(self) -> float:
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """One phase of one engine release on one GPU: seconds = factor * bound + fixed * steps.

    ``factor`` is at least 1 and ``fixed_s_per_step`` at least 0, so that no prediction beats its
    bound. ``residuals`` has the points that the fit used; ``engine_version`` is None where none of
    them says. Raises ValueError for other factors and costs.
    """

    gpu: str
    engine_version: str | None
    phase: Phase
    factor: float
    fixed_s_per_step: float
    residuals: tuple[Residual, ...]
    source: str
    as_of: str
    note: str = ""

    def __post_init__(self) -> None:
        if not (1 <= self.factor < np.inf and 0 <= self.fixed_s_per_step < np.inf):
            raise ValueError(
                f"factor {self.factor} is below 1 or fixed cost {self.fixed_s_per_step} below 0:"
                " a prediction would beat its bound"
            )

    @property
    def points(self) -> int:
        return len(self.residuals)

    def predicted_step_s(self, bound_s: Array) -> Array:
        """Seconds of single steps with these bounds."""
        return self.predicted_s(bound_s, steps=1.0)

    def predicted_s(self, bound_s: Seconds, steps: float) -> Seconds:
        """Seconds of work that takes so many steps and is bounded by ``bound_s`` as a whole."""
        return self.factor * bound_s + self.fixed_s_per_step * steps


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAcceptance:
    """The median share of drafted tokens accepted, over the points that drafted so many."""

    speculative_tokens: int
    acceptance_rate: float
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Everything that points of one's own said: efficiencies, and what was accepted of drafts."""

    efficiencies: tuple[Efficiency, ...] = ()
    acceptance: tuple[MeasuredAcceptance, ...] = ()

    @property
    def best_known_acceptance(self) -> MeasuredAcceptance | None:
        """Of the count of drafts with the most points, then of the most drafts; None without any.

        One rate stands for every count: each draft is accepted with the same chance.
        """
        return max(
            self.acceptance, key=lambda each: (each.points, each.speculative_tokens), default=None
        )


NO_FACTORS = Factors()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenEfficiency:
    """The factors to predict with, and in ``note`` where they are not of what was asked for."""

    efficiency: Efficiency
    note: str = ""


@dataclass(frozen=True, slots=True)
class EfficiencyTable:
    """Efficiencies by GPU, engine release and phase."""

    efficiencies: tuple[Efficiency, ...]

    def of(self, gpu: str, engine_version: str | None, phase: Phase) -> ChosenEfficiency:
        """The factors of a phase: of this GPU before others, then of the nearest release.

        Of the newest for an engine whose release is not known (None). Raises LookupError where
        there are none of the phase at all.
        """
        known = [each for each in self.efficiencies if each.phase is phase]
        if not known:
            raise LookupError(f"there are no factors of {phase}")
        wanted = _NEWEST if engine_version is None else release(engine_version)
        chosen = min(known, key=lambda each: (each.gpu != gpu, *_distance(each, wanted)))
        return ChosenEfficiency(
            efficiency=chosen, note="; ".join(_mismatches(chosen, gpu, engine_version))
        )


def _distance(
    efficiency: Efficiency, wanted: tuple[int, int, int]
) -> tuple[bool, tuple[int, ...], bool]:
    """How far off a release is, compared from the major number down; of two the newer is nearer."""
    if efficiency.engine_version is None:
        return True, (), False
    has = release(efficiency.engine_version)
    apart = tuple(abs(one - other) for one, other in zip(has, wanted, strict=True))
    return False, apart, has < wanted


def _mismatches(chosen: Efficiency, gpu: str, engine_version: str | None) -> Iterator[str]:
    if chosen.gpu != gpu:
        yield f"{chosen.phase} factors are of {chosen.gpu}: there are none of {gpu}"
    if chosen.engine_version is None:
        yield f"{chosen.phase} factors are of points whose engine version was not published"
    elif engine_version is None:
        yield f"{chosen.phase} factors are of vLLM {chosen.engine_version}: no release is named"
    elif release(chosen.engine_version) != release(engine_version):
        yield (
            f"{chosen.phase} factors are of vLLM {chosen.engine_version}, the nearest to"
            f" {engine_version} that there is"
        )
