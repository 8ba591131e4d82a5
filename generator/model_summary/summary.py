"""What a model costs on a rank: weights by component, cache by token and request, by TP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from generator.architecture import ModelArchitecture
from generator.engine.options import EngineOptions
from generator.engine.resolution import kv_cache_options, uses_sequence_parallel_moe
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults
from generator.kv_cache.kv_cache import KvCacheLayout, plan_kv_cache
from generator.parallel import ParallelLayout
from generator.weights import ParameterCounts, WeightFootprint, parameter_counts, weight_footprint

_TENSOR_SIZES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCost:
    """Weights and cache of one rank under one layout."""

    layout: ParallelLayout
    weights: WeightFootprint
    kv_cache: KvCacheLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLayout:
    """A layout the engine would not start with, and every reason why."""

    layout: ParallelLayout
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """A model with its cost at one layout and at others that differ only in tensor parallelism.

    ``engine`` is the engine release whose rules hold, such as ``vllm 0.26.0``.
    """

    engine: str
    architecture: ModelArchitecture
    parameters: ParameterCounts
    options: EngineOptions
    prefix_caching: bool
    request_tokens: int
    cost: LayoutCost
    by_tensor: tuple[LayoutCost | RefusedLayout, ...]


def summarize_model(
    architecture: ModelArchitecture,
    options: EngineOptions,
    defaults: EngineDefaults,
    request_tokens: int,
) -> ModelSummary:
    """The summary under these flags, requests so many tokens long.

    Raises InvalidInput where the engine refuses the layout, or a request of that length.
    """
    if request_tokens > architecture.max_position_embeddings:
        context = architecture.max_position_embeddings
        raise InvalidInput(
            Problem(
                message=f"requests of {request_tokens} tokens exceed the model's context {context}",
                hint="ask for shorter requests",
                source=architecture.name,
            )
        )
    if options.num_speculative_tokens and not architecture.draft_layers:
        raise InvalidInput(
            Problem(message="the checkpoint has no MTP layers", source=architecture.name)
        )
    return ModelSummary(
        engine=f"{defaults.engine} {defaults.resolved_version}",
        architecture=architecture,
        parameters=parameter_counts(architecture),
        options=options,
        prefix_caching=kv_cache_options(architecture, options, defaults).prefix_caching,
        request_tokens=request_tokens,
        cost=_cost(architecture, options, defaults),
        by_tensor=tuple(_by_tensor(architecture, options, defaults)),
    )


def _cost(
    architecture: ModelArchitecture, options: EngineOptions, defaults: EngineDefaults
) -> LayoutCost:
    # First, for it names every reason why a TP does not divide the model.
    kv_cache = plan_kv_cache(architecture, kv_cache_options(architecture, options, defaults))
    return LayoutCost(
        layout=options.layout,
        weights=weight_footprint(
            architecture,
            options.layout,
            speculative_tokens=options.num_speculative_tokens,
            language_model_only=options.language_model_only,
            sequence_parallel_moe=uses_sequence_parallel_moe(options, defaults),
        ),
        kv_cache=kv_cache,
    )


def _by_tensor(
    architecture: ModelArchitecture, options: EngineOptions, defaults: EngineDefaults
) -> Iterator[LayoutCost | RefusedLayout]:
    """The layout with each TP, the other sizes as they are."""
    for tensor in sorted({*_TENSOR_SIZES, options.layout.tensor}):
        layout = replace(options.layout, tensor=tensor)
        try:
            yield _cost(architecture, replace(options, layout=layout), defaults)
        except InvalidInput as error:
            reason = "; ".join(problem.message for problem in error.problems)
            yield RefusedLayout(layout=layout, reason=reason)
