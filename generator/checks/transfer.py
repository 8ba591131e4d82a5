"""PDP: how KV cache is transferred, and who else counts its blocks."""

from __future__ import annotations

from collections.abc import Iterator

from generator.checks.engines import planned_engine
from generator.checks.job import Job
from generator.checks.rule import Hit, Severity, rule
from generator.checks.workers import Workers, whole
from generator.wording import shown

_STATE_LAYOUT = "VLLM_SSM_CONV_STATE_LAYOUT"
_NOT_A_FLAG_OF = ("connector", "kv_connector", "kv-connector", "kv-role")


@rule("PDP007", Severity.ERROR)
def hybrid_without_state_layout(job: Job) -> Iterator[Hit]:
    """A model with recurrent states is transferred without the layout that the transfer needs.

    ## What it does
    Looks for VLLM_SSM_CONV_STATE_LAYOUT=DS in the environment of both roles.

    ## Why is this bad?
    The convolution states cannot be split among other numbers of ranks.

    ## Example
    A prefill/decode recipe of Qwen3.8 without the variable.
    """
    if job.pair is None or job.model is None or not job.model.is_hybrid:
        return
    for workers in job.pair:
        layout = job.environment(workers.role).get(_STATE_LAYOUT)
        if _transfers(workers, job) and layout != "DS":
            found = "is not set" if layout is None else f"is {shown(layout)}"
            yield job.hit(
                ("roles", workers.role, "env", _STATE_LAYOUT),
                f"{_STATE_LAYOUT} {found}, and {job.model.name} has recurrent states",
                f"set {_STATE_LAYOUT}: DS",
            )


def _transfers(workers: Workers, job: Job) -> bool:
    written = any(flag.startswith("kv-transfer-config") for flag in workers.flags)
    return written or job.form.get("engine", "connector") is not None


@rule("PDP008", Severity.ERROR)
def hybrid_without_hybrid_manager(job: Job) -> Iterator[Hit]:
    """The hybrid KV cache manager is off for a model with recurrent states.

    ## What it does
    Looks for disable-hybrid-kv-cache-manager in roles that transfer KV cache.

    ## Why is this bad?
    Without it there is one kind of page for all layers, and the states have no place in it.

    ## Example
    `disable-hybrid-kv-cache-manager: true` in a recipe of Qwen3.8.
    """
    if job.pair is None or job.model is None or not job.model.is_hybrid:
        return
    for workers in job.pair:
        if workers.switch("disable-hybrid-kv-cache-manager"):
            yield job.flag_hit(
                workers,
                "disable-hybrid-kv-cache-manager",
                f"the hybrid KV cache manager is off, and {job.model.name} has recurrent states",
                "write no-disable-hybrid-kv-cache-manager: true",
            )


@rule("PDP010", Severity.WARNING)
def unsaid_load_failure_policy(job: Job) -> Iterator[Hit]:
    """Nothing says what happens when a transfer fails.

    ## What it does
    Looks for kv_load_failure_policy in kv-transfer-config.

    ## Why is this bad?
    The default depends on the release. Where it recomputes, a broken network shows as slow decode.

    ## Example
    `kv-transfer-config: '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'`.
    """
    for workers in job.pair or ():
        written = any(flag.startswith("kv-transfer-config.") for flag in workers.flags)
        if written and workers.flags.get("kv-transfer-config.kv-load-failure-policy") is None:
            yield job.flag_hit(
                workers,
                "kv-transfer-config",
                "kv_load_failure_policy is not said",
                'write "kv_load_failure_policy": "fail"',
            )


@rule("PDP011", Severity.ERROR)
def connector_in_wrong_place(job: Job) -> Iterator[Hit]:
    """The connector stands where nothing reads it.

    ## What it does
    Looks for `connector` among a role's engine flags and in sections other than the engine's, and
    for keys of kv-transfer-config outside of it.

    ## Why is this bad?
    srt-slurm reads `connector` beside the engine's type only. Elsewhere the default, nixl, holds.

    ## Example
    `vllm_config.prefill.connector: null` instead of `backend.connector: null`.
    """
    hint = "it belongs to backend (v1) or engine (v2)"
    for workers in job.roles:
        if workers.engine != "vllm":
            continue
        for flag in _NOT_A_FLAG_OF:
            if flag in workers.flags:
                inside = "" if flag == "connector" else "write it inside kv-transfer-config"
                message = f"'{flag}' is no flag of the engine"
                yield job.flag_hit(workers, flag, message, inside or hint)
    for section in ("resources", "model", "frontend", "dynamo"):
        if (section, "connector") in job.form.values:
            yield job.hit((section, "connector"), f"'connector' is no key of {section}", hint)


@rule("PDP013", Severity.ERROR)
def other_router_block_size(job: Job) -> Iterator[Hit]:
    """The KV router counts blocks of another size than the engine.

    ## What it does
    Compares the frontend's kv-cache-block-size (or DYN_KV_CACHE_BLOCK_SIZE) with the block size of
    the roles that prefill.

    ## Why is this bad?
    The router estimates load in blocks: it has been seen to be wrong by a factor of 66.

    ## Example
    `frontend.args.kv-cache-block-size: 16` with `block-size: 1056`.
    """
    for path in (
        ("frontend", "args", "kv-cache-block-size"),
        ("frontend", "env", "DYN_KV_CACHE_BLOCK_SIZE"),
    ):
        routed = whole(job.form.get(*path))
        for workers in job.prefilling:
            block = _block_tokens(job, workers)
            if routed and block and routed != block:
                yield job.hit(
                    path,
                    f"the router counts blocks of {routed} tokens, {workers.role} has {block}",
                    f"write {block}",
                    job.set_value(path, block),
                )


def _block_tokens(job: Job, workers: Workers) -> int | None:
    written = workers.number("block-size", "page-size")
    if written is not None:
        return written
    engine = planned_engine(job, workers)
    return None if engine is None else engine.kv_cache.block_tokens
