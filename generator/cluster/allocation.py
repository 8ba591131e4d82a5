"""What a job can know of the allocation it runs in, from its environment and from Slurm."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ANSWER_SECONDS = 10
_STEP_SECONDS = 60
# What srun says of a node that its step did not reach.
_NOT_REACHED = re.compile(r"failed on node (\S+?): (?:Communication|Socket|Unable to contact)")
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Where a job runs.

    ``job_id`` is Slurm's plain number, which differs for every task of an array, ``task_id`` what
    squeue prints. ``restarts`` counts earlier runs of the same job. Outside Slurm, ``in_slurm`` is
    false, the ids are what started the job said, and there is one node.
    """

    job_id: str
    task_id: str
    restarts: int
    nodes: tuple[str, ...]
    in_slurm: bool
    began: float


def current_allocation(environment: Mapping[str, str] = os.environ) -> Allocation:
    """The allocation of this process."""
    job_id = environment.get("SLURM_JOB_ID")
    if job_id is None:
        local = environment.get("PDRECIPE_LOCAL_JOB", f"pid{os.getpid()}")
        return Allocation(
            job_id=local,
            task_id=local,
            restarts=0,
            nodes=("localhost",),
            in_slurm=False,
            began=time.time(),
        )
    array, index = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    return Allocation(
        job_id=job_id,
        task_id=f"{array}_{index}" if array and index else job_id,
        restarts=int(environment.get("SLURM_RESTART_COUNT", "0")),
        nodes=expand_nodes(environment.get("SLURM_JOB_NODELIST", "")),
        in_slurm=True,
        began=time.time(),
    )


def expand_nodes(text: str) -> tuple[str, ...]:
    """The names in Slurm's list of hosts, such as ``gb300-r0-n[01-03,07]``."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]+(?:\[[^\]]*\])?)+", text):
        names += _expand(part)
    return tuple(names)


def _expand(part: str) -> list[str]:
    match = re.search(r"\[([^\]]*)\]", part)
    if match is None:
        return [part]
    head, tail = part[: match.start()], part[match.end() :]
    return [
        name
        for piece in match[1].split(",")
        for number in _numbers(piece)
        for name in _expand(f"{head}{number}{tail}")
    ]


def _numbers(piece: str) -> list[str]:
    first, dash, last = piece.partition("-")
    if not dash:
        return [piece]
    return [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]


def kills_for_memory() -> int:
    """How many processes of this one's control group the kernel has killed for their memory.

    0 where there is no memory limit, or none that can be read.
    """
    return max((_kills_in(group) for group in _memory_groups()), default=0)


def _memory_groups() -> list[Path]:
    """The files that count kills, of control groups version 1 and 2."""
    files = []
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            files.append(_CGROUPS / "memory" / path.lstrip("/") / "memory.oom_control")
        elif not controllers:
            files.append(_CGROUPS / path.lstrip("/") / "memory.events")
    return files


def _kills_in(file: Path) -> int:
    counts = [line.split() for line in _text(file).splitlines()]
    return sum(int(words[1]) for words in counts if words[:1] == ["oom_kill"])


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def is_preempted(allocation: Allocation) -> bool | None:
    """Whether Slurm is taking the nodes for another job; None when it does not say."""
    if not allocation.in_slurm:
        return False
    shown = _ask(["scontrol", "show", "job", "-o", allocation.job_id])
    match = re.search(r"\bPreemptTime=(\S+)", shown or "")
    return match[1] != "None" if match else (None if shown is None else False)


def unreachable_nodes(allocation: Allocation) -> tuple[str, ...]:
    """The nodes of a job that no longer start a step.

    Slurm notices a lost node only after its SlurmdTimeout, five minutes by default. Empty where
    there is nothing to ask, or no answer.
    """
    count = len(allocation.nodes)
    if not allocation.in_slurm or count < 2:
        return ()
    command = ["srun", "--overlap", "--mpi=none", f"--nodes={count}", f"--ntasks={count}"]
    try:
        answer = subprocess.run(
            [*command, "--ntasks-per-node=1", "true"],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=_STEP_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = set(_NOT_REACHED.findall(answer.stderr))
    return tuple(node for node in allocation.nodes if node in found)


def requeue(allocation: Allocation) -> bool:
    """Ask Slurm to run this job again later; it will end this run. Whether Slurm agreed."""
    return _ask(["scontrol", "requeue", allocation.task_id]) is not None


def _ask(command: list[str]) -> str | None:
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None
