"""The spec people write: one model, cluster, engine and workload, and the deployments to render."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.documents import Document
from generator.parallel import WorkerPool
from generator.spec.placement import Cluster
from generator.workload import Workload

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingRules:
    """Formulas per role and flag, in the order they are evaluated, and the two headrooms."""

    headroom_sequences: int = 16
    headroom_tokens: int = 16
    prefill: Mapping[str, int | str] = field(default_factory=dict)
    decode: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculativeTokens:
    """Tokens the MTP head drafts in each role, 0 for none."""

    prefill: int = 0
    decode: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """The engine, and what both roles and each role add to its flags and environment."""

    type: str
    version: str
    has_connector: bool
    connector: str | None
    environment: Mapping[str, Mapping[str, str]]
    args: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """One recipe to render. ``path`` is where the spec describes it, for messages."""

    file: str
    folder: str
    name: str
    group: str
    prefill: WorkerPool
    decode: WorkerPool
    speculative_tokens: SpeculativeTokens
    concurrencies: tuple[int, ...]
    sizing_concurrency: int
    sizing: SizingRules
    time_limit: str | None
    benchmark: Mapping[str, Any]
    benchmark_path: tuple[str, ...]
    path: FieldPath

    def place_of(self, role: str) -> FieldPath:
        """Where the spec describes the workers of a role; a group's deployments share decode."""
        return (*self.path[:2], "decode") if role == "decode" else (*self.path, "prefill")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSpec:
    """An aggregated engine sized like a worker of one role, and its recipe.

    ``workload`` and ``concurrencies`` are what the recipe runs; the engine is sized for the spec's
    lengths and for ``concurrency``.
    """

    file: str
    folder: str
    name: str
    role: str
    pool: WorkerPool
    speculative_tokens: int
    concurrency: int
    concurrencies: tuple[int, ...]
    workload: Workload
    time_limit: str | None
    benchmark: Mapping[str, Any]
    benchmark_path: tuple[str, ...]
    path: FieldPath


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    """One layout measured alone in one phase, over a ladder of concurrencies.

    ``engine`` has its first rung only: how far the ladder goes is a matter of capacity.
    ``concurrencies`` are the rungs asked for, None for powers of two up to ``highest``, which is
    None where the ladder goes on to the limit. ``sized_for`` fixes the concurrency that the engine
    is sized for.
    """

    phase: str
    engine: ProbeSpec
    concurrencies: tuple[int, ...] | None
    highest: int | None
    sized_for: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A validated spec. ``digest`` is of its meaning: comments and layout do not change it.

    ``accuracy_threshold`` is the share of right answers that a deployment must reach to count.
    """

    document: Document
    digest: str
    output: Path | None
    profiles: tuple[Path, ...]
    model_config: Path
    model: Mapping[str, Any]
    identity: Mapping[str, Any] | None
    cluster: Cluster
    engine: EngineSpec
    dynamo: Mapping[str, Any] | None
    frontend: Mapping[str, Any] | None
    sections: Mapping[str, Any]
    workload: Workload
    benchmark: Mapping[str, Any]
    sizing: SizingRules
    deployments: tuple[DeploymentSpec, ...]
    probes: tuple[ProbeSpec, ...]
    studies: tuple[StudySpec, ...] = ()
    accuracy_threshold: float | None = None

    def place_of_flag(self, flag: str, role: str, group: FieldPath) -> FieldPath | None:
        """Where a flag of a role is written, None where it is nowhere; ``group`` may be empty."""
        sections: tuple[FieldPath, ...] = (
            *(((*group, "sizing", role),) if group else ()),
            ("sizing", role),
            ("engine", f"{role}_args"),
            ("engine", "args"),
        )
        places = ((*section, flag) for section in sections)
        return next((place for place in places if place in self.document.lines), None)

    @property
    def file_name(self) -> str:
        """The spec's file name as one line of text, whatever bytes it has on disk."""
        name = Path(self.document.source).name
        return "".join(character if character.isprintable() else "?" for character in name)
