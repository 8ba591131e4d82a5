"""Efficiencies at the terminal: fitted from results, and read by --efficiency."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from generator.architecture import ModelArchitecture
from generator.checks.known_models import chosen_model
from generator.cli.output import echo, paragraph, table, talk
from generator.efficiency.factor_file import efficiency_document, read_factors
from generator.efficiency.factor_view import (
    acceptance_lines,
    efficiency_notes,
    efficiency_table,
    residual_table,
    unused_lines,
)
from generator.efficiency.factors import NO_FACTORS
from generator.efficiency.measured_efficiency import EfficiencyCalibration, ModelOf, calibrated
from generator.efficiency.plan_facts import collective_latency
from generator.errors import InvalidInput, Problem
from generator.files import keep_others, write_text_atomically
from generator.hf_config import load_architecture
from generator.results.point import MeasuredPoint
from generator.results.point_file import read_points
from generator.spec.reader import load_spec

_FACTORS = re.compile(rb'\A{\s*"pdrecipe_efficiency"')
_MODEL_KEYS = ("model.repo", "model.path")


def efficiency_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --efficiency, which gives the command ``factors``: those of the file, or none."""
    return click.option(
        "--efficiency",
        "factors",
        type=click.Path(path_type=Path),
        callback=lambda _, __, path: read_factors(path) if path else NO_FACTORS,
        help="File of factors, as calibrate --results --out makes it.",
    )(command)


def calibrate_results(
    results: Path, *, spec: Path | None, model: str | None, out: Path | None, as_json: bool
) -> None:
    """Fit factors to the points of a file of results, show them, and write them to ``out``."""
    if out is not None:
        keep_others(out, _FACTORS, "a file of factors")
    calibration = calibrated(
        read_points(results),
        _model_of(spec, model),
        collective_latency_s=collective_latency().value / 1e6,
        source=str(results),
        as_of=datetime.fromtimestamp(results.stat().st_mtime, tz=UTC).date().isoformat(),
    )
    text = json.dumps(efficiency_document(calibration), indent=2)
    if as_json:
        echo(text)
    else:
        _show(calibration)
    if out is not None:
        write_text_atomically(out, f"{text}\n")
        talk(f"wrote {out}; predict with it: pdrecipe roofline --efficiency {out}")


def _show(calibration: EfficiencyCalibration) -> None:
    found = calibration.efficiencies
    echo(f"{table(*efficiency_table(found))}\n\n{table(*residual_table(found))}\n")
    notes = (efficiency_notes(found), acceptance_lines(calibration), unused_lines(calibration))
    for text in itertools.chain(*notes):
        paragraph(text)


def _model_of(spec: Path | None, model: str | None) -> ModelOf:
    """The model of each point: the one that is given, for points of one model, or the one named.

    The package knows the models of known repositories; others have to be given.
    """
    if spec is None and model is None:
        return _named_model
    given = load_architecture(load_spec(spec).model_config) if spec else chosen_model(model or "")
    first: list[str] = []

    def of(point: MeasuredPoint) -> ModelArchitecture:
        name = _model_name(point)
        first.append(name)
        if name != first[0]:
            message = f"is of model {name!r}, where the first point is of {first[0]!r}"
            raise InvalidInput(Problem(message=message, hint="filter the results"))
        return given

    return of


def _named_model(point: MeasuredPoint) -> ModelArchitecture:
    name = _model_name(point)
    try:
        return chosen_model(name)
    except InvalidInput:
        message = f"its model {name!r} is not known"
        raise InvalidInput(Problem(message=message, hint="give it with --model")) from None


def _model_name(point: MeasuredPoint) -> str:
    return next((point.contract[key] for key in _MODEL_KEYS if key in point.contract), "not stated")
