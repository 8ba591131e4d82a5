"""What runs said: the phases alone, whole deployments, and the frontier over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generator.figures.chart import Chart
from generator.pareto.axes import axis
from generator.pareto.charts import curves_chart, frontier_chart, phase_chart
from generator.pareto.selection import SERVING, AxisPoint
from generator.pareto.study import ParetoQuestion, ParetoStudy, study
from generator.pareto.tables import area_sentence, best_at_table, heading, points_table
from generator.report.content import (
    Block,
    Cell,
    FigureBlock,
    Paragraph,
    Section,
    TableBlock,
    table_block,
)
from generator.report.inputs import ReportInputs
from generator.report.runs import RunList

_MOST_ROWS = 60
_LEAD = (
    "One aggregated engine that {does}: which layout is best at which load decides what the {phase}"
    " side of a deployment may be."
)
_PHASES = {
    "prefill": ("Prefill alone", _LEAD.format(does="only reads prompts", phase="prefill")),
    "decode": ("Decode alone", _LEAD.format(does="only generates", phase="decode")),
}
_X, _Y = axis("tokens_per_s_per_user"), axis("total_tokens_per_s_per_gpu")
_GOODPUT = axis("goodput_tokens_per_s_per_gpu")


def serving_study(inputs: ReportInputs) -> ParetoStudy | None:
    """The frontier over whole deployments; None where the results have none that is valid."""
    if not any(p.is_valid and p.subject.phase in SERVING for p in inputs.points):
        return None
    return study(inputs.points, ParetoQuestion(x=_X, y=_Y, may_mix=inputs.may_mix))


def phase_sections(inputs: ReportInputs, runs: RunList) -> Iterator[Section]:
    """A section for each phase that was measured alone, with its best layout at each load."""
    for phase, (title, lead) in _PHASES.items():
        if not any(p.is_valid and p.subject.phase == phase for p in inputs.points):
            continue
        question = ParetoQuestion(
            x=axis("concurrency"), y=_Y, phase=phase, targets=(), may_mix=inputs.may_mix
        )
        answer = study(inputs.points, question)
        yield Section(
            id=phase,
            title=title,
            blocks=(
                Paragraph(text=lead),
                *_mixed(answer),
                _figure(phase, phase_chart(answer), inputs),
                _best_by_concurrency(answer, inputs, runs),
            ),
        )


def _best_by_concurrency(answer: ParetoStudy, inputs: ReportInputs, runs: RunList) -> TableBlock:
    """The best layout at each concurrency that was run."""
    best: dict[int, AxisPoint] = {}
    for each in answer.points:
        known = best.get(each.concurrency)
        if known is None or each.y.mean > known.y.mean:
            best[each.concurrency] = each
    points = [best[at] for at in sorted(best)]
    return _points_block("Best layout at each concurrency", answer, points, inputs, runs)


def serving_sections(answer: ParetoStudy, inputs: ReportInputs, runs: RunList) -> Iterator[Section]:
    """The curves of whole deployments, then the frontier and what it reaches."""
    yield Section(
        id="curves",
        title="Each deployment",
        blocks=(
            Paragraph(
                text=(
                    "Each curve is one deployment swept over concurrency: its points can be reached"
                    " with that deployment alone."
                )
            ),
            *_mixed(answer),
            _figure("curves", curves_chart(answer), inputs),
            _points_block(
                "All points, by deployment and concurrency", answer, answer.points, inputs, runs
            ),
        ),
    )
    yield Section(id="frontier", title="The frontier", blocks=_frontier(answer, inputs, runs))
    if any(p.is_valid and p.goodput and p.subject.phase in SERVING for p in inputs.points):
        question = ParetoQuestion(x=_X, y=_GOODPUT, may_mix=inputs.may_mix)
        yield Section(
            id="goodput",
            title="The frontier of goodput",
            blocks=_frontier(study(inputs.points, question), inputs, runs, id="goodput"),
        )


def _frontier(
    answer: ParetoStudy,
    inputs: ReportInputs,
    runs: RunList,
    id: str = "frontier",  # noqa: A002
) -> tuple[Block, ...]:
    lines = list(heading(answer))
    return (
        Paragraph(
            text=(
                "No other point is better on one axis and at least as good on the other. The steps"
                " say what is reached; between points nothing was run, so nothing is drawn."
            )
        ),
        Paragraph(text=lines[2]),
        *_mixed(answer),
        _figure(id, frontier_chart(answer), inputs),
        _points_block("Points on the frontier", answer, answer.frontier, inputs, runs),
        table_block(
            "Best measured point at or above an interactivity",
            best_at_table(answer),
            source="From the points above; nothing is interpolated.",
        ),
        Paragraph(text=area_sentence(answer)),
    )


def _mixed(answer: ParetoStudy) -> list[Block]:
    return [
        Paragraph(text=f"MIXED: these runs do not share one contract, {each}.", is_alert=True)
        for each in answer.mixed
    ]


def _figure(id: str, chart: Chart, inputs: ReportInputs) -> FigureBlock:  # noqa: A002
    return FigureBlock(id=f"figure-{id}", chart=chart, source=f"Drawn from {inputs.results_file}.")


def _points_block(
    caption: str,
    answer: ParetoStudy,
    points: Sequence[AxisPoint],
    inputs: ReportInputs,
    runs: RunList,
) -> TableBlock:
    """A table of points, each with links to the runs it is from; a long one is cut and says so."""
    headers, texts = points_table(answer, points)
    # Only the runs of rows that are shown are listed at the end of the page.
    rows: list[list[str | Cell]] = [
        [*row, runs.cell(each) if index < _MOST_ROWS else ""]
        for index, (row, each) in enumerate(zip(texts, points, strict=True))
    ]
    return table_block(
        caption,
        ([*headers, "source"], rows),
        source=f"From {inputs.results_file}; the last column names the run.",
        most_rows=_MOST_ROWS,
        rest_is_in=f"all are in {inputs.results_file}; pdrecipe pareto --out points.csv lists them",
    )
