"""Efficiencies and their residuals as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from generator.efficiency.factors import Efficiency, Residual
from generator.efficiency.measured_efficiency import EfficiencyCalibration
from generator.results.wording import percent_change, rounded
from generator.wording import plural

Table: TypeAlias = tuple[Sequence[str], list[list[str]]]


def efficiency_table(efficiencies: Sequence[Efficiency]) -> Table:
    """A row for each phase of a release: the factor, the cost of a step, and of how many times."""
    rows = [
        [
            each.gpu,
            each.engine_version or "not stated",
            str(each.phase),
            f"{each.factor:.3f}",
            f"{each.fixed_s_per_step * 1000:.3f}",
            str(each.points),
        ]
        for each in efficiencies
    ]
    return ["GPU", "vLLM", "phase", "factor", "ms/step", "times"], rows


def residual_table(efficiencies: Sequence[Efficiency]) -> Table:
    """Every time that a fit used, once, though both phases may share it."""
    residuals = dict.fromkeys(each for fit in efficiencies for each in fit.residuals)
    return ["point", "time of", "bound ms", "predicted", "measured", "residual"], [
        [each.point, each.what, *map(_ms, _seconds(each)), _residual(each)] for each in residuals
    ]


def efficiency_notes(efficiencies: Sequence[Efficiency]) -> Iterator[str]:
    """How to read the factors, and what is not known well."""
    yield "Predicted: factor x bound + ms/step x steps, in ms; residual: predicted/measured - 1."
    if any(each.is_by_construction for fit in efficiencies for each in fit.residuals):
        yield "* matched by construction: no other time says what this one does."
    for each in efficiencies:
        if each.note:
            yield f"{each.gpu} {each.phase}: {each.note}."


def acceptance_lines(calibration: EfficiencyCalibration) -> Iterator[str]:
    """What was accepted of drafted tokens, for the option that predictions take."""
    for each in calibration.acceptance:
        yield (
            f"MTP {each.speculative_tokens}: {each.acceptance_rate:.2f} of drafted tokens accepted"
            f" (--acceptance-rate; median of {plural(each.points, 'point')})."
        )


def unused_lines(calibration: EfficiencyCalibration) -> Iterator[str]:
    """What was left out and why, by reason."""
    for each in calibration.unused:
        yield f"not used: {plural(each.count, 'point')}, such as {each.example}: {each.reason}"


def _seconds(residual: Residual) -> tuple[float, float, float]:
    return residual.bound_s, residual.predicted_s, residual.measured_s


def _ms(seconds: float) -> str:
    return rounded(seconds * 1000)


def _residual(residual: Residual) -> str:
    mark = " *" if residual.is_by_construction else ""
    return f"{percent_change(residual.relative)}{mark}"
