"""What an engine makes of its flags: every default filled in, by release and GPU."""

from __future__ import annotations

from dataclasses import dataclass

from generator.architecture import ModelArchitecture, MultiHeadLatentAttention
from generator.engine.cuda_graphs import CudaGraphMode, CudaGraphPlan, plan_cuda_graphs
from generator.engine.options import EngineOptions
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults
from generator.kv_cache.block_size import RecurrentCacheMode
from generator.kv_cache.options import KvCacheOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedEngine:
    """An engine's limits with nothing left to default, and the names of those that were."""

    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    cudagraph_mode: CudaGraphMode
    graphs: CudaGraphPlan
    defaulted: tuple[str, ...]


def kv_cache_options(
    architecture: ModelArchitecture, options: EngineOptions, defaults: EngineDefaults
) -> KvCacheOptions:
    """The flags of an engine that shape its KV cache, prefix caching and kernel block resolved."""
    layout = options.layout
    prefix_caching = options.enable_prefix_caching
    if prefix_caching is None:
        default = (
            defaults.prefix_caching_of_hybrids
            if architecture.is_hybrid
            else defaults.prefix_caching_of_attention_only
        )
        prefix_caching = default.value
    return KvCacheOptions(
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        decode_context=layout.decode_context,
        kv_cache_dtype=options.kv_cache_dtype,
        mamba_ssm_cache_dtype=options.mamba_ssm_cache_dtype,
        mamba_cache_dtype=options.mamba_cache_dtype,
        mamba_cache_mode=_cache_mode(options.mamba_cache_mode),
        mamba_block_size=options.mamba_block_size,
        num_speculative_tokens=options.num_speculative_tokens,
        prefix_caching=prefix_caching,
        block_size=options.block_size,
        kernel_block_tokens=_kernel_block_tokens(architecture, options, defaults),
        is_hybrid_manager_disabled=options.hybrid_kv_cache_manager_disabled,
    )


def _cache_mode(name: str) -> RecurrentCacheMode:
    try:
        return RecurrentCacheMode(name.lower())
    except ValueError:
        raise InvalidInput(
            Problem(
                message=f"mamba-cache-mode '{name}' is not known",
                hint=f"one of {', '.join(RecurrentCacheMode)}",
                path="mamba-cache-mode",
            )
        ) from None


def _kernel_block_tokens(
    architecture: ModelArchitecture, options: EngineOptions, defaults: EngineDefaults
) -> int:
    """The smallest block the attention kernels run on; MLA hybrids have a minimum of their own."""
    is_mla = isinstance(architecture.attention, MultiHeadLatentAttention)
    default = defaults.mla_attention_backend if is_mla else defaults.attention_backend
    backend = options.attention_backend or default.value
    blocks = defaults.kernel_blocks.value.get(backend)
    if blocks is None:
        known = ", ".join(sorted(defaults.kernel_blocks.value))
        raise InvalidInput(
            Problem(
                message=f"the kernel blocks of attention backend '{backend}' are not known",
                hint=f"known: {known}",
                path="attention-backend",
            )
        )
    least = defaults.mla_hybrid_kernel_block.value if is_mla and architecture.is_hybrid else 1
    return max(least, blocks.smallest_tokens)


def resolve_engine(
    architecture: ModelArchitecture, options: EngineOptions, defaults: EngineDefaults
) -> ResolvedEngine:
    """The limits an engine runs with; raises InvalidInput where it would refuse them."""
    limits: dict[str, int | float] = {
        "max_model_len": architecture.max_position_embeddings,
        "max_num_seqs": defaults.max_num_seqs.value,
        "max_num_batched_tokens": _default_batched_tokens(options, defaults),
        "gpu_memory_utilization": defaults.gpu_memory_utilization.value,
    }
    defaulted = tuple(name for name in limits if getattr(options, name) is None)
    for name in limits:
        if name not in defaulted:
            limits[name] = getattr(options, name)
    if "max_num_seqs" in defaulted:
        # The engine lowers a default, never a flag, to the token budget.
        limits["max_num_seqs"] = min(limits["max_num_seqs"], limits["max_num_batched_tokens"])
    mode = _graph_mode(options.cudagraph_mode or defaults.cudagraph_mode.value)
    max_num_seqs = int(limits["max_num_seqs"])
    max_num_batched_tokens = int(limits["max_num_batched_tokens"])
    if max_num_batched_tokens < max_num_seqs:
        raise InvalidInput(
            Problem(
                message=(
                    f"max-num-batched-tokens {max_num_batched_tokens} is below max-num-seqs"
                    f" {max_num_seqs}, which the engine refuses"
                ),
                hint="raise the one or lower the other",
                path="max-num-batched-tokens",
            )
        )
    return ResolvedEngine(
        max_model_len=int(limits["max_model_len"]),
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        gpu_memory_utilization=limits["gpu_memory_utilization"],
        cudagraph_mode=mode,
        graphs=plan_cuda_graphs(
            mode,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            max_capture_size=options.max_cudagraph_capture_size,
            num_speculative_tokens=options.num_speculative_tokens,
            default_max_size=defaults.max_cudagraph_capture_size.value,
        ),
        defaulted=defaulted,
    )


def all2all_backend(options: EngineOptions, defaults: EngineDefaults) -> str:
    """The all-to-all backend of expert parallelism, as given or by default."""
    return options.all2all_backend or defaults.all2all_backend.value


def _default_batched_tokens(options: EngineOptions, defaults: EngineDefaults) -> int:
    """The default token budget; batched MoE backends under EP and DP have one of their own."""
    is_batched = (
        options.layout.expert_parallel
        and options.layout.data > 1
        and all2all_backend(options, defaults) in defaults.batched_moe_backends.value
    )
    default = (
        defaults.max_num_batched_tokens_of_batched_moe
        if is_batched
        else defaults.max_num_batched_tokens
    )
    return default.value


def uses_sequence_parallel_moe(options: EngineOptions, defaults: EngineDefaults) -> bool:
    """Whether MoE layers share out tokens over tensor ranks, which replicates the shared expert.

    With expert parallelism, tensor and data parallelism together, and a backend that does it
    (vLLM source config/parallel.py).
    """
    layout = options.layout
    return (
        layout.expert_parallel
        and layout.tensor > 1
        and layout.data > 1
        and all2all_backend(options, defaults) in defaults.sequence_parallel_moe_backends.value
    )


def _graph_mode(name: str) -> CudaGraphMode:
    try:
        return CudaGraphMode(name.upper())
    except ValueError:
        known = ", ".join(CudaGraphMode)
        raise InvalidInput(
            Problem(
                message=f"cudagraph_mode '{name}' is not known",
                hint=f"one of {known}",
                path="compilation-config",
            )
        ) from None
