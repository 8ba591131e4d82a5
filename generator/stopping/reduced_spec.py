"""The sections of a spec with only the points worth running; every recipe stays what it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.spec.rewriting import section_lines
from generator.spec.spec import DeploymentSpec, ProbeSpec, Spec
from generator.stopping.next_runs import Answer, NextRuns

_STUDIES = "studies"


def reduced_sections(spec: Spec, runs: NextRuns) -> dict[str, list[str] | None]:
    """The lines below each section that changes, None for a section to leave out.

    Sizes are fixed at what they were, so that the recipes keep their digests and results old and
    new make one ladder. Accuracy runs and probes have no loads to reduce and are left out.
    """
    kept = {
        (each.ladder.spec.path, _tokens(each.ladder.spec)): each
        for each in runs.ladders
        if each.concurrencies(Answer.RUN)
    }
    deployments = {
        path: each.concurrencies(Answer.RUN)
        for (path, _), each in kept.items()
        if isinstance(each.ladder.spec, DeploymentSpec)
    }
    studies = [
        (each.ladder.spec, each.concurrencies(Answer.RUN))
        for each in kept.values()
        if isinstance(each.ladder.spec, ProbeSpec)
    ]
    data = spec.document.data
    sections: dict[str, Any] = {
        "groups": _groups(spec, deployments),
        _STUDIES: _studies(data.get(_STUDIES, {}), studies),
        "accuracy": None,
        "probe": None,
    }
    return {key: section_lines(value) if value else None for key, value in sections.items()}


def _tokens(spec: DeploymentSpec | ProbeSpec) -> int:
    """Speculative tokens: studies that differ in nothing else share a place in the spec."""
    return spec.speculative_tokens if isinstance(spec, ProbeSpec) else 0


def _groups(spec: Spec, kept: Mapping[Any, tuple[int, ...]]) -> list[dict[str, Any]]:
    """The groups that still have deployments, each sized for what it was sized for."""
    sized_for = {each.path[:2]: each.sizing_concurrency for each in spec.deployments}
    groups = []
    for index, group in enumerate(spec.document.data.get("groups", [])):
        rows = [
            {**row, "concurrencies": list(kept["groups", index, "deployments", number])}
            for number, row in enumerate(group["deployments"])
            if ("groups", index, "deployments", number) in kept
        ]
        if rows:
            size = {"concurrency": sized_for["groups", index]}
            groups.append({**group, **size, "deployments": rows})
    return groups


def _studies(
    section: Mapping[str, Any], kept: list[tuple[ProbeSpec, tuple[int, ...]]]
) -> dict[str, Any] | None:
    """The studies that still have points, every layout in its long form."""
    reduced = {key: value for key, value in section.items() if key not in ("prefill", "decode")}
    phases = {}
    for phase in ("prefill", "decode"):
        layouts = [
            {
                "layout": str(engine.pool.layout),
                "mtp": [engine.speculative_tokens],
                "concurrencies": list(rungs),
                "concurrency": engine.concurrency,
            }
            for engine, rungs in kept
            if engine.role == phase
        ]
        if layouts:
            own = {key: value for key, value in section[phase].items() if key != "concurrencies"}
            phases[phase] = {**own, "layouts": layouts}
    return {**reduced, **phases} if phases else None
