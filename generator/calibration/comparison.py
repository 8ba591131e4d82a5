"""What a log says beside what is predicted for its engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from generator.calibration.account import Figure, LoggedAccount
from generator.calibration.blocks import LoggedBlocks, TokensMeaning, first_reading
from generator.calibration.subject import Subject
from generator.capacity.engine_memory import Basis, MemoryItem
from generator.capacity.memory_terms import estimated_terms
from generator.kv_cache.kv_cache import KvCacheLayout
from generator.startup_log import ENCODER_GRAPHS, Reading, StartupLog
from generator.units import GIB, format_gib

# The bar for computed weights; what they leave out are buffers such as rotary caches.
_WEIGHTS_TOLERANCE = 0.002
_HALF_DIGIT_BYTES = GIB // 200


class Unit(StrEnum):
    """What a compared figure counts."""

    BYTES = "bytes"
    TOKENS = "tokens"
    PERCENT = "percent"
    COUNT = "count"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure of the log and its prediction. ``logged`` is None where it is NOT FOUND.

    ``predicted`` is None where nothing predicts it, and so is ``agrees``. A figure agrees if what
    is printed may be the predicted one: to the last digit where it is computed, within
    ``uncertainty`` where it is assumed, within 0.2 % for weights.
    """

    name: str
    unit: Unit
    logged: int | float | None
    predicted: int | float | None
    basis: Basis
    agrees: bool | None
    uncertainty: int = 0
    places: tuple[str, ...] = ()
    note: str = ""


def compare(
    log: StartupLog,
    account: LoggedAccount | None,
    blocks: LoggedBlocks | None,
    subject: Subject,
) -> tuple[Compared, ...]:
    """Every figure that can be compared, in the order of a start-up.

    Memory is that of ``account``, blocks those of ``blocks``: the GPU and the rank that bind.
    """
    return (
        *(_memory(account, subject) if account else ()),
        *_cache_layout(log, subject),
        *_graphs(log, subject),
        *(_blocks(blocks, subject.engine.kv_cache, subject) if blocks else ()),
        *_refusal(log, blocks, subject),
    )


def _memory(account: LoggedAccount, subject: Subject) -> Iterator[Compared]:
    """The terms as they are predicted without a profile: those that a log can correct."""
    engine = subject.engine
    terms = estimated_terms(
        subject.architecture, subject.gpu, engine.options, engine.resolved, subject.defaults
    )
    weights = _term("weights", account.weights, terms.weights)
    tolerance = _WEIGHTS_TOLERANCE * terms.weights.bytes_per_rank
    yield replace(weights, agrees=_within(weights, tolerance))
    yield _term("CUDA context", account.cuda_context, terms.cuda_context)
    yield _term("non-torch", account.non_torch, terms.non_torch)
    yield _term("peak activation", account.peak_activation, terms.peak_activation)
    yield _term("graphs reserved", account.graph_reserved, terms.cuda_graphs)


def _term(name: str, figure: Figure | None, item: MemoryItem) -> Compared:
    compared = Compared(
        name=name,
        unit=Unit.BYTES,
        logged=figure.size_bytes if figure else None,
        predicted=item.bytes_per_rank,
        basis=item.basis,
        agrees=None,
        uncertainty=item.uncertainty_bytes,
        places=figure.places if figure else (),
    )
    return replace(compared, agrees=_within(compared, item.uncertainty_bytes))


def _within(compared: Compared, tolerance: float) -> bool | None:
    if compared.logged is None or compared.predicted is None:
        return None
    return abs(compared.logged - compared.predicted) <= tolerance + _HALF_DIGIT_BYTES


def _cache_layout(log: StartupLog, subject: Subject) -> Iterator[Compared]:
    """Block size and padding; the engine prints neither where states need none."""
    layout = subject.engine.kv_cache
    block = first_reading(rank.block_tokens for rank in log.ranks)
    if block is not None or layout.recurrent_groups:
        yield _counted("block size", Unit.TOKENS, block, layout.block_tokens)
    padding = first_reading(rank.padding_percent for rank in log.ranks)
    percent = float(100 * layout.padding_fraction)
    if padding is not None or layout.padding_fraction:
        agrees = None if padding is None else f"{padding.value:.2f}" == f"{percent:.2f}"
        yield replace(_counted("padding", Unit.PERCENT, padding, percent), agrees=agrees)


