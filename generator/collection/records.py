"""Runs into points: one for every recipe and concurrency, with where its figures are from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from generator.collection.contract import versions_of_run
from generator.collection.gsm8k import BENCHMARK, AccuracyRun, mean_score
from generator.collection.measurement import Measurement
from generator.collection.ran_recipe import RanRecipe
from generator.collection.run_reading import RunReading
from generator.collection.validity import invalidities
from generator.results.figure_range import check_figures
from generator.results.point import Accuracy, MeasuredPoint, Subject
from generator.results.run_marker import MARKER_FILE

Name = Callable[[Path], str]
"""A file as records call it."""

ScoredRuns = Mapping[str, list[AccuracyRun]]
"""Accuracy runs by the deployment they were of."""


def scored_runs(readings: Iterable[RunReading]) -> dict[str, list[AccuracyRun]]:
    """The accuracy runs of all readings by deployment."""
    found: dict[str, list[AccuracyRun]] = {}
    for reading in readings:
        if reading.recipe is not None and reading.accuracy:
            found.setdefault(reading.recipe.deployment, []).extend(reading.accuracy)
    return found


def points_of_run(
    reading: RunReading, scored: ScoredRuns, threshold: float | None, name: Name
) -> list[MeasuredPoint]:
    """The points of a run; ``threshold`` is the least accuracy that is good enough.

    One that could not be read back, with figures that no run measures, would spoil the whole file
    of results: it is a problem of its report.
    """
    recipe = reading.recipe
    if recipe is None:
        return []
    accuracy_runs = scored.get(recipe.deployment, [])
    points = []
    for measured in reading.measurements:
        point = _point(reading, recipe, measured, accuracy_runs, threshold, name)
        try:
            check_figures(point)
        except ValueError as error:
            reading.note(measured.file, f"is left out: {error}")
        else:
            points.append(point)
    return points


def _point(
    reading: RunReading,
    recipe: RanRecipe,
    measured: Measurement,
    accuracy_runs: list[AccuracyRun],
    threshold: float | None,
    name: Name,
) -> MeasuredPoint:
    point = MeasuredPoint(
        origin=reading.origin,
        subject=Subject(
            recipe=recipe.name,
            digest=recipe.digest,
            configuration=recipe.configuration,
            pools=recipe.pools,
            phase=recipe.phase,
            concurrency=measured.concurrency,
        ),
        gpus=reading.gpus,
        requests=measured.requests,
        tokens=measured.tokens,
        duration_s=measured.duration_s,
        rates_over_s=measured.rates_over_s,
        run=name(reading.run.path),
        client=measured.client,
        started_at=None if measured.started is None else measured.started.isoformat(),
        latencies=measured.latencies,
        client_tokens_per_s_per_user=measured.tokens_per_s_per_user,
        preemptions=_preemptions(reading, measured),
        accuracy=_accuracy(accuracy_runs, threshold),
        goodput=measured.goodput,
        contract=_contract(reading, recipe, measured),
        factors=recipe.factors,
        sources=_sources(reading, measured, accuracy_runs, name),
    )
    return replace(point, invalid=invalidities(point, measured.timing, measured.in_flight))


def _preemptions(reading: RunReading, measured: Measurement) -> int | None:
    if measured.preemptions is not None or measured.started is None:
        return measured.preemptions
    return reading.logs.preemptions(measured.started, measured.duration_s)


def _accuracy(runs: list[AccuracyRun], threshold: float | None) -> Accuracy | None:
    if not runs:
        return None
    return Accuracy(benchmark=BENCHMARK, score=mean_score(runs), threshold=threshold)


def _contract(reading: RunReading, recipe: RanRecipe, measured: Measurement) -> dict[str, str]:
    """The recipe's part, what the client says of its load, and the versions that ran."""
    versions = versions_of_run(recipe.pins, reading.logs.versions, recipe.lock.versions)
    return dict(sorted({**recipe.contract, **measured.conditions, **versions}.items()))


def _sources(
    reading: RunReading, measured: Measurement, accuracy_runs: list[AccuracyRun], name: Name
) -> dict[str, str]:
    """Which file each group of figures is from; ``figures`` are counts, tokens and the duration."""
    files = {
        "figures": measured.file,
        "latencies": measured.latency_file or measured.file,
        "recipe": reading.recipe_file,
        "gpus": reading.recipe_file,
        "gpus_held": reading.held_file,
        "versions": reading.version_file,
    }
    found = {group: name(file) for group, file in files.items() if file is not None}
    if measured.tokens.server_output is not None:
        found["server_tokens"] = name(measured.file)
    if measured.goodput is not None:
        found["goodput"] = found["latencies"]
    if accuracy_runs:
        found["accuracy"] = ", ".join(sorted(name(each.file) for each in accuracy_runs))
    if measured.preemptions is not None:
        found["preemptions"] = name(reading.run.path / MARKER_FILE)
    elif _preemptions(reading, measured) is not None:
        found["preemptions"] = ", ".join(name(each) for each in reading.log_files)
    return found
