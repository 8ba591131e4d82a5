"""One measured point: a recipe at one concurrency, what it did, and where each figure is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from generator.results.distribution import Distribution
from generator.results.engine_pool import EnginePool


class Origin(StrEnum):
    """What kind of run the figures are from; shown wherever they are."""

    MEASURED = "measured"
    REHEARSAL = "rehearsal"
    SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What ran: the recipe, by digest without its concurrencies, and its deployment in words.

    ``pools`` are its engines, read from the flags and never from a name. ``configuration`` says
    them in words, ``1xTP2DP4+EP + 1xTP4DP4+EP MTP3``, or ``1xTEP8 MTP3`` for one aggregated engine;
    it is for people, and nothing is read from it. ``phase`` is ``disaggregated``, ``prefill``
    (aggregated, at most two output tokens), ``decode`` (aggregated, at most two input tokens) or
    ``aggregated``.
    """

    recipe: str
    digest: str
    configuration: str
    phase: str
    concurrency: int
    pools: tuple[EnginePool, ...] = ()

    @property
    def point_id(self) -> str:
        """The name of the point in ledgers and folders: ``0123456789abcdef-c64``."""
        return f"{self.digest}-c{self.concurrency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedGpus:
    """GPUs that the job holds, by the role their nodes are for, working or idle.

    ``other`` counts those on nodes of frontends, services and load generators.
    """

    type: str
    prefill: int = 0
    decode: int = 0
    aggregated: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        return self.prefill + self.decode + self.aggregated + self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests of the measured interval, warm-up left out; None where a report does not say."""

    completed: int
    offered: int | None = None
    failed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of the completed requests as the client counts them, and as the server does."""

    input: int
    output: int
    server_input: int | None = None
    server_output: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Distributions in milliseconds.

    ``inter_chunk`` holds gaps between chunks, which with speculative decoding carry several
    tokens; ``tpot`` is (end to end - TTFT) / (output tokens - 1) of each request.
    """

    ttft: Distribution | None = None
    tpot: Distribution | None = None
    inter_chunk: Distribution | None = None
    end_to_end: Distribution | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The score of an accuracy run on the same configuration, as a share, and its threshold."""

    benchmark: str
    score: float
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """What met the latency limits, per second of the observation window."""

    ttft_ms: float
    max_gap_ms: float
    requests_per_s: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalidity:
    """Why a point may not stand on a frontier: a stable code and one sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """All that is known of one point.

    ``rates_over_s`` is what the client's own rates are over where that is not the duration: AIPerf
    measures a duration from the first request to the last answer, and rates over its whole phase.

    ``contract`` is what was held fixed, by dotted name (``model.revision``, ``workload.isl``);
    ``factors`` what a sweep varies (layout, MTP, scheduling limits, graph mode). ``sources`` says
    for each group of figures which file it is from; ``run`` is the folder of the run, and
    ``folder`` what both are below, from the folder of the file of results.
    """

    origin: Origin
    subject: Subject
    gpus: AllocatedGpus
    requests: Requests
    tokens: Tokens
    duration_s: float
    run: str
    client: str
    rates_over_s: float | None = None
    started_at: str | None = None
    latencies: Latencies = field(default_factory=Latencies)
    client_tokens_per_s_per_user: float | None = None
    preemptions: int | None = None
    accuracy: Accuracy | None = None
    goodput: Goodput | None = None
    contract: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    folder: str = field(default="", compare=False)  # a copy elsewhere is the same point
    invalid: tuple[Invalidity, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not self.invalid

    @property
    def interval_s(self) -> float:
        """The seconds that rates are over."""
        return self.duration_s if self.rates_over_s is None else self.rates_over_s

    @property
    def output_tokens_per_s(self) -> float:
        return self.tokens.output / self.interval_s

    @property
    def input_tokens_per_s(self) -> float:
        return self.tokens.input / self.interval_s

    @property
    def total_tokens_per_s(self) -> float:
        return (self.tokens.input + self.tokens.output) / self.interval_s

    @property
    def requests_per_s(self) -> float:
        return self.requests.completed / self.interval_s

    @property
    def total_tokens_per_s_per_gpu(self) -> float:
        """The article's y axis: over all allocated GPUs."""
        return self.total_tokens_per_s / self.gpus.total

    @property
    def tokens_per_s_per_user(self) -> float | None:
        """The article's x axis: 1000 / median TPOT; None for outputs of one token."""
        median = self.latencies.tpot.median if self.latencies.tpot else None
        return 1000 / median if median else None
