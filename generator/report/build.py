"""A report from its inputs: which sections there are, and what its head says."""

from __future__ import annotations

from collections.abc import Iterator

from generator.pareto.study import ParetoStudy
from generator.report.computed_sections import capacity_section, memory_section, model_section
from generator.report.content import KeyFigure, Page, Section
from generator.report.evidence_sections import (
    accuracy_section,
    contract_section,
    invalid_section,
    other_subjects,
)
from generator.report.inputs import ReportInputs
from generator.report.measured_sections import (
    goodput_sections,
    missing_curves,
    phase_sections,
    serving_sections,
    serving_study,
)
from generator.report.runs import RunList
from generator.report.source_sections import files_section, recipes_section, reproduction_section
from generator.results.point import Origin
from generator.results.wording import origins_label, rounded


def report(inputs: ReportInputs) -> Page:
    """The page of a study.

    Raises InvalidInput where runs of one phase differ in their contracts and may not be mixed.
    """
    answer = serving_study(inputs)
    origins = {point.origin for point in inputs.points}
    model = inputs.summary.architecture.name
    gpu = inputs.estimate.spec.cluster.gpu.upper()
    workload, engine = inputs.estimate.spec.workload, inputs.estimate.spec.engine
    return Page(
        title=f"{model} on {gpu}",
        lead=(
            f"Prefill/decode serving with {engine.type} {engine.version}, {workload.isl:,} tokens"
            f" in and {workload.osl:,} out: what fits, what was run, and the frontier of"
            " throughput and interactivity."
        ),
        origin=origins_label(origins),
        is_measured=origins == {Origin.MEASURED},
        key_figures=tuple(_key_figures(inputs, answer)),
        sections=tuple(_sections(inputs, answer)),
        footer=(
            f"Written by pdrecipe {inputs.version} from {inputs.results_file} and"
            f" {inputs.spec_file}."
        ),
    )


def _sections(inputs: ReportInputs, answer: ParetoStudy | None) -> Iterator[Section]:
    runs = RunList(inputs.links)
    yield model_section(inputs, other_subjects(inputs))
    yield memory_section(inputs)
    yield capacity_section(inputs)
    yield from phase_sections(inputs, runs)
    if answer is not None:
        yield from serving_sections(answer, inputs.results_file, runs)
        yield from goodput_sections(inputs, runs)
    else:
        yield from missing_curves(inputs)
    yield accuracy_section(inputs, runs)
    yield invalid_section(inputs, runs)
    yield contract_section(inputs)
    yield recipes_section(inputs)
    yield reproduction_section(inputs)
    yield files_section(inputs, runs, answer)  # last, for the others number its runs


def _key_figures(inputs: ReportInputs, answer: ParetoStudy | None) -> Iterator[KeyFigure]:
    if answer is not None:
        fastest, fullest = answer.frontier[-1], answer.frontier[0]
        yield KeyFigure(
            value=rounded(fullest.y.mean),
            unit="tokens/s per GPU",
            meaning=(
                f"highest total throughput: {fullest.subject.configuration} at concurrency"
                f" {fullest.concurrency:,}"
            ),
            href="#frontier",
        )
        yield KeyFigure(
            value=rounded(fastest.x.mean),
            unit="tokens/s per user",
            meaning=(
                f"highest interactivity: {fastest.subject.configuration} at concurrency"
                f" {fastest.concurrency:,}"
            ),
            href="#frontier",
        )
    valid = sum(point.is_valid for point in inputs.points)
    yield KeyFigure(
        value=f"{valid:,}",
        unit="valid points",
        meaning=f"of {len(inputs.points):,}; the others are listed with their reasons",
        href="#invalid",
    )
