"""What the checks say of the recipes of a diff, in the terms of a review."""

from __future__ import annotations

from generator.architecture import ModelArchitecture
from generator.checks.run import check_recipes
from generator.recipe.inputs import RecipeInputs
from generator.recipe_diff.review import ReviewFinding


def findings_by_source(
    inputs: RecipeInputs, model: ModelArchitecture | None = None
) -> dict[str, list[ReviewFinding]]:
    """Every finding that is not suppressed, by the name of the recipe's source."""
    found: dict[str, list[ReviewFinding]] = {}
    for finding in check_recipes(inputs, model=model).findings:
        found.setdefault(finding.source, []).append(
            ReviewFinding(
                rule=finding.rule.id,
                severity=str(finding.rule.severity),
                path=finding.path,
                line=finding.line,
                message=finding.text,
                hint=finding.hint,
            )
        )
    return found
