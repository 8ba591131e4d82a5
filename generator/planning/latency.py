"""The latencies that a plan has to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The longest TTFT and TPOT that count, infinite where none was asked for."""

    ttft_s: float = math.inf
    tpot_s: float = math.inf

    @property
    def bounds_ttft(self) -> bool:
        return math.isfinite(self.ttft_s)
