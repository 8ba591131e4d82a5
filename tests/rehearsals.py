"""Recipes of this repository as rehearsals plan them, and figures as a rehearsal leaves them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from generator.checks.known_models import model_of
from generator.documents import read_document
from generator.normal_form import NormalForm, normal_form
from generator.recipe.expansion import variants
from generator.rehearsal.observation import Occupancy
from generator.rehearsal.plan import RehearsalPlan
from generator.rehearsal.topology import PoolCapacity, Topology, topology_of
from generator.rehearsal.verdict import Measured, RehearsedLoad

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ROOT / "recipes/qwen3.8-2.4t/gb300/8k1k/vllm/disagg"
CC2560 = RECIPES / "v2/4xtp2dep4-1xtp4dep4-cc2560.yaml"


def form_of(path: Path) -> NormalForm:
    return normal_form(next(iter(variants(read_document(path)))))


def topology_in(path: Path) -> Topology:
    """The topology of a recipe file, whose model is known."""
    form = form_of(path)
    model = model_of(form)
    assert model is not None
    return topology_of(form, model)


POOL = PoolCapacity(
    role="decode",
    layout="TP4",
    workers=1,
    data_ranks=2,
    request_tokens=1280,
    requests_per_rank=Fraction(21, 2),
    basis="computed",
    block_tokens=64,
    max_num_seqs=16,
    max_num_batched_tokens=32,
)
TOPOLOGY = Topology(
    recipe="small",
    decoding=POOL,
    prefill=replace(POOL, role="prefill", max_num_batched_tokens=2048),
    isl=1024,
    osl=256,
    random_range_ratio=1.0,
    concurrencies=(8, 16),
)


def rehearsed(plan: RehearsalPlan, place: int, **seen: float | bool) -> RehearsedLoad:
    """A load of a plan, taken without a queue but for what ``seen`` says."""
    load = plan.loads[place]
    occupancy = Occupancy(
        samples=10,
        mean_prefill_in_flight=1.0,
        mean_running=load.in_flight - 1.0,
        peak_running=load.in_flight,
        mean_waiting=0.0,
        peak_waiting=0,
        peak_kv_usage=0.8,
        preemptions=0,
        drained=True,
    )
    measured = Measured(
        completed=load.requests,
        failed=0,
        duration_s=10.0,
        output_tokens_per_s=500.0,
        ttft_p50_ms=100.0,
        ttft_p99_ms=200.0,
        tpot_p50_ms=30.0,
    )
    return RehearsedLoad(load=load, measured=measured, seen=replace(occupancy, **seen))  # type: ignore[arg-type]
