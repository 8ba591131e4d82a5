"""What a report is made of, read and computed before a word of it is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from generator.capacity.capacity import EngineCapacity
from generator.capacity.view import distinct_engines
from generator.documents import read_document
from generator.errors import InvalidInput, NothingFits
from generator.estimation import Estimate
from generator.model_summary.summary import ModelSummary, summarize_model
from generator.report.runs import files_of
from generator.results.point import MeasuredPoint
from generator.sweep.points import recipe_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """A recipe on disk: its name, srt-slurm layout, digest, and the path of a link to it."""

    name: str
    layout: str
    digest: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """Results, the spec they are of, and names for all files as the page may link them.

    ``links`` are by the folder that a source is below and its name there; ``profile_files`` those
    of measured start-ups that are given beside the spec.
    ``may_mix`` lets runs of different contracts stand in one figure, which then says so.
    """

    points: tuple[MeasuredPoint, ...]
    estimate: Estimate
    summary: ModelSummary
    recipes: tuple[RecipeFile, ...]
    results_file: str
    spec_file: str
    model_file: str
    page_file: str
    profile_files: tuple[str, ...]
    links: Mapping[tuple[str, str], str]
    version: str
    may_mix: bool = False

    @property
    def engines(self) -> list[EngineCapacity]:
        """One of each kind of engine in the spec."""
        return distinct_engines(_capacities(self.estimate))


def summary_of(estimate: Estimate) -> ModelSummary:
    """The model as the decode engine of the spec's first deployment has it, or its first engine.

    Raises NothingFits where the spec has studies alone and none of them can run.
    """
    capacities = _capacities(estimate)
    if not capacities:
        refused = (problem for each in estimate.studies.refused for problem in each.problems)
        raise NothingFits(list(refused))
    deployments = estimate.derivation.deployments
    capacity = estimate.capacities[deployments[0].decode.name] if deployments else capacities[0]
    setting = capacity.setting
    tokens = min(
        estimate.spec.workload.request_tokens, setting.architecture.max_position_embeddings
    )
    return summarize_model(setting.architecture, capacity.engine.options, setting.defaults, tokens)


def _capacities(estimate: Estimate) -> list[EngineCapacity]:
    """Every engine of a spec; those of its studies where no layout is chosen yet."""
    chosen = list(estimate.capacities.values())
    return chosen or [study.capacity for study in estimate.studies.planned]


def recipes_below(folder: Path, page_folder: Path) -> Iterator[RecipeFile]:
    """The recipes in a folder with their links from the page's folder; other YAML is passed by."""
    for path in sorted(folder.rglob("*.yaml")):
        if not path.is_file():  # a pipe would be waited for for ever
            continue
        try:
            data = read_document(path).data
        except InvalidInput:
            continue
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            yield RecipeFile(
                name=data["name"],
                layout="v2" if "schema" in data else "v1",
                digest=recipe_digest(data),
                link=link_to(path, page_folder),
            )


def link_to(path: Path, page_folder: Path) -> str:
    """A path as a page in that folder links it: relative, so that both may move together."""
    return _link(str(path.resolve()), str(page_folder.resolve()))


def _link(path: str, page_folder: str) -> str:
    """The same of resolved paths."""
    return quote(os.fsencode(Path(os.path.relpath(path, page_folder)).as_posix()))


def source_links(
    points: Iterable[MeasuredPoint], results_folder: Path, page_folder: Path
) -> dict[tuple[str, str], str]:
    """Links to those source files that are there, by their folder and name."""
    named = {
        (point.folder, file)
        for point in points
        for group, source in point.sources.items()
        for file in files_of(group, source)
    }
    links: dict[tuple[str, str], str] = {}
    page, here = str(page_folder.resolve()), str(Path.cwd())
    bases = {folder: str((results_folder / folder).resolve()) for folder, _ in named}
    for folder, file in sorted(named):
        # Strings, for there are tens of thousands; what no file can be called is none.
        places = (os.path.join(base, file) for base in (bases[folder], here))  # noqa: PTH118
        found = next(filter(os.path.isfile, places), None)
        if found is not None:
            links[folder, file] = _link(found, page)
    return links
