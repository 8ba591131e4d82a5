"""Exact means over requests whose lengths vary, without drawing any."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthRange:
    """Token counts drawn uniformly from a closed range, as load generators draw them."""

    shortest_tokens: int
    longest_tokens: int

    @classmethod
    def drawn(cls, longest_tokens: int, ratio: float) -> LengthRange:
        """What sa-bench draws for a length: from its share, rounded down, to itself.

        No request is empty, so neither end is below one token.
        """
        return cls(
            shortest_tokens=max(1, int(longest_tokens * ratio)), longest_tokens=longest_tokens
        )

    @property
    def count(self) -> int:
        return self.longest_tokens - self.shortest_tokens + 1


def mean_blocks(prompt: LengthRange, output: LengthRange, block_tokens: int) -> Fraction:
    """The mean of ceil((prompt + output) / block) over independent prompts and outputs.

    A closed form: second sums of the ceiling at the four corners of the two ranges.
    """
    corners = (
        _second_sum(prompt.longest_tokens + output.longest_tokens, block_tokens)
        - _second_sum(prompt.shortest_tokens - 1 + output.longest_tokens, block_tokens)
        - _second_sum(prompt.longest_tokens + output.shortest_tokens - 1, block_tokens)
        + _second_sum(prompt.shortest_tokens + output.shortest_tokens - 2, block_tokens)
    )
    return Fraction(corners, prompt.count * output.count)


def _second_sum(tokens: int, block_tokens: int) -> int:
    """The sum of ceil(t / block) over 1 <= t <= u, summed again over 0 <= u <= tokens.

    The inner sum is block * k(k+1)/2 + s(k+1) at u = k * block + s. The outer one takes it over
    all full blocks, then over the ``rest`` tokens begun.
    """
    full, rest = divmod(tokens, block_tokens)
    steps_within = block_tokens * (block_tokens - 1) // 2
    full_blocks = block_tokens**2 * ((full - 1) * full * (full + 1) // 6) + steps_within * (
        full * (full + 1) // 2
    )
    begun = (rest + 1) * block_tokens * (full * (full + 1) // 2) + (full + 1) * (
        rest * (rest + 1) // 2
    )
    return full_blocks + begun
