"""Composed deployments as the ``groups:`` section of a spec, and what else names deployments."""

from __future__ import annotations

from collections.abc import Iterator

from generator.composition.compose import Composition
from generator.composition.explanation import prefill_reason
from generator.composition.grouping import ComposedDeployment, ComposedGroup
from generator.spec.rewriting import section_lines


def written_sections(composition: Composition) -> dict[str, list[str]]:
    """The lines below each section that changes.

    Accuracy runs of some deployments only name those that go: they become runs of all.
    """
    sections = {"groups": groups_lines(composition)}
    accuracy = composition.target.spec.document.data.get("accuracy", {})
    if "of" in accuracy:
        of_all = {key: value for key, value in accuracy.items() if key != "of"}
        sections["accuracy"] = section_lines(of_all)
    return sections


def groups_lines(composition: Composition) -> list[str]:
    """The lines below ``groups:``, each deployment under the arithmetic of its rate match."""
    origin = " and ".join(composition.phases.origins)
    requests = composition.saving.requests_per_concurrency
    return [
        f"  # Composed by pdrecipe from {origin} phase studies. Above each deployment, at its",
        "  # highest load: prefill workers x requests/s of one x (1 - margin) >= those of decode.",
        *(line for group in composition.groups for line in _group(group, requests)),
    ]


def _group(group: ComposedGroup, requests_per_concurrency: int) -> Iterator[str]:
    tokens = group.decode.num_speculative_tokens
    limit = group.time_limit(requests_per_concurrency)
    yield (
        f"  - {{name: {group.name}, decode: 1x{group.decode.name}, mtp: {tokens},"
        f' time_limit: "{limit}", deployments: ['
    )
    for index, deployment in enumerate(group.deployments):
        is_last = index + 1 == len(group.deployments)
        yield from _deployment(deployment, "]}" if is_last else ",")


def _deployment(deployment: ComposedDeployment, end: str) -> Iterator[str]:
    highest = deployment.candidates[-1]
    loads = ", ".join(map(str, deployment.concurrencies))
    yield f"      # {highest.concurrency}: {prefill_reason(highest)}"
    yield (
        f"      {{file: {deployment.file}, prefill: {deployment.prefill},"
        f" concurrencies: [{loads}]}}{end}"
    )
