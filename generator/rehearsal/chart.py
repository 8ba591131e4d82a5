"""A rehearsal over time: what waits for KV memory, and what is preempted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.figures.chart import AxisText, Chart, Mark, Series
from generator.rehearsal.observation import Sample
from generator.rehearsal.plan import RehearsalPlan
from generator.rehearsal.verdict import RehearsedLoad, Verdict
from generator.rehearsal.view import outcome_words
from generator.results.point import Origin
from generator.results.wording import origins_label


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOverTime:
    """A load with its verdict and all samples that were taken of it, by time."""

    rehearsed: RehearsedLoad
    verdict: Verdict
    samples: tuple[Sample, ...]


def rehearsal_chart(plan: RehearsalPlan, loads: Sequence[LoadOverTime]) -> Chart:
    """The lowest and the highest load over the seconds in which they have work.

    What waits for KV blocks, and how many were preempted so far: both stay low for a load that
    fits, and grow for one that does not.
    """
    drawn = [loads[0]] if len(loads) == 1 else [loads[0], loads[-1]]
    return Chart(
        title=f"{plan.topology.recipe}: rehearsed loads over time",
        origin=origins_label([Origin.REHEARSAL]),
        description=" ".join(_sentence(each) for each in drawn),
        x=AxisText(label="seconds since the first request, warm-up included"),
        y=AxisText(label="requests at decode"),
        series=tuple(
            series for place, load in enumerate(drawn) for series in _series(load, 2 * place)
        ),
        notes=(
            f"Scaled: sequences 1/{plan.scale.sequences}, tokens 1/{plan.scale.tokens}.",
            f"Decode holds {plan.decoding.requests} requests to their last token.",
            *(_sentence(each) for each in drawn),
        ),
    )


def _series(load: LoadOverTime, style: int) -> tuple[Series, Series]:
    busy = [each for each in load.samples if not each.is_idle]
    began, before = (busy[0].at, busy[0].preemptions) if busy else (0.0, 0)
    name = f"concurrency {load.rehearsed.load.concurrency:,}"

    def series(what: str, values: Sequence[int], place: int) -> Series:
        marks = (Mark(x=s.at - began, y=float(v)) for s, v in zip(busy, values, strict=True))
        return Series(name=f"{name}, {what}", marks=tuple(marks), style=place)

    return (
        series("waiting", [each.waiting for each in busy], style),
        series("preempted so far", [each.preemptions - before for each in busy], style + 1),
    )


def _sentence(load: LoadOverTime) -> str:
    seen, sent = load.rehearsed.seen, load.rehearsed.load
    return (
        f"Concurrency {sent.concurrency:,}, {sent.in_flight} in flight,"
        f" {outcome_words(load.verdict)}: {seen.preemptions} preemptions, at most"
        f" {seen.peak_running} run and {seen.peak_waiting} wait."
    )
