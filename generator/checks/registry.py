"""Every rule there is."""

from __future__ import annotations

from collections.abc import Mapping

from generator.checks import (
    concurrency,
    graphs,
    hygiene,
    memory,
    naming,
    pairing,
    schema,
    suppressions,
    topology,
    transfer,
    values,
)
from generator.checks.rule import JobRule, Rule

MEMORY = "MEM"
FAMILIES = {
    "TOP": "GPUs, nodes and parallel sizes",
    MEMORY: "KV-cache memory and blocks, of known models",
    "PDP": "prefill/decode pairing",
    "CON": "concurrency, lengths and slots",
    "GRA": "CUDA graphs and the token budget",
    "SCH": "srt-slurm's layout and the engine's flags",
    "NAM": "names, folders and siblings",
    "HYG": "images, paths and installation",
    "SUP": "suppressions",
}

JOB_RULES: tuple[JobRule, ...] = (
    topology.layout_beyond_gpus,
    topology.workers_beyond_nodes,
    topology.job_beyond_rack,
    topology.replica_across_nodes,
    topology.idle_gpus,
    topology.parallel_size_as_text,
    topology.experts_beyond_ranks,
    memory.request_beyond_memory,
    memory.sequences_beyond_blocks,
    memory.block_size_without_kernel,
    memory.block_size_below_alignment,
    memory.aligned_block_beyond_token_budget,
    memory.flags_refused,
    memory.concurrency_beyond_memory,
    memory.weights_beyond_memory,
    memory.no_memory_left,
    pairing.other_cache_dtype,
    pairing.other_state_dtype,
    pairing.other_prefix_caching,
    pairing.other_block_size,
    pairing.other_drafts_of_hybrid,
    pairing.other_drafts,
    transfer.hybrid_without_state_layout,
    transfer.hybrid_without_hybrid_manager,
    pairing.other_model_len,
    transfer.unsaid_load_failure_policy,
    transfer.connector_in_wrong_place,
    pairing.tensor_sizes_without_divisor,
    transfer.other_router_block_size,
    concurrency.concurrency_beyond_slots,
    concurrency.slots_far_beyond_concurrency,
    concurrency.decode_limits_unsaid,
    concurrency.requests_beyond_model_len,
    concurrency.prompt_beyond_token_budget,
    concurrency.prompt_in_chunks,
    graphs.decode_beyond_graphs,
    graphs.drafted_decode_beyond_graphs,
    graphs.graphs_beyond_decode,
    graphs.decode_beyond_token_budget,
    graphs.odd_capture_size,
    schema.refused_by_srt_slurm,
    schema.unquoted_text,
    schema.unknown_flag,
    schema.unfamiliar_flag,
    schema.flag_of_launcher,
    schema.given_twice,
    schema.deletion_not_applied,
    schema.grid_in_override,
    values.malformed_value,
    naming.name_taken_in_folder,
    naming.name_taken_elsewhere,
    naming.other_engine_than_folder,
    naming.other_gpu_than_folder,
    naming.variable_nearly_a_siblings,
    naming.flag_of_all_siblings_missing,
    hygiene.default_dynamo_over_image,
    hygiene.internal_path,
    hygiene.floating_image,
)
RULES: tuple[Rule, ...] = (*JOB_RULES, *suppressions.RULES)


def rules_by_id() -> Mapping[str, Rule]:
    """Every rule by its id."""
    return {rule.id: rule for rule in RULES}
