"""How many bytes one layer keeps on a rank, and the block size vLLM derives from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from generator.architecture import (
    FullAttention,
    GatedDeltaNet,
    GroupedQueryAttention,
    Mamba2,
    MultiHeadLatentAttention,
    RecurrentMixer,
)
from generator.errors import Problem
from generator.units import ceil_div, elements_bytes

BLOCK_UNIT_TOKENS = 16
"""Every block size is a multiple of this; it is also the engine's default block."""


class RecurrentCacheMode(StrEnum):
    """What prefix caching keeps of recurrent states (vLLM's ``mamba_cache_mode``)."""

    NONE = "none"
    ALIGN = "align"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState:
    """Bytes one recurrent layer keeps for one request on one rank, before padding."""

    conv_bytes_per_rank: int
    ssm_bytes_per_rank: int

    @property
    def bytes_per_rank(self) -> int:
        return self.conv_bytes_per_rank + self.ssm_bytes_per_rank


def attention_bytes_per_token_per_rank(
    attention: FullAttention, *, tensor: int, kv_cache_dtype: str
) -> int:
    """Bytes one attention layer keeps per token on one rank.

    Keys and values of the rank's KV heads; a rank holds at least one head, so that TP beyond the
    head count replicates. MLA keeps one latent, whole on every rank.
    """
    match attention:
        case GroupedQueryAttention():
            heads = max(1, attention.num_key_value_heads // tensor)
            return 2 * heads * elements_bytes(attention.head_dim, kv_cache_dtype)
        case MultiHeadLatentAttention():
            latent = attention.kv_lora_rank + attention.qk_rope_head_dim
            return elements_bytes(latent, kv_cache_dtype)


def recurrent_state(
    mixer: RecurrentMixer,
    *,
    tensor: int,
    num_speculative_tokens: int,
    conv_dtype: str,
    ssm_dtype: str,
) -> RecurrentState:
    """The state of one recurrent layer; speculative tokens widen the convolution's window.

    The divisions by TP must be exact: check ``tensor_parallel_problems`` first.
    """
    columns = mixer.conv_kernel - 1 + num_speculative_tokens
    match mixer:
        case GatedDeltaNet():
            rows = (
                2 * mixer.num_key_heads * mixer.key_head_dim
                + mixer.num_value_heads * mixer.value_head_dim
            )
            ssm = mixer.num_value_heads // tensor * mixer.value_head_dim * mixer.key_head_dim
        case Mamba2():
            # A single group that TP does not divide is replicated, one copy on each rank.
            groups = mixer.num_groups if mixer.num_groups % tensor == 0 else tensor
            rows = mixer.num_heads * mixer.head_dim + 2 * groups * mixer.state_size
            ssm = mixer.num_heads // tensor * mixer.head_dim * mixer.state_size
    return RecurrentState(
        conv_bytes_per_rank=elements_bytes(rows // tensor * columns, conv_dtype),
        ssm_bytes_per_rank=elements_bytes(ssm, ssm_dtype),
    )


def tensor_parallel_problems(
    attention: FullAttention, recurrent: RecurrentMixer | None, tensor: int
) -> tuple[Problem, ...]:
    """Why vLLM cannot shard these layers over so many ranks; empty where it can."""
    checks = (*_attention_divisions(attention, tensor), *_recurrent_divisions(recurrent, tensor))
    return tuple(
        Problem(
            message=f"{count} {what} are not divisible by TP {tensor}",
            hint=f"choose a TP that divides {count}",
            path="tensor",
        )
        for count, what, divides in checks
        if not divides
    )


def _attention_divisions(
    attention: FullAttention, tensor: int
) -> tuple[tuple[int, str, bool], ...]:
    heads = attention.num_attention_heads
    query = (heads, "attention heads", heads % tensor == 0)
    if not isinstance(attention, GroupedQueryAttention):
        return (query,)
    heads = attention.num_key_value_heads
    return query, (heads, "KV heads", heads % tensor == 0 or tensor % heads == 0)


def _recurrent_divisions(
    mixer: RecurrentMixer | None, tensor: int
) -> tuple[tuple[int, str, bool], ...]:
    match mixer:
        case None:
            return ()
        case GatedDeltaNet():
            counts = ((mixer.num_key_heads, "key heads"), (mixer.num_value_heads, "value heads"))
            return tuple((count, what, count % tensor == 0) for count, what in counts)
        case Mamba2():
            groups = mixer.num_groups
            # vLLM's layer replicates groups only where there is a single one.
            return (
                (mixer.num_heads, "Mamba heads", mixer.num_heads % tensor == 0),
                (groups, "Mamba groups", groups == 1 or groups % tensor == 0),
            )


def recurrent_cache_mode(
    mixer: RecurrentMixer | None, *, prefix_caching: bool, requested: RecurrentCacheMode
) -> RecurrentCacheMode:
    """The mode vLLM resolves ``--mamba-cache-mode`` to for this mixer.

    Without prefix caching there is nothing to keep. With it, Mamba2 layers keep all states unless
    ``align`` was asked for; GDN layers can only align.
    """
    if mixer is None or not prefix_caching:
        return RecurrentCacheMode.NONE
    if isinstance(mixer, Mamba2) and requested is not RecurrentCacheMode.ALIGN:
        return RecurrentCacheMode.ALL
    return RecurrentCacheMode.ALIGN


def aligned_block_tokens(
    *, state_bytes_per_rank: int, bytes_per_token_per_rank: int, unit_tokens: int
) -> int:
    """The least multiple of ``unit_tokens`` whose attention page holds one recurrent state.

    With no state (an attention-only model) this is the unit itself.
    """
    tokens = ceil_div(state_bytes_per_rank, bytes_per_token_per_rank)
    return unit_tokens * max(1, ceil_div(tokens, unit_tokens))


def alignment_unit_tokens(
    mixer: RecurrentMixer | None,
    mode: RecurrentCacheMode,
    *,
    kernel_block_tokens: int,
    block_size: int | None,
    mamba_block_size: int | None,
) -> int:
    """What block sizes are a multiple of: the kernel's block, or the user's if that is larger.

    Where all states are kept, a block also covers whole chunks of the Mamba2 scan (or the user's
    ``mamba_block_size``); the other modes ignore that option, as vLLM does.
    """
    unit = max(kernel_block_tokens, block_size or 0)
    if mode is RecurrentCacheMode.ALL and isinstance(mixer, Mamba2):
        return math.lcm(mamba_block_size or mixer.chunk_size, unit)
    return unit
