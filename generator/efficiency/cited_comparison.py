"""Bound, prediction and measurement side by side for every cited point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from generator.bounds.closed_loop import serving_point
from generator.bounds.numbers import Array
from generator.bounds.phase_work import PhaseWork
from generator.bounds.speculation import tokens_per_step
from generator.efficiency.cited_efficiency import cited_acceptance_rate, cited_efficiencies
from generator.efficiency.cited_work import CitedWork, cited_works
from generator.efficiency.factors import Phase
from generator.efficiency.plan_facts import CitedPoint

_Seconds = Callable[[Phase, PhaseWork], float]


class Quantity(StrEnum):
    """What was published of a point."""

    TPOT_MS = "ms per output token"
    TOKENS_PER_S_PER_USER = "tokens/s per user"
    TOTAL_TOKENS_PER_S_PER_GPU = "tokens/s per GPU"

    @property
    def is_time(self) -> bool:
        return self is Quantity.TPOT_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One published figure with its bound and its prediction, all in the quantity's unit."""

    point: CitedPoint
    quantity: Quantity
    bound: float
    predicted: float
    measured: float
    is_by_construction: bool

    @property
    def is_bounded(self) -> bool:
        """Whether the bound holds: a time is never below it, a rate never above."""
        if self.quantity.is_time:
            return self.bound <= self.measured
        return self.bound >= self.measured

    @property
    def residual(self) -> float:
        """Predicted / measured - 1."""
        return self.predicted / self.measured - 1


def cited_comparisons() -> Iterator[Comparison]:
    """Every published figure of every cited point, predicted by the cited efficiencies."""
    for cited in cited_works():
        point = cited.point
        bounds = _figures(cited, _bound_s, acceptance_rate=1.0)
        predictions = _predictions(cited)
        measured = {
            Quantity.TPOT_MS: point.tpot_ms,
            Quantity.TOKENS_PER_S_PER_USER: point.tokens_per_s_per_user,
            Quantity.TOTAL_TOKENS_PER_S_PER_GPU: point.total_tokens_per_s_per_gpu,
        }
        for quantity, value in measured.items():
            if value is not None:
                yield Comparison(
                    point=point,
                    quantity=quantity,
                    bound=bounds[quantity],
                    predicted=predictions[quantity],
                    measured=value,
                    is_by_construction=_is_by_construction(point),
                )


def _is_by_construction(point: CitedPoint) -> bool:
    """Whether a parameter was chosen to match the point: acceptance, or one of the fit's."""
    residuals = [each for table in cited_efficiencies().efficiencies for each in table.residuals]
    return point.speculative_tokens > 0 or any(
        each.is_by_construction and each.point == point.name for each in residuals
    )


def _bound_s(_: Phase, work: PhaseWork) -> float:
    return work.bound_s


def _predictions(cited: CitedWork) -> dict[Quantity, float]:
    point, table = cited.point, cited_efficiencies()

    def seconds(phase: Phase, work: PhaseWork) -> float:
        efficiency = table.of(point.gpu, point.engine_version, phase).efficiency
        return efficiency.predicted_s(work.bound_s, work.steps)

    if point.prefill is None:
        return _taking_turns(cited, seconds)
    rate = cited_acceptance_rate() if point.speculative_tokens else 0.0
    return _figures(cited, seconds, acceptance_rate=rate)


def _figures(
    cited: CitedWork, seconds: _Seconds, *, acceptance_rate: float
) -> dict[Quantity, float]:
    """Both phases in the closed loop of ``serving_point``."""
    point, prompt = cited.point, cited.prefill
    step_s = seconds(Phase.DECODE, cited.step)
    serves = serving_point(
        point.workload,
        prompts_per_s=_one(cited.prefill_workers / seconds(Phase.PREFILL, prompt.each_of_batch)),
        alone_s=_one(seconds(Phase.PREFILL, prompt.alone)),
        transfer_s=_one(cited.transfer_s),
        tpot_s=_one(step_s / tokens_per_step(point.speculative_tokens, acceptance_rate)),
        concurrency=_one(point.concurrency),
    )
    return _quantities(point, float(serves.tpot_s[0]), float(serves.requests_per_s[0]))


def _one(value: float) -> Array:
    return np.array([value])


def _taking_turns(cited: CitedWork, seconds: _Seconds) -> dict[Quantity, float]:
    """An aggregated engine: a request waits for the prompts of all, its steps for the others'."""
    point = cited.point
    prompt_s = seconds(Phase.PREFILL, cited.prefill.alone)
    steps = point.workload.osl - 1
    steps_s = steps * seconds(Phase.DECODE, cited.step)
    tpot_s = (steps_s + (point.concurrency - 1) * prompt_s) / steps
    request_s = steps_s + point.concurrency * prompt_s
    return _quantities(point, tpot_s, point.concurrency / request_s)


def _quantities(point: CitedPoint, tpot_s: float, requests_per_s: float) -> dict[Quantity, float]:
    return {
        Quantity.TPOT_MS: tpot_s * 1000,
        Quantity.TOKENS_PER_S_PER_USER: 1 / tpot_s,
        Quantity.TOTAL_TOKENS_PER_S_PER_GPU: requests_per_s
        * point.workload.request_tokens
        / point.gpus,
    }
