"""pdrecipe model: a model's architecture, its weights on a rank, and what a request costs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from generator.cli.engine_flags import given_flags
from generator.cli.number import Count
from generator.cli.output import definitions, echo, paragraph, table
from generator.engine.options import options_from_flags
from generator.facts import engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.model_summary.document import model_document
from generator.model_summary.summary import ModelSummary, summarize_model
from generator.model_summary.view import (
    architecture_rows,
    cache_rows,
    layouts_notes,
    layouts_table,
    weights_notes,
    weights_table,
)
from generator.parallel import ParallelLayout, parse_layout

_DEFAULT_TOKENS = 9216
_FLAG = "As vLLM's flag."


@click.command()
@click.argument("model_dir", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--tp", type=Count(), help="Tensor parallel size, short for --layout TPn.")
@click.option("--layout", help="Parallel layout, such as TP4DP4+EP; TP1 where absent.")
@click.option(
    "--tokens",
    type=Count(),
    help=f"Length of a request; {_DEFAULT_TOKENS}, or the model's context, where absent.",
)
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
@click.option("--mtp", type=click.IntRange(0, 16), help="Speculative tokens; 0 where absent.")
@click.option("--kv-cache-dtype", help=_FLAG)
@click.option("--mamba-ssm-cache-dtype", help=_FLAG)
@click.option("--mamba-cache-dtype", help=_FLAG)
@click.option("--block-size", type=Count(), help=_FLAG)
@click.option("--all2all-backend", help=_FLAG)
@click.option("--attention-backend", help=_FLAG)
@click.option("--enable-prefix-caching/--no-enable-prefix-caching", default=None, help=_FLAG)
@click.option("--language-model-only", is_flag=True, default=None, help=_FLAG)
@click.option(
    "--gpu", "gpu_name", default="gb300", show_default=True, help="GPU that decides defaults."
)
@click.option("--engine-version", default="0.26.0", show_default=True, help="vLLM version.")
def model(
    *,
    model_dir: Path,
    tp: int | None,
    layout: str | None,
    tokens: int | None,
    as_json: bool,
    mtp: int | None,
    gpu_name: str,
    engine_version: str,
    **flags: Any,
) -> None:
    """Print what the model in DIR is made of and what it costs on a rank.

    DIR is a Hugging Face folder or its config.json; weight files are not needed. A model with
    layers that are not modelled is refused by name.
    """
    if tp is not None and layout is not None:
        raise click.UsageError("give --tp or --layout, not both")
    given = given_flags(flags)
    if mtp:
        given["speculative_config.num_speculative_tokens"] = mtp
    chosen = parse_layout(layout) if layout else ParallelLayout(tensor=tp or 1)
    architecture = load_architecture(model_dir)
    summary = summarize_model(
        architecture,
        replace(options_from_flags(given), layout=chosen),
        engine_defaults("vllm", engine_version, gpu(gpu_name)),
        tokens or min(_DEFAULT_TOKENS, architecture.max_position_embeddings),
    )
    if as_json:
        echo(json.dumps(model_document(summary), indent=2))
    else:
        show_model(summary)


def show_model(summary: ModelSummary) -> None:
    """The architecture, the weights of a rank, its cache, and the same at other TP sizes."""
    echo(definitions(architecture_rows(summary)))
    echo()
    for text in weights_notes(summary):
        paragraph(text)
    echo(f"\n{table(*weights_table(summary))}\n")
    echo(definitions(cache_rows(summary)))
    echo()
    for text in layouts_notes(summary):
        paragraph(text)
    echo(f"\n{table(*layouts_table(summary))}")
