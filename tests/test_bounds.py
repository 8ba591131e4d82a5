"""Bounds against figures worked out by hand from the dimensions of Qwen3.8-2.4T on GB300.

92 layers of hidden size 8192: 23 of attention (64 heads of 256 over 4 KV heads) and 69 of GDN (128
value heads of 128 x 128, 16 key heads, convolution 4). Each has 512 experts of 3 x 2048 x 8192, 10
for a token, in NVFP4 (4.5 bits). Caches are FP8, states bfloat16.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.bounds.communication import communication_s
from generator.bounds.decode import StepBound, decode_step, touched_share
from generator.bounds.engine_work import EngineWork, Experts
from generator.bounds.planned_work import planned_work
from generator.bounds.prefill import PrefillBound, prefill_bound, transfer_s
from generator.engine.options import options_from_flags
from generator.facts import engine_defaults, gpu
from generator.facts.fact import DATA
from generator.hf_config import load_architecture
from generator.parallel import parse_layout
from generator.weights import decoder_pass, parameter_counts

MODEL = "Qwen--Qwen3.8-2.4T-A95B-NVFP4"
HBM, LINK, BF16, FP8 = 8e12, 0.9e12, 2.5e15, 5e15
LATENCY = 1e-6
EXPERT_BYTES = 3 * 2048 * 8192 * 4.5 / 8
KV_BYTES = 23 * 2 * 256  # of a token on a rank: one KV head from TP 4 on
STATE_BYTES = 69 * (128 * 128 * 128 + 3 * (2 * 16 + 128) * 128) * 2  # of a sequence, all ranks
CONTEXT = 8704


def work(layout: str, drafts: int = 0, model: str = MODEL) -> EngineWork:
    flags = {
        "kv-cache-dtype": "fp8",
        "mamba-ssm-cache-dtype": "bfloat16",
        "all2all-backend": "flashinfer_nvlink_one_sided",
        "speculative_config.num_speculative_tokens": drafts,
    }
    accelerator = gpu("gb300")
    return planned_work(
        load_architecture(DATA / "models" / model),
        accelerator,
        replace(options_from_flags(flags), layout=parse_layout(layout)),
        engine_defaults("vllm", "0.26.0", accelerator),
    )


def step(layout: str, sequences: float, context: float = CONTEXT, drafts: int = 0) -> StepBound:
    return decode_step(work(layout, drafts), np.array([sequences]), context, LATENCY)


def prefill(layout: str, prompt: int = 8192, batch: int = 16384) -> PrefillBound:
    return prefill_bound(work(layout), prompt, batch, LATENCY)


# --- decode -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "share"), [(0, 0), (1, 0.0195), (32, 0.4680), (64, 0.7170), (128, 0.9199)]
)
def test_experts_touched(tokens: int, share: float) -> None:
    """1 - (1 - 10/512)^tokens."""
    touched = touched_share(Experts(count=512, per_token=10), np.array([float(tokens)]))
    assert touched[0] == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize(
    ("layout", "data", "drafts"),
    [("TP8", 1, 0), ("TEP8", 1, 3), ("TP4DP4+EP", 4, 0), ("TP4DP4+EP", 4, 3), ("DEP16", 16, 1)],
)
def test_experts_read_are_those_that_the_expert_group_touches(
    layout: str, data: int, drafts: int
) -> None:
    """The tokens of all data-parallel ranks, 1 + S for each sequence."""
    engine = work(layout, drafts)
    ranks = engine.layout.tensor * engine.layout.data
    sequences = 4
    tokens = sequences * data * (1 + drafts)
    decoder = 92 * 512 * EXPERT_BYTES / ranks * (1 - (1 - 10 / 512) ** tokens)
    module = 512 * EXPERT_BYTES / ranks * (1 - (1 - 10 / 512) ** (sequences * data))
    weights = engine.decoder.dense.bytes_per_rank + engine.decoder.head.bytes_per_rank
    if engine.draft:
        weights += drafts * (engine.draft.dense.bytes_per_rank + engine.draft.head.bytes_per_rank)
    read = step(layout, sequences, context=0, drafts=drafts).memory_s[0] * HBM
    states = 2 * 69 * sequences * engine.recurrence.state_bytes
    # The checkpoint has a few scales beside the 4.5 bits.
    assert read - weights - states == pytest.approx(decoder + drafts * module, rel=1e-4)


def test_without_expert_parallel_every_expert_is_split_over_all_ranks() -> None:
    split, whole = work("TP4DP4").decoder.routed, work("TP4DP4+EP").decoder.routed
    assert split.bytes_per_rank == pytest.approx(whole.bytes_per_rank, rel=1e-3)
    assert split.bytes_per_rank == pytest.approx(92 * 512 * EXPERT_BYTES / 16, rel=1e-3)


@pytest.mark.parametrize(("layout", "share"), [("TP8", 1), ("TP8DCP2", 2), ("TP4DP4+EP", 1)])
def test_resident_tokens_are_read_once(layout: str, share: int) -> None:
    read = step(layout, 10, context=9216).memory_s - step(layout, 10, context=0).memory_s
    assert read[0] * HBM == pytest.approx(10 * 9216 * KV_BYTES / share)


@pytest.mark.parametrize("drafts", [1, 3])
def test_each_draft_reads_the_cache_of_its_layer(drafts: int) -> None:
    one, none = (step("TP8", 10, context, drafts).memory_s for context in (9216, 0))
    per_layer = KV_BYTES / 23
    assert (one - none)[0] * HBM == pytest.approx(10 * 9216 * (23 + drafts) * per_layer)


@pytest.mark.parametrize(("layout", "tensor"), [("TP8", 8), ("TP4DP4+EP", 4)])
def test_states_are_read_and_written(layout: str, tensor: int) -> None:
    assert work(layout).recurrence.state_bytes * 69 == STATE_BYTES / tensor
    dense_only = replace(work(layout), experts=None)
    one, two = (
        decode_step(dense_only, np.array([float(count)]), 0, LATENCY).memory_s[0] * HBM
        for count in (1, 2)
    )
    assert two - one == pytest.approx(2 * STATE_BYTES / tensor, rel=1e-6)


@pytest.mark.parametrize(("layout", "tensor"), [("TP8", 8), ("TP8DCP2", 8), ("TP4DP4+EP", 4)])
def test_attention_of_a_rank(layout: str, tensor: int) -> None:
    """Two operations for each score and value element; DCP shares out reading, not computing."""
    more, less = (step(layout, 10, context).compute_s for context in (9216, 0))
    assert (more - less)[0] * FP8 == pytest.approx(10 * 9216 * 23 * 4 * 64 * 256 / tensor)


def test_a_step_multiplies_the_active_parameters() -> None:
    """Without attention and states: bf16 ones at its peak, 10 of 512 experts at NVFP4's."""
    engine = work("TP8")
    wide = engine.decoder.dense.wide_elements + engine.decoder.head.wide_elements
    states = 69 * 4 * 128 * 128 * 128 / 8
    routed = 92 * 10 * 3 * 2048 * 8192 / 8
    shared = engine.decoder.dense.narrow_elements
    seconds = (2 * wide + states) / BF16 + 2 * (routed + shared) / 15e15
    assert step("TP8", 5, context=0).compute_s[0] == pytest.approx(5 * seconds)


