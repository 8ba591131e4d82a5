"""pdrecipe next: which points of a spec are worth running, given results."""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.cli.measured import profile_option
from generator.cli.number import FiniteRange
from generator.cli.output import definitions, echo, paragraph, table, talk
from generator.cli.result_files import read_results
from generator.errors import AnswerIsNo, Problem
from generator.estimation import estimate_spec
from generator.facts import MeasuredProfile
from generator.files import keep_inputs
from generator.spec.rewriting import rendering_hint, with_sections, write_spec
from generator.stopping.ladders import planned_ladders
from generator.stopping.next_runs import Answer, NextRuns, next_runs
from generator.stopping.reduced_spec import reduced_sections
from generator.stopping.rules import StopLimits
from generator.stopping.view import next_document, next_notes, next_table, reason_rows, summary

_DEFAULTS = StopLimits()


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("spec", type=click.Path(path_type=Path))
@click.option(
    "--variation",
    type=FiniteRange(0, 1),
    default=_DEFAULTS.variation,
    show_default=True,
    help="Share by which repeated runs differ, where none was repeated.",
)
@click.option("--ttft-ms", type=FiniteRange(0, min_open=True), help="Longest time to a token.")
@click.option("--tpot-ms", type=FiniteRange(0, min_open=True), help="Longest time per token.")
@click.option(
    "--percentile",
    type=click.Choice(["50", "90", "95", "99"]),
    default="50",
    show_default=True,
    help="Which percentile of them the limits are of.",
)
@click.option(
    "--preemption-share",
    type=FiniteRange(0, 1),
    default=_DEFAULTS.preemption_share,
    show_default=True,
    help="Preempted requests beyond which a ladder ends.",
)
@click.option(
    "--failure-share",
    type=FiniteRange(0, 1),
    default=_DEFAULTS.failure_share,
    show_default=True,
    help="Failed requests beyond which a ladder ends.",
)
@click.option("--mix", "may_mix", is_flag=True, help="Also where the contracts of runs differ.")
@click.option("--write", type=click.Path(path_type=Path), help="Write SPEC with these points only.")
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
@profile_option
def next(  # noqa: A001 - the command's name
    *,
    results: Path,
    spec: Path,
    variation: float,
    ttft_ms: float | None,
    tpot_ms: float | None,
    percentile: str,
    preemption_share: float,
    failure_share: float,
    may_mix: bool,
    write: Path | None,
    as_json: bool,
    profiles: tuple[MeasuredProfile, ...],
) -> None:
    """Say which points of SPEC are worth running, given RESULTS, and why the others are not.

    A ladder of concurrencies ends where capacity does, goodput no longer grows beyond variation, a
    latency objective is violated, requests are preempted throughout, or fail. Results of one phase
    whose contracts differ are refused (exit code 3), unless --mix.
    """
    if write is not None:
        keep_inputs(write, results)
    estimate = estimate_spec(spec, profiles)
    limits = StopLimits(
        variation=variation,
        ttft_ms=ttft_ms,
        tpot_ms=tpot_ms,
        percentile=float(percentile),
        preemption_share=preemption_share,
        failure_share=failure_share,
    )
    ladders = planned_ladders(estimate, profiles)
    runs = next_runs(read_results(results), ladders, limits, may_mix=may_mix)
    if as_json:
        echo(json.dumps(next_document(runs), indent=2))
    else:
        _show(runs)
    if write is not None:
        if not runs.count(Answer.RUN):
            raise AnswerIsNo(
                Problem(
                    source=str(write),
                    message="is not written: no planned point is worth running",
                    hint="add points to the spec, such as those suggested",
                )
            )
        text = with_sections(estimate.spec, reduced_sections(estimate.spec, runs))
        write_spec(write, text, estimate.spec)
        hint = rendering_hint(write, estimate.spec)
        talk(f"wrote {write}, without accuracy runs and probes; {hint}")


def _show(runs: NextRuns) -> None:
    for text in next_notes(runs):
        paragraph(text)
    echo(f"\n{table(*next_table(runs))}\n")
    if rows := reason_rows(runs):
        echo(f"{definitions(rows)}\n")
    echo(summary(runs))
