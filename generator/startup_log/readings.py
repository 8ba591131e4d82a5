"""What a start-up log says, each value with the line it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")

# Graphs of a vision encoder; the others are of the language model.
ENCODER_GRAPHS = "ENCODER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T]):
    """One value as the log prints it. ``source`` is the file as the user named it."""

    value: T
    source: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.source}:{self.line}"

    def with_value(self, value: U) -> Reading[U]:
        """What follows from the value, at the same place."""
        return Reading(value=value, source=self.source, line=self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as the engine tags its lines; ranks it does not name are None.

    ``tag`` is empty where lines have none, as in logs of a single process.
    """

    tag: str = ""
    data: int | None = None
    pipeline: int | None = None
    tensor: int | None = None
    expert: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class GraphGroup:
    """CUDA graphs of one kind, such as FULL: how many, and the largest in tokens."""

    kind: str
    graphs: int
    largest_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReadings:
    """What one process printed of its start-up; None is what it did not print.

    Sizes are bytes of one GPU, printed in GiB with two decimals: each stands for every value
    within 0.005 GiB. ``peak_with_graphs`` is the newer budget line's "peak activation", which
    includes the graph estimate; ``peak_activation`` the older line's, which does not. ``consumed``
    is weights and non-torch memory together. ``is_estimate_subtracted`` tells whether the engine
    says that it takes the graph estimate off the KV cache. ``kv_cache_as_given`` is a KV cache
    that a flag fixed. ``graph_used`` may be negative.
    """

    process: Process = field(default_factory=Process)
    weights_bytes: Reading[int] | None = None
    block_tokens: Reading[int] | None = None
    padding_percent: Reading[float] | None = None
    graph_groups: Reading[tuple[GraphGroup, ...]] | None = None
    graph_estimate_bytes: Reading[int] | None = None
    is_estimate_subtracted: Reading[bool] | None = None
    kv_cache_bytes: Reading[int] | None = None
    kv_cache_as_given_bytes: Reading[int] | None = None
    kv_cache_reduced_bytes: Reading[int] | None = None
    kv_cache_tokens: Reading[int] | None = None
    max_model_len: Reading[int] | None = None
    concurrency: Reading[float] | None = None
    num_blocks: Reading[int] | None = None
    graph_used_bytes: Reading[int] | None = None
    free_bytes: Reading[int] | None = None
    total_bytes: Reading[int] | None = None
    gpu_memory_utilization: Reading[float] | None = None
    requested_bytes: Reading[int] | None = None
    consumed_bytes: Reading[int] | None = None
    non_torch_bytes: Reading[int] | None = None
    peak_activation_bytes: Reading[int] | None = None
    peak_with_graphs_bytes: Reading[int] | None = None
    suggested_kv_cache_bytes: Reading[int] | None = None
    needed_bytes: Reading[int] | None = None
    refused_tokens: Reading[int] | None = None
    longest_request_tokens: Reading[int] | None = None

    @property
    def effective_kv_cache_bytes(self) -> Reading[int] | None:
        """The memory that becomes blocks, whichever line says it last."""
        return self.kv_cache_reduced_bytes or self.kv_cache_as_given_bytes or self.kv_cache_bytes

    @property
    def has_budget(self) -> bool:
        """Whether the budget line is there; it is written last, after graphs are captured."""
        return (self.consumed_bytes or self.non_torch_bytes) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLog:
    """One log. ``settings`` are engine flags the log shows, in vLLM's spelling with underscores.

    ``start_ups`` counts the engine's starts in the file; the readings are those of the last.
    """

    source: str
    lines: int
    start_ups: int
    engine_version: Reading[str] | None
    model: Reading[str] | None
    capture_sizes: Reading[tuple[int, ...]] | None
    settings: Mapping[str, Reading[Any]]
    has_arguments: bool
    ranks: tuple[RankReadings, ...]

    def readings(self, name: str) -> tuple[tuple[Process, Reading[Any]], ...]:
        """What every process that printed a value said; ``name`` is a field of RankReadings."""
        found = ((rank.process, getattr(rank, name)) for rank in self.ranks)
        return tuple((process, reading) for process, reading in found if reading is not None)