@pytest.mark.parametrize("folder", sorted((DATA / "models").iterdir()), ids=lambda each: each.name)
def test_a_pass_multiplies_the_active_parameters_of_every_model(folder: Path) -> None:
    """All but the embedding, which is looked up."""
    architecture = load_architecture(folder)
    parts = decoder_pass(architecture, parse_layout("TP1"))
    dense, routed, head = (
        each.wide_elements + each.narrow_elements
        for each in (parts.dense, parts.routed, parts.head)
    )
    experts = architecture.experts
    share = experts.num_experts_per_tok / experts.num_experts if experts else 0
    looked_up = architecture.vocab_size * architecture.hidden_size
    active = parameter_counts(architecture).active - looked_up
    assert dense + share * routed + head == pytest.approx(active, rel=2e-4)


@given(st.floats(1, 512), st.floats(1, 512))
def test_a_step_grows_with_its_sequences_and_less_than_they_do(one: float, other: float) -> None:
    few, many = sorted((one, other))
    short, long = (step("TP4DP4+EP", count).total_s[0] for count in (few, many))
    assert short <= long <= short * many / few * (1 + 1e-9)


def test_a_pipeline_does_the_same_in_shares() -> None:
    """Half the sequences pass both stages while the others do."""
    assert step("TP8PP2+EP", 32).total_s[0] == pytest.approx(step("TEP8", 16).total_s[0])


# --- collectives ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "collectives"),
    [("TP1", 0), ("TP8", 184), ("TEP8", 184), ("TP4DP4+EP", 92 + 2 * 92), ("DEP16", 2 * 92)],
)
def test_collectives_of_a_pass(layout: str, collectives: int) -> None:
    """An all-reduce behind each mixer and each layer of experts, or dispatch and combine there."""
    engine, none = work(layout), np.array([0.0])
    assert communication_s(engine, none, LATENCY)[0] == pytest.approx(collectives * LATENCY)


