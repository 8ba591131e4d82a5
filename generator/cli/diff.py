"""pdrecipe diff: what two recipes, or two sets of them, mean differently, and what follows."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from generator.checks.known_models import chosen_model, model_of
from generator.cli.measured import profile_option
from generator.cli.output import echo, talk
from generator.errors import AnswerIsNo, InvalidInput, Problem
from generator.facts import MeasuredProfile
from generator.recipe_diff.document import diff_document
from generator.recipe_diff.findings import findings_by_source
from generator.recipe_diff.git_external_diff import (
    GitCall,
    external_diff_sides,
    git_call,
    plain_diff,
)
from generator.recipe_diff.markdown import diff_markdown
from generator.recipe_diff.review import review
from generator.recipe_diff.sides import Sides, sides_of_arguments
from generator.recipe_diff.text import diff_text
from generator.recipe_diff.wording import SYMBOLS

_COLOURS = {SYMBOLS["added"]: "green", SYMBOLS["removed"]: "red", SYMBOLS["changed"]: "yellow"}


@click.command()
@click.argument("sides", metavar="BEFORE AFTER | REV..REV[:FOLDER]", nargs=-1, required=True)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, for a pull request's comment, or for programs.",
)
@click.option("--exit-code", is_flag=True, help="Exit 10 where recipes differ by meaning.")
@click.option(
    "--model",
    metavar="DIR|ID",
    help="Model of all these recipes: a folder with its config.json, or a known repository.",
)
@profile_option
def diff(
    *,
    sides: tuple[str, ...],
    output_format: str,
    exit_code: bool,
    model: str | None,
    profiles: tuple[MeasuredProfile, ...],
) -> None:
    """Compare recipes by meaning: layout, order, spelling, comments and defaults do not count.

    BEFORE and AFTER are files, folders whose files are paired by name, or REV:PATH of git;
    REV..REV is what lies between two revisions. Git may call it as `diff.<driver>.command`.
    """
    call = git_call(sides, os.environ)
    if call is not None:
        _answer_git(call, output_format, model, profiles)
        return
    document = _document(sides_of_arguments(sides, sys.stdin.buffer), model, profiles)
    _show(document, output_format)
    if document["problems"]:
        raise SystemExit(InvalidInput.exit_code)
    if exit_code and document["summary"]["different"]:
        raise SystemExit(AnswerIsNo.exit_code)


def _document(
    sides: Sides, model: str | None, profiles: tuple[MeasuredProfile, ...]
) -> dict[str, Any]:
    """The answer; its problems are told on stderr. Raises InvalidInput where nothing is left."""
    chosen = chosen_model(model) if model is not None else None
    found = review(
        sides.before,
        sides.after,
        model_of if chosen is None else lambda _: chosen,
        partial(findings_by_source, model=chosen),
        profiles,
    )
    if not found.files:
        hint = "name recipe files, or folders that hold some"
        message = f"no recipe in {sides.before.label} or {sides.after.label}"
        raise InvalidInput(found.problems or Problem(message=message, hint=hint))
    for problem in found.problems:
        talk(f"{click.style('error', fg='red')}: {problem}")
    return diff_document(found)


def _show(document: dict[str, Any], output_format: str) -> None:
    if output_format == "json":
        echo(json.dumps(document, indent=2))
    elif output_format == "markdown":
        echo(diff_markdown(document))
    else:
        _show_lines(diff_text(document))


def _show_lines(lines: Sequence[str]) -> None:
    for line in lines:
        colour = _COLOURS.get(line.lstrip()[:1])
        echo(click.style(line, fg=colour) if colour else line)


def _answer_git(
    call: GitCall, output_format: str, model: str | None, profiles: tuple[MeasuredProfile, ...]
) -> None:
    """One file of `git diff`; what is no recipe is shown line by line, as git would have."""
    try:
        document = _document(external_diff_sides(call), model, profiles)
    except InvalidInput:
        for line in plain_diff(call):
            echo(line)
        return
    _show(document, output_format)
