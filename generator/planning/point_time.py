"""How long the points of a recipe may take."""

from __future__ import annotations

from generator.units import ceil_div

_START_UP_S, _SLACK, _ROUND_S = 1800, 2, 1800


def time_limit_of(predicted_s: float) -> str:
    """A Slurm time limit: half an hour to start, and twice what is predicted, in half hours."""
    half_hours = ceil_div(int(_START_UP_S + _SLACK * predicted_s) + 1, _ROUND_S)
    return f"{half_hours // 2}:{30 * (half_hours % 2):02}:00"
