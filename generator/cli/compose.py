"""pdrecipe compose: results of phase studies to the deployments worth running."""

from __future__ import annotations

import json
from pathlib import Path

import click

from generator.cli.measured import profile_option
from generator.cli.number import FiniteRange
from generator.cli.output import definitions, echo, paragraph, table, talk
from generator.cli.progress import progress
from generator.cli.result_files import read_results
from generator.composition import compose as composing
from generator.composition.compose import DEFAULT_MARGIN, Composition
from generator.composition.document import composition_document
from generator.composition.phase_points import read_phases
from generator.composition.view import (
    comparison_notes,
    comparison_rows,
    deployment_notes,
    deployment_table,
    phase_notes,
    reason_rows,
    saving_notes,
)
from generator.composition.written_groups import written_sections
from generator.estimation import SizingBasis, planned_studies, sizing_basis
from generator.facts import MeasuredProfile
from generator.files import keep_inputs
from generator.spec.reader import load_spec
from generator.spec.rewriting import rendering_hint, with_sections, write_spec
from generator.sweep.rendered_recipes import rendered_digests
from generator.workload import parse_concurrencies


def concurrencies_given(
    _: click.Context, __: click.Parameter, value: str | None
) -> tuple[int, ...]:
    """Concurrencies as recipes write them, ascending; none where the option is absent."""
    if value is None:
        return ()
    parts = value.split("x")
    if not all(part.isdecimal() and 0 < int(part) <= 999_999 for part in parts):
        raise click.BadParameter(f"{value!r} is no list such as 1x2x64")
    return tuple(sorted(set(parse_concurrencies(value))))


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("spec", type=click.Path(path_type=Path))
@click.option(
    "--margin",
    type=FiniteRange(0, 0.9),
    default=DEFAULT_MARGIN,
    show_default=True,
    help="Share of the prefill rate kept for transfer and queueing.",
)
@click.option(
    "--concurrencies",
    callback=concurrencies_given,
    help="Loads to serve, such as 1x2x64; those of SPEC's deployments, or all measured ones.",
)
@click.option(
    "--against", type=click.Path(path_type=Path), help="Another spec, to compare deployments with."
)
@click.option("--mix", "may_mix", is_flag=True, help="Also where the contracts of runs differ.")
@click.option("--write", type=click.Path(path_type=Path), help="Write SPEC with these deployments.")
@click.option("--json", "as_json", is_flag=True, help="A versioned JSON document on stdout.")
@profile_option
def compose(
    *,
    results: Path,
    spec: Path,
    margin: float,
    concurrencies: tuple[int, ...],
    against: Path | None,
    may_mix: bool,
    write: Path | None,
    as_json: bool,
    profiles: tuple[MeasuredProfile, ...],
) -> None:
    """Propose deployments for SPEC from RESULTS of its phase studies.

    Layouts on each phase's own frontier, as many prefill workers as keep one decode worker fed,
    and only what holds the load at SPEC's request length. Results whose contracts differ in more
    than the phases' own workloads are refused (exit code 3), unless --mix.
    """
    read = load_spec(spec)
    target = sizing_basis(read, profiles)
    other = load_spec(against) if against else None
    if write is not None:
        keep_inputs(write, results, *([against] if against else []))
    phases = read_phases(
        read_results(results),
        read.workload,
        read.cluster.gpu,
        planned=_planned(target),
        may_mix=may_mix,
    )
    with progress("composing") as tick:
        composition = composing.compose(
            phases,
            target,
            margin=margin,
            concurrencies=concurrencies,
            against=other.deployments if other else (),
            on_load=tick,
        )
    if write is not None:
        write_spec(write, with_sections(read, written_sections(composition)), read)
        talk(f"wrote {write}; {rendering_hint(write, read)}")
    if as_json:
        echo(json.dumps(composition_document(composition), indent=2))
    else:
        _show(composition, str(against))


def _planned(target: SizingBasis) -> dict[str, frozenset[str]]:
    """The digests of the spec's studies by the names of their recipes."""
    recipes = [study.probe.recipe for study in planned_studies(target).planned]
    return {recipe.name: rendered_digests(recipe) for recipe in recipes}


def _show(composition: Composition, against: str) -> None:
    for text in phase_notes(composition):
        paragraph(text)
    echo()
    for text in deployment_notes(composition):
        paragraph(text)
    echo(f"\n{table(*deployment_table(composition))}\n")
    echo(definitions(reason_rows(composition)))
    echo()
    for text in saving_notes(composition):
        paragraph(text)
    if composition.comparisons:
        echo()
        for text in comparison_notes(composition.comparisons, against):
            paragraph(text)
        if rows := comparison_rows(composition.comparisons):
            echo(definitions(rows))
