"""MEM: KV-cache memory and blocks, for models that are known."""

from __future__ import annotations

from collections.abc import Iterator

from generator.checks.engines import (
    Budget,
    alignment_problem,
    budget,
    kernel_blocks_of,
    planned_engine,
    refusals,
)
from generator.checks.graphs import FULL_MODES
from generator.checks.job import Job
from generator.checks.rule import Hit, Severity, rule
from generator.kv_cache.block_size import BLOCK_UNIT_TOKENS
from generator.units import format_gib


@rule("MEM001", Severity.ERROR)
def request_beyond_memory(job: Job) -> Iterator[Hit]:
    """One request of max-model-len does not fit in the KV cache.

    ## What it does
    Computes the KV cache that a rank has left and what one request of the longest length takes
    of it. Memory that is assumed counts at its most favourable.

    ## Why is this bad?
    vLLM refuses to start, after it has loaded the weights.

    ## Example
    `max-model-len: 1048576` of Qwen3.8 on one GPU with 10 GiB left.
    """
    for workers in job.roles:
        engine = planned_engine(job, workers)
        left = budget(job, workers)
        if engine is None or left is None or left.changed_weights:
            continue
        longest = engine.resolved.max_model_len
        needed = engine.kv_cache.request_bytes_per_rank(longest)
        most = max(0, left.most_bytes_per_rank)
        if needed > most and not _beyond_weights(left):
            fitting = engine.kv_cache.longest_request_tokens(most)
            room = f"the KV cache has at most {format_gib(most)}" if most else "no KV cache is left"
            yield job.flag_hit(
                workers,
                "max-model-len",
                f"one request of {longest} tokens takes {format_gib(needed)} of a GPU, but {room}",
                f"at most {fitting} tokens fit"
                if fitting
                else "raise gpu-memory-utilization, or use more GPUs",
            )


@rule("MEM002", Severity.ERROR)
def sequences_beyond_blocks(job: Job) -> Iterator[Hit]:
    """There are more sequences than KV-cache blocks, with full CUDA graphs.

    ## What it does
    Compares max-num-seqs with the blocks of a rank, for models with recurrent states whose decode
    steps are captured whole. Memory that is assumed counts at its most favourable.

    ## Why is this bad?
    Each captured sequence needs a block for its state: vLLM refuses to start.

    ## Example
    `max-num-seqs: 4096` of Qwen3.8 on GPUs with 3000 blocks.
    """
    for workers in job.roles:
        engine = planned_engine(job, workers)
        left = budget(job, workers)
        if engine is None or left is None or not engine.kv_cache.recurrent_groups:
            continue
        if left.most_bytes_per_rank <= 0:
            continue  # MEM001 and MEM009 speak of it
        blocks = engine.kv_cache.num_blocks(left.most_bytes_per_rank)
        sequences = engine.resolved.max_num_seqs
        if sequences > blocks and engine.resolved.cudagraph_mode in FULL_MODES:
            yield job.flag_hit(
                workers,
                "max-num-seqs",
                f"max-num-seqs {sequences} is above the {blocks} KV-cache blocks of a GPU",
                f"at most {blocks}",
            )


@rule("MEM003", Severity.ERROR)
def block_size_without_kernel(job: Job) -> Iterator[Hit]:
    """No attention kernel works on blocks of this size.

    ## What it does
    Looks for block sizes of vLLM that are no multiple of 16, or that the attention backend named
    in the recipe cannot tile.

    ## Why is this bad?
    vLLM refuses to start.

    ## Example
    `block-size: 1000`, or `block-size: 48` with `attention-backend: FLASHINFER_MLA`.
    """
    for workers in job.roles:
        block = workers.number("block-size")
        if workers.engine != "vllm" or not block:
            continue
        kernels = kernel_blocks_of(job, workers)
        rounded = block + -block % BLOCK_UNIT_TOKENS
        if block % BLOCK_UNIT_TOKENS:
            message = f"block-size {block} is not a multiple of {BLOCK_UNIT_TOKENS}"
            yield job.flag_hit(workers, "block-size", message, f"the next is {rounded}")
        elif kernels is not None and not kernels[2]:
            message = f"{kernels[0]} works on blocks of {kernels[1]}, none of which tiles {block}"
            yield job.flag_hit(workers, "block-size", message)


