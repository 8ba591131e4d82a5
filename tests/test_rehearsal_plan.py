"""What a rehearsal plans: the topology by the project's own arithmetic, and the rule of scale."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import InvalidInput
from generator.rehearsal.commands import MODEL_FOLDER, aiperf_argv, frontend_argv, mock_workers
from generator.rehearsal.model_folder import model_files
from generator.rehearsal.plan import CapacityShare, plan_rehearsal
from generator.rehearsal.scale import (
    Scale,
    auto_scale,
    scaled_block_tokens,
    scaled_concurrency,
    scaled_lengths,
    scaled_requests_per_rank,
    token_divisor,
)
from generator.rehearsal.topology import Topology, topology_of
from generator.units import ceil_div
from tests.rehearsals import CC2560, POOL, RECIPES, TOPOLOGY, form_of, topology_in

# --- the article's deployment -----------------------------------------------------------------


@pytest.mark.parametrize("layout", ["v1", "v2"])
def test_the_article_s_cc2560(layout: str) -> None:
    topology = topology_in(RECIPES / layout / CC2560.name)
    prefill, decode = topology.prefill, topology.decoding
    assert prefill is not None
    assert (prefill.workers, prefill.data_ranks, decode.workers, decode.data_ranks) == (4, 4, 1, 4)
    assert decode.requests_per_rank == Fraction(5735, 8)  # blocks by blocks of a request
    assert (decode.requests, decode.slots) == (4 * 716, 4 * 656)
    assert (prefill.request_tokens, decode.request_tokens) == (8193, 9216)
    assert (topology.isl, topology.osl, topology.concurrencies) == (8192, 1024, (2560,))


def test_cc2560_at_its_load_and_half_as_much_again() -> None:
    plan = plan_rehearsal(topology_in(CC2560), (2560, CapacityShare(percent=150)))
    assert plan.scale == Scale(sequences=64, tokens=32)
    assert (plan.lengths.isl, plan.lengths.osl) == (256, 32)
    assert [(load.concurrency, load.in_flight) for load in plan.loads] == [(2560, 39), (4296, 66)]
    assert [load.is_within_capacity for load in plan.loads] == [True, False]
    decode, prefill = plan.decoding, plan.prefill
    assert prefill is not None
    assert (decode.requests_per_rank, decode.requests) == (716 // 64, 44)
    assert (decode.block_tokens, decode.num_gpu_blocks) == (66, 11 * 5)
    assert (decode.max_num_batched_tokens, prefill.max_num_batched_tokens) == (11, 512)
    assert (prefill.requests_per_rank, prefill.num_gpu_blocks) == (4, 4 * 4)
    assert {decode.max_num_seqs, prefill.max_num_seqs} == {66}


def test_one_load_is_scaled_as_all_of_the_recipe_s() -> None:
    topology = replace(topology_in(CC2560), concurrencies=(64, 2560))
    assert plan_rehearsal(topology, (64,)).scale == plan_rehearsal(topology).scale


@pytest.mark.parametrize(
    "path", sorted((RECIPES / "v2").rglob("*.yaml")), ids=lambda each: each.stem
)
def test_every_recipe_with_lengths_can_be_planned(path: Path) -> None:
    form = form_of(path)
    if form.get("benchmark", "isl") is None:
        with pytest.raises(InvalidInput, match="isl and osl"):
            topology_in(path)
        return
    plan = plan_rehearsal(topology_in(path))
    assert all(load.in_flight <= 72 for load in plan.loads)
    assert plan.lengths.request_tokens <= 384
    for engines in plan.engines:
        assert engines.max_num_seqs >= plan.loads[-1].in_flight


def test_loads_that_nobody_named() -> None:
    silent = replace(TOPOLOGY, concurrencies=())
    with pytest.raises(InvalidInput, match="no concurrency"):
        plan_rehearsal(silent)
    plan = plan_rehearsal(silent, (CapacityShare(percent=50), CapacityShare(percent=150)))
    assert [load.concurrency for load in plan.loads] == [10, 30]


def test_what_one_machine_does_not_carry() -> None:
    with pytest.raises(InvalidInput, match="4296 requests in flight"):
        plan_rehearsal(topology_in(CC2560), (4296,), sequences=1)
    wide = replace(TOPOLOGY, decoding=replace(POOL, workers=200))
    with pytest.raises(InvalidInput, match="402 data-parallel ranks"):
        plan_rehearsal(wide)


def test_a_recipe_that_does_not_decode() -> None:
    form = form_of(CC2560)
    rest = {path: leaf for path, leaf in form.values.items() if path[:2] != ("roles", "decode")}
    bare = replace(form, values=rest)
    with pytest.raises(InvalidInput, match="no role decodes"):
        topology_of(bare, None)  # type: ignore[arg-type]


# --- the rule ---------------------------------------------------------------------------------

lengths = st.integers(1, 20_000)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    held = draw(st.fractions(1, 5000))
    decode = replace(
        POOL,
        workers=draw(st.integers(1, 4)),
        data_ranks=draw(st.integers(1, 8)),
        requests_per_rank=held,
        block_tokens=16 * draw(st.integers(1, 200)),
        max_num_batched_tokens=draw(st.integers(1, 20_000)),
    )
    prefill = replace(decode, role="prefill", requests_per_rank=draw(st.fractions(1, 500)))
    isl, osl = draw(lengths), draw(lengths)
    return replace(TOPOLOGY, decoding=decode, prefill=prefill, isl=isl, osl=osl)


@given(topologies(), st.integers(1, 100_000), st.integers(1, 4096))
def test_a_load_stays_on_its_side_of_capacity(
    topology: Topology, concurrency: int, divisor: int
) -> None:
    scale = Scale(sequences=divisor, tokens=1)
    held = scaled_requests_per_rank(topology, topology.decoding, scale)
    in_flight = scaled_concurrency(topology, concurrency, scale)
    fits = concurrency <= topology.decoding.requests
    assert (in_flight <= held * topology.decoding.ranks) == fits
    share = concurrency / topology.decoding.requests
    assert abs(in_flight - share * held * topology.decoding.ranks) <= 1


@given(topologies())
def test_generation_crosses_a_block_boundary_where_it_did(topology: Topology) -> None:
    scale = Scale(sequences=1, tokens=token_divisor(topology))
    small = scaled_lengths(topology, scale)
    real = topology.decoding.block_tokens
    block = scaled_block_tokens(topology, real, small)
    crosses = ceil_div(topology.isl, real) < ceil_div(topology.isl + topology.osl, real)
    assert (ceil_div(small.isl, block) < ceil_div(small.request_tokens, block)) == crosses


@pytest.mark.parametrize(("isl", "osl"), [(4096, 512), (8192, 1024), (131072, 2048)])
def test_short_blocks_of_long_requests_stay_blocks_that_a_mocker_takes(isl: int, osl: int) -> None:
    """Attention alone has blocks of 16 tokens, which in proportion would be one token or none."""
    topology = replace(TOPOLOGY, isl=isl, osl=osl)
    small = scaled_lengths(topology, Scale(sequences=1, tokens=token_divisor(topology)))
    block = scaled_block_tokens(topology, 16, small)
    assert block == 2
    assert ceil_div(small.isl, block) < ceil_div(small.request_tokens, block)


@given(topologies(), st.integers(1, 5000))
def test_blocks_are_those_of_whole_requests(topology: Topology, concurrency: int) -> None:
    divisor = auto_scale(topology, 100_000).sequences
    try:
        plan = plan_rehearsal(topology, (concurrency,), divisor)
    except InvalidInput:
        return  # too many in flight
    decode = plan.decoding
    blocks = ceil_div(plan.lengths.request_tokens, decode.block_tokens)
    assert decode.num_gpu_blocks == decode.requests_per_rank * blocks
    assert decode.max_num_batched_tokens >= decode.requests_per_rank
    assert all(each.max_num_seqs >= plan.loads[-1].in_flight for each in plan.engines)


@given(topologies(), st.integers(1, 100_000))
def test_scales_are_powers_of_two_that_leave_ranks_something(
    topology: Topology, concurrency: int
) -> None:
    scale = auto_scale(topology, concurrency)
    assert scale.sequences & (scale.sequences - 1) == scale.tokens & (scale.tokens - 1) == 0
    held = topology.decoding.whole_requests_per_rank
    assert scale.sequences == 1 or held // scale.sequences >= 4
    small = scaled_lengths(topology, scale)
    assert scale.tokens == 1 or small.request_tokens >= 100


# --- command lines ----------------------------------------------------------------------------


def test_a_process_for_each_worker() -> None:
    plan = plan_rehearsal(topology_in(CC2560))
    workers = mock_workers(plan, Path("/env/python"), Path("/run/timing.npz"))
    names = ["prefill-0", "prefill-1", "prefill-2", "prefill-3", "decode-0"]
    assert [worker.name for worker in workers] == names
    assert len({worker.system_port for worker in workers}) == 5
    ports = [worker.argv[worker.argv.index("--bootstrap-ports") + 1] for worker in workers[:4]]
    assert len(set(ports)) == 4
    assert "--bootstrap-ports" not in workers[4].argv
    for worker in workers:
        words = " ".join(worker.argv)
        assert f"--disaggregation-mode {worker.role} --data-parallel-size 4" in words
        assert "--planner-profile-data /run/timing.npz" in words


def test_everything_listens_on_loopback_and_requests_are_seeded() -> None:
    plan = plan_rehearsal(topology_in(CC2560))
    assert frontend_argv(Path("python"))[3:5] == ("--http-host", "127.0.0.1")
    argv = aiperf_argv(plan, plan.loads[0], Path("aiperf"), Path("/out"))
    options = dict(zip(argv[3::2], argv[4::2], strict=False))
    assert options["--random-seed"] == "42"
    assert options["--url"].startswith("http://127.0.0.1:")
    assert options["--tokenizer"] == MODEL_FOLDER  # no path of one machine in the contract
    assert (options["--concurrency"], options["--warmup-request-count"]) == ("39", "39")


def test_the_tokenizer_is_the_same_each_time_and_has_every_byte() -> None:
    assert model_files() == model_files()
    assert set(model_files()) == {"config.json", "tokenizer.json", "tokenizer_config.json"}
    model = json.loads(model_files()["tokenizer.json"])["model"]
    assert sorted(model["vocab"].values()) == list(range(4096))
    assert {chr(byte) for byte in range(0x21, 0x7F)} <= model["vocab"].keys()
    assert all("".join(merge) in model["vocab"] for merge in model["merges"])
