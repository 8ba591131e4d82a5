"""TOP: GPUs, nodes and parallel sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from generator.checks.job import Job, flag_path
from generator.checks.rule import Hit, Severity, rule
from generator.checks.workers import Workers, whole
from generator.wording import shown

_ENGINES_WITH_SIZES = ("vllm", "sglang", "trtllm")


@rule("TOP001", Severity.ERROR)
def layout_beyond_gpus(job: Job) -> Iterator[Hit]:
    """The parallel sizes of a worker do not multiply to its GPUs.

    ## What it does
    Compares TP x PP x DP of each role with the GPUs of one worker, in every variant of a sweep.
    Where the recipe leaves the GPUs to srt-slurm and the engine has no data-parallel size, fewer
    ranks than GPUs start, and only more are reported.

    ## Why is this bad?
    srt-slurm compares them inside the job only: it waits in the queue, starts, and dies.

    ## Example
    `tensor-parallel-size: 4` and `data-parallel-size: 4` with `gpus_per_decode: 8`.
    """
    for workers in job.roles:
        ranks, gpus = workers.ranks, workers.gpus
        if workers.engine not in _ENGINES_WITH_SIZES or not (ranks and gpus):
            continue
        if ranks == gpus or (ranks < gpus and _may_be_fewer(workers)):
            continue
        hit = job.flag_hit(
            workers,
            workers.tensor_flag,
            f"{workers.ranks_text} = {ranks} GPUs, but a worker has {gpus}",
            "change the sizes, or the GPUs of a worker",
        )
        yield replace(hit, gravity=int(ranks > gpus))


def _may_be_fewer(workers: Workers) -> bool:
    """Whether a worker starts on fewer ranks than it has GPUs."""
    is_compared = workers.is_gpus_written or workers.is_data_parallel
    return workers.engine != "vllm" or not is_compared


@rule("TOP002", Severity.ERROR)
def workers_beyond_nodes(job: Job) -> Iterator[Hit]:
    """The workers of a role need more GPUs than its nodes have.

    ## What it does
    Compares workers x GPUs of a worker with nodes x GPUs of a node. A colocated decode role
    shares the prefill nodes, so both are added up.

    ## Why is this bad?
    srt-slurm cannot place the workers.

    ## Example
    Three workers of 8 GPUs on `decode_nodes: 4` of 4 GPUs: 24 of 16.
    """
    per_node = job.gpus_per_node
    for workers in job.roles:
        nodes = workers.nodes
        if not nodes or workers.workers is None or workers.gpus is None:
            continue
        needed, terms = _gpus_on_nodes(job, workers)
        if needed > nodes * per_node:
            yield job.hit(
                ("roles", workers.role, "nodes"),
                f"{terms} = {needed} GPUs on {nodes} x {per_node} = {nodes * per_node}",
                f"use {-(-needed // per_node)} nodes, or fewer workers",
            )


def _gpus_on_nodes(job: Job, workers: Workers) -> tuple[int, str]:
    """GPUs that the workers on a role's nodes take, colocated decode along, and the sum."""
    colocated = [each for each in job.roles if each.is_colocated]
    sharing = [workers, *(colocated if workers.role == "prefill" else ())]
    known = [(each.workers, each.gpus) for each in sharing if each.workers and each.gpus]
    return sum(one * other for one, other in known), " + ".join(
        f"{one} x {other}" for one, other in known
    )


@rule("TOP003", Severity.ERROR)
def job_beyond_rack(job: Job) -> Iterator[Hit]:
    """The workers of a job need more GPUs than one rack has.

    ## What it does
    For GPUs whose NVLink domain spans nodes (GB200, GB300: 18 nodes of 4), compares the GPUs of
    all workers with those of one domain.

    ## Why is this bad?
    The job asks for one segment of nodes, and no rack can give it.

    ## Example
    Ten prefill workers of 4 GPUs and one decode worker of 48 on GB300: 88 of 72.
    """
    if job.gpu is None or job.gpu.nodes_per_nvlink_domain < 2:
        return
    parts = [
        (each.role, each.workers * each.gpus)
        for each in job.roles
        if each.workers is not None and each.gpus is not None
    ]
    needed, limit = sum(gpus for _, gpus in parts), job.gpu.gpus_per_nvlink_domain
    if needed > limit:
        terms = " + ".join(f"{gpus} {role}" for role, gpus in parts)
        yield job.hit(
            ("resources", "gpu_type"),
            f"{terms} = {needed} GPUs, but a rack of {job.gpu.name} has {limit}",
            "use fewer or smaller workers",
        )


