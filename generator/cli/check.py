"""pdrecipe check: what a reviewer would find in recipes."""

from __future__ import annotations

import difflib
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from generator.checks.finding import CheckResult
from generator.checks.fixes import apply_edits
from generator.checks.known_models import chosen_model
from generator.checks.report import github_lines, json_document, summary_line, text_lines
from generator.checks.rule import Edit, Severity
from generator.checks.run import Selection, check_recipes
from generator.cli.output import echo, problem_lines, talk
from generator.errors import AnswerIsNo, InvalidInput, Problem
from generator.files import write_text_atomically
from generator.recipe.inputs import RecipeInputs, read_recipes
from generator.recipe.sources import STANDARD_INPUT, collect_sources

_SEVERITIES = click.Choice([str(each) for each in Severity])


def _ids(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Rules and families, separated by commas or by repeating the option."""
    return tuple(each.strip().upper() for value in values for each in value.split(",") if each)


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
)
@click.option("--select", multiple=True, callback=_ids, help="Only these rules or families.")
@click.option("--ignore", multiple=True, callback=_ids, help="Not these rules or families.")
@click.option(
    "--threshold",
    type=_SEVERITIES,
    help="Least severity that makes exit code 10.  [default: error]",
)
@click.option("--strict", is_flag=True, help="Short for --threshold warning.")
@click.option(
    "--model",
    metavar="DIR|ID",
    help="Model of all these recipes: a folder with its config.json, or a known repository.",
)
@click.option("--fix", is_flag=True, help="Write the safe fixes into the files.")
@click.option("--dry-run", is_flag=True, help="With --fix: show the changes, write nothing.")
def check(
    *,
    paths: tuple[str, ...],
    format_: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    threshold: str | None,
    strict: bool,
    model: str | None,
    fix: bool,
    dry_run: bool,
) -> None:
    """Check the srt-slurm recipes at each PATH: files, folders, globs, - or REV:PATH.

    Exit codes: 0 nothing at or above the threshold, 10 findings, 2 usage, 3 unreadable input.
    """
    if strict and threshold is not None:
        raise click.UsageError("--strict is --threshold warning: give one of them")
    if dry_run and not fix:
        raise click.UsageError("--dry-run goes with --fix")
    architecture = None if model is None else chosen_model(model)
    selection = _selection(select, ignore)
    inputs = _read(paths)
    result = check_recipes(inputs, model=architecture, selection=selection)
    if fix:
        made = _fix(inputs, result, is_dry=dry_run)
        if made and not dry_run:
            result = check_recipes(_read(paths), model=architecture, selection=selection)
    if not dry_run:
        _show(result, format_)
    for line in problem_lines(InvalidInput(result.problems)):
        talk(line)
    if format_ == "text" and inputs.recipes:
        talk(summary_line(result))
    _end(result, Severity.WARNING if strict else Severity(threshold or Severity.ERROR))


def _selection(select: tuple[str, ...], ignore: tuple[str, ...]) -> Selection:
    try:
        return Selection(select=select, ignore=ignore)
    except InvalidInput as error:
        raise click.UsageError("; ".join(map(str, error.problems))) from None


def _read(paths: tuple[str, ...]) -> RecipeInputs:
    """The recipes at the paths; that there are none at all is a problem as well."""
    inputs = read_recipes(collect_sources(paths, stdin=sys.stdin.buffer))
    if inputs.recipes or inputs.problems:
        return inputs
    skipped = len(inputs.skipped)
    files = "1 other YAML file" if skipped == 1 else f"{skipped} other YAML files"
    beside = f", only {files}" if skipped else ""
    message = f"no recipe found in {', '.join(paths)}{beside}"
    hint = "give recipe files, or a folder that has them"
    return replace(inputs, problems=(Problem(message=message, hint=hint),))


def _show(result: CheckResult, format_: str) -> None:
    if format_ == "json":
        echo(json.dumps(json_document(result), indent=2))
    elif format_ == "sarif":
        from generator.checks.sarif import sarif_document

        echo(json.dumps(sarif_document(result), indent=2))
    else:
        for line in github_lines(result) if format_ == "github" else text_lines(result):
            echo(line)


def _end(result: CheckResult, threshold: Severity) -> None:
    """Exit with the code that the answer earns; unreadable input comes first."""
    if result.problems:
        click.get_current_context().exit(InvalidInput.exit_code)
    if any(each.rule.severity.reaches(threshold) for each in result.findings):
        click.get_current_context().exit(AnswerIsNo.exit_code)


# --- fixes ------------------------------------------------------------------------------------


def _fix(inputs: RecipeInputs, result: CheckResult, *, is_dry: bool) -> int:
    """Fix what is safe to fix, or show it; the number of values fixed."""
    edits: defaultdict[str, list[Edit]] = defaultdict(list)
    for finding in result.findings:
        if finding.edit is not None:
            edits[finding.source].append(finding.edit)
    total = files = 0
    for recipe in inputs.recipes:
        source = recipe.source
        if source.name not in edits:
            continue
        if source.revision is not None or source.name == STANDARD_INPUT:
            talk(f"{source.name}: is no file that could be fixed")
            continue
        fixed, made = apply_edits(recipe.document.text, edits[source.name], source.name)
        if made and is_dry:
            for line in _changes(source.name, recipe.document.text, fixed):
                echo(line)
        elif made:
            write_text_atomically(Path(source.name), fixed)
        total += made
        files += made > 0
    verb = "would fix" if is_dry else "fixed"
    talk(f"{verb} {total} values in {files} files")
    return total


def _changes(name: str, before: str, after: str) -> Iterator[str]:
    yield from difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, f"{name} (fixed)", lineterm="", n=2
    )
