"""Where the step times of a rehearsal come from, what it calls them, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from generator.architecture import ModelArchitecture
from generator.efficiency.plan_facts import collective_latency
from generator.errors import InvalidInput, Problem
from generator.normal_form import NormalForm
from generator.recipe_engines import recipe_engine
from generator.rehearsal.plan import RehearsalPlan
from generator.rehearsal.step_times import (
    MeasuredSteps,
    StepTimes,
    TimingProfile,
    roofline_steps,
    stand_in_of,
    timing_profile,
)
from generator.rehearsal.topology import Topology
from generator.results.engine_pool import EnginePool, configuration_label
from generator.results.point import MeasuredPoint, Origin


class TimingSource(StrEnum):
    """What step times may be.

    The mocker's own prefills fast, so that decode fills up: it tests memory. The others test
    whether prefill keeps up.
    """

    MOCKER = "mocker"
    ROOFLINE = "roofline"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """``label`` is for people. Without ``steps`` and ``profile`` mockers use times of their own.

    ``slowdown`` is how many times longer every step of the profile lasts, so that the machine and
    not the deployment never is what limits.
    """

    source: TimingSource
    label: str
    steps: StepTimes | None = None
    profile: TimingProfile | None = None
    slowdown: int = 1

    @property
    def name(self) -> str:
        """What contracts hold it to."""
        return f"{self.source}, slowed {self.slowdown} times" if self.slowdown > 1 else self.source


_MOST_TOKENS_PER_S = 2000  # of frontend, mockers and AIPerf together on two cores

MOCKERS_TIMING = Timing(
    source=TimingSource.MOCKER,
    label="the mocker's own, which knows no model and no GPU, and prefills fast",
)


def roofline_timing(
    form: NormalForm, architecture: ModelArchitecture, plan: RehearsalPlan
) -> Timing:
    """Bounds of the recipe's engines; raises InvalidInput where a GPU has none for the model."""
    decoding = plan.topology.decoding.role
    prefill = plan.topology.prefill.role if plan.topology.prefill else decoding
    steps = roofline_steps(
        recipe_engine(form, decoding, architecture),
        recipe_engine(form, prefill, architecture),
        architecture,
        plan.topology.isl,
        collective_latency().value / 1e6,
    )
    label = "steps as short as the GPUs' published peaks allow"
    return _scaled(TimingSource.ROOFLINE, label, steps, plan)


def measured_timing(
    points: Iterable[MeasuredPoint], pools: tuple[EnginePool, ...], plan: RehearsalPlan
) -> Timing:
    """The steps of valid measured points of the same engines, at the recipe's lengths.

    TPOT by the concurrency of a rank, and the TTFT of the lowest concurrency as a prompt's time.
    Raises InvalidInput where there is no such point.
    """
    lengths = {"workload.isl": str(plan.topology.isl), "workload.osl": str(plan.topology.osl)}
    chosen: dict[int, tuple[float, float]] = {}
    for point in points:
        ttft, tpot = point.latencies.ttft, point.latencies.tpot
        if (
            point.is_valid
            and point.origin is Origin.MEASURED
            and point.subject.pools == pools
            and all(point.contract.get(name) == value for name, value in lengths.items())
            and ttft is not None
            and tpot is not None
        ):
            chosen[point.subject.concurrency] = (tpot.mean / 1000, ttft.mean / 1000)
    if not chosen:
        label = configuration_label(pools)
        message = f"no measured point of {label} at these lengths has TTFT and TPOT"
        raise InvalidInput(Problem(message=message, hint="--timing roofline needs none"))
    loads = sorted(chosen)
    steps = MeasuredSteps(
        sequences_per_rank=np.array(loads) / plan.topology.decoding.ranks,
        tpot_s=np.array([chosen[load][0] for load in loads]),
        prompt_s=chosen[loads[0]][1],
    )
    label = f"as measured at {', '.join(f'{load:,}' for load in loads)}"
    return _scaled(TimingSource.MEASURED, label, steps, plan)


def _scaled(source: TimingSource, label: str, steps: StepTimes, plan: RehearsalPlan) -> Timing:
    scale = plan.scale
    slowdown = _slowdown(steps, plan)
    slowed = f", all of it slowed {slowdown} times for this machine" if slowdown > 1 else ""
    return Timing(
        source=source,
        label=(
            f"{label}; a token stands for {scale.tokens} and a prompt for {scale.sequences}, which"
            f" makes prefill coarse{slowed}"
        ),
        steps=steps,
        profile=timing_profile(steps, stand_in_of(plan)).slowed(slowdown),
        slowdown=slowdown,
    )


def _slowdown(steps: StepTimes, plan: RehearsalPlan) -> int:
    """By how much steps must be longer for a full decode not to make more than cores carry.

    Full is what capacity holds and not what is sent, so that every load has the same.
    """
    topology, decoding = plan.topology, plan.decoding
    per_rank = np.array([float(topology.decoding.whole_requests_per_rank)])
    step_s = float(steps.decode_s(per_rank, topology.isl + topology.osl / 2)[0])
    return max(1, math.ceil(decoding.requests / step_s / _MOST_TOKENS_PER_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRates:
    """Requests a second at full size: what prefill gives, and what decode takes at a load."""

    prefill_per_s: float
    decode_per_s: float

    @property
    def starves_decode(self) -> bool:
        return self.prefill_per_s < self.decode_per_s


def phase_rates(topology: Topology, steps: StepTimes, concurrency: int) -> PhaseRates | None:
    """Both rates from step times, prefill always in full batches; None without prefill workers."""
    prefill, decoding = topology.prefill, topology.decoding
    if prefill is None:
        return None
    prompts = max(1, prefill.max_num_batched_tokens // topology.isl)
    batch_s = float(steps.prefill_s(np.array([float(prompts)]))[0])
    context = topology.isl + topology.osl / 2
    step_s = float(steps.decode_s(np.array([concurrency / decoding.ranks]), context)[0])
    return PhaseRates(
        prefill_per_s=prefill.ranks * prompts / batch_s,
        decode_per_s=concurrency / (topology.osl * step_s),
    )
