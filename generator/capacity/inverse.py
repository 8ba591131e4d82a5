"""Capacity asked the other way round: memory for requests, the longest request, most sequences."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from generator.capacity.capacity import EngineCapacity
from generator.capacity.engine_memory import Basis, MemoryItem, utilization_for
from generator.errors import InvalidInput, Problem
from generator.kv_cache.mean_length import LengthRange
from generator.units import ceil_div, format_gib


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQuestion:
    """How many requests one endpoint is to hold at once, and how long each is.

    None: a request in each of the max-num-seqs slots of every data rank; the workload's length.
    """

    requests: int | None = None
    request_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryForRequests:
    """What one GPU needs to hold requests, which the data ranks of an endpoint share evenly.

    ``total`` is everything on the GPU, the CUDA context included. ``gpu_memory_utilization`` is
    the least that gives the KV cache; None where no share does, or where the engine is told its KV
    cache in bytes, which then is ``kv_cache_bytes_per_rank``.
    """

    requests_per_endpoint: int
    requests_per_rank: int
    request_tokens: int
    kv_cache_bytes_per_rank: int
    total: MemoryItem
    fits: bool
    gpu_memory_utilization: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLimits:
    """How far an engine's flags can be raised in the memory it has.

    ``longest_max_model_len`` is what memory allows, ``model_context_tokens`` what the model does.
    ``highest_max_num_seqs`` is None where memory sets no limit: start-up checks far less than
    what requests of full length need, whose true number is ``full_length_requests_per_rank``.
    """

    longest_max_model_len: int
    model_context_tokens: int
    highest_max_num_seqs: int | None
    full_length_requests_per_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupFault:
    """More sequences than the KV cache has blocks for, where FULL graphs are captured.

    Only a KV cache that is given, or follows from measured terms, makes it certain.
    """

    max_num_seqs: int
    highest_max_num_seqs: int
    kv_cache: MemoryItem

    @property
    def is_certain(self) -> bool:
        return self.kv_cache.basis is not Basis.ASSUMED

    @property
    def message(self) -> str:
        known = f"KV cache {self.kv_cache.basis}"
        if not self.is_certain:
            known += f" +-{format_gib(self.kv_cache.uncertainty_bytes)}"
        verb = "does" if self.is_certain else "may"
        return (
            f"vLLM {verb} not start with max-num-seqs {self.max_num_seqs}, above the"
            f" {self.highest_max_num_seqs} blocks there are ({known})"
        )

    @property
    def hint(self) -> str:
        return f"set max-num-seqs to at most {self.highest_max_num_seqs}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanLengthCapacity:
    """Requests held in the long run where lengths are drawn evenly from ranges."""

    random_range_ratio: float
    prompt: LengthRange
    output: LengthRange
    blocks_per_request: Fraction
    per_rank: Fraction
    per_endpoint: Fraction


def memory_for_requests(capacity: EngineCapacity, question: RequestQuestion) -> MemoryForRequests:
    """The memory in which an endpoint of this engine holds the requests of the question.

    Raises InvalidInput for requests that are longer than the engine accepts.
    """
    engine, memory = capacity.engine, capacity.memory
    tokens = question.request_tokens or capacity.at_workload.tokens
    _check_length(tokens, capacity)
    data = engine.pool.layout.data
    asked = question.requests
    per_rank = engine.resolved.max_num_seqs if asked is None else ceil_div(asked, data)
    needed = engine.kv_cache.bytes_for_requests(per_rank, tokens)
    is_given = engine.options.kv_cache_memory_bytes is not None
    return MemoryForRequests(
        requests_per_endpoint=per_rank * data if asked is None else asked,
        requests_per_rank=per_rank,
        request_tokens=tokens,
        kv_cache_bytes_per_rank=needed,
        total=_total(capacity, needed),
        fits=needed <= memory.kv_cache.bytes_per_rank,
        gpu_memory_utilization=None if is_given else utilization_for(memory.terms, needed),
    )


def startup_limits(capacity: EngineCapacity) -> StartupLimits:
    """How far max-model-len and max-num-seqs can be raised in the engine's KV cache.

    The sequences are limited only where FULL graphs are captured (vLLM 0.26's start-up).
    """
    kv_cache, resolved = capacity.engine.kv_cache, capacity.engine.resolved
    budget = capacity.memory.kv_cache.bytes_per_rank
    captures = bool(resolved.graphs.full_sizes)
    return StartupLimits(
        longest_max_model_len=kv_cache.longest_request_tokens(budget),
        model_context_tokens=capacity.setting.architecture.max_position_embeddings,
        highest_max_num_seqs=(
            kv_cache.highest_max_num_seqs(budget, resolved.max_model_len) if captures else None
        ),
        full_length_requests_per_rank=int(capacity.at_max_model_len.per_rank),
    )


def startup_fault(capacity: EngineCapacity) -> StartupFault | None:
    """Why the engine does not start with its max-num-seqs; None where it does."""
    ceiling = startup_limits(capacity).highest_max_num_seqs
    slots = capacity.engine.resolved.max_num_seqs
    if ceiling is None or slots <= ceiling:
        return None
    return StartupFault(
        max_num_seqs=slots, highest_max_num_seqs=ceiling, kv_cache=capacity.memory.kv_cache
    )


def mean_length_capacity(capacity: EngineCapacity) -> MeanLengthCapacity | None:
    """Capacity at the workload's mean length beside its longest; None without a workload."""
    workload = capacity.setting.workload
    if workload is None:
        return None
    ratio = workload.random_range_ratio
    prompt = LengthRange.drawn(workload.isl, ratio)
    output = LengthRange.drawn(workload.osl, ratio)
    kv_cache = capacity.engine.kv_cache
    per_rank = kv_cache.concurrency_of_mean_length(
        capacity.memory.kv_cache.bytes_per_rank, prompt, output
    )
    return MeanLengthCapacity(
        random_range_ratio=ratio,
        prompt=prompt,
        output=output,
        blocks_per_request=kv_cache.mean_blocks_per_request(prompt, output),
        per_rank=per_rank,
        per_endpoint=per_rank * capacity.engine.pool.layout.data,
    )


def _check_length(tokens: int, capacity: EngineCapacity) -> None:
    longest = capacity.engine.resolved.max_model_len
    if tokens > longest:
        raise InvalidInput(
            Problem(
                message=f"requests of {tokens} tokens are longer than max-model-len {longest}",
                hint="raise max-model-len, or ask for shorter requests",
                source=capacity.engine.name,
            )
        )


def _total(capacity: EngineCapacity, kv_cache_bytes_per_rank: int) -> MemoryItem:
    """All that is on the GPU beside a KV cache of this size; as uncertain as its assumed terms."""
    terms = capacity.memory.terms
    items = [*terms.spent.values(), terms.cuda_context]
    is_assumed = Basis.ASSUMED in {item.basis for item in items}
    return MemoryItem(
        bytes_per_rank=kv_cache_bytes_per_rank + sum(item.bytes_per_rank for item in items),
        basis=Basis.ASSUMED if is_assumed else Basis.COMPUTED,
        uncertainty_bytes=sum(item.uncertainty_bytes for item in items),
    )
