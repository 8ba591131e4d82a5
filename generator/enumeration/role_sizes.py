"""What the engines of a role are sized for, by the sequences on each data-parallel rank."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from generator.capacity.engine_memory import requested_bytes
from generator.capacity.memory_terms import estimated_terms
from generator.derivation.role_flags import RoleLoad, role_flags
from generator.engine.options import EngineOptions, options_from_flags
from generator.engine.resolution import ResolvedEngine, resolve_engine
from generator.enumeration.subject import Subject
from generator.errors import InvalidInput
from generator.parallel import ParallelLayout, WorkerPool
from generator.spec.spec import Spec

MOST_SEQUENCES_PER_RANK = 4096
_EXACT_UP_TO = 16
_PER_OCTAVE = 16

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSizes:
    """The sizes of one role's engines, one for each of ``sequences`` on a rank, ascending.

    ``room_bytes`` is what weights and KV cache share on a GPU: the request less every assumed
    term. It has no measured profile in it. ``options`` have a layout of one GPU.
    """

    role: str
    sequences: Integers
    options: tuple[EngineOptions, ...]
    resolved: tuple[ResolvedEngine, ...]
    room_bytes: Integers
    requested_bytes: int

    @property
    def max_num_seqs(self) -> Integers:
        return np.array([each.max_num_seqs for each in self.resolved])

    @property
    def max_model_len(self) -> int:
        return self.resolved[0].max_model_len

    @property
    def captures_full_graphs(self) -> bool:
        return bool(self.resolved[0].graphs.full_sizes)

    def kv_cache_bytes(self, weights_bytes_per_rank: int) -> Integers:
        """What is left for the KV cache of one rank at each size; negative where nothing is."""
        given = self.options[0].kv_cache_memory_bytes
        if given is not None:
            return np.full_like(self.room_bytes, given)
        return self.room_bytes - weights_bytes_per_rank

    @property
    def batched_tokens(self) -> int:
        """The token budget of the smallest size; a prefill's does not depend on sequences."""
        return self.resolved[0].max_num_batched_tokens


def sequence_grid() -> tuple[int, ...]:
    """Every number up to 16, then 16 to each doubling: within a sixteenth of any limit."""
    grid = list(range(1, _EXACT_UP_TO + 1))
    while grid[-1] < MOST_SEQUENCES_PER_RANK:
        octave = grid[-1]
        grid += [octave + octave * step // _PER_OCTAVE for step in range(1, _PER_OCTAVE + 1)]
    return tuple(grid)


def role_sizes(
    subject: Subject,
    spec: Spec,
    role: str,
    speculative_tokens: int,
    *,
    sample: ParallelLayout,
    sequences: tuple[int, ...],
) -> RoleSizes:
    """The sizes by the spec's own rules, for one worker that has one data-parallel rank.

    ``sample`` is a layout whose engine defaults are those of all asked about. The sizes end where
    the engine would refuse the next; raises InvalidInput where it refuses the first.
    """
    sized: list[tuple[EngineOptions, ResolvedEngine]] = []
    for count in sequences:
        try:
            options = _options(spec, role, speculative_tokens, count)
            resolved = resolve_engine(
                subject.architecture, replace(options, layout=sample), subject.defaults
            )
        except InvalidInput:
            if not sized:
                raise
            break
        sized.append((options, resolved))
    rooms, requested = [], 0
    for options, resolved in sized:
        terms = estimated_terms(
            subject.architecture,
            subject.gpu,
            replace(options, layout=ParallelLayout()),
            resolved,
            subject.defaults,
        )
        requested = requested_bytes(terms, resolved.gpu_memory_utilization)
        spent = sum(item.bytes_per_rank for item in terms.spent.values())
        rooms.append(requested - spent + terms.weights.bytes_per_rank)
    return RoleSizes(
        role=role,
        sequences=np.array(sequences[: len(sized)]),
        options=tuple(options for options, _ in sized),
        resolved=tuple(resolved for _, resolved in sized),
        room_bytes=np.array(rooms),
        requested_bytes=requested,
    )


def _options(spec: Spec, role: str, speculative_tokens: int, sequences: int) -> EngineOptions:
    load = RoleLoad(
        pool=WorkerPool(workers=1, layout=ParallelLayout()),
        num_speculative_tokens=speculative_tokens,
        concurrency=sequences,
        own_concurrency=sequences,
        group="plan",
        sizing=spec.sizing,
        rules=getattr(spec.sizing, role),
    )
    return options_from_flags(role_flags(spec.engine, role, load, spec.workload).flags)
