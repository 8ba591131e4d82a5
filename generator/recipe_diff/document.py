"""The diff as a versioned JSON document, which text and Markdown are rendered from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from generator.errors import Problem
from generator.normal_form import NormalForm
from generator.recipe_diff.consequences import Consequences, EngineFigures
from generator.recipe_diff.difference import Action, Change
from generator.recipe_diff.effects import strongest
from generator.recipe_diff.pairs import FileDiff, Status, VariedChange
from generator.recipe_diff.review import ChangeGroup, FileReview, Review, ReviewFinding, ReviewSide
from generator.wording import dotted_path, shown

JSON_VERSION = 1


def diff_document(review: Review) -> dict[str, Any]:
    """The JSON answer, valid against schemas/diff.schema.json."""
    files = review.files
    return {
        "version": JSON_VERSION,
        "before": _side(review.before),
        "after": _side(review.after),
        "models": _models(review),
        "summary": _summary(review),
        "groups": [_group(group) for group in review.groups],
        "recipes": [
            _recipe(each)
            for each in files
            if each.diff.differs or each.diff.inexpressible or each.appeared or each.vanished
        ],
        "problems": [_problem(each) for each in review.problems],
    }


def _models(review: Review) -> list[str]:
    names = (
        name
        for each in review.files
        for jobs in each.consequences
        for name in jobs.found.models
        if name is not None
    )
    return list(dict.fromkeys(names))


def _side(side: ReviewSide) -> dict[str, Any]:
    return {
        "name": side.label,
        "recipes": len(side.inputs.recipes),
        "skipped": list(side.inputs.skipped),
    }


def _summary(review: Review) -> dict[str, Any]:
    diffs = [each.diff for each in review.files]
    counts = {
        status.value: sum(diff.status is status for diff in diffs)
        for status in Status
        if status is not Status.SAME
    }
    effects = [group.change.effect for group in review.groups]
    return {
        "different": any(diff.differs for diff in diffs),
        "compared": sum(diff.before is not None and diff.after is not None for diff in diffs),
        "unchanged": sum(diff.status is Status.SAME for diff in diffs),
        **counts,
        "values_compared": sum(pair.diff.compared for diff in diffs for pair in diff.pairs),
        "effect": _text(strongest(effects)),
        "findings": {
            "appeared": sum(len(each.appeared) for each in review.files),
            "vanished": sum(len(each.vanished) for each in review.files),
        },
    }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _group(group: ChangeGroup) -> dict[str, Any]:
    return {
        **_change(group.change),
        "recipes": list(group.recipes),
        "siblings": list(group.siblings),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "path": dotted_path(change.path),
        "action": change.action.value,
        "before": _plain(change.before),
        "after": _plain(change.after),
        "default": _plain(change.default),
        "effect": change.effect.value,
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it: tuples as lists, and the infinities, which it lacks, as text."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value)
    return value


def _recipe(review: FileReview) -> dict[str, Any]:
    diff = review.diff
    before, after = diff.before, diff.after
    line_before = _lines(diff, lambda pair: pair[0])
    line_after = _lines(diff, lambda pair: pair[1])

    def placed(varied: VariedChange) -> dict[str, Any]:
        return {
            **_change(varied.change),
            "before_line": line_before(varied),
            "after_line": line_after(varied),
            "jobs": len(varied.suffixes),
        }

    return {
        "path": diff.path,
        "status": diff.status.value,
        "before_path": before.path if before else None,
        "after_path": after.path if after else None,
        "jobs": {
            "before": len(before.forms) if before else 0,
            "after": len(after.forms) if after else 0,
            "compared": len(diff.pairs),
            "changed": sum(not pair.diff.is_empty for pair in diff.pairs),
            "added": list(diff.added_variants),
            "removed": list(diff.removed_variants),
        },
        "effect": _text(strongest(varied.change.effect for varied in diff.changes)),
        "unchanged_values": min((pair.diff.unchanged for pair in diff.pairs), default=0),
        "changes": [placed(varied) for varied in diff.changes],
        "inexpressible": [_inexpressible(varied) for varied in diff.inexpressible],
        "consequences": [
            {"jobs": len(each.suffixes), **_consequences(each.found)}
            for each in review.consequences
        ],
        "findings": {
            "appeared": [_finding(each) for each in review.appeared],
            "vanished": [_finding(each) for each in review.vanished],
        },
    }


def _finding(finding: ReviewFinding) -> dict[str, Any]:
    return {**asdict(finding), "line": finding.line or None}


def _lines(
    diff: FileDiff, pick: Callable[[tuple[NormalForm, NormalForm]], NormalForm]
) -> Callable[[VariedChange], int | None]:
    forms: Mapping[str, NormalForm] = {
        pair.suffix: pick((pair.before, pair.after)) for pair in diff.pairs
    }
    return lambda varied: forms[varied.suffixes[0]].line(varied.change.path) or None


def _inexpressible(varied: VariedChange) -> dict[str, Any]:
    change = varied.change
    is_removed = change.action is Action.REMOVED
    return {
        "path": dotted_path(change.path),
        "said_by": "before" if is_removed else "after",
        "value": _plain(change.before if is_removed else change.after),
        "jobs": len(varied.suffixes),
    }


def _consequences(found: Consequences) -> dict[str, Any]:
    return {
        "models_known": None not in found.models,
        "gpus": {"before": found.gpus[0], "after": found.gpus[1]},
        "nodes": {"before": found.nodes[0], "after": found.nodes[1]},
        "engines": [
            {
                "role": each.role,
                "before": _figures(each.before),
                "after": _figures(each.after),
                "refusals": list(each.refusals),
            }
            for each in found.roles
        ],
    }


def _figures(figures: EngineFigures | None) -> dict[str, Any] | None:
    if figures is None:
        return None
    return {**asdict(figures), "basis": figures.basis.value}


def _problem(problem: Problem) -> dict[str, Any]:
    return {"message": str(problem), "source": problem.source, "line": problem.line or None}