@rule("TOP004", Severity.WARNING)
def replica_across_nodes(job: Job) -> Iterator[Hit]:
    """A replica neither divides a node nor fills whole nodes.

    ## What it does
    Compares TP x PP with the GPUs of a node.

    ## Why is this bad?
    srt-slurm places replicas on whole shares of nodes; others are refused inside the job.

    ## Example
    `tensor-parallel-size: 6` on nodes of 4 GPUs.
    """
    per_node = job.gpus_per_node
    for workers in job.roles:
        tensor, pipeline = workers.tensor, workers.pipeline
        if workers.engine not in _ENGINES_WITH_SIZES or not (tensor and pipeline):
            continue
        replica = tensor * pipeline
        if per_node % replica and replica % per_node:
            yield job.flag_hit(
                workers,
                workers.tensor_flag,
                f"TP{tensor} x PP{pipeline} = {replica} GPUs neither divides a node of {per_node}"
                " nor fills whole nodes",
                f"choose TP x PP that divides {per_node} or is a multiple of it",
            )


@rule("TOP005", Severity.INFO)
def idle_gpus(job: Job) -> Iterator[Hit]:
    """Allocated GPUs have no work.

    ## What it does
    Compares the GPUs of a role's nodes with those of its workers, and those of a worker with its
    ranks.

    ## Why is this bad?
    It need not be: a small worker alone on a node, or decode colocated with prefill, may be meant.
    But throughput per GPU counts all that is allocated.

    ## Example
    One worker of 2 GPUs on `prefill_nodes: 1` of 4 GPUs.
    """
    for workers in job.roles:
        yield from _idle_on_nodes(job, workers)
        ranks, gpus = workers.ranks, workers.gpus
        if not (ranks and gpus) or workers.engine not in _ENGINES_WITH_SIZES:
            continue
        if ranks < gpus and _may_be_fewer(workers):
            yield job.flag_hit(
                workers,
                workers.tensor_flag,
                f"{gpus - ranks} of {gpus} GPUs of a worker are idle:"
                f" {workers.ranks_text} = {ranks}",
            )


def _idle_on_nodes(job: Job, workers: Workers) -> Iterator[Hit]:
    if workers.is_colocated:
        message = "decode shares the prefill nodes: its GPUs are not free for more prefill"
        yield job.hit(("roles", workers.role, "nodes"), message)
        return
    if not (workers.nodes and workers.workers and workers.gpus):
        return
    used, terms = _gpus_on_nodes(job, workers)
    there = workers.nodes * job.gpus_per_node
    if used < there:
        yield job.hit(
            ("roles", workers.role, "nodes"),
            f"{there - used} of {there} GPUs are idle: {terms} = {used}"
            f" on {workers.nodes} x {job.gpus_per_node}",
        )


@rule("TOP006", Severity.ERROR)
def parallel_size_as_text(job: Job) -> Iterator[Hit]:
    """A parallel size reaches the launcher as text.

    ## What it does
    Finds vLLM roles with a data-parallel size of which any parallel size is a string: written in
    quotes, or filled in by a sweep, which makes every value a string.

    ## Why is this bad?
    srt-slurm multiplies the sizes to place the ranks, and the product of strings is none: the job
    dies at launch. Without a data-parallel size nothing is multiplied, and strings do no harm.

    ## Example
    `data-parallel-size: "{dp}"` with `sweep: {dp: [4, 8]}`.
    """
    for workers in job.roles:
        if workers.engine != "vllm" or not workers.is_data_parallel:
            continue
        for flag in ("data-parallel-size", "tensor-parallel-size", "pipeline-parallel-size"):
            value = workers.flags.get(flag)
            if not isinstance(value, str):
                continue
            number = whole(value)
            path = flag_path(workers.role, flag)
            from_sweep = bool(job.form.variant.parameters)
            yield job.flag_hit(
                workers,
                flag,
                f"{flag} is the text {shown(value)}, which srt-slurm cannot multiply",
                "sweeps make strings: write one recipe for each size"
                if from_sweep
                else "no quotes",
                None if number is None else job.set_value(path, number),
            )


@rule("TOP007", Severity.ERROR)
def experts_beyond_ranks(job: Job) -> Iterator[Hit]:
    """The expert-parallel size does not divide the tensor-parallel one.

    ## What it does
    For SGLang and TensorRT-LLM, compares the two sizes.

    ## Why is this bad?
    Both engines share out the ranks of TP among the experts and refuse any other size.

    ## Example
    `tensor_parallel_size: 2` with `moe_expert_parallel_size: 4`.
    """
    for workers in job.roles:
        tensor, expert = workers.tensor, workers.expert
        if workers.engine not in ("sglang", "trtllm") or not (tensor and expert):
            continue
        if tensor % expert:
            yield job.flag_hit(
                workers,
                workers.expert_flag,
                f"EP{expert} does not divide TP{tensor}",
                f"choose an expert-parallel size that divides {tensor}",
            )
