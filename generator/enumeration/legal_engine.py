"""An engine that would start, and all of them beside those that were refused."""

from __future__ import annotations

from dataclasses import dataclass

from generator.engine.options import EngineOptions
from generator.enumeration.rejection import Rejection
from generator.enumeration.role_sizes import RoleSizes
from generator.kv_cache.kv_cache import KvCacheLayout
from generator.parallel import ParallelLayout

ROLES = ("prefill", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What two engines must share to pair: a role's flags beside its layout."""

    kv_cache_dtype: str
    speculative_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalEngine:
    """An engine that would start. ``kv_cache`` has the block size it chooses by itself."""

    role: str
    kind: Kind
    layout: ParallelLayout
    options: EngineOptions
    kv_cache: KvCacheLayout
    weights_bytes_per_rank: int
    sizes: RoleSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Both roles' legal engines, what was refused, and how many of either there were."""

    legal: tuple[LegalEngine, ...]
    rejections: tuple[Rejection, ...]

    def of(self, role: str, kind: Kind) -> tuple[LegalEngine, ...]:
        return tuple(each for each in self.legal if each.role == role and each.kind == kind)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(each.kind for each in self.legal))

    @property
    def considered(self) -> int:
        return len(self.legal) + sum(each.engines for each in self.rejections)
