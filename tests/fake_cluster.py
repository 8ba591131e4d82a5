"""A cluster in memory that outlives the clients that use it, and clients that can be killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from generator.cluster.job_file import (
    DONE,
    FAILED,
    JobPoint,
    PointResult,
    read_job_file,
    read_result,
    write_result,
)
from generator.cluster.protocol import (
    ArrayRequest,
    ClusterFeatures,
    JobState,
    NodeProblem,
    Phase,
    StateReport,
    SubmittedArray,
)
from generator.cluster.starts import Start, note_start
from generator.errors import ClusterFailure, InvalidInput, Problem


class Killed(BaseException):
    """The client is gone: nothing after this moment was done by it."""


@dataclass(slots=True)
class KillSwitch:
    """Kills the client at its ``at``-th effect, counted from one; 0 lets it live."""

    at: int = 0
    passed: int = 0

    def point(self) -> None:
        """A moment at which a client may be killed."""
        self.passed += 1
        if self.passed == self.at:
            raise Killed


@dataclass(slots=True)
class Task:
    request: ArrayRequest
    index: int
    task_id: str
    phase: Phase = Phase.PENDING
    exit_code: int | None = None
    reason: str = ""
    todo: list[JobPoint] = field(default_factory=list)
    restarts: int = 0
    runs: int = 0


@dataclass(slots=True)
class FakeCluster:
    """Slurm's queue and accounting, as far as a sweep looks at them.

    ``adopts``: whether an array whose submission was cut short can still be taken over. ``late``
    counts how many calls an sbatch that outlived its client takes to deliver its array. ``runs``
    counts ends of points, ``collisions`` names points that two jobs ran at once. ``fails``
    maps a point to the reason its job gives. ``deaf``: cancellations and releases get lost;
    ``silent``: cancellations are refused. ``refuses`` is what it says to every array that it does
    not take.
    """

    name: str = "slurm"
    kill: KillSwitch = field(default_factory=KillSwitch)
    adopts: bool = True
    late: int | None = None
    deaf: bool = False
    silent: bool = False
    accounting: bool = True
    queue_answers: bool = True
    accounting_answers: bool = True
    max_array_tasks: int = 1000
    partitions: tuple[str, ...] = ()
    expands_in_paths: str = ""
    refuses: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    runs: Counter[str] = field(default_factory=Counter)
    fails: dict[str, str] = field(default_factory=dict)
    collisions: list[str] = field(default_factory=list)
    submissions: int = 0
    most_at_once: int = 0
    _flying: list[tuple[int, ArrayRequest]] = field(default_factory=list)
    _numbers: int = 0

    # --- what a client calls ----------------------------------------------------------------

    def features(self) -> ClusterFeatures:
        return ClusterFeatures(
            version="fake",
            segment=True,
            max_array_tasks=self.max_array_tasks,
            accounting=self.accounting,
            partitions=self.partitions,
            expands_in_paths=self.expands_in_paths,
        )

    def script(self, request: ArrayRequest) -> str:
        return f"#!/bin/bash\n#SBATCH --job-name={request.job_name}\n"

    def submit(self, request: ArrayRequest) -> SubmittedArray:
        self._call()
        if self.late is not None:
            try:
                self.kill.point()
            except Killed:
                self._flying.append((self.late, request))
                raise
        self.kill.point()
        if self.refuses:
            raise ClusterFailure(Problem(message=self.refuses))
        submitted = self._deliver(request)
        self.kill.point()
        return submitted

    def find(self, job_name: str) -> str | None:
        self._call()
        self.kill.point()
        live = [each for each in self._named(job_name) if each.phase.is_live]
        return _job_id(live[0].task_id) if live else None

    def adopt(self, request: ArrayRequest, job_id: str) -> SubmittedArray:
        self._call()
        self.kill.point()
        if not self.adopts:
            raise ClusterFailure(Problem(message="its pickles are lost"))
        ids = tuple(each.task_id for each in self._named(request.job_name))
        return SubmittedArray(token=request.token, job_id=job_id, task_ids=ids)

    def states(self, job_ids: Sequence[str]) -> StateReport:
        self._call()
        self.kill.point()
        wanted = [each for each in self.tasks.values() if _job_id(each.task_id) in job_ids]
        shown = [
            each
            for each in wanted
            if (self.queue_answers if each.phase.is_live else self.accounting_answers)
        ]
        return StateReport(
            states={each.task_id: _state(each) for each in shown},
            queue_answered=self.queue_answers,
            accounting_answered=self.accounting_answers and self.accounting,
            problems=() if self.queue_answers else ("squeue: no answer",),
        )

    def cancel(self, task_ids: Sequence[str]) -> None:
        if self.silent:
            raise ClusterFailure(Problem(message="scancel refused: no answer"))
        self._call()
        self.kill.point()
        for task in () if self.deaf else self.tasks.values():
            if {task.task_id, _job_id(task.task_id)} & set(task_ids) and task.phase.is_live:
                task.phase = Phase.CANCELLED
        self.kill.point()

    def release(self, task_ids: Sequence[str]) -> None:
        self._call()
        self.kill.point()
        for task_id in () if self.deaf else task_ids:
            if self.tasks[task_id].phase is Phase.HELD:
                self.tasks[task_id].phase = Phase.PENDING
        self.kill.point()

    def node_problems(self) -> tuple[NodeProblem, ...]:
        return ()

    # --- what happens there -----------------------------------------------------------------

    def run(self, most: int | None = None) -> None:
        """Run waiting jobs to their end; ``most`` of them, or all that follow each other."""
        self._call(all_of_it=True)
        self.start(most)
        self.finish()
        while most is None and self.start():
            self.finish()

    def start(self, most: int | None = None) -> int:
        """Let waiting jobs begin, all at once, as the job function does; how many did."""
        self._call()
        waiting = [each for each in self.tasks.values() if each.phase is Phase.PENDING]
        begun = 0
        for task in waiting:
            if begun != most and self._may_start(task):
                self._start(task)
                begun += 1
        running = [each for each in self.tasks.values() if each.phase is Phase.RUNNING]
        self.most_at_once = max(self.most_at_once, len(running))
        return begun

    def finish(self) -> None:
        """Let what runs come to its end."""
        for task in [each for each in self.tasks.values() if each.phase is Phase.RUNNING]:
            self._finish(task)

    def preempt(self) -> None:
        """Put what runs back into the queue."""
        for task in [each for each in self.tasks.values() if each.phase is Phase.RUNNING]:
            task.phase, task.restarts = Phase.PENDING, task.restarts + 1

    def live(self) -> list[Task]:
        return [each for each in self.tasks.values() if each.phase.is_live]

    def _may_start(self, task: Task) -> bool:
        """Whether Slurm would let it: ``--dependency=afterany`` and the ``%N`` of its array."""
        limit = task.request.max_parallel
        beside = [each for each in self.live() if each.request is task.request]
        running = [each for each in beside if each.phase is Phase.RUNNING]
        return not (
            {_job_id(each.task_id) for each in self.live()} & set(task.request.after)
            or (limit and len(running) >= limit)
        )

    def _start(self, task: Task) -> None:
        try:
            folder = task.request.jobs[task.index]
            job = read_job_file(folder)
        except InvalidInput:
            task.phase, task.exit_code = Phase.FAILED, 1
            return
        task.todo = [point for point in job.points if not _has_result(point, job.token)]
        task.phase, task.exit_code = Phase.RUNNING if task.todo else Phase.COMPLETED, 0
        if task.todo:
            start = Start(
                token=job.token,
                job_id=task.task_id,
                restarts=task.restarts,
                at=0.0,
                nodes=("n1",),
            )
            task.runs = note_start(folder, start)
        running = [each for each in self.tasks.values() if each.phase is Phase.RUNNING]
        self.collisions += [
            point.point_id
            for other in running
            if other is not task
            for point in task.todo
            if point.point_id in {each.point_id for each in other.todo}
        ]

    def _finish(self, task: Task) -> None:
        task.phase = Phase.COMPLETED
        for point in task.todo:
            self.runs[point.point_id] += 1
            reason = self.fails.get(point.point_id, "")
            if reason == "no result":
                continue
            result = PointResult(
                token=task.request.token,
                point_id=point.point_id,
                concurrency=point.concurrency,
                status=FAILED if reason else DONE,
                reason=reason,
                exit_code=3 if reason else 0,
                started=0.0,
                ended=1.0,
                job_id=task.task_id,
                run=task.runs,
                nodes=("n1",),
                output="",
            )
            write_result(point, result)
            if reason:
                task.phase, task.exit_code = Phase.FAILED, 3

    def _call(self, *, all_of_it: bool = False) -> None:
        """Time goes on with every call: what was under way arrives."""
        flying, self._flying = self._flying, []
        for left, request in flying:
            if left <= 0 or all_of_it:
                self._deliver(request)
            else:
                self._flying.append((left - 1, request))

    def _deliver(self, request: ArrayRequest) -> SubmittedArray:
        self._numbers += 1
        self.submissions += 1
        count = len(request.jobs)
        ids = [f"{self._numbers}_{index}" for index in range(count)]
        ids = ids if count > 1 else [str(self._numbers)]
        for index, task_id in enumerate(ids):
            phase = Phase.HELD if request.held else Phase.PENDING
            task = Task(request=request, index=index, task_id=task_id, phase=phase)
            self.tasks[task_id] = task
        return SubmittedArray(token=request.token, job_id=str(self._numbers), task_ids=tuple(ids))

    def _named(self, job_name: str) -> list[Task]:
        return [each for each in self.tasks.values() if each.request.job_name == job_name]


def _has_result(point: JobPoint, token: str) -> bool:
    """The guard of the job function."""
    found = read_result(point.folder)
    return found is not None and (found.status == DONE or found.token == token)


def _job_id(task_id: str) -> str:
    return task_id.partition("_")[0]


def _state(task: Task) -> JobState:
    return JobState(
        task_id=task.task_id,
        phase=task.phase,
        state=task.phase.name,
        reason=task.reason,
        exit_code=None if task.phase.is_live else task.exit_code,
        nodes=("n1",) if task.phase is Phase.RUNNING else (),
        job_name=task.request.job_name,
        asked="squeue" if task.phase.is_live else "sacct",
    )
