"""pdrecipe calibrate: what start-up logs imply of memory, and measured points of speed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from generator.calibration import (
    Calibration,
    EngineDescription,
    SpecEngines,
    Subject,
    calibration_of,
    extend_profile_file,
    measured_profile,
    subject_of_description,
    write_profile_file,
)
from generator.calibration.document import calibration_document
from generator.calibration.view import (
    comparison_notes,
    comparison_table,
    finding_lines,
    heading,
    memory_notes,
    memory_table,
    readings_table,
    requests_lines,
)
from generator.cli.engine_flags import engine_flags, given_flags
from generator.cli.number import Count
from generator.cli.output import echo, paragraph, table, talk
from generator.cli.progress import progress
from generator.errors import InvalidInput, Problem
from generator.estimation import study_probes
from generator.startup_log import StartupLog, read_startup_log
from generator.workload import Workload


@click.command()
@click.argument("logs", type=click.Path(path_type=Path), nargs=-1, metavar="[LOG...]")
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
@click.option(
    "--write",
    "profile",
    type=click.Path(path_type=Path),
    help="File of measured start-ups to make or extend, for --profile.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Fit factors of speed to the points of a file of results, instead of reading logs.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="File for those factors, for --efficiency."
)
@click.option("--spec", type=click.Path(path_type=Path), help="Spec whose engines the logs are of.")
@click.option("--engine", help="Name of the engine in SPEC; found by the log where absent.")
@click.option("--model", type=click.Path(path_type=Path), help="Model folder or config.json.")
@click.option("--gpu", help="GPU name, such as gb300.")
@click.option("--layout", help="Parallel layout, such as TP4DP4+EP; the log's where absent.")
@click.option("--engine-version", help="vLLM version; the log's where absent.")
@click.option("--mtp", type=click.IntRange(0, 16), help="Speculative tokens; the log's or 0.")
@click.option("--isl", type=Count(), help="Input tokens of a request.")
@click.option("--osl", type=Count(), help="Output tokens of a request.")
@click.option("--concurrency", type=Count(), help="Requests in flight per endpoint.")
@engine_flags
def calibrate(
    *,
    logs: tuple[Path, ...],
    as_json: bool,
    profile: Path | None,
    results: Path | None,
    out: Path | None,
    spec: Path | None,
    engine: str | None,
    **options: Any,
) -> None:
    """Read the start-up logs of vLLM workers and compare them with what is predicted.

    Name the engine by --spec, or by --model, --gpu and vLLM's own flags; what a log tells itself
    need not be given. Each value is cited with its line; what is not there is NOT FOUND.

    With --results instead of logs, fit the factors that turn bounds on time into predictions to
    the measured points of pdrecipe collect. The model is the one that the points name, or that of
    --model or --spec; flags are those that ran.
    """
    given = given_flags(options)
    if results is not None:
        model = given.pop("model", None)
        if logs or given or engine or profile or (spec and model):
            raise click.UsageError("--results goes with --model or --spec, --out and --json only")
        from generator.cli.efficiency import calibrate_results  # numpy is slow to load

        calibrate_results(
            results, spec=spec, model=str(model) if model else None, out=out, as_json=as_json
        )
        return
    if not logs:
        raise click.UsageError("name start-up logs, or a file of results by --results")
    if out is not None:
        raise click.UsageError("--out goes with --results")
    calibrations = _calibrate(_read(logs), _subjects(spec, engine, given))
    if as_json:
        echo(json.dumps(calibration_document(calibrations), indent=2))
    else:
        _show(calibrations)
    if profile is not None:
        _write(profile, calibrations, logs)


def _read(logs: Sequence[Path]) -> list[StartupLog]:
    """Every log, or all problems of all of them."""
    found: list[StartupLog] = []
    problems: list[Problem] = []
    with progress("MiB read:") as tick:
        for path in logs:
            try:
                found.append(read_startup_log(path, on_chunk=partial(tick, path.name)))
            except InvalidInput as error:
                problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return found


def _calibrate(
    logs: Sequence[StartupLog], subject_of: Callable[[StartupLog], Subject] | None
) -> list[Calibration]:
    """Every log under its engine, or all problems of all of them."""
    found: list[Calibration] = []
    problems: list[Problem] = []
    for log in logs:
        try:
            found.append(calibration_of(log, subject_of(log) if subject_of else None))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(dict.fromkeys(problems))
    return found


def _subjects(
    spec: Path | None, engine: str | None, given: dict[str, Any]
) -> Callable[[StartupLog], Subject] | None:
    """How the engine of a log is found; None where none is described."""
    if spec is not None:
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise click.UsageError(f"SPEC says everything about the engine: leave out {names}")
        engines = SpecEngines(spec, study_probes(spec))
        return lambda log: engines.subject(log, engine)
    if engine is not None:
        raise click.UsageError("--engine names an engine of --spec")
    if not given:
        return None
    if missing := [f"--{name}" for name in ("model", "gpu") if name not in given]:
        raise click.UsageError(f"to compare with an engine, add {' and '.join(missing)}")
    description = _description(given)
    return lambda log: subject_of_description(description, log)


def _description(given: dict[str, Any]) -> EngineDescription:
    isl, osl = given.pop("isl", None), given.pop("osl", None)
    if (isl is None) != (osl is None):
        raise click.UsageError("--isl and --osl go together")
    if "mtp" in given:
        given["speculative_config.num_speculative_tokens"] = given.pop("mtp")
    return EngineDescription(
        model=given.pop("model"),
        gpu=given.pop("gpu"),
        layout=given.pop("layout", None),
        engine_version=given.pop("engine_version", None),
        concurrency=given.pop("concurrency", None),
        workload=Workload(isl=isl, osl=osl) if isl and osl else None,
        flags=given,
    )


def _show(calibrations: Sequence[Calibration]) -> None:
    """The account of every log, then each log's comparison, findings and readings."""
    if memory := memory_table(calibrations):
        for text in memory_notes(calibrations):
            paragraph(text)
        echo(f"\n{table(*memory)}\n")
    for index, item in enumerate(calibrations):
        if index:
            echo()
        paragraph(heading(item))
        for text in (*comparison_notes(item), *requests_lines(item)):
            paragraph(text)
        if compared := comparison_table(item):
            echo(f"\n{table(*compared)}\n")
        for is_warning, text in finding_lines(item):
            paragraph(f"{'warning' if is_warning else 'note'}: {text}")
        echo(f"\n{table(*readings_table(item))}")


def _write(path: Path, calibrations: Sequence[Calibration], logs: Sequence[Path]) -> None:
    """Extend the profile file by all logs, or by none of them."""
    measured = []
    problems: list[Problem] = []
    for calibration, log in zip(calibrations, logs, strict=True):
        try:
            measured.append(measured_profile(calibration, _day_of(log)))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    update = extend_profile_file(path, measured)
    write_profile_file(update)
    for message in update.messages:
        talk(f"{path}: {message}")


def _day_of(log: Path) -> str:
    """The day a log was last written; vLLM's own stamps have no year."""
    return datetime.fromtimestamp(log.stat().st_mtime, tz=UTC).date().isoformat()
