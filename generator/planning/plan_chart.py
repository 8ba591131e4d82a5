"""A plan as a figure: the frontier of predictions, and the points proposed on it."""

from __future__ import annotations

from generator.figures.chart import AxisText, Chart, Line, Mark, Series
from generator.planning.candidate import Candidate
from generator.planning.plan import Plan
from generator.planning.plan_view import references_name
from generator.planning.references import Reference
from generator.wording import plural


def plan_chart(plan: Plan) -> Chart:
    """The frontier as steps, the proposed points with their concurrencies, and the spec's own."""
    subject, search = plan.subject, plan.search
    own = [each for each in plan.references if isinstance(each, Reference)]
    slow, fast = search.frontier[0], search.frontier[-1]
    return Chart(
        title=(
            f"{subject.architecture.name} on {subject.nodes * subject.gpus_per_node}"
            f" {subject.gpu.name}, {subject.workload.isl} in / {subject.workload.osl} out"
        ),
        origin="predicted, not measured",
        description=(
            f"The frontier of {search.combinations:,} deployments and concurrencies, from"
            f" {_place(slow)} by {slow.text} to {_place(fast)} by {fast.text}."
            f" {plural(len(plan.points), 'point')} are proposed."
        ),
        x=AxisText(label="tokens/s per user"),
        y=AxisText(label="total tokens/s per GPU"),
        series=tuple(
            series
            for series in (
                Series(
                    name="frontier",
                    marks=tuple(map(_mark, search.frontier)),
                    style=0,
                    line=Line.STEPS_TO_RIGHT,
                    shows_marks=False,
                ),
                Series(
                    name=references_name(plan),
                    marks=tuple(_mark(each.predicted) for each in own),
                    style=None,
                    line=Line.NONE,
                ),
                Series(
                    name="proposed",
                    marks=tuple(_labelled(each.predicted) for each in plan.points),
                    style=0,
                    line=Line.NONE,
                ),
            )
            if series.marks
        ),
        notes=("The number at a point is its concurrency.",),
    )


def _place(candidate: Candidate) -> str:
    return (
        f"{candidate.tokens_per_s_per_user:,.0f} tokens/s per user and"
        f" {candidate.total_tokens_per_s_per_gpu:,.0f} per GPU"
    )


def _mark(candidate: Candidate) -> Mark:
    return Mark(x=candidate.tokens_per_s_per_user, y=candidate.total_tokens_per_s_per_gpu)


def _labelled(candidate: Candidate) -> Mark:
    return Mark(
        x=candidate.tokens_per_s_per_user,
        y=candidate.total_tokens_per_s_per_gpu,
        label=str(candidate.concurrency),
    )
