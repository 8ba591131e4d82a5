"""How many requests an engine holds: its memory account cut into KV-cache blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from generator.architecture import ModelArchitecture
from generator.capacity.engine_memory import EngineMemory
from generator.capacity.memory_terms import engine_memory
from generator.derivation.derivation import Deployment
from generator.engine.plan import Engine
from generator.engine.resolution import kv_cache_options
from generator.errors import NothingFits, Problem
from generator.facts import EngineDefaults, Gpu, MeasuredProfile
from generator.kv_cache.kv_cache import KvCacheLayout, whole_model_concurrency
from generator.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCapacity:
    """Requests of one length. An endpoint is all data ranks of one worker.

    ``by_whole_model_division`` is one rank's KV bytes over the bytes of a request on a single
    whole GPU without speculative tokens: the simple column of the GB300 article.
    """

    tokens: int
    blocks_per_request: int
    per_rank: Fraction
    per_endpoint: Fraction
    by_whole_model_division: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an engine is evaluated in: the model, the GPU, the release's defaults, the workload.

    Without a workload requests are as long as max-model-len.
    """

    architecture: ModelArchitecture
    gpu: Gpu
    defaults: EngineDefaults
    workload: Workload | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapacity:
    """One engine's limits, memory and capacity. ``unforced`` is the engine without a forced block.

    Both capacities are given: at the workload's length, and at max-model-len, which is what the
    engine itself logs as maximum concurrency.
    """

    setting: Setting
    engine: Engine
    memory: EngineMemory
    num_blocks: int
    at_workload: RequestCapacity
    at_max_model_len: RequestCapacity
    unforced: RequestCapacity | None

    @property
    def pool_requests(self) -> Fraction:
        """Requests of the workload's length that all workers of the role hold."""
        return self.at_workload.per_rank * self.engine.pool.data_ranks


def evaluate_engine(
    engine: Engine,
    architecture: ModelArchitecture,
    gpu: Gpu,
    defaults: EngineDefaults,
    workload: Workload | None,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> EngineCapacity:
    """Capacity of one engine; without a workload requests are as long as max-model-len.

    ``profiles`` are measured start-ups to look in before the package's own. Raises NothingFits
    where weights leave no KV cache, or no single request fits in it.
    """
    setting = Setting(architecture=architecture, gpu=gpu, defaults=defaults, workload=workload)
    memory = engine_memory(architecture, gpu, engine.options, engine.resolved, defaults, profiles)
    return capacity_in_memory(engine, memory, setting)


def capacity_in_memory(engine: Engine, memory: EngineMemory, setting: Setting) -> EngineCapacity:
    """Capacity of an engine whose memory account is known already.

    Raises NothingFits where no single request of max-model-len fits in its KV cache.
    """
    architecture, workload = setting.architecture, setting.workload
    longest = engine.resolved.max_model_len
    budget = memory.kv_cache.bytes_per_rank
    tokens = workload.request_tokens if workload else longest
    flags = kv_cache_options(architecture, engine.options, setting.defaults)

    def requests(layout: KvCacheLayout, length: int) -> RequestCapacity:
        per_rank = layout.concurrency(budget, length)
        return RequestCapacity(
            tokens=length,
            blocks_per_request=layout.blocks_per_request(length),
            per_rank=per_rank,
            per_endpoint=per_rank * engine.pool.layout.data,
            by_whole_model_division=whole_model_concurrency(architecture, flags, budget, length),
        )

    capacity = EngineCapacity(
        setting=setting,
        engine=engine,
        memory=memory,
        num_blocks=engine.kv_cache.num_blocks(budget),
        at_workload=requests(engine.kv_cache, tokens),
        at_max_model_len=requests(engine.kv_cache, longest),
        unforced=requests(engine.unforced_kv_cache, tokens) if engine.unforced_kv_cache else None,
    )
    _require_one_request(capacity)
    return capacity


def capacity_of_engines(
    engines: Iterable[Engine],
    architecture: ModelArchitecture,
    gpu: Gpu,
    defaults: EngineDefaults,
    workload: Workload,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> dict[str, EngineCapacity]:
    """Every engine's capacity by name; raises NothingFits with each engine that does not fit."""
    capacities: dict[str, EngineCapacity] = {}
    problems: list[Problem] = []
    for engine in engines:
        try:
            capacities[engine.name] = evaluate_engine(
                engine, architecture, gpu, defaults, workload, profiles
            )
        except NothingFits as error:
            problems += [replace(problem, path=engine.name) for problem in error.problems]
    if problems:
        raise NothingFits(problems)
    return capacities


def deployment_notices(
    deployment: Deployment, capacities: Mapping[str, EngineCapacity]
) -> Iterator[str]:
    """What a reader of one recipe should know although srt-slurm will run it."""
    for problem in deployment.warnings:
        yield f"{problem.message} ({problem.hint})"
    for engine in (deployment.prefill, deployment.decode):
        if engine.options.unmodelled_flags:
            yield f"{engine.role}: {unmodelled_text(engine.options.unmodelled_flags)}"
        context = capacities[engine.name].setting.architecture.max_position_embeddings
        if engine.resolved.max_model_len > context:
            yield (
                f"{engine.role}: max-model-len {engine.resolved.max_model_len} is above the model's"
                f" context of {context}: vLLM refuses it unless the checkpoint scales its positions"
            )
    if not deployment.spec.concurrencies:
        return
    decode = capacities[deployment.decode.name]
    highest = max(deployment.spec.concurrencies)
    ranks = decode.engine.pool.data_ranks_text
    slots = decode.engine.pool.data_ranks * decode.engine.resolved.max_num_seqs
    if highest > slots:
        yield (
            f"concurrency {highest} exceeds the decode slots by {highest - slots}:"
            f" {ranks} x max-num-seqs {decode.engine.resolved.max_num_seqs} = {slots}"
        )
    held = decode.pool_requests
    if highest > held:
        yield (
            f"concurrency {highest} exceeds the decode KV capacity by"
            f" {float(highest - held):,.1f} requests: {ranks} x"
            f" {float(decode.at_workload.per_rank):,.2f} requests of {decode.at_workload.tokens}"
            f" tokens = {float(held):,.1f} (KV cache {decode.memory.kv_cache.basis})"
        )


def unmodelled_text(flags: tuple[str, ...]) -> str:
    """Why capacity figures are not the engine's where these flags are given."""
    return (
        f"{', '.join(flags)} {'changes' if len(flags) == 1 else 'change'} what an engine holds and"
        f" {'is' if len(flags) == 1 else 'are'} not modelled: capacity is computed without"
    )


def _require_one_request(capacity: EngineCapacity) -> None:
    """VLLM refuses to start where one request of max-model-len does not fit."""
    if capacity.at_max_model_len.per_rank >= 1:
        return
    kv_cache = capacity.engine.kv_cache
    budget = capacity.memory.kv_cache.bytes_per_rank
    longest = kv_cache.longest_request_tokens(budget)
    raise NothingFits(
        Problem(
            message=(
                f"one request of max-model-len {capacity.engine.resolved.max_model_len} needs"
                f" {capacity.at_max_model_len.blocks_per_request} KV-cache blocks, but the GPU has"
                f" {capacity.num_blocks}"
            ),
            hint=(
                f"lower max-model-len to at most {longest}, or use more GPUs"
                if longest
                else "use more GPUs, or give the KV cache more bytes"
            ),
        )
    )
