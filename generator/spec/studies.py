"""The phase studies of a spec: one engine for each layout and count of speculative tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from generator.parallel import ParallelLayout, WorkerPool, parse_layout
from generator.spec.spec import FieldPath, ProbeSpec, StudySpec
from generator.workload import Workload, parse_concurrencies

PHASES = ("prefill", "decode")

ReadLayout = Callable[[FieldPath, Callable[[], ParallelLayout]], ParallelLayout | None]


def study_specs(data: Mapping[str, Any], read_at: ReadLayout) -> Iterator[StudySpec]:
    """Every study of a spec whose ``studies`` section the schema accepts.

    ``read_at`` reads what a path describes and gives None where that cannot be read.
    """
    for phase in PHASES:
        rows = data.get("studies", {}).get(phase, {}).get("layouts", [])
        for index, row in enumerate(rows):
            path: FieldPath = ("studies", phase, "layouts", index)
            text = row["layout"] if isinstance(row, dict) else row
            layout = read_at(path, partial(parse_layout, text))
            if layout is not None:
                yield from _of_layout(data, phase, path, row, layout)


def listed_ladders(data: Mapping[str, Any]) -> Iterator[tuple[FieldPath, int | str | list[int]]]:
    """Every ladder of the studies that names its concurrencies, with its place."""
    for phase in PHASES:
        section = data.get("studies", {}).get(phase, {})
        places: list[tuple[FieldPath, Any]] = [(("studies", phase), section)]
        places += [
            (("studies", phase, "layouts", index), row)
            for index, row in enumerate(section.get("layouts", []))
        ]
        for path, place in places:
            ladder = place.get("concurrencies") if isinstance(place, dict) else None
            if ladder is not None and not isinstance(ladder, dict):
                yield (*path, "concurrencies"), ladder


def _of_layout(
    data: Mapping[str, Any], phase: str, path: FieldPath, row: Any, layout: ParallelLayout
) -> Iterator[StudySpec]:
    """A layout's studies, one for each count of speculative tokens."""
    section = data["studies"][phase]
    own = row if isinstance(row, dict) else {}
    ladder = own.get("concurrencies", section.get("concurrencies", {}))
    rungs = None if isinstance(ladder, dict) else tuple(sorted(parse_concurrencies(ladder)))
    for tokens in own.get("mtp", section.get("mtp", [0])):
        first = rungs[0] if rungs else 1
        yield StudySpec(
            phase=phase,
            engine=_engine(data, phase, path, layout, tokens=tokens, concurrency=first),
            concurrencies=rungs,
            highest=ladder.get("highest") if isinstance(ladder, dict) else None,
            sized_for=own.get("concurrency"),
        )


def _engine(
    data: Mapping[str, Any],
    phase: str,
    path: FieldPath,
    layout: ParallelLayout,
    *,
    tokens: int,
    concurrency: int,
) -> ProbeSpec:
    studies = data["studies"]
    section = studies[phase]
    file = f"{phase}-{layout.slug}{f'-mtp{tokens}' if tokens else ''}"
    return ProbeSpec(
        file=file,
        folder=section.get("folder", ""),
        name=str(studies.get("name", data.get("name", ""))).replace("{file}", file),
        role=phase,
        pool=WorkerPool(workers=1, layout=layout),
        speculative_tokens=tokens,
        concurrency=concurrency,
        concurrencies=(concurrency,),
        workload=Workload(**section["workload"]),
        time_limit=section.get("time_limit"),
        benchmark=studies.get("benchmark", data.get("benchmark", {})),
        benchmark_path=("studies", "benchmark") if "benchmark" in studies else ("benchmark",),
        path=path,
    )
