"""What squeue, sacct and sinfo print, as data."""

from __future__ import annotations

from collections.abc import Iterator

from generator.cluster.allocation import expand_nodes
from generator.cluster.protocol import JobState, NodeProblem, Phase

SQUEUE_FORMAT = "%i|%T|%r|%N|%j"
SACCT_FIELDS = "JobID,State,ExitCode,NodeList,ElapsedRaw,JobName"
SINFO_FORMAT = "%N|%T|%E"

_PHASES = {
    "PENDING": Phase.PENDING,
    "CONFIGURING": Phase.RUNNING,
    "RUNNING": Phase.RUNNING,
    "SIGNALING": Phase.RUNNING,
    "STAGE_OUT": Phase.RUNNING,
    "STOPPED": Phase.RUNNING,
    "SUSPENDED": Phase.RUNNING,
    "RESIZING": Phase.RUNNING,
    # What has ended here may begin again: only another answer than this one is the end of it.
    "COMPLETING": Phase.RUNNING,
    "REQUEUED": Phase.REQUEUED,
    "REQUEUE_FED": Phase.REQUEUED,
    "REQUEUE_HOLD": Phase.HELD,
    "RESV_DEL_HOLD": Phase.HELD,
    "SPECIAL_EXIT": Phase.HELD,
    "COMPLETED": Phase.COMPLETED,
    "FAILED": Phase.FAILED,
    "BOOT_FAIL": Phase.NODE_FAILURE,
    "NODE_FAIL": Phase.NODE_FAILURE,
    "TIMEOUT": Phase.TIME_LIMIT,
    "DEADLINE": Phase.TIME_LIMIT,
    "OUT_OF_MEMORY": Phase.OUT_OF_MEMORY,
    "CANCELLED": Phase.CANCELLED,
    "PREEMPTED": Phase.CANCELLED,
    "REVOKED": Phase.CANCELLED,
}
# While the queue still holds a job that was ended so, it is about to go back to pending.
_ON_THE_WAY_BACK = frozenset({"PREEMPTED", "NODE_FAIL", "BOOT_FAIL"})
_HELD_REASONS = ("JobHeldUser", "JobHeldAdmin", "held")
_TROUBLED = ("down", "drain", "fail", "unk", "not_responding", "inval")


def parse_squeue(text: str) -> Iterator[JobState]:
    """The jobs that ``squeue -h -r -t all -o SQUEUE_FORMAT`` printed."""
    for row in text.splitlines():
        fields = row.split("|", 4)
        if len(fields) == 5:
            task_id, state, reason, nodes, name = fields
            phase = Phase.REQUEUED if state in _ON_THE_WAY_BACK else _phase(state)
            if phase is Phase.PENDING and any(word in reason for word in _HELD_REASONS):
                phase = Phase.HELD
            yield JobState(
                task_id=task_id,
                phase=phase,
                state=state,
                reason="" if reason == "None" else reason,
                # A job that is ending gives its nodes back one by one: those are not where it ran.
                nodes=() if state == "COMPLETING" else expand_nodes(nodes),
                job_name=name,
                asked="squeue",
            )


def parse_sacct(text: str) -> Iterator[JobState]:
    """The jobs that ``sacct -n -P -X -o SACCT_FIELDS`` printed; a row may be about many tasks.

    Tasks that never began share one, ``7_[3-10,12]``, whether they wait or were cancelled.
    """
    for row in text.splitlines():
        fields = row.split("|", 5)
        if len(fields) != 6:
            continue
        ids, words, codes, nodes, elapsed, name = fields
        state = words.split()[0] if words else ""
        phase = _phase(state)
        code, _, number = codes.partition(":")
        for task_id in _task_ids(ids):
            yield JobState(
                task_id=task_id,
                phase=phase,
                state=state,
                reason="" if state == words else words,
                exit_code=int(code) if code.isdigit() and not phase.is_live else None,
                signal=int(number) if number.isdigit() and not phase.is_live else None,
                nodes=() if nodes == "None assigned" else expand_nodes(nodes),
                elapsed_s=int(elapsed) if elapsed.isdigit() else None,
                job_name=name,
                asked="sacct",
            )


def _task_ids(text: str) -> Iterator[str]:
    """The ids of ``7``, ``7_3`` or ``7_[3-10,12%4]``; what a list that was cut off shows."""
    job_id, bracket, rest = text.partition("_[")
    if not bracket:
        yield text
        return
    for piece in rest.partition("]")[0].partition("%")[0].split(","):
        first, _, last = piece.partition("-")
        if first.isdigit() and (last or first).isdigit():
            yield from (f"{job_id}_{index}" for index in range(int(first), int(last or first) + 1))


def parse_sinfo(text: str) -> Iterator[NodeProblem]:
    """The nodes in trouble that ``sinfo -h -N -o SINFO_FORMAT`` printed, each once."""
    rows = dict.fromkeys(row for row in text.splitlines() if row.count("|") >= 2)
    for row in rows:
        node, state, reason = row.split("|", 2)
        if state.endswith("*") or any(word in state.lower() for word in _TROUBLED):
            yield NodeProblem(node=node, state=state, reason="" if reason == "none" else reason)


def _phase(state: str) -> Phase:
    return _PHASES.get(state.rstrip("+"), Phase.UNKNOWN)
