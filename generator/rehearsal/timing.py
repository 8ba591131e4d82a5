"""Where the step times of a rehearsal come from, and what it calls them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from generator.architecture import ModelArchitecture
from generator.normal_form import NormalForm
from generator.planning.plan_facts import collective_latency
from generator.recipe_engines import recipe_engine
from generator.rehearsal.plan import RehearsalPlan
from generator.rehearsal.step_times import (
    TimingProfile,
    roofline_steps,
    stand_in_of,
    timing_profile,
)


class TimingSource(StrEnum):
    """What is asked for.

    The mocker's own prefills fast, so that decode fills up: it tests memory. The roofline tests
    whether prefill keeps up.
    """

    MOCKER = "mocker"
    ROOFLINE = "roofline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """``name`` is for contracts, ``label`` for people; without a profile mockers use their own."""

    name: str
    label: str
    profile: TimingProfile | None = None


MOCKERS_TIMING = Timing(
    name=str(TimingSource.MOCKER),
    label="the mocker's own, which knows no model and no GPU, and prefills fast",
)


def timing_of(
    form: NormalForm, architecture: ModelArchitecture, plan: RehearsalPlan, source: TimingSource
) -> Timing:
    """The timing of a planned rehearsal; raises InvalidInput where a roofline cannot be had."""
    if source is TimingSource.MOCKER:
        return MOCKERS_TIMING
    decoding = plan.topology.decoding.role
    prefill = plan.topology.prefill.role if plan.topology.prefill else decoding
    steps = roofline_steps(
        recipe_engine(form, decoding, architecture),
        recipe_engine(form, prefill, architecture),
        architecture,
        plan.topology.isl,
        collective_latency().value / 1e6,
    )
    return Timing(
        name=str(TimingSource.ROOFLINE),
        label=(
            "roofline: steps as short as the GPUs' published peaks allow, the clock"
            f" {plan.scale.tokens} times as fast; a prompt stands for"
            f" {plan.scale.sequences}, which makes prefill coarse"
        ),
        profile=timing_profile(steps, stand_in_of(plan)),
    )
