"""The terms of an engine's memory account: measured where a profile matches, else how else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from generator.architecture import ModelArchitecture
from generator.capacity.engine_memory import (
    Basis,
    EngineMemory,
    MemoryItem,
    StartupTerms,
    UnusedProfile,
    account_engine_memory,
)
from generator.engine.options import EngineOptions
from generator.engine.resolution import ResolvedEngine, uses_sequence_parallel_moe
from generator.facts import (
    EngineDefaults,
    FactBasis,
    Gpu,
    MeasuredProfile,
    MemoryEstimate,
    MemoryEstimates,
    ProfileKey,
    find_profile,
    measured_profiles,
    memory_estimates,
)
from generator.weights import weight_footprint

# Settings outside a profile's key (an all-to-all backend, what a checkpoint leaves unquantised)
# show in the weights. The published start-ups are within 0.06 % of what is computed for them.
_SAME_WEIGHTS = 0.005


def engine_memory(
    architecture: ModelArchitecture,
    gpu: Gpu,
    options: EngineOptions,
    resolved: ResolvedEngine,
    defaults: EngineDefaults,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> EngineMemory:
    """The memory account of one GPU of an engine.

    Every term comes from the measured profile of exactly this start-up where there is one, in
    ``profiles`` or else in the package. Without it weights are computed and the rest is assumed,
    with the uncertainty the facts state; ``unused_profile`` then names one whose settings match
    but not its weights. Raises NothingFits where no KV cache is left.
    """
    key = profile_key(architecture, gpu, options, resolved, defaults)
    weights = computed_weights(architecture, options, defaults)
    candidates = (*profiles, *measured_profiles())
    profile = usable_profile(key, weights, candidates)
    terms = startup_terms(architecture, gpu, options, resolved, defaults, profiles)
    memory = account_engine_memory(
        terms, resolved.gpu_memory_utilization, options.kv_cache_memory_bytes
    )
    other = find_profile(key, candidates) if profile is None else None
    return memory if other is None else replace(memory, unused_profile=_unused(other, weights))


def startup_terms(
    architecture: ModelArchitecture,
    gpu: Gpu,
    options: EngineOptions,
    resolved: ResolvedEngine,
    defaults: EngineDefaults,
    profiles: tuple[MeasuredProfile, ...] = (),
) -> StartupTerms:
    """The terms of a start-up, measured where ``engine_memory`` would take them from a profile.

    They may add up to more than the GPU has.
    """
    key = profile_key(architecture, gpu, options, resolved, defaults)
    weights = computed_weights(architecture, options, defaults)
    profile = usable_profile(key, weights, (*profiles, *measured_profiles()))
    if profile is not None:
        return _measured_terms(profile)
    return estimated_terms(architecture, gpu, options, resolved, defaults)


def usable_profile(
    key: ProfileKey, weights: MemoryItem, profiles: Iterable[MeasuredProfile] | None = None
) -> MeasuredProfile | None:
    """The first measured start-up of these settings and, within 0.5 %, of these weights.

    In the package's own unless others are given; ``weights`` are what is computed for the engine.
    """
    candidates = measured_profiles() if profiles is None else profiles
    return find_profile(key, (each for each in candidates if _has_weights(each, weights)))


def _has_weights(profile: MeasuredProfile, weights: MemoryItem) -> bool:
    difference = abs(profile.weights_bytes_per_rank - weights.bytes_per_rank)
    return difference <= _SAME_WEIGHTS * weights.bytes_per_rank


def _unused(profile: MeasuredProfile, weights: MemoryItem) -> UnusedProfile:
    return UnusedProfile(
        name=profile.name,
        weights_bytes_per_rank=profile.weights_bytes_per_rank,
        computed_weights_bytes_per_rank=weights.bytes_per_rank,
    )


def _measured_terms(profile: MeasuredProfile) -> StartupTerms:
    def term(bytes_per_rank: int) -> MemoryItem:
        return MemoryItem(
            bytes_per_rank=bytes_per_rank, basis=Basis.MEASURED, source=profile.source
        )

    return StartupTerms(
        total=term(profile.engine_total_bytes),
        cuda_context=term(profile.cuda_context_bytes_per_rank),
        weights=term(profile.weights_bytes_per_rank),
        peak_activation=term(profile.peak_activation_bytes_per_rank),
        non_torch=term(profile.non_torch_bytes_per_rank),
        cuda_graphs=term(profile.graph_reserved_bytes_per_rank),
    )


def estimated_terms(
    architecture: ModelArchitecture,
    gpu: Gpu,
    options: EngineOptions,
    resolved: ResolvedEngine,
    defaults: EngineDefaults,
) -> StartupTerms:
    """The terms of a start-up that nobody measured: computed weights, the rest assumed."""
    estimates = memory_estimates(defaults.engine)
    return StartupTerms(
        total=_engine_total(gpu),
        cuda_context=_assumed(estimates.cuda_context),
        weights=computed_weights(architecture, options, defaults),
        peak_activation=_assumed(
            estimates.peak_activation(
                max_num_batched_tokens=resolved.max_num_batched_tokens,
                hidden_size=architecture.hidden_size,
            )
        ),
        non_torch=_assumed(estimates.non_torch),
        cuda_graphs=_assumed_graphs(estimates, resolved, defaults),
    )


def profile_key(
    architecture: ModelArchitecture,
    gpu: Gpu,
    options: EngineOptions,
    resolved: ResolvedEngine,
    defaults: EngineDefaults,
) -> ProfileKey:
    """The settings that a measured profile of this start-up is filed under."""
    layout = options.layout
    return ProfileKey(
        engine=defaults.engine,
        engine_version=defaults.version or defaults.resolved_version,
        model=architecture.signature,
        gpu=gpu.name,
        tensor=layout.tensor,
        data=layout.data,
        pipeline=layout.pipeline,
        expert_parallel=layout.expert_parallel,
        num_speculative_tokens=options.num_speculative_tokens,
        max_num_seqs=resolved.max_num_seqs,
        max_num_batched_tokens=resolved.max_num_batched_tokens,
        cudagraph_mode=resolved.cudagraph_mode,
        max_cudagraph_capture_size=max(resolved.graphs.capture_sizes, default=0),
    )


def _engine_total(gpu: Gpu) -> MemoryItem:
    total = gpu.engine_total
    is_assumed = total.basis is FactBasis.ASSUMED
    return MemoryItem(
        bytes_per_rank=total.value,
        basis=Basis.ASSUMED if is_assumed else Basis.MEASURED,
        source=total.source,
    )


def computed_weights(
    architecture: ModelArchitecture, options: EngineOptions, defaults: EngineDefaults
) -> MemoryItem:
    """The weights that these flags load on a rank, computed from the model's dimensions."""
    footprint = weight_footprint(
        architecture,
        options.layout,
        speculative_tokens=options.num_speculative_tokens,
        language_model_only=options.language_model_only,
        sequence_parallel_moe=uses_sequence_parallel_moe(options, defaults),
    )
    return MemoryItem(bytes_per_rank=footprint.total_bytes_per_rank, basis=Basis.COMPUTED)


def _assumed(estimate: MemoryEstimate) -> MemoryItem:
    return MemoryItem(
        bytes_per_rank=estimate.bytes_per_rank,
        basis=Basis.ASSUMED,
        uncertainty_bytes=estimate.uncertainty_bytes,
        source=estimate.source,
    )


def _assumed_graphs(
    estimates: MemoryEstimates, resolved: ResolvedEngine, defaults: EngineDefaults
) -> MemoryItem:
    """Graph memory; releases before 0.20 do not subtract their estimate from the KV cache."""
    if not defaults.cudagraph_estimate_subtracted.value:
        return MemoryItem(bytes_per_rank=0, basis=Basis.COMPUTED)
    return _assumed(estimates.cuda_graphs[resolved.cudagraph_mode])
