"""The engine flags of one role, sized by the spec's rules, each derived one with its arithmetic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from generator.errors import InvalidInput, Problem
from generator.parallel import WorkerPool
from generator.spec.sizing import Derived, Term, evaluate
from generator.spec.spec import EngineSpec, SizingRules
from generator.workload import Workload

TRANSFER_FLAG = "kv-transfer-config"
"""How KV cache travels between roles; written first, and not at all by an aggregated engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleLoad:
    """What one role is sized for. ``rules`` are this role's formulas, in order.

    ``concurrency`` is what the role is sized for; ``own_concurrency`` the recipe's own highest,
    where another recipe of the group runs higher.
    """

    pool: WorkerPool
    num_speculative_tokens: int
    concurrency: int
    own_concurrency: int
    group: str
    sizing: SizingRules
    rules: Mapping[str, int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFlags:
    """Flags of one role in the order they are written, and the comments on some of them."""

    flags: Mapping[str, Any]
    comments: Mapping[str, str] = field(default_factory=dict)

    def with_block_size(self, block_tokens: int, how: str) -> RoleFlags:
        """The same flags with a block size forced on the engine, and why."""
        return RoleFlags(
            flags={**self.flags, "block-size": block_tokens},
            comments={**self.comments, "block-size": how},
        )


def role_flags(engine: EngineSpec, role: str, load: RoleLoad, workload: Workload) -> RoleFlags:
    """The flags of a role: layout, the spec's own, sized ones, speculation.

    ``role`` picks the spec's own flags. Raises InvalidInput with every formula that fails.
    """
    layout = load.pool.layout
    own = {flag: _flag_value(value) for flag, value in engine.args[role].items()}
    transfer = {flag: own.pop(flag) for flag in (TRANSFER_FLAG,) if flag in own}
    parallel: dict[str, Any] = {
        "tensor-parallel-size": layout.tensor,
        "pipeline-parallel-size": layout.pipeline,
        "data-parallel-size": layout.data,
    }
    if layout.decode_context > 1:
        parallel["decode-context-parallel-size"] = layout.decode_context
    if layout.expert_parallel:
        parallel["enable-expert-parallel"] = True
    sized = _sized_flags(load, workload)
    speculation: dict[str, Any] = (
        {
            "speculative_config.method": "mtp",
            "speculative_config.num_speculative_tokens": load.num_speculative_tokens,
        }
        if load.num_speculative_tokens
        else {}
    )
    return RoleFlags(
        flags={
            **transfer,
            **parallel,
            **own,
            **{flag: derived.value for flag, derived in sized.items()},
            **speculation,
        },
        comments={
            "tensor-parallel-size": f"layout {layout}",
            **{flag: derived.how for flag, derived in sized.items() if derived.how},
        },
    )


def _sized_flags(load: RoleLoad, workload: Workload) -> dict[str, Derived]:
    """Evaluate the sizing rules in order; each flag is a term for those after it."""
    pool, sizing = load.pool, load.sizing
    tokens = load.num_speculative_tokens
    ranks_text = f"({pool.data_ranks_text})" if pool.workers > 1 else pool.data_ranks_text
    terms = {
        "isl": _plain(workload.isl),
        "osl": _plain(workload.osl),
        "mtp": Term(value=tokens, text=f"{tokens} MTP"),
        "concurrency": _plain(load.concurrency),
        "ranks": Term(value=pool.data_ranks, text=ranks_text),
        "workers": Term(value=pool.workers, text=f"{pool.workers} workers"),
        "headroom_sequences": _plain(sizing.headroom_sequences),
        "headroom_tokens": _plain(sizing.headroom_tokens),
    }
    sized: dict[str, Derived] = {}
    problems: list[Problem] = []
    for flag, formula in load.rules.items():
        try:
            derived = evaluate(formula, terms)
        except InvalidInput as error:
            problems += [replace(problem, path=flag) for problem in error.problems]
            continue
        terms[flag.replace("-", "_")] = _plain(derived.value)
        sized[flag] = replace(derived, how=derived.how + _why_not_own(load, formula))
    if problems:
        raise InvalidInput(problems)
    return sized


def _why_not_own(load: RoleLoad, formula: int | str) -> str:
    """Where a formula's concurrency comes from, if it is not the recipe's own."""
    if load.concurrency == load.own_concurrency or "concurrency" not in str(formula):
        return ""
    return f"; {load.concurrency} is what group {load.group} is sized for"


def _plain(value: int) -> Term:
    return Term(value=value, text=str(value))


def _flag_value(value: Any) -> Any:
    """A flag as the engine takes it: a mapping becomes one line of JSON."""
    return json.dumps(value) if isinstance(value, dict) else value
