"""How many sequences a data-parallel rank can be sized for, by the arithmetic of ``capacity``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from generator.capacity.engine_memory import account_engine_memory
from generator.capacity.memory_terms import profile_key, startup_terms
from generator.enumeration.legal_engine import LegalEngine
from generator.enumeration.role_sizes import Integers
from generator.enumeration.subject import Subject
from generator.errors import NothingFits
from generator.facts import MeasuredProfile, measured_profiles
from generator.kv_cache.kv_cache import KvCacheLayout


def most_sequences(subject: Subject, engine: LegalEngine, kv_cache: KvCacheLayout) -> int:
    """The most sequences on a rank that an engine sized for them starts with and holds at once.

    ``kv_cache`` is the engine's own or one with a forced block. Of the sizes of ``engine.sizes``,
    so within a sixteenth of the true limit and never above it; 0 where none fits. Memory is
    measured where a start-up of exactly these settings was.
    """
    sizes = engine.sizes
    available = sizes.kv_cache_bytes(engine.weights_bytes_per_rank)
    for index, size_bytes in _measured(subject, engine):
        available[index] = size_bytes
    blocks = np.maximum(available, 0) // kv_cache.block_bytes_per_rank
    request = kv_cache.blocks_per_request(subject.workload.request_tokens)
    holds = sizes.sequences * request <= blocks
    holds &= blocks >= kv_cache.blocks_per_request(sizes.max_model_len)
    if sizes.captures_full_graphs and kv_cache.recurrent_groups:
        holds &= sizes.max_num_seqs <= blocks
    kept = np.flatnonzero(~holds)
    fitting: Integers = sizes.sequences[: kept[0]] if kept.size else sizes.sequences
    return int(fitting[-1]) if fitting.size else 0


def _measured(subject: Subject, engine: LegalEngine) -> Iterator[tuple[int, int]]:
    """The sizes whose start-up was measured, and the KV cache each leaves."""
    profiles = [*subject.profiles, *measured_profiles()]
    sequences = {each.key.max_num_seqs for each in profiles if _is_of(each, subject, engine)}
    if not sequences:
        return
    sizes = engine.sizes
    for index, resolved in enumerate(sizes.resolved):
        if resolved.max_num_seqs not in sequences:
            continue
        options = replace(sizes.options[index], layout=engine.layout)
        terms = startup_terms(
            subject.architecture,
            subject.gpu,
            options,
            resolved,
            subject.defaults,
            subject.profiles,
        )
        try:
            memory = account_engine_memory(
                terms, resolved.gpu_memory_utilization, options.kv_cache_memory_bytes
            )
        except NothingFits:
            yield index, 0
        else:
            yield index, memory.kv_cache.bytes_per_rank


def _is_of(profile: MeasuredProfile, subject: Subject, engine: LegalEngine) -> bool:
    """Whether a profile has everything of an engine but its size."""
    layout, key = engine.layout, profile.key
    if (key.tensor, key.data, key.pipeline) != (layout.tensor, layout.data, layout.pipeline):
        return False
    own = profile_key(
        subject.architecture,
        subject.gpu,
        engine.options,
        engine.sizes.resolved[0],
        subject.defaults,
    )
    size = ("max_num_seqs", "max_num_batched_tokens", "max_cudagraph_capture_size")
    return replace(key, **{name: getattr(own, name) for name in size}) == own
