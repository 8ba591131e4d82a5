"""What a choice costs: an engine against the same engine with one flag changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from generator.capacity.capacity import EngineCapacity, capacity_in_memory
from generator.capacity.engine_memory import Basis, EngineMemory, MemoryItem, account_engine_memory
from generator.capacity.memory_terms import computed_weights
from generator.engine.options import EngineOptions
from generator.engine.plan import Engine, plan_engine
from generator.engine.resolution import kv_cache_options
from generator.errors import InvalidInput, NothingFits, PdrecipeError, Problem
from generator.kv_cache.kv_cache import plan_kv_cache
from generator.parallel import ParallelLayout

_COMPARED_MTP = (0, 1, 2, 3)
_WIDE_STATES = ("float32", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """An engine's options with one of them changed, and what that change is called."""

    name: str
    options: EngineOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedVariant:
    """A variant's capacity beside the engine's own; ``refusal`` says why there is none.

    ``change`` is what becomes of the requests on one GPU, a share: 0 for the engine as given.
    """

    name: str
    options: EngineOptions
    is_given: bool = False
    capacity: EngineCapacity | None = None
    change: Fraction | None = None
    refusal: str = ""


def compare_variants(capacity: EngineCapacity) -> tuple[ComparedVariant, ...]:
    """The engine as given, then with each choice taken the other way.

    Where the engine's KV cache follows from its memory account, each variant has that account with
    the weights recomputed. A KV cache that was given is kept.
    """
    return (
        ComparedVariant(
            name="as given",
            options=capacity.engine.options,
            is_given=True,
            capacity=capacity,
            change=Fraction(0),
        ),
        *(_compare(capacity, variant) for variant in variants(capacity)),
    )


def variants(capacity: EngineCapacity) -> Iterator[Variant]:
    """The choices that change how many requests an engine holds, each taken the other way."""
    options = capacity.engine.options
    has_drafts = bool(capacity.setting.architecture.draft_layers)
    for tokens in _COMPARED_MTP if has_drafts else _COMPARED_MTP[:2]:
        if tokens != options.num_speculative_tokens:
            yield Variant(
                name=f"MTP {tokens}", options=replace(options, num_speculative_tokens=tokens)
            )
    yield _other_prefix_caching(capacity)
    if capacity.setting.architecture.is_hybrid:
        yield _other_state_dtype(capacity)
    for layout in _neighbouring_layouts(options.layout):
        gpus = "" if layout.ranks == options.layout.ranks else f", {layout.ranks} GPUs"
        yield Variant(name=f"{layout}{gpus}", options=replace(options, layout=layout))
    yield from _other_block_size(capacity)


def _other_prefix_caching(capacity: EngineCapacity) -> Variant:
    setting, options = capacity.setting, capacity.engine.options
    flags = kv_cache_options(setting.architecture, options, setting.defaults)
    is_on = not flags.prefix_caching
    return Variant(
        name=f"prefix caching {'on' if is_on else 'off'}",
        options=replace(options, enable_prefix_caching=is_on),
    )


def _other_state_dtype(capacity: EngineCapacity) -> Variant:
    is_wide = capacity.engine.kv_cache.mamba_ssm_cache_dtype in _WIDE_STATES
    dtype = "bfloat16" if is_wide else "float32"
    return Variant(
        name=f"{dtype} ssm",
        options=replace(capacity.engine.options, mamba_ssm_cache_dtype=dtype),
    )


def _neighbouring_layouts(layout: ParallelLayout) -> Iterator[ParallelLayout]:
    """TP doubled and halved, on the same GPUs where data parallelism makes up for it."""
    data, rest = divmod(layout.data, 2)
    yield replace(layout, tensor=2 * layout.tensor, data=layout.data if rest else data)
    if layout.tensor % 2 == 0:
        yield replace(layout, tensor=layout.tensor // 2, data=2 * layout.data)


def _other_block_size(capacity: EngineCapacity) -> Iterator[Variant]:
    """The engine's own block where one is forced; else the next larger that a partner may force.

    A prefill partner with a smaller TP has larger blocks, and KV transfer needs one size.
    """
    options, own = capacity.engine.options, capacity.engine.kv_cache.block_tokens
    if options.block_size is not None:
        yield Variant(name="own block size", options=replace(options, block_size=None))
        return
    architecture, defaults = capacity.setting.architecture, capacity.setting.defaults
    flags = kv_cache_options(architecture, options, defaults)
    tensor = flags.tensor // 2
    while tensor:
        partner = replace(flags, tensor=tensor, decode_context=1)
        try:
            block = plan_kv_cache(architecture, partner).block_tokens
        except InvalidInput:
            return
        if block > own:
            name = f"block {block}, as TP{tensor}"
            yield Variant(name=name, options=replace(options, block_size=block))
            return
        tensor //= 2


def _compare(given: EngineCapacity, variant: Variant) -> ComparedVariant:
    try:
        capacity = _evaluate(given, variant.options)
    except (InvalidInput, NothingFits) as error:
        reason = _reason(error, given.engine.role)
        return ComparedVariant(name=variant.name, options=variant.options, refusal=reason)
    return ComparedVariant(
        name=variant.name,
        options=variant.options,
        capacity=capacity,
        change=requests_per_gpu(capacity) / requests_per_gpu(given) - 1,
    )


def _evaluate(given: EngineCapacity, options: EngineOptions) -> EngineCapacity:
    setting, engine = given.setting, given.engine
    if options.num_speculative_tokens and not setting.architecture.draft_layers:
        name = setting.architecture.name
        raise InvalidInput(Problem(message=f"model {name} has no MTP layers"))
    changed = plan_engine(
        engine.name,
        engine.role,
        replace(engine.pool, layout=options.layout),
        options,
        setting.architecture,
        setting.defaults,
    )
    return capacity_in_memory(changed, _memory(given, changed), setting)


def _memory(given: EngineCapacity, changed: Engine) -> EngineMemory:
    """The engine's own account with the weights that the change adds or saves.

    The other terms stay as they are: what is assumed of them would drown what the change does.
    """
    setting, terms, options = given.setting, given.memory.terms, given.engine.options
    before, after = (
        computed_weights(setting.architecture, each, setting.defaults).bytes_per_rank
        for each in (options, changed.options)
    )
    weights = terms.weights
    if after != before:
        weights = MemoryItem(
            bytes_per_rank=weights.bytes_per_rank + after - before, basis=Basis.COMPUTED
        )
    return account_engine_memory(
        replace(terms, weights=weights),
        changed.resolved.gpu_memory_utilization,
        changed.options.kv_cache_memory_bytes,
    )


def requests_per_gpu(capacity: EngineCapacity) -> Fraction:
    """Requests of the workload's length over the GPUs of one endpoint."""
    return capacity.at_workload.per_endpoint / capacity.engine.pool.layout.ranks


def _reason(error: PdrecipeError, role: str) -> str:
    """The messages without the role that recipes put first: the table has one engine."""
    return "; ".join(problem.message.removeprefix(f"{role}: ") for problem in error.problems)
