"""Slurm: arrays go out through submitit, everything else is asked of Slurm's commands."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from submitit.core.utils import DelayedSubmission, FailedJobError, FailedSubmissionError, JobPaths
from submitit.slurm.slurm import SlurmExecutor

from generator.cluster.answers import (
    SACCT_FIELDS,
    SINFO_FORMAT,
    SQUEUE_FORMAT,
    parse_sacct,
    parse_sinfo,
    parse_squeue,
)
from generator.cluster.job import run_job, signal_seconds
from generator.cluster.protocol import (
    ArrayRequest,
    ClusterFeatures,
    JobState,
    NodeProblem,
    StateReport,
    SubmittedArray,
)
from generator.cluster.questions import ask, cleaned_environment, refusal
from generator.errors import ClusterFailure, InvalidInput, Problem

_BATCH = 500  # task ids of one scancel or scontrol: a command line has a limit


class SlurmCluster:
    """The Slurm that SLURM_CONF or /etc names; see ``generator.cluster.protocol.Cluster``."""

    name = "slurm"

    def features(self) -> ClusterFeatures:
        return self._features

    @cached_property
    def _features(self) -> ClusterFeatures:
        settings = ask(["scontrol", "show", "config"])
        limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", settings, re.MULTILINE)
        storage = re.search(r"^AccountingStorageType\s*=\s*(\S+)", settings, re.MULTILINE)
        partitions = ask(["sinfo", "-h", "-a", "-o", "%R"]).split()  # hidden ones, too
        return ClusterFeatures(
            version=ask(["sbatch", "--version"]).split()[-1],
            segment=_knows_segments(),
            # The highest index is one less, and the first is 0. A cluster without arrays says 0.
            max_array_tasks=max(1, int(limit[1])) if limit else 1,
            accounting=storage is not None and not storage[1].endswith(("/none", "(null)")),
            partitions=tuple(dict.fromkeys(partitions)),
            expands_in_paths="%",
        )

    def script(self, request: ArrayRequest) -> str:
        executor = _executor(request)
        if len(request.jobs) > 1:
            executor.parameters["map_count"] = len(request.jobs)
        command = executor._submitit_command_str  # noqa: SLF001 - no public way to the script
        return executor._make_submission_file_text(command, request.token)  # noqa: SLF001

    def submit(self, request: ArrayRequest) -> SubmittedArray:
        folders = [str(folder) for folder in request.jobs]
        with cleaned_environment():
            try:
                jobs = _executor(request).map_array(run_job, folders)
            except (FailedJobError, FailedSubmissionError) as error:
                raise refusal("sbatch", str(error)) from error
            except OSError as error:
                raise refusal("sbatch", f"{error.filename}: {error.strerror}") from error
        ids = tuple(job.job_id for job in jobs)
        return SubmittedArray(token=request.token, job_id=_array_id(ids[0]), task_ids=ids)

    def find(self, job_name: str) -> str | None:
        rows = ask(["squeue", "-h", "-r", f"--name={job_name}", "-o", SQUEUE_FORMAT])
        found = {_array_id(state.task_id) for state in parse_squeue(rows)}
        if len(found) > 1:
            hint = f"cancel all but one: scancel {' '.join(sorted(found)[1:])}"
            raise ClusterFailure(Problem(message=f"several arrays are named {job_name}", hint=hint))
        return found.pop() if found else None

    def adopt(self, request: ArrayRequest, job_id: str) -> SubmittedArray:
        one = len(request.jobs) == 1
        ids = [job_id] if one else [f"{job_id}_{at}" for at in range(len(request.jobs))]
        for task_id, folder in zip(ids, request.jobs, strict=True):
            pickle = JobPaths(request.folder, job_id=task_id).submitted_pickle
            if not pickle.exists():
                _write_pickle(pickle, folder, request.parameters.time_minutes)
        return SubmittedArray(token=request.token, job_id=job_id, task_ids=tuple(ids))

    def states(self, job_ids: Sequence[str]) -> StateReport:
        if not job_ids:
            return StateReport(states={}, queue_answered=True, accounting_answered=True)
        wanted = set(job_ids)
        ended, accounting = self._asked(
            ["sacct", "-n", "-P", "-X", "-o", SACCT_FIELDS, "-j", ",".join(job_ids)], parse_sacct
        )
        queued, queue = self._asked(
            ["squeue", "-h", "-r", "-t", "all", "--me", "-o", SQUEUE_FORMAT], parse_squeue
        )
        if queue is None and accounting is None:
            accounting = _accounting_lag()
        live = {state.task_id: state for state in queued if _array_id(state.task_id) in wanted}
        past = {state.task_id: state for state in ended}
        if queue is None:
            past = {
                task_id: state
                for task_id, state in past.items()
                if task_id in live or _is_over(state)
            }
        states = past | {
            task_id: _merged(state, past.get(task_id)) for task_id, state in live.items()
        }
        return StateReport(
            states=states,
            queue_answered=queue is None,
            accounting_answered=accounting is None,
            problems=tuple(filter(None, (queue, accounting))),
        )

    @staticmethod
    def _asked(command: list[str], parse: Any) -> tuple[list[JobState], str | None]:
        try:
            return list(parse(ask(command))), None
        except ClusterFailure as failure:
            return [], str(failure)

    def cancel(self, task_ids: Sequence[str]) -> None:
        for at in range(0, len(task_ids), _BATCH):
            ask(["scancel", "--", *task_ids[at : at + _BATCH]])

    def release(self, task_ids: Sequence[str]) -> None:
        for at in range(0, len(task_ids), _BATCH):
            ask(["scontrol", "release", ",".join(task_ids[at : at + _BATCH])])

    def node_problems(self) -> tuple[NodeProblem, ...]:
        return tuple(parse_sinfo(ask(["sinfo", "-h", "-N", "-o", SINFO_FORMAT])))


def _knows_segments() -> bool:
    """Whether sbatch takes --segment. Slurm 24.11 does, but does not list it in its help."""
    try:
        ask(["sbatch", "--segment=1", "--help"])
    except ClusterFailure as failure:
        if "unrecognized option" in str(failure):
            return False
        raise
    return True


def _accounting_lag() -> str | None:
    """What accounting has not heard of yet; None where it is up to date, or nobody says."""
    try:
        found = re.search(r"^DBD Agent queue size:\s*(\d+)", ask(["sdiag"]), re.MULTILINE)
    except ClusterFailure:
        return None
    waiting = int(found[1]) if found else 0
    return f"accounting lags: slurmdbd has {waiting} messages to come" if waiting else None


def _array_id(task_id: str) -> str:
    return task_id.partition("_")[0]


def _is_over(state: JobState) -> bool:
    """Whether accounting has seen the end: it may show as running what the queue has lost."""
    return not state.phase.is_live


def _merged(live: JobState, ended: JobState | None) -> JobState:
    """The queue is right about what a job does now, accounting about how it ended."""
    if ended is None or live.phase.is_live or ended.phase.is_live:
        return live
    return replace(ended, nodes=ended.nodes or live.nodes)


def _executor(request: ArrayRequest) -> SlurmExecutor:
    """An executor of submitit with the parameters of an array, its folder made."""
    _check(request)
    request.folder.mkdir(parents=True, exist_ok=True)
    # `exec` makes Python the batch process itself, so that it gets the signals of `B:`.
    executor = SlurmExecutor(request.folder, python=f"exec {shlex.quote(sys.executable)}")
    executor.update_parameters(**sbatch_parameters(request))
    return executor


def sbatch_parameters(request: ArrayRequest) -> dict[str, Any]:
    """An array's parameters as submitit names them.

    What submitit would do on its own is overruled: its srun would hold the first node's memory,
    and its ``nodes`` makes it wait for a result from each.
    """
    asked = request.parameters
    additional: dict[str, Any] = {
        "nodes": asked.nodes,
        "ntasks-per-node": 1,
        "signal": f"B:USR2@{signal_seconds(asked.time_minutes)}",
        **{name: True if value is None else value for name, value in asked.directives},
    }
    if asked.segment is not None:
        additional["segment"] = asked.segment
    additional["requeue" if asked.requeue else "no-requeue"] = True
    if request.held:
        additional["hold"] = True
    if request.after:
        # A job that Slurm has forgotten counts as over.
        additional["dependency"] = f"afterany:{':'.join(request.after)}"
    optional = {
        "account": asked.account,
        "partition": asked.partition,
        "qos": asked.qos,
        "gres": asked.gres,
        "gpus_per_node": asked.gpus_per_node or None,
        "exclusive": asked.exclusive or None,
        "comment": request.comment or None,
    }
    return {
        "job_name": request.job_name,
        "time": asked.time_minutes,
        "use_srun": False,
        "stderr_to_stdout": True,
        "setup": ["set -eu"],
        "wckey": None,  # submitit's default is refused where wckeys are enforced
        "array_parallelism": request.max_parallel or len(request.jobs),
        "additional_parameters": additional,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _check(request: ArrayRequest) -> None:
    """The last line of defence against one value becoming two options."""
    asked = request.parameters
    texts = {
        "name": request.job_name,
        "comment": request.comment,
        "folder": str(request.folder),
        **{name: getattr(asked, name) or "" for name in ("account", "partition", "qos", "gres")},
        **{name: value or "" for name, value in asked.directives},
    }
    problems = [
        Problem(message=f"{value[:40]!r} holds characters that sbatch cannot take", path=name)
        for name, value in texts.items()
        if not value.isprintable() or "%" in (value if name == "folder" else "")
    ]
    names = [name for name, _ in asked.directives]
    problems += [
        Problem(message="is not the name of an sbatch option", path=name)
        for name in names
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name)
    ]
    if problems:
        raise InvalidInput(problems)


def _write_pickle(path: Path, folder: Path, time_minutes: int) -> None:
    """What submitit would have put there; the job waits for it for a minute."""
    submission = DelayedSubmission(run_job, str(folder))
    submission.set_timeout(time_minutes, 0)
    temporary = path.with_suffix(".adopting")
    submission.dump(temporary)
    temporary.replace(path)
