"""What speculative decoding yields for an acceptance rate, which is an input."""

from __future__ import annotations


def tokens_per_step(speculative_tokens: int, acceptance_rate: float) -> float:
    """Expected tokens of a step: the verified ones that hold, and the one the model adds.

    Each drafted token is accepted with the same chance, and only after all before it:
    1 + a + ... + a^S.
    """
    return sum(acceptance_rate**position for position in range(speculative_tokens + 1))
