"""GRA: CUDA graphs and the token budget of a decode step."""

from __future__ import annotations

from collections.abc import Iterator

from generator.checks.engines import engine_defaults_of, refusals
from generator.checks.job import Job, flag_path
from generator.checks.rule import Hit, Severity, rule
from generator.checks.workers import Workers, whole
from generator.engine.cuda_graphs import CudaGraphMode, plan_cuda_graphs
from generator.errors import InvalidInput

_CAPTURE = "max-cudagraph-capture-size"
_CAPTURE_FLAGS = (_CAPTURE, "compilation-config.max-cudagraph-capture-size")
_SIZES_FLAGS = ("cudagraph-capture-sizes", "compilation-config.cudagraph-capture-sizes")
_MODE_FLAGS = ("compilation-config.cudagraph-mode", "cudagraph-mode")
_DEFAULT_CAPTURE = 512
FULL_MODES = ("FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


def _decoding(job: Job) -> Iterator[tuple[Workers, int]]:
    """The vLLM roles that generate, with the tokens of a full decode step."""
    for workers in job.decoding:
        if workers.engine == "vllm" and workers.max_num_seqs:
            yield workers, workers.max_num_seqs * workers.step_tokens


def graph_mode(workers: Workers) -> CudaGraphMode | None:
    """The CUDA graph mode as written, vLLM's default where it is not; None for an unknown one."""
    if workers.switch("enforce-eager"):
        return CudaGraphMode.NONE
    written = workers.flag(*_MODE_FLAGS)
    name = str(written[1]).upper() if written else CudaGraphMode.FULL_AND_PIECEWISE
    return CudaGraphMode(name) if name in list(CudaGraphMode) else None


def _capture(job: Job, workers: Workers, decode_tokens: int) -> tuple[int, str, str]:
    """The largest size captured, the flag that says so, and how it comes about."""
    written = workers.flag(*_CAPTURE_FLAGS)
    size = None if written is None else whole(written[1])
    if written is not None and size is not None:
        return size, written[0], f"{_CAPTURE} {size}"
    sizes = workers.flag(*_SIZES_FLAGS)
    if sizes is not None and isinstance(sizes[1], tuple):
        numbers = [each for each in map(whole, sizes[1]) if each is not None]
        if numbers:
            return max(numbers), sizes[0], f"the largest capture size {max(numbers)}"
    defaults = engine_defaults_of(job)
    limit = defaults.max_cudagraph_capture_size.value if defaults else _DEFAULT_CAPTURE
    size = min(2 * decode_tokens, limit)
    return size, workers.max_num_seqs_flag, f"the default capture size {size}"


def _short_captures(job: Job) -> Iterator[tuple[Workers, str, str]]:
    for workers, needed in _decoding(job):
        if graph_mode(workers) in (None, CudaGraphMode.NONE):
            continue
        size, flag, text = _capture(job, workers, needed)
        if size < needed:
            product = f"max-num-seqs {workers.max_num_seqs} x {workers.step_text} = {needed}"
            yield workers, flag, f"{text} is below {product}"


def _is_drafted_with_full_graphs(workers: Workers) -> bool:
    is_drafting = workers.speculative_tokens > 0 and workers.is_multi_token_prediction
    return is_drafting and graph_mode(workers) in FULL_MODES


@rule("GRA001", Severity.WARNING)
def decode_beyond_graphs(job: Job) -> Iterator[Hit]:
    """Full decode batches have no CUDA graph.

    ## What it does
    Compares the largest capture size of decode and aggregated roles with max-num-seqs x (1 + S),
    S being the speculative tokens. GRA002 is the same for multi-token prediction with full graphs.

    ## Why is this bad?
    Batches above the largest graph run eagerly, and the highest concurrencies are the slowest.

    ## Example
    `max-num-seqs: 1024` with `max-cudagraph-capture-size: 512`.
    """
    for workers, flag, message in _short_captures(job):
        if not _is_drafted_with_full_graphs(workers):
            hint = f"raise {_CAPTURE}, or lower max-num-seqs"
            yield job.flag_hit(workers, flag, message, hint)


@rule("GRA002", Severity.ERROR)
def drafted_decode_beyond_graphs(job: Job) -> Iterator[Hit]:
    """Full decode batches have no CUDA graph, with multi-token prediction and full graphs.

    ## What it does
    Compares the largest capture size with max-num-seqs x (1 + S) where MTP drafts S tokens and
    whole decode steps are captured (FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE).

    ## Why is this bad?
    A step of one sequence is 1 + S tokens: sized for max-num-seqs alone, the graphs reach only a
    part of the batch, which is where drafting was to pay.

    ## Example
    `max-num-seqs: 256`, two speculative tokens, `max-cudagraph-capture-size: 256`: 768 needed.
    """
    for workers, flag, message in _short_captures(job):
        if _is_drafted_with_full_graphs(workers):
            needed = (workers.max_num_seqs or 0) * workers.step_tokens
            hint = f"write {_CAPTURE}: {needed}, or lower max-num-seqs"
            yield job.flag_hit(workers, flag, message, hint)


@rule("GRA003", Severity.INFO)
def graphs_beyond_decode(job: Job) -> Iterator[Hit]:
    """CUDA graphs are captured that no decode batch can use.

    ## What it does
    Counts the capture sizes of decode and aggregated roles above max-num-seqs x (1 + S).

    ## Why is this bad?
    Capture takes time and memory; the estimate for it can exceed the use by far.

    ## Example
    `max-num-seqs: 256` with `max-cudagraph-capture-size: 512`: 16 sizes too many.
    """
    for workers, needed in _decoding(job):
        written = workers.flag(*_CAPTURE_FLAGS)
        size = None if written is None else whole(written[1])
        if written is None or size is None or size <= needed:
            continue
        unreachable = [each for each in _listed(size, workers) if each > needed]
        if unreachable and graph_mode(workers) is not CudaGraphMode.NONE:
            yield job.flag_hit(
                workers,
                written[0],
                f"{len(unreachable)} capture sizes are above max-num-seqs {workers.max_num_seqs} x"
                f" {workers.step_text} = {needed}",
                f"{needed} reaches every decode batch",
            )


@rule("GRA004", Severity.WARNING)
def decode_beyond_token_budget(job: Job) -> Iterator[Hit]:
    """The token budget is smaller than a full decode step.

    ## What it does
    Compares max-num-batched-tokens with max-num-seqs x (1 + S) in roles that generate.

    ## Why is this bad?
    vLLM does not refuse it. It cuts the CUDA graphs, and a full batch takes several steps.

    ## Example
    `max-num-seqs: 256`, two speculative tokens, `max-num-batched-tokens: 256`: 768 needed.
    """
    for workers, needed in _decoding(job):
        budget, flag = workers.token_budget, workers.token_budget_flag
        is_refused = flag in {each.path for each in refusals(job, workers)}  # MEM006
        if budget and budget < needed and not is_refused:
            yield job.flag_hit(
                workers,
                flag,
                f"max-num-batched-tokens {budget} is below max-num-seqs {workers.max_num_seqs} x"
                f" {workers.step_text} = {needed}",
                f"at least {needed}",
            )


@rule("GRA005", Severity.WARNING)
def odd_capture_size(job: Job) -> Iterator[Hit]:
    """The largest capture size is no size that vLLM captures.

    ## What it does
    Looks for capture sizes that are neither on vLLM's list (8, 16, ... 256, 272, ...) nor
    max-num-seqs x (1 + S).

    ## Why is this bad?
    It is a slip: the graphs end below it.

    ## Example
    `max-cudagraph-capture-size: 8196` for 8192.
    """
    for workers in job.roles:
        written = workers.flag(*_CAPTURE_FLAGS)
        size = None if written is None else whole(written[1])
        if workers.engine != "vllm" or written is None or not size:
            continue
        listed = _listed(size, workers, with_steps=False)
        decode_tokens = (workers.max_num_seqs or 0) * workers.step_tokens
        if (
            not listed
            or size in (listed[-1], decode_tokens)
            or size % workers.step_tokens == 0 < (workers.speculative_tokens)
        ):
            continue
        path = flag_path(workers.role, written[0])
        yield job.flag_hit(
            workers,
            written[0],
            f"{size} is not captured: the largest size up to it is {listed[-1]}",
            f"write {listed[-1]}",
            job.set_value(path, listed[-1]),
        )


def _listed(size: int, workers: Workers, *, with_steps: bool = True) -> tuple[int, ...]:
    """The sizes up to a largest one; empty where vLLM has none."""
    try:
        plan = plan_cuda_graphs(
            CudaGraphMode.FULL,
            max_num_seqs=size,
            max_num_batched_tokens=size,
            max_capture_size=size,
            default_max_size=size,
            num_speculative_tokens=workers.speculative_tokens if with_steps else 0,
        )
    except InvalidInput:
        return ()
    return plan.capture_sizes
