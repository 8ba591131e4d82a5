"""pdrecipe roofline: what limits one decode step, as a bound."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from generator.cli.efficiency import efficiency_option
from generator.cli.engine_flags import engine_flags, given_flags
from generator.cli.measured import profile_option
from generator.cli.number import Count, FiniteRange
from generator.cli.output import definitions, echo, paragraph
from generator.efficiency.factors import (
    ChosenEfficiency,
    Efficiency,
    EfficiencyTable,
    Factors,
    Phase,
)
from generator.efficiency.plan_facts import collective_latency
from generator.engine.options import options_from_flags
from generator.errors import InvalidInput, Problem
from generator.facts import MeasuredProfile, engine_defaults, gpu
from generator.hf_config import load_architecture
from generator.parallel import parse_layout
from generator.roofline.model_roofline import DecodeLoad, ModelRoofline, model_roofline
from generator.roofline.roofline_view import (
    model_roofline_document,
    model_roofline_notes,
    model_roofline_rows,
    warm_decode_document,
    warm_decode_notes,
    warm_decode_rows,
)
from generator.roofline.warm_decode import WarmDecode

_DEFAULT_VERSION = "0.26.0"

FC = TypeVar("FC", bound="Callable[..., Any] | click.Command")


def _not_negative(
    context: click.Context, option: click.Parameter, value: float | None
) -> float | None:
    """A finite number of at least 0, where one is given."""
    return value if value == 0 else _positive(context, option, value)


def _positive(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """A finite number above 0, where one is given."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value} is not a number above 0")
    return value


def _size(name: str, text: str) -> Callable[[FC], FC]:
    return click.option(name, type=float, callback=_positive, help=text)


@click.command()
@click.option("--batch", type=Count(), help="Sequences decoding at once; 8.")
@click.option("--context", "context_tokens", type=Count(), help="Tokens of each; 4096.")
@_size("--weights-gb", "Resident weights; 140.")
@click.option(
    "--reserve-gb", type=float, callback=_not_negative, help="Everything else on the GPU; 18."
)
@_size("--budget-gb", "What all of it may take; 180.")
@_size("--kv-element-bytes", "Bytes of one cached element; 2.")
@_size("--bandwidth-gb-per-s", "Effective memory rate; 5000.")
@_size("--compute-tflops", "Effective arithmetic rate; 800.")
@_size("--parameters", "Parameters of the dense model; 70e9.")
@click.option("--layers", type=Count(), help="Full-attention layers; 80.")
@click.option("--query-heads", type=Count(), help="Heads of queries; 64.")
@click.option("--kv-heads", "key_value_heads", type=Count(), help="KV heads; 8.")
@click.option("--head-dim", type=Count(), help="Elements of a head; 128.")
@click.option("--model", type=click.Path(path_type=Path), help="Model folder or config.json.")
@click.option("--gpu", "gpu_name", help="GPU name, such as gb300.")
@click.option("--layout", help="Parallel layout, such as TP4DP4+EP or TEP8.")
@click.option("--mtp", type=click.IntRange(0, 16), help="Speculative tokens; 0.")
@click.option("--acceptance-rate", type=FiniteRange(0, 1), help="Of drafted tokens; 1.")
@click.option("--engine-version", help=f"vLLM version; {_DEFAULT_VERSION}.")
@engine_flags
@profile_option
@efficiency_option
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
def roofline(
    *,
    model: Path | None,
    gpu_name: str | None,
    layout: str | None,
    profiles: tuple[MeasuredProfile, ...],
    factors: Factors,
    as_json: bool,
    **given: Any,
) -> None:
    """Print a bound of one warm decode step: of a dense model, or of --model.

    Alone, the reader of the B200 article: a dense 70B model on one GPU. With --model, --gpu and
    --layout the same accounting of a model from its architecture and the GPU's published peaks.
    """
    dense = {name: given.pop(name) for name in WarmDecode.__dataclass_fields__}
    flags = given_flags(given)
    if model is None:
        if gpu_name or layout or profiles or factors.efficiencies or flags:
            raise click.UsageError("engine flags, --gpu and --layout go with --model")
        _show_dense(WarmDecode(**{k: v for k, v in dense.items() if v is not None}), as_json)
        return
    if gpu_name is None or layout is None:
        raise click.UsageError("--model goes with --gpu and --layout")
    batch, context = dense.pop("batch"), dense.pop("context_tokens")
    if any(value is not None for value in dense.values()):
        raise click.UsageError("the model and the GPU say the sizes: leave those options out")
    load = DecodeLoad(
        sequences=batch or WarmDecode().batch,
        context_tokens=context or WarmDecode().context_tokens,
        acceptance_rate=flags.pop("acceptance_rate", 1.0),
    )
    latency = collective_latency()
    flags["layout"] = layout
    version = flags.setdefault("engine_version", _DEFAULT_VERSION)
    result = replace(
        _of_model(model, gpu_name, flags, load, latency.value / 1e6, profiles),
        efficiency=_decode_efficiency(factors.efficiencies, gpu_name, version),
    )
    if as_json:
        echo(json.dumps(model_roofline_document(result), indent=2))
        return
    echo(definitions(model_roofline_rows(result)))
    echo()
    for text in model_roofline_notes(result, latency.value):
        paragraph(text)


def _show_dense(reader: WarmDecode, as_json: bool) -> None:
    if not reader.is_computable:
        raise click.UsageError("these sizes and rates give figures beyond what can be computed")
    if as_json:
        echo(json.dumps(warm_decode_document(reader), indent=2))
        return
    echo(definitions(warm_decode_rows(reader)))
    echo()
    for text in warm_decode_notes():
        paragraph(text)


def _decode_efficiency(
    efficiencies: tuple[Efficiency, ...], gpu_name: str, version: str
) -> ChosenEfficiency | None:
    if not efficiencies:
        return None
    try:
        return EfficiencyTable(efficiencies).of(gpu_name, version, Phase.DECODE)
    except LookupError as error:
        hint = "calibrate with points that decode"
        raise InvalidInput(Problem(message=str(error), hint=hint, source="--efficiency")) from None


def _of_model(
    model: Path,
    gpu_name: str,
    flags: dict[str, Any],
    load: DecodeLoad,
    collective_latency_s: float,
    profiles: tuple[MeasuredProfile, ...],
) -> ModelRoofline:
    accelerator = gpu(gpu_name)
    defaults = engine_defaults("vllm", flags.pop("engine_version"), accelerator)
    if "mtp" in flags:
        flags["speculative_config.num_speculative_tokens"] = flags.pop("mtp")
    layout = parse_layout(flags.pop("layout"))
    options = replace(options_from_flags(flags), layout=layout)
    return model_roofline(
        load_architecture(model),
        accelerator,
        options,
        defaults,
        load,
        collective_latency_s=collective_latency_s,
        profiles=profiles,
    )
