"""What a plan is made for: the specs its engines are sized by, their model, GPU and release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.architecture import ModelArchitecture
from generator.bounds.engine_work import peaks
from generator.errors import InvalidInput, Problem
from generator.facts import EngineDefaults, Gpu, MeasuredProfile
from generator.kv_cache.options import KvCacheOptions, cache_dtypes
from generator.spec.spec import Spec
from generator.workload import Workload

MOST_DRAFTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuestion:
    """What a plan without a spec is asked: a model folder, a GPU, nodes of it, and a workload.

    ``nodes`` None are those of one NVLink domain, at least two.
    """

    model: Path
    gpu: str
    nodes: int | None
    workload: Workload
    engine_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What every candidate of a plan has in common.

    ``specs`` are by KV-cache dtype and differ in nothing else: their flags and sizing rules are
    those of the engines. ``profiles`` are measured start-ups to look in before the package's.
    ``question`` is what the specs were composed for, None where a user wrote the one there is.
    """

    specs: Mapping[str, Spec]
    architecture: ModelArchitecture
    gpu: Gpu
    defaults: EngineDefaults
    profiles: tuple[MeasuredProfile, ...]
    question: ModelQuestion | None = None

    @property
    def spec(self) -> Spec:
        """Any of the specs, for what they share."""
        return next(iter(self.specs.values()))

    @property
    def workload(self) -> Workload:
        return self.spec.workload

    @property
    def nodes(self) -> int:
        return self.spec.cluster.nodes

    @property
    def gpus_per_node(self) -> int:
        return self.spec.cluster.gpus_per_node

    @property
    def gpus_per_engine(self) -> int:
        """The most GPUs of one engine: an engine stays inside one NVLink domain."""
        domain = max(1, self.gpu.nodes_per_nvlink_domain)
        return min(self.nodes, domain) * self.gpus_per_node

    @property
    def speculative_tokens(self) -> tuple[int, ...]:
        """The counts of drafted tokens to try; none but 0 without layers that draft."""
        return tuple(range(MOST_DRAFTS + 1)) if self.architecture.draft_layers else (0,)


def require_plannable(subject: Subject) -> None:
    """Raise InvalidInput with everything that rules out every candidate at once."""
    problems = list(_problems(subject))
    if problems:
        raise InvalidInput(problems)


def _problems(subject: Subject) -> Iterator[Problem]:
    architecture, workload = subject.architecture, subject.workload
    needed, context = workload.request_tokens, architecture.max_position_embeddings
    if needed > context:
        yield Problem(
            message=(
                f"ISL + OSL = {workload.isl} + {workload.osl} = {needed} tokens are more than the"
                f" context of {architecture.name}, {context}"
            ),
            hint=f"shorten the workload by {needed - context} tokens",
        )
    if subject.nodes * subject.gpus_per_node < 2:
        yield Problem(
            message="one GPU is too few for a prefill and a decode engine",
            hint="plan for at least 2 GPUs",
        )
    for dtype in subject.specs:
        try:
            stored = cache_dtypes(architecture, KvCacheOptions(kv_cache_dtype=dtype)).kv_cache
            peaks(architecture, subject.gpu, stored)
        except InvalidInput as error:
            yield from error.problems
            return
