"""pdrecipe capacity: the memory account and the requests every engine holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from generator.capacity.capacity import EngineCapacity
from generator.capacity.comparison import compare_variants
from generator.capacity.comparison_view import (
    comparison_heading,
    comparison_notes,
    comparison_table,
    with_comparisons,
)
from generator.capacity.inverse import RequestQuestion
from generator.capacity.inverse_view import (
    mean_length_notes,
    mean_length_table,
    memory_for_requests_notes,
    memory_for_requests_table,
)
from generator.capacity.view import (
    capacity_document,
    capacity_notes,
    distinct_engines,
    kv_cache_notes,
    kv_cache_table,
    memory_notes,
    memory_table,
    requests_notes,
    requests_table,
)
from generator.cli.engine_flags import engine_flags, given_flags
from generator.cli.measured import profile_option
from generator.cli.number import Count, FiniteRange
from generator.cli.output import echo, paragraph, table
from generator.estimation import estimate_engine, estimate_spec
from generator.facts import MeasuredProfile
from generator.studies.ladders import Studies
from generator.studies.view import study_notes, study_table, with_studies
from generator.units import parse_bytes
from generator.workload import Workload

_DEFAULT_VERSION = "0.26.0"


def _gib_in_bytes(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """A size in GiB as logs print it, read exactly into bytes."""
    if value is None:
        return None
    try:
        return parse_bytes(f"{value.removesuffix('GiB').strip()} GiB")
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a size in GiB such as 83.00") from None


@click.command()
@click.argument("spec", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
@click.option("--compare", is_flag=True, help="What other choices would cost, in requests.")
@click.option(
    "--requests",
    type=Count(),
    help="Requests an endpoint is to hold at once; its max-num-seqs slots where absent.",
)
@click.option(
    "--request-tokens",
    type=Count(),
    help="Length of those requests; the workload's where absent.",
)
@click.option("--model", type=click.Path(path_type=Path), help="Model folder or config.json.")
@click.option("--gpu", help="GPU name, such as gb300.")
@click.option("--layout", help="Parallel layout, such as TP4DP4+EP or TEP8.")
@click.option("--engine-version", help=f"vLLM version; {_DEFAULT_VERSION} where absent.")
@click.option("--mtp", type=click.IntRange(0, 16), help="Speculative tokens; 0 where absent.")
@click.option("--isl", type=Count(), help="Input tokens of a request.")
@click.option("--osl", type=Count(), help="Output tokens of a request.")
@click.option(
    "--range-ratio",
    "random_range_ratio",
    type=FiniteRange(0, 1),
    help="Lengths vary from this share of --isl and --osl; 1 where absent.",
)
@engine_flags
@click.option(
    "--kv-cache-gib",
    callback=_gib_in_bytes,
    help="Measured KV cache of one GPU in GiB, such as 83.00.",
)
@click.option("--kv-cache-memory-bytes", type=Count(), help="The same in bytes.")
@profile_option
def capacity(
    *,
    spec: Path | None,
    as_json: bool,
    compare: bool,
    requests: int | None,
    request_tokens: int | None,
    model: Path | None,
    gpu: str | None,
    layout: str | None,
    profiles: tuple[MeasuredProfile, ...],
    **flags: Any,
) -> None:
    """Print the memory account and the capacity of every engine of SPEC.

    Without SPEC: of one engine described by --model, --gpu, --layout and vLLM's own flags.
    """
    if compare and (requests or request_tokens):
        raise click.UsageError("--compare takes requests of the workload: ask for others apart")
    question = RequestQuestion(requests=requests, request_tokens=request_tokens)
    given = given_flags(flags)
    if spec is not None:
        if model or gpu or layout or given:
            raise click.UsageError("SPEC says everything itself: leave the other options out")
        estimate = estimate_spec(spec, profiles)
        capacities, studies = list(estimate.capacities.values()), estimate.studies
    elif model is None or gpu is None or layout is None:
        raise click.UsageError("give SPEC, or --model, --gpu and --layout")
    else:
        capacities = [_engine_of_flags(model, gpu, layout, given, profiles)]
        studies = Studies()
    if as_json:
        document = with_studies(capacity_document(capacities, question), studies, question)
        if compare:
            document = with_comparisons(document, list(map(compare_variants, capacities)))
        echo(json.dumps(document, indent=2))
    elif compare and capacities:
        show_comparisons(distinct_engines(capacities))
    else:
        if capacities:
            show_capacity(distinct_engines(capacities), question)
        show_studies(studies)


def _engine_of_flags(
    model: Path,
    gpu: str,
    layout: str,
    flags: dict[str, Any],
    profiles: tuple[MeasuredProfile, ...],
) -> EngineCapacity:
    """The engine the options describe, their names turned into the engine's."""
    isl, osl = flags.pop("isl", None), flags.pop("osl", None)
    if (isl is None) != (osl is None):
        raise click.UsageError("--isl and --osl go together")
    if "kv_cache_gib" in flags and "kv_cache_memory_bytes" in flags:
        raise click.UsageError("give --kv-cache-gib or --kv-cache-memory-bytes, not both")
    ratio = flags.pop("random_range_ratio", None)
    if ratio is not None and isl is None:
        raise click.UsageError("--range-ratio needs --isl and --osl")
    workload = (
        Workload(isl=isl, osl=osl, random_range_ratio=1.0 if ratio is None else ratio)
        if isl and osl
        else None
    )
    version = flags.pop("engine_version", _DEFAULT_VERSION)
    for option, flag in (
        ("mtp", "speculative_config.num_speculative_tokens"),
        ("kv_cache_gib", "kv_cache_memory_bytes"),
    ):
        if option in flags:
            flags[flag] = flags.pop(option)
    return estimate_engine(model, gpu, layout, flags, version, workload, profiles=profiles)


def show_capacity(capacities: Sequence[EngineCapacity], question: RequestQuestion) -> None:
    """The memory account, the KV cache and the requests, each with its notes."""
    sections = [
        (memory_notes(capacities), memory_table(capacities)),
        (kv_cache_notes(), kv_cache_table(capacities)),
        (requests_notes(capacities), requests_table(capacities)),
        (
            memory_for_requests_notes(capacities, question),
            memory_for_requests_table(capacities, question),
        ),
    ]
    if lengths := mean_length_table(capacities):
        sections.append((mean_length_notes(capacities), lengths))
    for index, (notes, (headers, rows)) in enumerate(sections):
        if index:
            echo()
        for text in notes:
            paragraph(text)
        echo(f"\n{table(headers, rows)}")
    for index, text in enumerate(capacity_notes(capacities)):
        if not index:
            echo()
        paragraph(text)


def show_studies(studies: Studies) -> None:
    """The ladders of the phase studies, where the spec has any."""
    if not studies.planned and not studies.refused:
        return
    echo()
    for text in study_notes(studies):
        paragraph(text)
    echo(f"\n{table(*study_table(studies))}")


def show_comparisons(capacities: Sequence[EngineCapacity]) -> None:
    """Each engine's table of variants."""
    for text in comparison_notes(capacities):
        paragraph(text)
    for item in capacities:
        headers, rows = comparison_table(compare_variants(item))
        echo(f"\n{comparison_heading(item)}\n\n{table(headers, rows)}")