@pytest.mark.parametrize(
    ("layout", "size"),
    [
        ("TP8", 184 * 8192 * 2 * 7 / 8),
        ("DEP16", 92 * 8192 * (4.5 / 8 + 2) * 15 * (1 - (15 / 16) ** 10)),
        (
            "TP4DP4+EP",
            92 * 8192 * (2 * 3 / 4 + (4.5 / 8 + 2) / 4 * 15 * (1 - (15 / 16) ** 10)),
        ),
        ("TP4DP4", 92 * 8192 * (2 * 3 / 4 + 3 * 4.5 / 8 + 4 * 2 * 15 / 16)),
    ],
)
def test_bytes_of_a_token(layout: str, size: float) -> None:
    """All-reduces but for a rank's own share; tokens to their experts, or to all ranks."""
    seconds = communication_s(work(layout), np.array([1.0]), 0.0)[0]
    assert seconds * LINK == pytest.approx(size)


def test_experts_that_work_in_a_latent_exchange_that() -> None:
    """Nemotron-3 Super: 40 layers of experts work in 1024 of its 4096; 48 others mix."""
    engine = work("DEP8", model="nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8")
    experts = load_architecture(
        DATA / "models/nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8"
    ).experts
    assert experts is not None
    seconds = communication_s(engine, np.array([1.0]), 0.0)[0]
    reached = 7 * (1 - (7 / 8) ** experts.num_experts_per_tok)
    assert seconds * LINK == pytest.approx(40 * 1024 * (1 + 2) * reached)


# --- prefill ----------------------------------------------------------------------------------


def test_a_prompt_is_causal() -> None:
    """Attention grows with the square: a token sees half of the prompt on average."""
    once, twice = (prefill("TP8", prompt, 65536).alone_s for prompt in (8192, 16384))
    tensor_flops = 23 * 4 * 64 * 256 / 8
    attention = tensor_flops * 8192**2 / 2 / FP8
    head = 2 * work("TP8").decoder.head.wide_elements / BF16
    latencies = 184 * LATENCY
    assert twice == pytest.approx(2 * once + 2 * attention - head - latencies)


def test_weights_are_read_for_each_chunk() -> None:
    """8192 tokens touch all experts, so that small chunks are bound by the weights of each."""
    engine = work("TP8")
    parts = (engine.decoder.dense, engine.decoder.routed, engine.decoder.head)
    weights = sum(part.bytes_per_rank for part in parts)
    bound = prefill("TP8", 8192, 512)
    assert bound.alone_steps == 16
    reduced = 16 * 184 * LATENCY + 8192 * 184 * 8192 * 2 * 7 / 8 / LINK
    assert bound.alone_s == pytest.approx(16 * weights / HBM + reduced, rel=1e-4)


@pytest.mark.parametrize(
    ("layout", "prompts", "steps"), [("TEP8", 2, 1), ("TP2DP4+EP", 8, 1), ("TP1PP8+EP", 2, 12 / 92)]
)
def test_a_full_batch(layout: str, prompts: int, steps: float) -> None:
    bound = prefill(layout)
    assert (bound.prompts_per_batch, bound.batch_steps) == (prompts, steps)
    assert bound.batch_s >= bound.alone_s * steps
    assert bound.prompts_per_s == pytest.approx(prompts / bound.batch_s)


def test_stages_that_leave_the_fullest_as_it_is_are_for_nothing() -> None:
    """64 layers: of 32 stages each has two, of 40 the fullest still has, of 64 each has one."""
    rates = {
        stages: prefill_bound(
            work(f"TP1PP{stages}", model="Qwen--Qwen3-32B-FP8"), 8192, 16384, LATENCY
        ).prompts_per_s
        for stages in (32, 40, 64)
    }
    assert rates[40] == pytest.approx(rates[32], rel=1e-3)
    assert rates[64] == pytest.approx(2 * rates[32], rel=2e-2)


@pytest.mark.parametrize(("batch", "passed"), [(8192, 1), (4096, 9 / 16), (1024, 15 / 64)])
def test_chunks_of_a_prompt_follow_each_other_through_a_pipeline(batch: int, passed: float) -> None:
    """Of c chunks and s stages a prompt takes (c + s - 1) / s chunks of the whole model's time."""
    whole, piped = work("TP1+EP"), work("TP1PP8+EP")
    one, eight = (prefill_bound(each, 8192, batch, LATENCY).alone_s for each in (whole, piped))
    assert eight / one == pytest.approx(passed)


@pytest.mark.parametrize(("layout", "tensor", "stages"), [("TP8", 8, 1), ("TP8PP2", 8, 2)])
def test_the_way_to_decode(layout: str, tensor: int, stages: int) -> None:
    sent = (8192 * KV_BYTES + STATE_BYTES / tensor) / stages
    assert transfer_s(work(layout), 8192) * LINK == pytest.approx(sent)