@rule("MEM004", Severity.WARNING)
def block_size_below_alignment(job: Job) -> Iterator[Hit]:
    """A block size is raised by the engine, because a block has to hold a recurrent state.

    ## What it does
    Compares the block size written with the one that a hybrid model is aligned to.

    ## Why is this bad?
    The number in the recipe is not the number that runs; other parts may be sized by it.

    ## Example
    `block-size: 32` of Qwen3.8 at TP8, which becomes 1056.
    """
    for workers in job.roles:
        block = workers.number("block-size")
        engine = planned_engine(job, workers)
        if engine is None or not block or not engine.kv_cache.recurrent_groups:
            continue
        final = engine.kv_cache.block_tokens
        if final > block:
            yield job.flag_hit(
                workers,
                "block-size",
                f"block-size {block} will be raised to {final}",
                "leave it out, or write what it becomes",
            )


@rule("MEM005", Severity.ERROR)
def aligned_block_beyond_token_budget(job: Job) -> Iterator[Hit]:
    """Prefix caching aligns states to blocks that are larger than a step.

    ## What it does
    Compares the block size of a hybrid model in align mode with max-num-batched-tokens.

    ## Why is this bad?
    vLLM refuses it, after it has loaded the weights.

    ## Example
    `enable-prefix-caching: true` with `max-num-batched-tokens: 96` and blocks of 1088 tokens.
    """
    for workers in job.roles:
        problem = alignment_problem(job, workers)
        if problem is not None:
            yield job.flag_hit(workers, workers.token_budget_flag, problem.message, problem.hint)


@rule("MEM006", Severity.WARNING)
def flags_refused(job: Job) -> Iterator[Hit]:
    """The engine would refuse the flags of a role for this model.

    ## What it does
    Plans the engine as vLLM does, for models that are known, and reports what stops it: sizes
    that do not divide the heads, pipeline stages with draft layers, a token budget below
    max-num-seqs.

    ## Why is this bad?
    The job waits in the queue, starts, and dies.

    ## Example
    `tensor-parallel-size: 32` of a model with 16 key heads.
    """
    for workers in job.roles:
        said_elsewhere = {"block-size"}  # MEM003
        if workers in (job.pair or ()):
            said_elsewhere.add("disable-hybrid-kv-cache-manager")  # PDP008
        alignment = alignment_problem(job, workers)
        for problem in refusals(job, workers):
            if problem != alignment and problem.path not in said_elsewhere:
                flag = problem.path if problem.path in workers.flags else workers.tensor_flag
                yield job.flag_hit(workers, flag, problem.message, problem.hint)


@rule("MEM007", Severity.WARNING)
def concurrency_beyond_memory(job: Job) -> Iterator[Hit]:
    """The benchmark sends more requests than the decode KV cache holds.

    ## What it does
    Compares the highest concurrency with the requests of ISL + OSL tokens that all decode workers
    hold at once.

    ## Why is this bad?
    The rest waits, while prefill holds its KV cache: what is measured is the queue.

    ## Example
    Concurrency 3072 where the decode ranks hold 2867 requests: 205 queue.
    """
    lengths = job.request_tokens
    if lengths is None or not job.concurrencies:
        return
    highest = job.concurrencies[-1]
    for workers in job.decoding:
        engine = planned_engine(job, workers)
        left = budget(job, workers)
        if engine is None or left is None:
            continue
        if left.kv_cache_bytes_per_rank <= 0:
            continue
        per_rank = engine.kv_cache.concurrency(left.kv_cache_bytes_per_rank, sum(lengths))
        held = per_rank * engine.pool.data_ranks
        if highest > held:
            yield job.flag_hit(
                workers,
                "max-num-seqs",
                f"concurrency {highest} is {float(highest - held):,.0f} above what the KV cache"
                f" holds: {engine.pool.data_ranks_text} x {float(per_rank):,.1f} requests of"
                f" {sum(lengths)} tokens = {float(held):,.1f} (KV cache {left.basis})",
                "they queue while prefill holds their KV cache: use more decode ranks",
            )


