"""pdrecipe goodput: how much of a run met its latency limits."""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.cli.number import limit_ns, nanoseconds
from generator.cli.output import echo, paragraph, table
from generator.errors import InvalidInput, Problem
from generator.goodput.acceptance import Limits, Window, assess, whole_window
from generator.goodput.document import goodput_document
from generator.goodput.trace import NS_PER_S, Trace
from generator.goodput.trace_file import read_trace
from generator.goodput.view import contract, headline, latency_table, notes, requests_table


def _window(_: click.Context, __: click.Parameter, value: str | None) -> Window | None:
    if value is None:
        return None
    start, colon, end = value.partition(":")
    if not colon:
        raise click.BadParameter(f"{value!r} is not START:END in seconds, such as 0:60")
    window = Window(start_ns=nanoseconds(start, NS_PER_S), end_ns=nanoseconds(end, NS_PER_S))
    if window.end_ns <= window.start_ns:
        raise click.BadParameter(f"{value!r} ends before it starts")
    return window


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--ttft-ms", "ttft_ns", required=True, callback=limit_ns, help="Limit of the first token."
)
@click.option(
    "--max-gap-ms", "max_gap_ns", required=True, callback=limit_ns, help="Limit of every gap."
)
@click.option(
    "--window",
    callback=_window,
    metavar="START:END",
    help="Seconds of the trace's clock; all of it where absent.",
)
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
def goodput(
    *, trace: Path, ttft_ns: int, max_gap_ns: int, window: Window | None, as_json: bool
) -> None:
    """Print what of TRACE met the latency limits, per second of the window.

    TRACE has one request a row, as JSON Lines or a JSON array: sent, tokens (times), done and ok
    in seconds, or the rows of AIPerf's profile_export.jsonl, whose clock starts here with the first
    request after the warm-up.
    """
    read = read_trace(trace)
    limits = Limits(ttft_ns=ttft_ns, max_gap_ns=max_gap_ns)
    assessment = assess(read, limits, window or _whole(read, trace))
    if as_json:
        echo(json.dumps(goodput_document(assessment), indent=2))
        return
    echo(headline(assessment))
    paragraph(contract(assessment))
    echo(f"\n{table(*requests_table(assessment))}")
    headers, rows = latency_table(assessment)
    if rows:
        echo(f"\n{table(headers, rows)}")
    echo()
    for text in notes(assessment):
        paragraph(text)


def _whole(trace: Trace, source: Path) -> Window:
    window = whole_window(trace)
    if window is None:
        message = "the trace spans no time: it has no window of its own"
        raise InvalidInput(Problem(message=message, hint="give --window", source=str(source)))
    return window
