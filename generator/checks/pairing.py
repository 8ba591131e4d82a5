"""PDP: what prefill and decode have to agree on to hand over KV cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.checks.engines import engine_defaults_of, planned_engine
from generator.checks.job import Job
from generator.checks.rule import Hit, Severity, rule
from generator.checks.workers import whole
from generator.facts import PdBlockRule
from generator.wording import shown


def _same_flag(job: Job, flag: str, default: Any, why: str) -> Iterator[Hit]:
    """A finding where both roles set a flag to different values, the default standing for none."""
    if job.pair is None:
        return
    mine, theirs = (each.flags.get(flag) for each in job.pair)
    mine, theirs = (default if each is None else each for each in (mine, theirs))
    if mine != theirs:
        yield job.flag_hit(
            job.pair[1],
            flag,
            f"prefill has {flag} {_plain(mine)}, decode {_plain(theirs)}",
            why,
        )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


@rule("PDP001", Severity.ERROR)
def other_cache_dtype(job: Job) -> Iterator[Hit]:
    """Prefill and decode have KV caches of different types.

    ## What it does
    Compares kv-cache-dtype of the two roles, as words: `fp8` is not `fp8_e4m3`.

    ## Why is this bad?
    The handshake compares the words and refuses the transfer.

    ## Example
    `kv-cache-dtype: fp8` on decode alone.
    """
    yield from _same_flag(job, "kv-cache-dtype", "auto", "write the same word on both roles")


@rule("PDP002", Severity.ERROR)
def other_state_dtype(job: Job) -> Iterator[Hit]:
    """Prefill and decode have recurrent states of different types.

    ## What it does
    Compares mamba-ssm-cache-dtype and mamba-cache-dtype of the two roles.

    ## Why is this bad?
    The states have other sizes, and the handshake refuses them.

    ## Example
    `mamba-ssm-cache-dtype: bfloat16` on prefill alone.
    """
    for flag in ("mamba-ssm-cache-dtype", "mamba-cache-dtype"):
        yield from _same_flag(job, flag, "auto", "write the same word on both roles")


@rule("PDP003", Severity.ERROR)
def other_prefix_caching(job: Job) -> Iterator[Hit]:
    """Prefix caching is on in one role and off in the other.

    ## What it does
    Compares enable-prefix-caching and its no- form. What a role leaves out is the default of the
    pinned release, for models that are known.

    ## Why is this bad?
    It decides how a cache is cut into blocks, recurrent states above all.

    ## Example
    `enable-prefix-caching: true` on prefill, `no-enable-prefix-caching: true` on decode.
    """
    if job.pair is None:
        return
    default = _default_prefix_caching(job)
    written = (each.switch("enable-prefix-caching") for each in job.pair)
    prefill, decode = (default if each is None else each for each in written)
    if prefill is not None and decode is not None and prefill is not decode:
        flag = "no-enable-prefix-caching"
        flag = flag if flag in job.pair[1].flags else "enable-prefix-caching"
        words = {True: "on", False: "off"}
        yield job.flag_hit(
            job.pair[1],
            flag,
            f"prefix caching is {words[prefill]} in prefill and {words[decode]} in decode",
            "set it the same way on both roles",
        )


def _default_prefix_caching(job: Job) -> bool | None:
    """What vLLM does where nothing is said; None where the release or the model is not known."""
    defaults = engine_defaults_of(job)
    if job.model is None or defaults is None or job.engine_version is None:
        return None
    if job.model.is_hybrid:
        return defaults.prefix_caching_of_hybrids.value
    return defaults.prefix_caching_of_attention_only.value


@rule("PDP004", Severity.ERROR)
def other_block_size(job: Job) -> Iterator[Hit]:
    """Prefill and decode cut their KV cache into different blocks.

    ## What it does
    Compares the block sizes that both roles write. Where neither does and the model is a known
    hybrid, compares those that vLLM will choose. From 0.27 decode's may be a multiple.

    ## Why is this bad?
    The transfer copies whole blocks: the handshake refuses other sizes.

    ## Example
    TP2 with MTP 3 takes blocks of 2176 tokens of Qwen3.8, TP8 of 1088: force 2176 on both.
    """
    if job.pair is None:
        return
    blocks = [whole(each.flags.get("block-size")) for each in job.pair]
    chosen = ""
    if None in blocks:
        engines = [planned_engine(job, each) for each in job.pair]
        if job.model is None or not job.model.is_hybrid or None in engines:
            return
        blocks = [each.kv_cache.block_tokens for each in engines if each is not None]
        chosen = " by the engine's choice"
    prefill, decode = blocks
    if prefill == decode or not (prefill and decode) or _may_be_multiple(job, prefill, decode):
        return
    yield job.flag_hit(
        job.pair[1],
        "block-size",
        f"prefill has blocks of {prefill} tokens, decode of {decode}{chosen}",
        f"write block-size: {max(prefill, decode)} on both roles",
    )


def _may_be_multiple(job: Job, prefill: int, decode: int) -> bool:
    """Whether this release transfers to blocks that are a multiple; a hybrid where unknown."""
    defaults = engine_defaults_of(job)
    if decode % prefill or defaults is None or job.engine_version is None:
        return False
    is_attention_only = job.model is not None and not job.model.is_hybrid
    rule_of_model = (
        defaults.pd_block_rule_of_attention_only
        if is_attention_only
        else defaults.pd_block_rule_of_hybrids
    )
    return rule_of_model.value is PdBlockRule.DECODE_MULTIPLE_OF_PREFILL


@rule("PDP005", Severity.ERROR)
def other_drafts_of_hybrid(job: Job) -> Iterator[Hit]:
    """Prefill and decode of a model with recurrent states draft different numbers of tokens.

    ## What it does
    Compares the speculative tokens of the two roles where the model has such layers.

    ## Why is this bad?
    The convolution state is as wide as the drafts. None against some stops the engine, and two
    numbers of equal width are read as the wrong bytes, silently.

    ## Example
    `num_speculative_tokens: 1` on prefill, `3` on decode of Qwen3.8.
    """
    if job.model is not None and job.model.is_hybrid:
        yield from _other_drafts(job, "use the same number on both roles")


@rule("PDP006", Severity.WARNING)
def other_drafts(job: Job) -> Iterator[Hit]:
    """Prefill and decode draft different numbers of tokens.

    ## What it does
    As PDP005, for models without recurrent states and for those nobody knows.

    ## Why is this bad?
    Recipes of attention-only models run so. Anything with states does not.

    ## Example
    No speculation on prefill, `num_speculative_tokens: 2` on decode.
    """
    if job.model is None or not job.model.is_hybrid:
        yield from _other_drafts(job, "fine for attention-only models, if measured")


def _other_drafts(job: Job, hint: str) -> Iterator[Hit]:
    if job.pair is None:
        return
    prefill, decode = job.pair
    if prefill.speculative_tokens != decode.speculative_tokens:
        yield job.flag_hit(
            decode,
            decode.speculative_flag,
            f"prefill drafts {prefill.speculative_tokens} tokens, decode"
            f" {decode.speculative_tokens}",
            hint,
        )


@rule("PDP009", Severity.WARNING)
def other_model_len(job: Job) -> Iterator[Hit]:
    """Prefill and decode accept requests of different lengths.

    ## What it does
    Compares max-model-len of the two roles where both write it.

    ## Why is this bad?
    A request that one role takes and the other refuses fails after its prefill.

    ## Example
    `max-model-len: 9472` on prefill, `10240` on decode.
    """
    if job.pair is None:
        return
    prefill, decode = (each.longest_request for each in job.pair)
    if prefill is not None and decode is not None and prefill != decode:
        yield job.flag_hit(
            job.pair[1],
            "max-model-len",
            f"prefill accepts {prefill} tokens, decode {decode}",
            "write the same on both roles",
        )


@rule("PDP012", Severity.WARNING)
def tensor_sizes_without_divisor(job: Job) -> Iterator[Hit]:
    """Neither tensor-parallel size divides the other.

    ## What it does
    Compares the tensor-parallel sizes of prefill and decode.

    ## Why is this bad?
    Heads cannot be mapped from one set of ranks to the other.

    ## Example
    TP4 on prefill, TP6 on decode.
    """
    if job.pair is None:
        return
    sizes = [each.tensor for each in job.pair]
    small, large = min(each or 1 for each in sizes), max(each or 1 for each in sizes)
    if None not in sizes and large % small:
        yield job.flag_hit(
            job.pair[1],
            "tensor-parallel-size",
            f"prefill has TP{sizes[0]}, decode TP{sizes[1]}: one has to divide the other",
        )
