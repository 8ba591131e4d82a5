"""A site file: how one cluster wants jobs to be asked for, and where things lie on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.documents import Document, parse_document, read_document
from generator.errors import InvalidInput, Problem
from generator.validation import problems

SCHEMA = "site"


@dataclass(frozen=True, slots=True, kw_only=True)
class SrtctlSite:
    """Where srt-slurm lies: its checkout, the interpreter for compute nodes, its srtslurm.yaml."""

    checkout: Path
    python: Path
    config: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One cluster.

    ``gres`` is a pattern with ``{gpus}`` where GPUs are asked for that way; ``counts_gpus`` is
    false where jobs ask for none. ``segment`` is None where Slurm is to be asked whether it has the
    option. ``racks`` is None where nobody says how many there are. ``directives`` are further
    sbatch options, an empty text for one without a value. ``models`` and ``containers`` are paths
    by alias.
    """

    name: str
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    counts_gpus: bool = True
    gres: str | None = None
    exclusive: bool = True
    segment: bool | None = None
    nodes_per_rack: int = 18
    racks: int | None = None
    max_array_tasks: int | None = None
    directives: Mapping[str, str] = field(default_factory=dict)
    srtctl: SrtctlSite | None = None
    models: Mapping[str, Path] = field(default_factory=dict)
    containers: Mapping[str, Path] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def paths(self) -> tuple[Path, ...]:
        """Every path that must be there on a compute node, each once."""
        srtctl = self.srtctl
        tools = (srtctl.checkout, srtctl.python, srtctl.config) if srtctl else ()
        return tuple(dict.fromkeys((*tools, *self.models.values(), *self.containers.values())))


def read_site(path: Path, source: str | None = None) -> Site:
    """The site of a file; raises InvalidInput with everything that is wrong in it."""
    return _site(read_document(path, source))


def parse_site(text: str, source: str) -> Site:
    """The site of a text; raises InvalidInput with everything that is wrong in it."""
    return _site(parse_document(text, source))


def _site(document: Document) -> Site:
    found = problems(document, SCHEMA) or [*_contradictions(document)]
    if found:
        raise InvalidInput(found)
    return _built(document.data)


def _contradictions(document: Document) -> list[Problem]:
    """What the schema cannot say."""
    slurm = document.data["slurm"]
    found = []
    if "gres" in slurm and slurm.get("gpus") != "gres":
        message = "is only used with gpus: gres"
        found.append(document.problem(("slurm", "gres"), message, "write gpus: gres beside it"))
    if slurm.get("segment") is False and "racks" in slurm:
        message = "several racks need segments to keep a deployment together"
        hint = "remove segment: false, or racks"
        found.append(document.problem(("slurm", "racks"), message, hint))
    return found


def _built(data: Mapping[str, Any]) -> Site:
    slurm = dict(data["slurm"] or {})
    gpus = slurm.pop("gpus", "gpus-per-node")
    gres = slurm.pop("gres", "gpu:{gpus}")
    return Site(
        name=data["name"],
        counts_gpus=gpus != "none",
        gres=gres if gpus == "gres" else None,
        srtctl=_srtctl(data["srtctl"]) if "srtctl" in data else None,
        models=_paths(data.get("models", {})),
        containers=_paths(data.get("containers", {})),
        environment=dict(data.get("environment", {})),
        **slurm,
    )


def _srtctl(data: Mapping[str, str]) -> SrtctlSite:
    checkout = Path(data["checkout"])
    return SrtctlSite(
        checkout=checkout,
        python=Path(data.get("python", checkout / ".venv-compute" / "bin" / "python")),
        config=Path(data.get("config", checkout / "srtslurm.yaml")),
    )


def _paths(data: Mapping[str, str]) -> dict[str, Path]:
    return {alias: Path(path) for alias, path in data.items()}
