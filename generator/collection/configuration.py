"""A deployment by engines and by factors, read from its recipe's flags and never from a name."""

from __future__ import annotations

from generator.collection.allocated import gpus_per_worker
from generator.collection.contract import CONTRACT_FLAGS, text_of
from generator.engine.options import EngineOptions, options_from_flags
from generator.errors import InvalidInput
from generator.normal_form import NormalForm
from generator.results.engine_pool import EnginePool

_FEW_TOKENS = 2
_ENGINE_WITH_LAYOUTS = "vllm"
_LAYOUT_FLAGS = frozenset(
    {
        "tensor-parallel-size",
        "pipeline-parallel-size",
        "data-parallel-size",
        "decode-context-parallel-size",
        "enable-expert-parallel",
    }
)
_DRAFTS = "speculative-config."


def running_roles(form: NormalForm) -> tuple[str, ...]:
    """The roles that have workers: prefill and decode, or agg."""
    return tuple(
        role
        for role in form.roles
        if form.get("roles", role, "workers") or form.get("roles", role, "nodes")
    )


def engine_pools(form: NormalForm) -> tuple[EnginePool, ...]:
    """The workers of each role; without a layout where the flags of their engine are not known."""
    return tuple(_pool(form, role) for role in running_roles(form))


def phase(form: NormalForm, isl: int | None, osl: int | None) -> str:
    """``disaggregated``, or for one aggregated engine the phase that its lengths leave alone."""
    if "agg" not in running_roles(form):
        return "disaggregated"
    if osl is not None and osl <= _FEW_TOKENS:
        return "prefill"
    if isl is not None and isl <= _FEW_TOKENS:
        return "decode"
    return "aggregated"


def factors(form: NormalForm, label: str) -> dict[str, str]:
    """What a sweep may vary: configuration, and the flags and environment outside contracts."""
    found = {"configuration": label}
    for role in running_roles(form):
        for flag, value in sorted(form.args(role).items()):
            if flag not in _LAYOUT_FLAGS and flag not in CONTRACT_FLAGS:
                found[f"{role}.{flag}"] = text_of(value)
        for path, value in sorted(form.below("roles", role, "env").items()):
            found[f"{role}.env.{'.'.join(map(str, path))}"] = text_of(value)
    return found


def _options(form: NormalForm, role: str) -> EngineOptions | None:
    """The flags of an engine whose flags are known; None for others."""
    if form.engine_of(role) != _ENGINE_WITH_LAYOUTS:
        return None
    try:
        return options_from_flags(form.args(role))
    except InvalidInput:
        return None


def _pool(form: NormalForm, role: str) -> EnginePool:
    written = form.get("roles", role, "workers")
    options = _options(form, role)
    method = form.args(role).get(f"{_DRAFTS}method")
    return EnginePool(
        role=role,
        workers=written if isinstance(written, int) and written > 0 else 1,
        gpus_per_worker=gpus_per_worker(form, role),
        engine=form.engine_of(role) or None,
        layout=str(options.layout) if options else None,
        num_speculative_tokens=options.num_speculative_tokens if options else 0,
        draft_method=None if method is None else str(method),
    )
