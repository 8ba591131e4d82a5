"""The engines of a deployment, as its flags have them, and the words for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MTP = "mtp"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePool:
    """The workers of one role, all alike.

    ``role`` is prefill, decode or agg. ``layout`` is of one worker, ``TP2DP4+EP``; None where the
    flags of its engine are not known. ``draft_method`` is the engine's name for how it speculates,
    None where it does not or does not say.
    """

    role: str
    workers: int
    gpus_per_worker: int
    engine: str | None = None
    layout: str | None = None
    num_speculative_tokens: int = 0
    draft_method: str | None = None

    @property
    def is_mtp(self) -> bool:
        """Whether what it drafts with, if anything, are the model's own layers."""
        return self.draft_method is None or self.draft_method.endswith(_MTP)

    def __str__(self) -> str:
        return f"{self.workers}x{self.layout or f'{self.gpus_per_worker}GPU'}"


def configuration_label(pools: Sequence[EnginePool]) -> str:
    """``1xTP2DP4+EP + 1xTP4DP4+EP MTP3``; ``2x2GPU + 1x4GPU sglang`` where layouts are unknown."""
    engines = dict.fromkeys(pool.engine for pool in pools if pool.layout is None and pool.engine)
    words = [" + ".join(map(str, pools)), *engines]
    if drafts := _drafts(pools):
        words.append(drafts)
    return " ".join(words)


def _drafts(pools: Sequence[EnginePool]) -> str:
    """``MTP3``; both counts, prefill first, where roles draft differently; empty without any."""
    counts = [pool.num_speculative_tokens for pool in pools]
    if not any(counts):
        return ""
    methods = {pool.draft_method for pool in pools if pool.draft_method is not None}
    names = sorted("MTP" if each.endswith(_MTP) else each.upper() for each in methods)
    count = str(counts[0]) if len(set(counts)) == 1 else "/".join(map(str, counts))
    name = "+".join(dict.fromkeys(names)) or "MTP"
    return f"{name}{' ' if name[-1].isdigit() else ''}{count}"
