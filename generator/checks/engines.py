"""The engines of a job planned as vLLM would, where the model, the GPU and the flags are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from generator.architecture import ModelArchitecture
from generator.capacity.engine_memory import Basis, StartupTerms, requested_bytes
from generator.capacity.memory_terms import startup_terms
from generator.checks.job import Job
from generator.checks.workers import Workers
from generator.engine.options import EngineOptions, options_from_flags
from generator.engine.plan import Engine, plan_engine
from generator.engine.resolution import kv_cache_options, resolve_engine
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, engine_defaults, gpu
from generator.kv_cache.kv_cache import align_mode_problem, plan_kv_cache
from generator.parallel import WorkerPool

_PLANS_KEPT = 4096
_FLAGS_OF_WEIGHTS = ("cpu-offload-gb", "dtype", "hf-overrides", "quantization")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The memory of a rank, and the KV cache that it leaves: none at all where that is negative.

    ``given_bytes_per_rank`` is a KV cache that the flags demand whatever is left;
    ``changed_weights`` are flags that make the weights other than computed.
    """

    terms: StartupTerms
    gpu_memory_utilization: float
    given_bytes_per_rank: int | None
    changed_weights: tuple[str, ...]

    @property
    def usable_bytes_per_rank(self) -> int:
        """What the engine may use: its share of the GPU, or all where the cache is given."""
        if self.given_bytes_per_rank is not None:
            return self.terms.total.bytes_per_rank
        return requested_bytes(self.terms, self.gpu_memory_utilization)

    @property
    def kv_cache_bytes_per_rank(self) -> int:
        """The KV cache as estimated."""
        if self.given_bytes_per_rank is not None:
            return self.given_bytes_per_rank
        spent = sum(item.bytes_per_rank for item in self.terms.spent.values())
        return self.usable_bytes_per_rank - spent

    @property
    def uncertainty_bytes(self) -> int:
        """The +- of the KV cache."""
        if self.given_bytes_per_rank is not None:
            return 0
        return sum(item.uncertainty_bytes for item in self.terms.spent.values())

    @property
    def most_bytes_per_rank(self) -> int:
        """The largest KV cache that the estimates allow, never above what the weights leave."""
        most = self.kv_cache_bytes_per_rank + self.uncertainty_bytes
        if self.given_bytes_per_rank is not None:
            return most
        return min(most, self.usable_bytes_per_rank - self.terms.weights.bytes_per_rank)

    @property
    def basis(self) -> str:
        """How the KV cache is known: measured, computed or assumed."""
        if self.given_bytes_per_rank is not None:
            return str(Basis.MEASURED)
        bases = {item.basis for item in (self.terms.total, *self.terms.spent.values())}
        return str(Basis.ASSUMED if Basis.ASSUMED in bases else Basis.COMPUTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What decides everything about an engine; variants of a sweep often share it."""

    model: ModelArchitecture
    options: EngineOptions
    version: str | None
    gpu: str
    role: str
    workers: int


def engine_defaults_of(job: Job) -> EngineDefaults | None:
    """What the job's vLLM does where nothing is said; the newest known where none is pinned."""
    return None if job.gpu is None else _defaults(job.engine_version, job.gpu.name)


@lru_cache(256)
def _defaults(version: str | None, gpu_name: str) -> EngineDefaults | None:
    try:
        return engine_defaults("vllm", version, gpu(gpu_name))
    except InvalidInput:
        return None


def planned_engine(job: Job, workers: Workers) -> Engine | None:
    """The engine of a role; None where something is unknown or the engine would refuse it."""
    subject = _subject(job, workers)
    planned = None if subject is None else _plan(subject)
    return planned if isinstance(planned, Engine) else None


def refusals(job: Job, workers: Workers) -> tuple[Problem, ...]:
    """Why the engine would refuse the flags of a role, as far as that can be known."""
    subject = _subject(job, workers)
    planned = None if subject is None else _plan(subject)
    return planned if isinstance(planned, tuple) else ()


def has_memory_modelled(job: Job) -> bool:
    """Whether the memory of every role is known, or known to be refused."""
    return all(
        budget(job, each) is not None or (_subject(job, each) is not None and refusals(job, each))
        for each in job.roles
    )


def alignment_problem(job: Job, workers: Workers) -> Problem | None:
    """Why prefix caching cannot align a hybrid's states within the token budget of a role."""
    subject = _subject(job, workers)
    return None if subject is None else _alignment_problem(subject)


def budget(job: Job, workers: Workers) -> Budget | None:
    """The memory of a rank; None where it is unknown, or the engine would refuse the flags."""
    subject = _subject(job, workers)
    return None if subject is None else _budget(subject)


def kernel_blocks_of(job: Job, workers: Workers) -> tuple[str, str, bool] | None:
    """The attention backend, its blocks in words, and whether the block size written fits them."""
    defaults = engine_defaults_of(job)
    block = workers.number("block-size")
    backend = workers.flags.get("attention-backend")
    if defaults is None or block is None or not isinstance(backend, str):
        return None
    blocks = defaults.kernel_blocks.value.get(backend)
    if blocks is None:
        return None
    listed = ", ".join(map(str, blocks.sizes_tokens))
    words = f"multiples of {blocks.multiple_tokens}" if blocks.multiple_tokens else listed
    return backend, words, blocks.within(block) is not None


def _subject(job: Job, workers: Workers) -> _Subject | None:
    sizes = (workers.tensor, workers.pipeline, workers.data)
    if job.model is None or engine_defaults_of(job) is None or job.gpu is None:
        return None
    if workers.engine != "vllm" or None in sizes:
        return None
    options = _options(workers.flags, workers.speculative_tokens)
    if options is None:
        return None
    return _Subject(
        model=job.model,
        options=options,
        version=job.engine_version,
        gpu=job.gpu.name,
        role=workers.role,
        workers=workers.workers or 1,
    )


def _options(flags: Mapping[str, object], speculative_tokens: int) -> EngineOptions | None:
    try:
        options = options_from_flags(flags)
    except InvalidInput:
        return None
    return replace(options, num_speculative_tokens=speculative_tokens)


@lru_cache(_PLANS_KEPT)
def _plan(subject: _Subject) -> Engine | tuple[Problem, ...] | None:
    defaults = _defaults(subject.version, subject.gpu)
    pool = WorkerPool(workers=subject.workers, layout=subject.options.layout)
    if defaults is None:
        return None
    try:
        return plan_engine(
            subject.role, subject.role, pool, subject.options, subject.model, defaults
        )
    except InvalidInput as error:
        return error.problems


@lru_cache(_PLANS_KEPT)
def _alignment_problem(subject: _Subject) -> Problem | None:
    defaults = _defaults(subject.version, subject.gpu)
    if defaults is None:
        return None
    try:
        resolved = resolve_engine(subject.model, subject.options, defaults)
        flags = kv_cache_options(subject.model, subject.options, defaults)
        layout = plan_kv_cache(subject.model, flags)
    except InvalidInput:
        return None
    return align_mode_problem(layout, resolved.max_num_batched_tokens)


@lru_cache(_PLANS_KEPT)
def _budget(subject: _Subject) -> Budget | None:
    defaults, engine = _defaults(subject.version, subject.gpu), _plan(subject)
    if defaults is None or not isinstance(engine, Engine):
        return None
    terms = startup_terms(
        subject.model, gpu(subject.gpu), subject.options, engine.resolved, defaults
    )
    return Budget(
        terms=terms,
        gpu_memory_utilization=engine.resolved.gpu_memory_utilization,
        given_bytes_per_rank=subject.options.kv_cache_memory_bytes,
        changed_weights=tuple(
            flag for flag in _FLAGS_OF_WEIGHTS if flag in subject.options.unmodelled_flags
        ),
    )
