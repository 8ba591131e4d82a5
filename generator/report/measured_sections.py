"""What runs said: the phases alone, whole deployments, and the frontier over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generator.figures.chart import Chart
from generator.pareto.axes import Axis, axis
from generator.pareto.charts import curves_chart, frontier_chart, phase_chart
from generator.pareto.selection import SERVING, AxisPoint
from generator.pareto.study import ParetoQuestion, ParetoStudy, study
from generator.pareto.tables import area_sentence, best_at_table, counted, points_table
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
from generator.results.contract import mixed_note
from generator.results.point import MeasuredPoint
from generator.wording import plural

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
    """The frontier over whole deployments; None where the results have none on its axes."""
    if not any(_stands(point, _Y) for point in inputs.points):
        return None
    return study(inputs.points, ParetoQuestion(x=_X, y=_Y, may_mix=inputs.may_mix))


def _stands(point: MeasuredPoint, y: Axis) -> bool:
    """Whether a point of a whole deployment is valid and known on both axes."""
    if not point.is_valid or point.subject.phase not in SERVING:
        return False
    return _X.value(point) is not None and y.value(point) is not None


def missing_curves(inputs: ReportInputs) -> Iterator[Section]:
    """What stands in the place of curves where valid points of deployments have none."""
    valid = [p for p in inputs.points if p.is_valid and p.subject.phase in SERVING]
    if valid:
        text = f"No curve and no frontier: {_X.lacks} in {plural(len(valid), 'valid point')}."
        yield Section(
            id="curves", title="Each deployment", blocks=(Paragraph(text=text, is_alert=True),)
        )


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
                _figure(phase, phase_chart(answer), inputs.results_file),
                _best_by_concurrency(phase, answer, inputs.results_file, runs),
            ),
        )


def _best_by_concurrency(
    phase: str, answer: ParetoStudy, results: str, runs: RunList
) -> TableBlock:
    """The best layout at each concurrency that was run."""
    best: dict[int, AxisPoint] = {}
    for each in answer.points:
        known = best.get(each.concurrency)
        if known is None or each.y.mean > known.y.mean:
            best[each.concurrency] = each
    points = [best[at] for at in sorted(best)]
    caption = f"Best {phase} layout at each concurrency"
    return _points_block(caption, answer, points, results, runs)


def serving_sections(answer: ParetoStudy, results: str, runs: RunList) -> Iterator[Section]:
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
            _figure("curves", curves_chart(answer), results),
            _points_block(
                "All points, by deployment and concurrency", answer, answer.points, results, runs
            ),
        ),
    )
    yield Section(id="frontier", title="The frontier", blocks=_frontier(answer, results, runs))


def goodput_sections(inputs: ReportInputs, runs: RunList) -> Iterator[Section]:
    """The frontier of goodput, where whole deployments have any."""
    if any(_stands(point, _GOODPUT) for point in inputs.points):
        answer = study(inputs.points, ParetoQuestion(x=_X, y=_GOODPUT, may_mix=inputs.may_mix))
        blocks = _frontier(answer, inputs.results_file, runs, id="goodput")
        yield Section(id="goodput", title="The frontier of goodput", blocks=blocks)


_UNBEATEN = (
    "No other point is better on one axis and at least as good on the other. The steps say what is"
    " reached; between points nothing was run, so nothing is drawn."
)
_OF_EACH = "The best point at each x; between points nothing was run."


def _frontier(
    answer: ParetoStudy,
    results: str,
    runs: RunList,
    id: str = "frontier",  # noqa: A002
) -> tuple[Block, ...]:
    return (
        Paragraph(text=_OF_EACH if answer.question.x.is_setting else _UNBEATEN),
        Paragraph(text=counted(answer)),
        *_mixed(answer),
        _figure(id, frontier_chart(answer), results),
        _points_block(
            f"Points on the frontier of {answer.question.y.title.lower()}",
            answer,
            answer.frontier,
            results,
            runs,
        ),
        *_best_at(answer),
        Paragraph(text=area_sentence(answer)),
    )


def _best_at(answer: ParetoStudy) -> list[Block]:
    """The best point for each x that was asked for."""
    if not answer.best_at:
        return []
    x, y = answer.question.x.title.lower(), answer.question.y.title.lower()
    caption = f"Best measured {y} for {x}"
    source = "From the points above; nothing is interpolated."
    return [table_block(caption, best_at_table(answer), source=source)]


def _mixed(answer: ParetoStudy) -> list[Block]:
    return [Paragraph(text=mixed_note(each), is_alert=True) for each in answer.mixed]


def _figure(id: str, chart: Chart, results: str) -> FigureBlock:  # noqa: A002
    return FigureBlock(id=f"figure-{id}", chart=chart, source=f"Drawn from {results}.")


def _points_block(
    caption: str,
    answer: ParetoStudy,
    points: Sequence[AxisPoint],
    results: str,
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
        source=f"From {results}; the last column names the run.",
        most_rows=_MOST_ROWS,
        rest_is_in=f"all are in {results}; pdrecipe pareto --out points.csv lists them",
    )
