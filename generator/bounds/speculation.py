"""What speculative decoding yields for an acceptance rate, which is an input."""

from __future__ import annotations

_TOLERANCE = 1e-12


def tokens_per_step(speculative_tokens: int, acceptance_rate: float) -> float:
    """Expected tokens of a step: the verified ones that hold, and the one the model adds.

    Each drafted token is accepted with the same chance, and only after all before it:
    1 + a + ... + a^S.
    """
    return sum(acceptance_rate**position for position in range(speculative_tokens + 1))


def acceptance_rate_of(speculative_tokens: int, tokens: float) -> float:
    """The acceptance rate for which ``tokens_per_step`` is so many tokens.

    Raises ValueError where no rate from 0 to 1 gives them.
    """
    if not (speculative_tokens and 1 <= tokens <= speculative_tokens + 1):
        raise ValueError(
            f"{tokens:.3g} tokens a step cannot be of {speculative_tokens} speculative tokens"
        )
    low, high = 0.0, 1.0
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        if tokens_per_step(speculative_tokens, middle) < tokens:
            low = middle
        else:
            high = middle
    return (low + high) / 2
