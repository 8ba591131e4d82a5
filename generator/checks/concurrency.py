"""CON: concurrency, request lengths and decode slots."""

from __future__ import annotations

from collections.abc import Iterator

from generator.checks.job import Job
from generator.checks.rule import Hit, Severity, rule
from generator.checks.workers import Workers

_MANY_SLOTS = 8
_CONCURRENCIES = ("benchmark", "concurrencies")


def decode_slots(workers: Workers) -> tuple[int, str] | None:
    """Requests that all vLLM workers of a role schedule at once, and the product."""
    data = workers.data
    if workers.engine != "vllm" or not (workers.workers and data and workers.max_num_seqs):
        return None
    slots = workers.workers * data * workers.max_num_seqs
    return slots, f"{workers.workers} workers x DP{data} x {workers.max_num_seqs}"


@rule("CON001", Severity.WARNING)
def concurrency_beyond_slots(job: Job) -> Iterator[Hit]:
    """The benchmark sends more requests than decode has slots.

    ## What it does
    Compares the highest concurrency with workers x DP x max-num-seqs of the decode role.

    ## Why is this bad?
    The rest waits, while prefill holds its KV cache, and the latencies measured are the queue's.

    ## Example
    Concurrency 4096 on one DEP8 worker with `max-num-seqs: 256`: 2048 slots, 2048 short.
    """
    for workers in job.decoding:
        slots = decode_slots(workers)
        if slots is None or not job.concurrencies or job.concurrencies[-1] <= slots[0]:
            continue
        highest = job.concurrencies[-1]
        ranks = slots[0] // (workers.max_num_seqs or 1)
        yield job.flag_hit(
            workers,
            workers.max_num_seqs_flag,
            f"concurrency {highest} is {highest - slots[0]} above the slots:"
            f" {slots[1]} = {slots[0]}",
            f"{-(-highest // ranks)} sequences each would do, if memory has them",
        )


@rule("CON002", Severity.WARNING)
def slots_far_beyond_concurrency(job: Job) -> Iterator[Hit]:
    """Decode has over eight times the slots that the benchmark can fill.

    ## What it does
    Compares workers x DP x max-num-seqs of the decode role with the highest concurrency.

    ## Why is this bad?
    Slots and their CUDA graphs cost memory that the KV cache could have.

    ## Example
    Concurrency 64 on 4 workers with `max-num-seqs: 256`: 1024 slots, 16 times as many.
    """
    for workers in job.decoding:
        slots = decode_slots(workers)
        if slots is None or not job.concurrencies:
            continue
        highest = job.concurrencies[-1]
        if highest > 0 and slots[0] > _MANY_SLOTS * highest:
            times = slots[0] / highest
            shown = f"{times:.3g}" if times < 100 else f"{times:,.0f}"
            yield job.flag_hit(
                workers,
                workers.max_num_seqs_flag,
                f"{slots[1]} = {slots[0]} slots are {shown} times the highest"
                f" concurrency, {highest}",
                "fewer sequences leave more memory to the KV cache",
            )


@rule("CON003", Severity.WARNING)
def decode_limits_unsaid(job: Job) -> Iterator[Hit]:
    """A decode role leaves its limits to the engine.

    ## What it does
    Finds vLLM decode roles without max-num-batched-tokens or max-num-seqs.

    ## Why is this bad?
    The defaults depend on the release and the GPU, so that the same recipe measures other things
    later.

    ## Example
    A decode role with `max-num-seqs: 512` and no `max-num-batched-tokens`.
    """
    decode = job.role("decode")
    if decode is None or decode.engine != "vllm":
        return
    missing = [
        flag for flag in ("max-num-batched-tokens", "max-num-seqs") if decode.flag(flag) is None
    ]
    if missing:
        yield job.hit(
            ("roles", "decode", "args"),
            f"{' and '.join(missing)} left to the engine's default",
            "write what the role was sized for",
        )


@rule("CON004", Severity.ERROR)
def requests_beyond_model_len(job: Job) -> Iterator[Hit]:
    """A request of the benchmark is longer than the engine accepts.

    ## What it does
    Compares ISL + OSL with the longest request of each role; a prefill role has to take the
    prompt and one token. Where vLLM's prompts are wrapped in a chat template, some room has to be
    left for it.

    ## Why is this bad?
    The engine refuses the requests, and the point comes out empty or shorter than it says.

    ## Example
    `isl: 8192`, `osl: 1024` with `max-model-len: 9000`.
    """
    lengths = job.request_tokens
    for workers in job.roles if lengths else ():
        longest = workers.longest_request
        if longest is None or lengths is None:
            continue
        isl, osl = lengths
        is_prefill = workers.role == "prefill"
        needed = isl + 1 if is_prefill else isl + osl
        text = f"ISL + 1 = {needed}" if is_prefill else f"ISL + OSL = {isl} + {osl} = {needed}"
        flag = workers.longest_request_flag
        hint = f"at least {needed}, and room for the chat template"
        if longest < needed:
            yield job.flag_hit(workers, flag, f"{flag} {longest} is below {text}", hint)
        elif longest == needed and workers.engine == "vllm" and _has_chat_template(job):
            message = f"{flag} {longest} has no room for the chat template beside {text}"
            yield job.flag_hit(workers, flag, message, hint)


def _has_chat_template(job: Job) -> bool:
    """Whether sa-bench wraps its prompts, which it does unless it is told not to."""
    is_wrapped = job.form.get("benchmark", "use_chat_template") is not False
    return is_wrapped and job.form.get("benchmark", "type") == "sa-bench"


@rule("CON005", Severity.ERROR)
def prompt_beyond_token_budget(job: Job) -> Iterator[Hit]:
    """A prompt does not fit the token budget, and prefill may not be chunked.

    ## What it does
    Compares ISL with vLLM's max-num-batched-tokens or TensorRT-LLM's max_num_tokens of the roles
    that prefill. TensorRT-LLM chunks only where it is told to, vLLM unless it is told not to.

    ## Why is this bad?
    No step can take such a prompt: the requests fail.

    ## Example
    `isl: 8192` with `max_num_tokens: 2176` and no `enable_chunked_prefill: true`.
    """
    for workers, budget, isl in _short_budgets(job):
        if not _chunks_prefill(workers):
            yield job.flag_hit(
                workers,
                workers.token_budget_flag,
                f"{workers.token_budget_flag} {budget} is below ISL {isl}, without chunked prefill",
                f"at least {isl}, or turn chunked prefill on",
            )


@rule("CON006", Severity.INFO)
def prompt_in_chunks(job: Job) -> Iterator[Hit]:
    """A prompt takes several prefill steps.

    ## What it does
    As CON005, where prefill is chunked.

    ## Why is this bad?
    It need not be. The time to the first token grows by a step for each chunk.

    ## Example
    `isl: 8192` with `max-num-batched-tokens: 2048`: four steps.
    """
    for workers, budget, isl in _short_budgets(job):
        if _chunks_prefill(workers):
            yield job.flag_hit(
                workers,
                workers.token_budget_flag,
                f"a prompt of {isl} tokens takes {-(-isl // budget)} steps of {budget}",
            )


def _short_budgets(job: Job) -> Iterator[tuple[Workers, int, int]]:
    lengths = job.request_tokens
    for workers in job.prefilling:
        budget = workers.token_budget
        if lengths is not None and budget and budget < lengths[0]:
            yield workers, budget, lengths[0]


def _chunks_prefill(workers: Workers) -> bool:
    switch = workers.switch("enable-chunked-prefill")
    return workers.engine == "vllm" if switch is None else switch
