"""What a sweep asks of a cluster and what it gets back, whichever cluster that is.

An *array* is what one sbatch call sends: jobs with identical sbatch parameters, one array task
each. A *job* is one recipe with the concurrencies it still has to run; all that a job needs is in
``job.json`` in its folder (``generator.cluster.job_file``), and only that folder's path is
submitted. A *point* is one concurrency of a job; its ``result.json`` is the truth about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SbatchParameters:
    """What all jobs of an array share: equal parameters may share one array.

    ``time_minutes`` is the limit of every job. ``gpus_per_node`` is 0 where the site counts no
    GPUs; ``gres`` replaces it for a site that wants ``--gres``. ``segment`` is in nodes, None for
    a Slurm without the option. ``directives`` are further sbatch options, long names without
    dashes, a value of None for a bare flag; they are checked, never quoted into a shell.
    """

    nodes: int
    time_minutes: int
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    gpus_per_node: int = 0
    gres: str | None = None
    exclusive: bool = True
    segment: int | None = None
    requeue: bool = True
    directives: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRequest:
    """One array to submit.

    ``token`` is new for every submission and written to the ledger before it; the job name is
    ``<sweep>.<token>``, by which a client that was killed finds the array again. ``folder`` takes
    submitit's files and the logs, one folder a token. ``jobs`` are the job folders by array index.
    ``max_parallel`` limits the jobs that run at once (0: no limit). ``after`` are job ids of arrays
    that must be over, however they ended, before this one starts. A held array waits for
    ``Cluster.release``.
    """

    token: str
    name: str
    folder: Path
    jobs: tuple[Path, ...]
    parameters: SbatchParameters
    comment: str = ""
    max_parallel: int = 0
    held: bool = False
    after: tuple[str, ...] = ()

    @property
    def job_name(self) -> str:
        return f"{self.name}.{self.token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedArray:
    """An array the cluster has taken; ``task_ids`` are in the order of the request's jobs.

    A task id is what Slurm prints: ``123_4``, or ``123`` for an array of one job.
    """

    token: str
    job_id: str
    task_ids: tuple[str, ...]


class Phase(StrEnum):
    """Where a job stands, as far as the cluster says; only result files make a point *done*."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    REQUEUED = "requeued"  # between two runs: preempted, or its node was lost
    COMPLETED = "completed"
    FAILED = "failed"
    TIME_LIMIT = "time limit"
    OUT_OF_MEMORY = "out of memory"
    NODE_FAILURE = "node failure"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # the cluster gave no answer, or one that is not understood

    @property
    def is_live(self) -> bool:
        """Whether the job may still run: it must not be submitted again."""
        return self in _LIVE


_LIVE = frozenset({Phase.PENDING, Phase.HELD, Phase.RUNNING, Phase.REQUEUED, Phase.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """What the cluster says of one job.

    ``state`` is the cluster's own word (``OUT_OF_MEMORY``, ``CANCELLED``), ``reason`` its
    explanation of a pending job. ``exit_code`` and ``signal`` are None while unknown; a live job
    has none. ``nodes`` are names, empty before the first run. ``elapsed_s`` is what accounting
    counts of its last run. ``asked`` is the command that knew.
    """

    task_id: str
    phase: Phase
    state: str
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    nodes: tuple[str, ...] = ()
    elapsed_s: int | None = None
    job_name: str = ""
    asked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """The answer to one look at the cluster.

    ``states`` is by task id. A task that is absent is gone only when ``queue_answered`` (squeue)
    is true; otherwise nothing may be concluded from its absence. Without ``accounting_answered``
    (sacct, up to date) a job that is gone may yet turn out to have ended in some way. ``problems``
    say what did not answer and why.
    """

    states: Mapping[str, JobState]
    queue_answered: bool
    accounting_answered: bool
    problems: tuple[str, ...] = ()

    def job(self, task_id: str | None, token: str) -> JobState | None:
        """A submission's job; None where nothing is known of it.

        A Slurm that lost its state counts on from an older one and gives an id a second time: the
        job's name says whose it is.
        """
        state = self.states.get(task_id or "")
        if state is None or (state.job_name and state.job_name.rpartition(".")[2] != token):
            return None
        return state


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProblem:
    """A node that runs nothing until the admin resumes it."""

    node: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFeatures:
    """What this cluster can do, found by asking it.

    ``max_array_tasks`` is the largest array, Slurm's MaxArraySize. ``partitions`` are all there
    are, empty where there is no such thing. ``expands_in_paths`` are characters that the cluster
    replaces in the paths of a job's files.
    ``accounting`` is false where sacct will never answer, ``holds`` where a job cannot be held: all
    are over when ``submit`` returns.
    """

    version: str
    segment: bool
    max_array_tasks: int
    accounting: bool
    holds: bool = True
    partitions: tuple[str, ...] = field(default=())
    expands_in_paths: str = ""


class Cluster(Protocol):
    """A place where jobs run: ``slurm``, ``local`` (processes here) or ``debug`` (this process).

    Every method raises ClusterFailure when the cluster does not take the request or does not
    answer, except ``states``, whose report says so.
    """

    @property
    def name(self) -> str: ...

    def features(self) -> ClusterFeatures:
        """What the cluster can do; asked once, then remembered."""
        ...

    def script(self, request: ArrayRequest) -> str:
        """The text that ``submit`` would send, for --dry-run."""
        ...

    def submit(self, request: ArrayRequest) -> SubmittedArray:
        """Send the array. The intent must be in the ledger before this is called."""
        ...

    def find(self, job_name: str) -> str | None:
        """The job id of the live array with this name, or None when there surely is none.

        For a client that was killed during ``submit``. An array that already ended is not found:
        its jobs count by their result files alone.
        """
        ...

    def adopt(self, request: ArrayRequest, job_id: str) -> SubmittedArray:
        """Take over an array that was sent, but whose submission was cut short."""
        ...

    def states(self, job_ids: Sequence[str]) -> StateReport:
        """The state of every job of these arrays (``123``, not ``123_4``)."""
        ...

    def cancel(self, task_ids: Sequence[str]) -> None:
        """Cancel arrays (``123``) or single jobs (``123_4``); those already gone are no error."""
        ...

    def release(self, task_ids: Sequence[str]) -> None:
        """Let held arrays or jobs start."""
        ...

    def node_problems(self) -> tuple[NodeProblem, ...]:
        """Nodes that are drained or down, with the reason that Slurm notes."""
        ...
