"""The engine flags that shape a KV cache, the dtypes they resolve to, and what vLLM refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from generator.architecture import GroupedQueryAttention, ModelArchitecture
from generator.errors import InvalidInput, Problem
from generator.kv_cache.block_size import (
    BLOCK_UNIT_TOKENS,
    RecurrentCacheMode,
    tensor_parallel_problems,
)
from generator.kv_cache.layer_groups import LayerCensus
from generator.units import DTYPE_BITS

_STATE_DTYPES = ("float32", "fp32", "bfloat16", "bf16", "float16", "fp16", "half")
_MAMBA_BLOCK_UNIT_TOKENS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheOptions:
    """The engine flags that shape the KV cache of one rank; data and expert parallelism do not.

    ``kernel_block_tokens`` is the smallest block of the attention backend. ``auto`` dtypes are
    resolved from the model. ``mamba_cache_mode`` is what was asked for; vLLM resolves it.
    """

    tensor: int = 1
    pipeline: int = 1
    decode_context: int = 1
    kv_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    mamba_cache_dtype: str = "auto"
    num_speculative_tokens: int = 0
    prefix_caching: bool = False
    mamba_cache_mode: RecurrentCacheMode = RecurrentCacheMode.NONE
    block_size: int | None = None
    mamba_block_size: int | None = None
    kernel_block_tokens: int = BLOCK_UNIT_TOKENS
    is_hybrid_manager_disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDtypes:
    """The dtypes of keys and values, of convolution states and of SSM states."""

    kv_cache: str
    conv: str
    ssm: str


def cache_dtypes(architecture: ModelArchitecture, options: KvCacheOptions) -> CacheDtypes:
    """What the dtype flags resolve to for this model.

    An ``auto`` KV cache follows the checkpoint's KV scheme, then the model's dtype. An ``auto``
    SSM state follows the checkpoint, then the convolution state. Raises InvalidInput for a dtype
    whose size is not known.
    """
    kv_cache, conv, ssm = (
        options.kv_cache_dtype,
        options.mamba_cache_dtype,
        options.mamba_ssm_cache_dtype,
    )
    if kv_cache == "auto":
        scheme = architecture.quantization and architecture.quantization.kv_cache_dtype
        kv_cache = scheme or architecture.dtype
    if conv == "auto":
        conv = architecture.dtype
    if ssm == "auto":
        ssm = architecture.recurrent_state_dtype or conv
    named = (
        ("kv-cache-dtype", kv_cache, tuple(DTYPE_BITS)),
        ("mamba-cache-dtype", conv, _STATE_DTYPES),
        ("mamba-ssm-cache-dtype", ssm, _STATE_DTYPES),
    )
    problems = [
        Problem(
            message=f"{flag} {dtype!r} is not modelled",
            hint=f"known: auto, {', '.join(known)}",
            path=flag,
        )
        for flag, dtype, known in named
        if dtype not in known
    ]
    if problems:
        raise InvalidInput(problems)
    return CacheDtypes(kv_cache=kv_cache, conv=conv, ssm=ssm)


def option_problems(
    architecture: ModelArchitecture, census: LayerCensus, options: KvCacheOptions
) -> Iterator[Problem]:
    """Everything that makes vLLM refuse these flags for this model."""
    impossible = tuple(_impossible_counts(options))
    if impossible:
        # The checks below divide by these counts.
        yield from impossible
        return
    yield from tensor_parallel_problems(census.attention, census.recurrent, options.tensor)
    yield from _decode_context_problems(census, options)
    yield from _block_problems(options)
    if census.recurrent is not None and options.is_hybrid_manager_disabled:
        yield Problem(
            message=f"model {architecture.name} needs the hybrid KV cache manager, which is off",
            hint="write no-disable-hybrid-kv-cache-manager: true",
            path="disable-hybrid-kv-cache-manager",
        )
    drafts = len(census.kinds) - len(architecture.layers)
    if options.pipeline > 1 and drafts:
        yield Problem(
            message=f"PP {options.pipeline} with multi-token prediction is not modelled"
            f" (vLLM refuses it for Qwen3.5)",
            hint="use PP 1, or no speculative tokens",
            path="pipeline",
        )


def _impossible_counts(options: KvCacheOptions) -> Iterator[Problem]:
    for field, least in (
        ("tensor", 1),
        ("pipeline", 1),
        ("decode_context", 1),
        ("num_speculative_tokens", 0),
        ("block_size", 1),
        ("mamba_block_size", 1),
        ("kernel_block_tokens", 1),
    ):
        count = getattr(options, field)
        if count is not None and count < least:
            yield Problem(message=f"{field} must be at least {least}, got {count}", path=field)


def _decode_context_problems(census: LayerCensus, options: KvCacheOptions) -> Iterator[Problem]:
    """Context ranks are tensor ranks that would otherwise hold replicas of the same KV heads."""
    ranks, tensor = options.decode_context, options.tensor
    if ranks == 1:
        return
    attention = census.attention
    heads = attention.num_key_value_heads if isinstance(attention, GroupedQueryAttention) else 1
    if tensor <= heads:
        yield Problem(
            message=f"DCP {ranks} needs a TP above the {heads} KV heads, got TP {tensor}",
            hint="raise TP, or use DCP 1",
            path="decode_context",
        )
    elif ranks > tensor // heads:
        yield Problem(
            message=f"DCP {ranks} is more than TP {tensor} / {heads} KV heads",
            hint=f"use a DCP of at most {tensor // heads}",
            path="decode_context",
        )
    elif tensor % ranks:
        yield Problem(
            message=f"TP {tensor} is not divisible by DCP {ranks}",
            hint=f"use a DCP that divides {tensor}",
            path="decode_context",
        )


def _block_problems(options: KvCacheOptions) -> Iterator[Problem]:
    block = options.block_size
    if block is not None and block % BLOCK_UNIT_TOKENS:
        yield Problem(
            message=f"block-size {block} is not a multiple of {BLOCK_UNIT_TOKENS}",
            hint=f"use {block + -block % BLOCK_UNIT_TOKENS}",
            path="block-size",
        )
    mamba_block = options.mamba_block_size
    if mamba_block is None:
        return
    if not options.prefix_caching:
        yield Problem(
            message=f"mamba-block-size {mamba_block} needs prefix caching, which is off",
            hint="turn prefix caching on, or leave mamba-block-size out",
            path="mamba-block-size",
        )
    if mamba_block % _MAMBA_BLOCK_UNIT_TOKENS:
        yield Problem(
            message=f"mamba-block-size {mamba_block} is not a multiple of"
            f" {_MAMBA_BLOCK_UNIT_TOKENS}",
            hint=f"use {mamba_block + -mamba_block % _MAMBA_BLOCK_UNIT_TOKENS}",
            path="mamba-block-size",
        )
