"""pdrecipe plan: which deployments are worth a GPU."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from generator.cli.efficiency import efficiency_option
from generator.cli.measured import profile_option
from generator.cli.output import definitions, echo, paragraph, table, talk
from generator.cli.progress import progress
from generator.efficiency.cited_view import cited_notes, cited_table
from generator.efficiency.factors import Factors
from generator.enumeration.base_spec import subject_of_model, subject_of_spec
from generator.enumeration.subject import ModelQuestion, Subject
from generator.errors import InvalidInput
from generator.facts import MeasuredProfile
from generator.files import pasted, write_bytes_atomically, write_text_atomically
from generator.parallel import parse_layout
from generator.planning.latency import Limits
from generator.planning.plan import Plan, Question, make_plan, question_problems
from generator.planning.plan_document import plan_document
from generator.planning.plan_view import (
    assumptions,
    cost_rows,
    heading,
    reference_rows,
    reference_table,
    rejection_rows,
    sweep_table,
)
from generator.planning.proposed_spec import write_proposed
from generator.planning.why import refusal_rows, why, why_document, why_sentences, why_table
from generator.spec.rewriting import rendering_hint
from generator.workload import Workload

_DEFAULT_VERSION = "0.26.0"
_FIGURES = (".svg", ".png")


@click.command()
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@click.option("--model", type=click.Path(path_type=Path), help="Model folder or config.json.")
@click.option("--gpu", "gpu_name", help="GPU name, such as gb300.")
@click.option("--nodes", type=int, help="Nodes of one NVLink domain; all of it where absent.")
@click.option("--isl", type=int, help="Input tokens of a request.")
@click.option("--osl", type=int, help="Output tokens of a request.")
@click.option("--engine-version", help=f"vLLM version; {_DEFAULT_VERSION}.")
@click.option("--ttft-ms", type=float, help="Longest time to the first token.")
@click.option("--tpot-ms", type=float, help="Longest time per token.")
@click.option(
    "--acceptance-rate", type=float, help="Of drafted tokens; as measured, in the file or public."
)
@click.option("--top", type=int, default=10, show_default=True, help="Most recipes to propose.")
@click.option("--why", "layout", metavar="LAYOUT", help="Judge one layout, such as TP16+EP.")
@click.option("--write", type=click.Path(path_type=Path), help="Write the sweep as a spec.")
@click.option("--out", type=click.Path(path_type=Path), help="Draw the frontier: .svg or .png.")
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
@profile_option
@efficiency_option
def plan(
    *,
    spec: Path | None,
    model: Path | None,
    gpu_name: str | None,
    nodes: int | None,
    isl: int | None,
    osl: int | None,
    engine_version: str | None,
    ttft_ms: float | None,
    tpot_ms: float | None,
    acceptance_rate: float | None,
    top: int,
    layout: str | None,
    write: Path | None,
    out: Path | None,
    as_json: bool,
    profiles: tuple[MeasuredProfile, ...],
    factors: Factors,
) -> None:
    """Judge every prefill/decode deployment and propose the few that are worth a GPU.

    For SPEC, whose flags and sizing rules then hold, or for --model, --gpu, --isl and --osl. All
    layouts, MTP 0 to 3 and KV-cache dtypes, in every number that fits on the nodes, are bounded
    and predicted; the sweep is spread over the frontier of predictions.
    """
    if out is not None and out.suffix not in _FIGURES:
        raise click.UsageError(f"--out takes a name that ends in {', '.join(_FIGURES)}")
    question = Question(
        limits=Limits(
            ttft_s=math.inf if ttft_ms is None else ttft_ms / 1000,
            tpot_s=math.inf if tpot_ms is None else tpot_ms / 1000,
        ),
        most_deployments=top,
        factors=factors,
        acceptance_rate=acceptance_rate,
    )
    described = _described(
        spec,
        model,
        {"--gpu": gpu_name, "--isl": isl, "--osl": osl},
        {"--nodes": nodes, "--engine-version": engine_version},
    )
    if write is not None and out is not None and write.resolve() == out.resolve():
        raise click.UsageError("--write and --out are two files: name two")
    subject = _subject(spec, described, question, profiles)
    if layout is not None:
        if write is not None or out is not None:
            raise click.UsageError("--why judges one layout: leave --write and --out out")
        _explain(subject, question, layout, as_json=as_json)
        return
    with progress("planning") as tick:
        made = make_plan(subject, question, tick)
    _answer(made, write, out, as_json=as_json)


def _described(
    spec: Path | None,
    model: Path | None,
    needed: Mapping[str, Any],
    optional: Mapping[str, Any],
) -> ModelQuestion | None:
    """What the options describe instead of a spec; None where there is a spec."""
    if spec is not None:
        given = {"--model": model, **needed, **optional}
        beside = [name for name, value in given.items() if value is not None]
        if beside:
            raise click.UsageError(f"the spec says it: leave {', '.join(beside)} out")
        return None
    if model is None:
        raise click.UsageError("name a SPEC, or a --model with --gpu, --isl and --osl")
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise click.UsageError(f"--model goes with {', '.join(missing)}")
    return ModelQuestion(
        model=model,
        gpu=needed["--gpu"],
        nodes=optional["--nodes"],
        workload=Workload(isl=needed["--isl"], osl=needed["--osl"]),
        engine_version=optional["--engine-version"] or _DEFAULT_VERSION,
    )


def _subject(
    spec: Path | None,
    described: ModelQuestion | None,
    question: Question,
    profiles: tuple[MeasuredProfile, ...],
) -> Subject:
    """What is planned for; raises InvalidInput with what is wrong with it and with the question."""
    problems = list(question_problems(question))
    try:
        if spec is not None:
            subject = subject_of_spec(spec, profiles)
        elif described is not None:
            subject = subject_of_model(described, profiles)
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return subject


def _explain(subject: Subject, question: Question, layout: str, *, as_json: bool) -> None:
    with progress("planning") as tick:
        answer = why(subject, question, parse_layout(layout), tick)
    if as_json:
        echo(json.dumps(why_document(answer), indent=2))
        return
    headers, rows = why_table(answer)
    refused = refusal_rows(answer)
    blocks = ([table(headers, rows)] if rows else []) + ([definitions(refused)] if refused else [])
    echo("\n\n".join(blocks))
    for index, text in enumerate(why_sentences(answer)):
        if not index:
            echo()
        paragraph(text)


def _answer(made: Plan, write: Path | None, out: Path | None, *, as_json: bool) -> None:
    """Files first, so that an answer that cannot be written is none."""
    if write is not None:
        write_proposed(made.subject, made.proposed, write)
    if out is not None:
        _draw(made, out)
    if as_json:
        echo(json.dumps(plan_document(made), indent=2))
    else:
        _show(made)
    if write is not None:
        is_composed = made.subject.question is not None
        hint = f"render it: pdrecipe generate {pasted(write)}"
        talk(f"wrote {write}; {hint if is_composed else rendering_hint(write, made.subject.spec)}")
    if out is not None:
        talk(f"wrote {out}")


def _show(made: Plan) -> None:
    for text in heading(made):
        paragraph(text)
    echo(f"\n{table(*sweep_table(made))}\n")
    if made.references:
        echo(f"{table(*reference_table(made))}\n")
    if beaten := reference_rows(made):
        echo(f"{definitions(beaten)}\n")
    echo(f"{definitions(cost_rows(made))}\n")
    echo(f"engines refused (--why LAYOUT):\n{definitions(rejection_rows(made))}\n")
    for text in assumptions(made):
        paragraph(text)
    if made.public:
        echo(f"\n{table(*cited_table(made.public))}\n")
        for text in cited_notes(made.public):
            paragraph(text)


def _draw(made: Plan, out: Path) -> None:
    from generator.figures.drawing import draw_png, draw_svg
    from generator.planning.plan_chart import plan_chart

    chart = plan_chart(made)
    if out.suffix == ".svg":
        write_text_atomically(out, draw_svg(chart))
    else:
        write_bytes_atomically(out, draw_png(chart))