@rule("MEM008", Severity.ERROR)
def weights_beyond_memory(job: Job) -> Iterator[Hit]:
    """The weights alone do not fit in the memory that the engine may use.

    ## What it does
    Compares the weights of a rank, computed from the model's dimensions, with
    gpu-memory-utilization x the memory of the GPU; with a KV cache that is given in bytes, both
    with the memory of the GPU. Nothing is assumed.

    ## Why is this bad?
    Loading runs out of memory, or vLLM finds no room for the KV cache and refuses to start.

    ## Example
    `gpu-memory-utilization: 0.3` on a GPU of 277 GiB for 177 GiB of weights.
    """
    for workers in job.roles:
        left = budget(job, workers)
        if left is not None and _beyond_weights(left) and not left.changed_weights:
            weights = format_gib(left.terms.weights.bytes_per_rank)
            usable = format_gib(left.usable_bytes_per_rank)
            total = format_gib(left.terms.total.bytes_per_rank)
            if left.given_bytes_per_rank is None:
                flag, hint = "gpu-memory-utilization", "raise it, or use more GPUs for a replica"
                message = (
                    f"weights of {weights} a GPU are above"
                    f" {left.gpu_memory_utilization:g} x {total} = {usable}"
                )
            else:
                flag, hint = "kv-cache-memory-bytes", "lower it, or use more GPUs for a replica"
                cache = format_gib(left.given_bytes_per_rank)
                message = f"weights of {weights} + KV cache of {cache} are above a GPU's {total}"
            yield job.flag_hit(workers, flag, message, hint)


@rule("MEM009", Severity.WARNING)
def no_memory_left(job: Job) -> Iterator[Hit]:
    """The estimates leave no memory to the KV cache.

    ## What it does
    Adds up weights, non-torch memory, activations and CUDA graphs of a rank and compares them
    with what the engine may use. All but the weights is assumed where nobody measured this
    start-up, so the message says how uncertain it is.

    ## Why is this bad?
    vLLM refuses to start if it finds no room for the KV cache.

    ## Example
    `max-num-seqs: 3500` with `max-num-batched-tokens: 80016` on a GPU with 30 GiB beside weights.
    """
    for workers in job.roles:
        left = budget(job, workers)
        if left is None or left.kv_cache_bytes_per_rank > 0:
            continue
        if _beyond_weights(left) and not left.changed_weights:
            continue
        terms = " + ".join(
            f"{name} {format_gib(item.bytes_per_rank)}" for name, item in left.terms.spent.items()
        )
        uncertainty = format_gib(left.uncertainty_bytes)
        known = f"{left.basis}, +- {uncertainty}" if left.uncertainty_bytes else "as measured"
        changed = left.changed_weights
        without = f", without what {', '.join(changed)} changes" if changed else ""
        yield job.flag_hit(
            workers,
            "gpu-memory-utilization",
            f"{terms} leave nothing of {left.gpu_memory_utilization:g} x"
            f" {format_gib(left.terms.total.bytes_per_rank)} ="
            f" {format_gib(left.usable_bytes_per_rank)} ({known}{without})",
            "raise gpu-memory-utilization, lower max-num-batched-tokens, or use more GPUs",
        )


def _beyond_weights(left: Budget) -> bool:
    """Whether the weights, and a KV cache that is given, are more than there is."""
    needed = left.terms.weights.bytes_per_rank + (left.given_bytes_per_rank or 0)
    return needed > left.usable_bytes_per_rank
