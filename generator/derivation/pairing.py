"""Whether a prefill and a decode engine can hand over KV cache, and at which block size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.architecture import ModelArchitecture
from generator.engine.options import EngineOptions
from generator.errors import InvalidInput, Problem
from generator.facts import PdBlockRule
from generator.kv_cache.kv_cache import KvCacheLayout

_CONV_STATE_LAYOUT = "VLLM_SSM_CONV_STATE_LAYOUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingProblem:
    """Why two engines cannot pair; ``is_fatal`` is False for what shipped recipes get away with."""

    message: str
    hint: str
    is_fatal: bool = True


def pairing_problems(
    architecture: ModelArchitecture, prefill: EngineOptions, decode: EngineOptions
) -> Iterator[PairingProblem]:
    """Everything that keeps a pair from exchanging KV cache over NIXL (vLLM 0.26 to 0.28)."""
    yield from _speculation(architecture, prefill, decode)
    for label, mine, theirs in (
        ("kv-cache-dtype", prefill.kv_cache_dtype, decode.kv_cache_dtype),
        ("mamba-ssm-cache-dtype", prefill.mamba_ssm_cache_dtype, decode.mamba_ssm_cache_dtype),
        ("mamba-cache-dtype", prefill.mamba_cache_dtype, decode.mamba_cache_dtype),
    ):
        if mine != theirs:
            yield PairingProblem(
                message=f"prefill has {label} {mine}, decode has {theirs}",
                hint="the handshake compares the words: write the same one on both roles",
            )
    small, large = sorted((prefill.layout.tensor, decode.layout.tensor))
    if large % small:
        yield PairingProblem(
            message=(
                f"prefill TP{prefill.layout.tensor} and decode TP{decode.layout.tensor}:"
                " one tensor parallel size must divide the other"
            ),
            hint="choose sizes such as 2 and 8",
        )
    if architecture.is_hybrid and max(prefill.layout.pipeline, decode.layout.pipeline) > 1:
        yield PairingProblem(
            message="pipeline parallelism of a hybrid model is not supported on the transfer path",
            hint="use PP1 on both roles",
        )
    for role, options in (("prefill", prefill), ("decode", decode)):
        if architecture.is_hybrid and options.hybrid_kv_cache_manager_disabled:
            yield PairingProblem(
                message=f"{role} disables the hybrid KV cache manager, which this model needs",
                hint="write no-disable-hybrid-kv-cache-manager: true",
            )


def _speculation(
    architecture: ModelArchitecture, prefill: EngineOptions, decode: EngineOptions
) -> Iterator[PairingProblem]:
    mine, theirs = prefill.num_speculative_tokens, decode.num_speculative_tokens
    if mine == theirs:
        return
    recurrent = architecture.recurrent
    if recurrent is None:
        yield PairingProblem(
            message=f"prefill drafts {mine} tokens, decode {theirs}",
            hint="attention-only models run so, but measure it before relying on it",
            is_fatal=False,
        )
        return
    yield PairingProblem(
        message=(
            f"prefill drafts {mine} tokens, decode {theirs}, but the convolution state of"
            f" {type(recurrent).__name__} is as wide as the drafts"
        ),
        hint="use the same mtp on both roles",
    )


def transfer_problems(
    architecture: ModelArchitecture,
    role: str,
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Iterator[PairingProblem]:
    """What a role lacks to hand over KV cache, where its flags say that it does."""
    transfer = flags.get("kv-transfer-config")
    if transfer is None:
        return
    if '"kv_load_failure_policy": "fail"' not in str(transfer):
        yield PairingProblem(
            message=f"{role}: kv-transfer-config does not say kv_load_failure_policy: fail",
            hint="without it a failed transfer is recomputed on the decode GPUs",
            is_fatal=False,
        )
    if not architecture.is_hybrid:
        return
    layout = environment.get(_CONV_STATE_LAYOUT)
    if layout != "DS":
        yield PairingProblem(
            message=(
                f"{role}: KV transfer of a hybrid model needs {_CONV_STATE_LAYOUT}=DS,"
                f" {'which is not set' if layout is None else f'not {layout}'}"
            ),
            hint=f"add {_CONV_STATE_LAYOUT}: DS to engine.environment",
        )
    if not flags.get("no-disable-hybrid-kv-cache-manager"):
        yield PairingProblem(
            message=f"{role}: a KV connector turns the hybrid KV cache manager off by default",
            hint="write no-disable-hybrid-kv-cache-manager: true",
            is_fatal=False,
        )


def agree_on_block_tokens(
    prefill: KvCacheLayout, decode: KvCacheLayout, rule: PdBlockRule
) -> int | None:
    """The block size to force on both roles, None where the engine pairs them as they are.

    The larger of the two is valid for both where it is a multiple of 16 tokens and holds both
    states, which the larger always does: it is aligned for its own role and exceeds the other's.
    """
    if prefill.block_tokens == decode.block_tokens:
        return None
    is_multiple = decode.block_tokens % prefill.block_tokens == 0
    if rule is PdBlockRule.DECODE_MULTIPLE_OF_PREFILL and is_multiple:
        return None
    return max(prefill.block_tokens, decode.block_tokens)


def require_pairing(problems: list[PairingProblem]) -> None:
    """Raise InvalidInput with every fatal problem."""
    fatal = [problem for problem in problems if problem.is_fatal]
    if fatal:
        raise InvalidInput(
            Problem(message=f"roles cannot pair: {problem.message}", hint=problem.hint)
            for problem in fatal
        )
