"""What a job of a recipe file would be as a rehearsal, and whether it can be one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from generator.checks.known_models import model_of
from generator.collection.configuration import engine_pools
from generator.documents import parse_document
from generator.errors import InvalidInput, PdrecipeError, Problem
from generator.normal_form import normal_form
from generator.recipe.expansion import variants
from generator.rehearsal.plan import CapacityShare, RehearsalPlan, plan_rehearsal
from generator.rehearsal.timing import (
    MOCKERS_TIMING,
    Timing,
    TimingSource,
    measured_timing,
    roofline_timing,
)
from generator.rehearsal.topology import topology_of
from generator.results.point_file import read_points
from generator.sweep.swept_recipe import SweptRecipe


def planned_rehearsal(
    recipe: SweptRecipe,
    wanted: Sequence[int | CapacityShare],
    scale: int | None,
    timing: str,
) -> tuple[RehearsalPlan, Timing]:
    """The rehearsal of a job at the loads wanted, its own where there are none.

    ``timing`` is a TimingSource or a file of points. Raises InvalidInput or NothingFits, naming the
    recipe's file, where it cannot be rehearsed.
    """
    try:
        return _planned(recipe, wanted, scale, timing)
    except PdrecipeError as error:
        # The arithmetic knows no files.
        raise type(error)(
            problem if problem.source else replace(problem, source=recipe.file)
            for problem in error.problems
        ) from error


def demand_rehearsable(recipes: Iterable[SweptRecipe], scale: int | None, timing: str) -> None:
    """Raise InvalidInput with every problem of jobs that cannot be rehearsed."""
    problems: list[Problem] = []
    for recipe in recipes:
        try:
            planned_rehearsal(recipe, (), scale, timing)
        except PdrecipeError as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)


def _planned(
    recipe: SweptRecipe, wanted: Sequence[int | CapacityShare], scale: int | None, timing: str
) -> tuple[RehearsalPlan, Timing]:
    document = parse_document(recipe.text, recipe.file)
    form = normal_form(next(iter(variants(document))))
    model = model_of(form)
    if model is None:
        message = "runs a model that is not known, so that its capacity cannot be computed"
        hint = "the models known: pdrecipe check --help; a local one: model.path"
        raise InvalidInput(Problem(message=message, hint=hint))
    plan = plan_rehearsal(topology_of(form, model), wanted, scale)
    if timing == TimingSource.MOCKER:
        return plan, MOCKERS_TIMING
    if timing == TimingSource.ROOFLINE:
        return plan, roofline_timing(form, model, plan)
    return plan, measured_timing(read_points(Path(timing)), engine_pools(form), plan)
