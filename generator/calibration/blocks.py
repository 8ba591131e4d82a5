"""How many KV-cache blocks a log's figures stand for, and what its "KV cache size" means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from generator.kv_cache.kv_cache import KvCacheLayout
from generator.startup_log import Process, RankReadings, Reading, StartupLog
from generator.units import GIB

T = TypeVar("T")

_HALF_DIGIT = Fraction(1, 200)


class TokensMeaning(StrEnum):
    """What the number of tokens in "GPU KV cache size" counts."""

    CONCURRENCY = "concurrency x max-model-len"
    GROUP_BLOCKS = "blocks of one group x block size"
    EITHER = "the same by both meanings"
    AMBIGUOUS = "ambiguous: both meanings fit, with other blocks"
    NEITHER = "NOT FOUND: neither meaning fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBlocks:
    """One data rank's blocks: each of ``counts``, ascending, gives all the figures of the log.

    ``counts`` is empty where none does. ``meaning`` is None where the log has no token count.
    """

    process: Process
    counts: tuple[int, ...]
    meaning: TokensMeaning | None
    kv_cache_bytes: Reading[int] | None
    kv_cache_tokens: Reading[int] | None
    max_model_len: Reading[int] | None
    concurrency: Reading[float] | None

    @property
    def places(self) -> tuple[str, ...]:
        """The lines of the figures."""
        figures = (self.kv_cache_bytes, self.kv_cache_tokens, self.max_model_len, self.concurrency)
        return tuple(dict.fromkeys(figure.place for figure in figures if figure is not None))


def printed_range(size_bytes: int) -> tuple[int, int]:
    """The least and the most bytes that print as this figure of GiB with two decimals."""
    half = Fraction(GIB) * _HALF_DIGIT
    return math.ceil(size_bytes - half), math.floor(size_bytes + half)


def logged_blocks(
    log: StartupLog, layout: KvCacheLayout, max_model_len: int
) -> tuple[LoggedBlocks, ...]:
    """The blocks of every data rank that printed anything of them, by the engine's arithmetic.

    ``max_model_len`` counts where the log has no concurrency line to say its own.
    """
    ranks = sorted({rank.process.data or 0 for rank in log.ranks})
    found = (
        _DataRank(
            [rank for rank in log.ranks if (rank.process.data or 0) == number],
            layout,
            max_model_len,
        ).blocks()
        for number in ranks
    )
    return tuple(blocks for blocks in found if blocks is not None)


def meaning_without_model(log: StartupLog) -> TokensMeaning | None:
    """What the tokens mean as far as the log alone tells: by its concurrency and block size."""
    tokens = first_reading(rank.kv_cache_tokens for rank in log.ranks)
    length = first_reading(rank.max_model_len for rank in log.ranks)
    concurrency = first_reading(rank.concurrency for rank in log.ranks)
    block = first_reading(rank.block_tokens for rank in log.ranks)
    if tokens is None or length is None or concurrency is None:
        return None
    requests = Fraction(tokens.value, length.value)
    logged = Fraction(str(concurrency.value))
    is_concurrency = abs(requests - logged) <= _HALF_DIGIT + Fraction(1, length.value)
    is_group_blocks = block is not None and tokens.value % block.value == 0
    if is_concurrency:
        return TokensMeaning.AMBIGUOUS if is_group_blocks else TokensMeaning.CONCURRENCY
    return TokensMeaning.GROUP_BLOCKS if is_group_blocks else TokensMeaning.NEITHER


def first_reading(readings: Iterable[Reading[T] | None]) -> Reading[T] | None:
    """The first that was printed at all."""
    return next((reading for reading in readings if reading is not None), None)


class _DataRank:
    """The figures of one data rank's processes, solved for its blocks."""

    def __init__(
        self, ranks: Sequence[RankReadings], layout: KvCacheLayout, max_model_len: int
    ) -> None:
        self._ranks = ranks
        self._layout = layout
        self._tokens = first_reading(rank.kv_cache_tokens for rank in ranks)
        self._length = first_reading(rank.max_model_len for rank in ranks)
        self._concurrency = first_reading(rank.concurrency for rank in ranks)
        self._override = first_reading(rank.num_blocks for rank in ranks)
        self._max_model_len = self._length.value if self._length else max_model_len
        self._needed = layout.blocks_per_request(self._max_model_len)

    def blocks(self) -> LoggedBlocks | None:
        """The counts that fit; None where nothing was printed."""
        counts = self._by_memory_and_concurrency()
        if counts is None and self._tokens is None:
            return None
        meaning: TokensMeaning | None = None
        if self._tokens is not None:
            meaning, counts = self._by_tokens(self._tokens.value, counts)
        budgets = [rank.effective_kv_cache_bytes for rank in self._ranks]
        known = [budget for budget in budgets if budget is not None]
        return LoggedBlocks(
            process=self._ranks[0].process,
            counts=tuple(counts or ()),
            meaning=meaning,
            kv_cache_bytes=min(known, key=lambda budget: budget.value) if known else None,
            kv_cache_tokens=self._tokens,
            max_model_len=self._length,
            concurrency=self._concurrency,
        )

    def _by_memory_and_concurrency(self) -> list[int] | None:
        """Counts that give the memory and concurrency of the log; None where it has neither."""
        if self._override is not None:
            return [self._override.value]
        counts = self._by_memory()
        if self._concurrency is None:
            return None if counts is None else list(counts)
        if counts is None:
            logged = Fraction(str(self._concurrency.value))
            least = math.floor((logged - _HALF_DIGIT) * self._needed)
            most = math.ceil((logged + _HALF_DIGIT) * self._needed)
            counts = range(max(0, least), most + 1)
        printed = f"{self._concurrency.value:.2f}"
        return [blocks for blocks in counts if f"{blocks / self._needed:.2f}" == printed]

    def _by_memory(self) -> range | None:
        """Counts in the memory of every pipeline stage, each the least of its workers."""
        stages: dict[int, int] = {}
        for rank in self._ranks:
            if (budget := rank.effective_kv_cache_bytes) is not None:
                stage = rank.process.pipeline or 0
                stages[stage] = min(budget.value, stages.get(stage, budget.value))
        if not stages:
            return None
        is_complete = len(stages) == len(self._layout.layers_per_block_by_stage)
        ends = []
        for end in (0, 1):
            budgets = tuple(printed_range(stages[stage])[end] for stage in sorted(stages))
            ends.append(
                self._layout.num_blocks_of_stages(budgets)
                if is_complete
                else self._layout.num_blocks(min(budgets))
            )
        return range(ends[0], ends[1] + 1)

    def _by_tokens(
        self, tokens: int, counts: list[int] | None
    ) -> tuple[TokensMeaning, list[int] | None]:
        """Which meaning gives the tokens, and the counts that remain."""
        layout, length = self._layout, self._max_model_len
        by_concurrency = [
            blocks
            for blocks in (counts if counts is not None else self._near_concurrency(tokens))
            if layout.logged_tokens(blocks, length) == tokens
        ]
        by_group = [
            blocks
            for blocks in (counts if counts is not None else self._near_group_blocks(tokens))
            if layout.logged_tokens_until_0_20(blocks, length) == tokens
        ]
        if by_concurrency and by_group:
            if by_concurrency == by_group:
                return TokensMeaning.EITHER, by_group
            return TokensMeaning.AMBIGUOUS, sorted({*by_concurrency, *by_group})
        if by_concurrency:
            return TokensMeaning.CONCURRENCY, by_concurrency
        if by_group:
            return TokensMeaning.GROUP_BLOCKS, by_group
        return TokensMeaning.NEITHER, counts

    def _near_concurrency(self, tokens: int) -> range:
        blocks = tokens * self._needed // self._max_model_len
        return range(max(0, blocks - 1), blocks + 3)

    def _near_group_blocks(self, tokens: int) -> range:
        groups = len(self._layout.groups)
        least = tokens // (self._layout.block_tokens * self._layout.decode_context) * groups
        return range(least, least + groups)
