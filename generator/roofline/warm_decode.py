"""The B200 article's reader: what limits one warm decode step of a dense model on one GPU.

Decimal gigabytes and rates that a person enters; the larger of two times is a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_GB = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmDecode:
    """The reader's inputs with its defaults: a dense 70B decoder on a budget of 180 GB.

    Neither rate is a vendor's peak. ``reserve_gb`` counts inside the budget.
    """

    batch: int = 8
    context_tokens: int = 4096
    weights_gb: float = 140.0
    reserve_gb: float = 18.0
    budget_gb: float = 180.0
    kv_element_bytes: float = 2
    bandwidth_gb_per_s: float = 5000.0
    compute_tflops: float = 800.0
    parameters: float = 70e9
    layers: int = 80
    query_heads: int = 64
    key_value_heads: int = 8
    head_dim: int = 128

    @property
    def is_computable(self) -> bool:
        """Whether every figure that follows is finite, and a step takes any time at all."""
        try:
            figures = (self.required_gb, self.traffic_gb, self.step_ms, self.tokens_per_s or 0.0)
        except (OverflowError, ZeroDivisionError):
            return False
        return all(map(math.isfinite, figures)) and self.step_ms > 0

    @property
    def kv_bytes_per_token(self) -> float:
        """Keys and values of all layers."""
        heads = self.layers * self.key_value_heads * self.head_dim
        return 2 * heads * self.kv_element_bytes

    @property
    def cache_gb(self) -> float:
        return self.batch * self.context_tokens * self.kv_bytes_per_token / _GB

    @property
    def required_gb(self) -> float:
        return self.weights_gb + self.reserve_gb + self.cache_gb

    @property
    def headroom_gb(self) -> float:
        return self.budget_gb - self.required_gb

    @property
    def traffic_gb(self) -> float:
        """Weights and cache read once, and one entry appended for each sequence."""
        return self.weights_gb + self.cache_gb + self.batch * self.kv_bytes_per_token / _GB

    @property
    def flops(self) -> float:
        """Two operations a parameter, and four a head, element and cached token."""
        attention = 4 * self.layers * self.query_heads * self.head_dim * self.context_tokens
        return self.batch * (2 * self.parameters + attention)

    @property
    def memory_ms(self) -> float:
        return self.traffic_gb / self.bandwidth_gb_per_s * 1000

    @property
    def compute_ms(self) -> float:
        return self.flops / (self.compute_tflops * 1e12) * 1000

    @property
    def step_ms(self) -> float:
        return max(self.memory_ms, self.compute_ms)

    @property
    def tokens_per_s(self) -> float | None:
        """The ceiling over the batch; None, withheld, where the budget does not hold the model."""
        return self.batch / self.step_ms * 1000 if self.headroom_gb >= 0 else None
