"""A page of the frontier alone: what pdrecipe pareto writes as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from generator.pareto.study import ParetoStudy
from generator.report.content import Page, Paragraph, Section
from generator.report.measured_sections import serving_sections
from generator.report.runs import RunList
from generator.report.source_sections import runs_block, unlinked_notes
from generator.results.point import Origin
from generator.results.wording import origins_label
from generator.wording import plural


def frontier_page(
    answer: ParetoStudy, results: str, links: Mapping[tuple[str, str], str], version: str
) -> Page:
    """The curves and the frontier of a study, with the runs behind them."""
    x, y = answer.question.x, answer.question.y
    return Page(
        title=f"{y.title} and {x.title.lower()}",
        lead=(
            f"{plural(len(answer.points), 'point')} of {plural(len(answer.curves), 'curve')}, from"
            f" {results}."
        ),
        origin=origins_label(answer.origins),
        is_measured=answer.origins == (Origin.MEASURED,),
        key_figures=(),
        sections=tuple(_sections(answer, results, RunList(links))),
        footer=f"Written by pdrecipe {version} from {results}.",
    )


def _sections(answer: ParetoStudy, results: str, runs: RunList) -> Iterator[Section]:
    yield from serving_sections(answer, results, runs)
    if answer.left_out:
        counted = (f"{len(each.points)} {each.reason}" for each in answer.left_out)
        text = f"Left out: {', '.join(counted)}."
        yield Section(id="invalid", title="Not drawn", blocks=(Paragraph(text=text),))
    yield Section(
        id="files",
        title="Where every figure is from",
        blocks=(
            runs_block(runs),
            *(Paragraph(text=each, is_note=True) for each in unlinked_notes(runs)),
        ),
    )
