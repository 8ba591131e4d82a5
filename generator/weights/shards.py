"""How the ranks of a layout share the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from generator.architecture import GroupedQueryAttention
from generator.errors import InvalidInput, Problem


class WeightLayout(Protocol):
    """The parallel sizes that weights depend on.

    ``expert`` is the number of ranks whole experts are spread over: tensor * data with expert
    parallelism, 1 without.
    """

    @property
    def tensor(self) -> int: ...
    @property
    def data(self) -> int: ...
    @property
    def pipeline(self) -> int: ...
    @property
    def expert(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """How many ranks share what; all ones is the whole model."""

    tensor: int = 1
    expert: int = 1
    expert_slices: int = 1
    replicates_shared_expert: bool = False

    @classmethod
    def of_layout(cls, layout: WeightLayout, *, sequence_parallel_moe: bool) -> Shards:
        """The shards of one rank of a layout.

        Sequence-parallel MoE hands each tensor rank whole tokens, so its shared expert is whole
        too; vLLM does that with expert, tensor and data parallelism together.
        """
        has_expert_parallel = layout.expert > 1
        return cls(
            tensor=layout.tensor,
            expert=layout.expert,
            expert_slices=1 if has_expert_parallel else layout.tensor * layout.data,
            replicates_shared_expert=sequence_parallel_moe
            and has_expert_parallel
            and layout.tensor > 1
            and layout.data > 1,
        )


def split(number: int, ranks: int, what: str) -> int:
    """One rank's share; raises InvalidInput where the ranks cannot share ``what`` evenly."""
    share, rest = divmod(number, ranks)
    if rest:
        message = f"{number} {what} cannot be split evenly over {ranks} ranks"
        raise InvalidInput(Problem(message=message, hint="choose parallel sizes that divide it"))
    return share


def key_value_heads_on_rank(mixer: GroupedQueryAttention, tensor: int) -> int:
    """Key/value heads a tensor rank holds; past the head count each is replicated."""
    heads = mixer.num_key_value_heads
    if tensor % heads == 0:
        return 1
    return split(heads, tensor, "key/value heads")