def _graphs(log: StartupLog, subject: Subject) -> Iterator[Compared]:
    graphs = subject.engine.resolved.graphs
    groups = first_reading(rank.graph_groups for rank in log.ranks)
    if groups is not None or graphs.graphs:
        captured = None
        if groups is not None:
            counts = (group.graphs for group in groups.value if group.kind != ENCODER_GRAPHS)
            captured = groups.with_value(sum(counts))
        yield _counted("CUDA graphs", Unit.COUNT, captured, graphs.graphs)
    if (sizes := log.capture_sizes) is not None:
        compared = _counted(
            "capture sizes",
            Unit.COUNT,
            sizes.with_value(len(sizes.value)),
            len(graphs.capture_sizes),
        )
        yield replace(compared, agrees=sizes.value == graphs.capture_sizes)


def _counted(
    name: str, unit: Unit, reading: Reading[Any] | None, predicted: int | float
) -> Compared:
    return Compared(
        name=name,
        unit=unit,
        logged=None if reading is None else reading.value,
        predicted=predicted,
        basis=Basis.COMPUTED,
        agrees=None if reading is None else reading.value == predicted,
        places=() if reading is None else (reading.place,),
    )


def _blocks(blocks: LoggedBlocks, layout: KvCacheLayout, subject: Subject) -> Iterator[Compared]:
    """What the logged memory gives by the engine's arithmetic; it is printed rounded."""
    budget = blocks.kv_cache_bytes
    nominal = layout.num_blocks(budget.value) if budget else None
    count = _nearest(blocks.counts, nominal)
    length = (
        blocks.max_model_len.value
        if blocks.max_model_len
        else subject.engine.resolved.max_model_len
    )
    yield Compared(
        name="KV cache blocks",
        unit=Unit.COUNT,
        logged=count if blocks.counts else None,
        predicted=nominal,
        basis=Basis.COMPUTED,
        agrees=bool(blocks.counts) if budget else None,
        places=blocks.places,
        note=_span(blocks.counts),
    )
    if blocks.kv_cache_tokens is not None and count is not None:
        by_group = blocks.meaning is TokensMeaning.GROUP_BLOCKS
        tokens = layout.logged_tokens_until_0_20 if by_group else layout.logged_tokens
        yield replace(
            _counted("KV cache size", Unit.TOKENS, blocks.kv_cache_tokens, tokens(count, length)),
            agrees=blocks.meaning is not TokensMeaning.NEITHER,
        )
    if blocks.concurrency is not None and count is not None:
        compared = _counted(
            f"requests of {length}",
            Unit.REQUESTS,
            blocks.concurrency,
            count / layout.blocks_per_request(length),
        )
        yield replace(compared, agrees=bool(blocks.counts))


def _nearest(counts: tuple[int, ...], nominal: int | None) -> int | None:
    if not counts:
        return nominal
    return counts[0] if nominal is None else min(counts, key=lambda count: abs(count - nominal))


def _span(counts: tuple[int, ...]) -> str:
    return f"{counts[0]} to {counts[-1]} fit what is printed" if len(counts) > 1 else ""


def _refusal(log: StartupLog, blocks: LoggedBlocks | None, subject: Subject) -> Iterator[Compared]:
    """What the engine said when it refused to start: memory of one request, and the longest."""
    layout = subject.engine.kv_cache
    needed = first_reading(rank.needed_bytes for rank in log.ranks)
    tokens = first_reading(rank.refused_tokens for rank in log.ranks)
    if needed is not None and tokens is not None:
        predicted = layout.request_bytes_per_rank(tokens.value)
        compared = _counted(f"one request of {tokens.value}", Unit.BYTES, needed, predicted)
        yield replace(compared, agrees=format_gib(needed.value) == format_gib(predicted))
    longest = first_reading(rank.longest_request_tokens for rank in log.ranks)
    if longest is not None and blocks is not None and blocks.counts:
        possible = [
            layout.longest_request_tokens(count * layout.block_bytes_per_rank)
            for count in blocks.counts
        ]
        nearest = min(possible, key=lambda length: abs(length - longest.value))
        yield _counted("longest request", Unit.TOKENS, longest, nearest)
