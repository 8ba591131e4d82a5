"""Asks Slurm's commands, with argument lists and an environment that names no other job."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from generator.errors import ClusterFailure, Problem

# Where Slurm is, and who is asking: all that may come from the caller's environment.
_KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"})
_PREFIXES = ("SLURM_", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_")
# Lists of array tasks are printed whole: squeue and sacct cut them after 64 characters.
_WHOLE_LISTS = {"SLURM_BITSTR_LEN": "0"}
_MOST_CHARACTERS = 400
_JOB_ID = re.compile(r"\b\d[\d_]*\b")
_PREFIXES_OF_JOBS = ("SLURMD_", "SUBMITIT_", "SPANK_", "PMI", "PDRECIPE_")


def clean_environment() -> dict[str, str]:
    """This process's environment without the options and jobs of Slurm it may carry."""
    return {name: value for name, value in os.environ.items() if not _is_slurms(name)}


@contextmanager
def cleaned_environment() -> Iterator[None]:
    """Make ``clean_environment`` this process's own for a while: submitit hands it to sbatch."""
    removed = {name: os.environ.pop(name) for name in list(os.environ) if _is_slurms(name)}
    try:
        yield
    finally:
        os.environ.update(removed)


def _is_slurms(name: str) -> bool:
    return name not in _KEPT and name.startswith(_PREFIXES + _PREFIXES_OF_JOBS)


def ask(command: Sequence[str], seconds: float = 60) -> str:
    """What a command of Slurm printed.

    Raises ClusterFailure, with the command's own words, when it fails, is not there or takes
    longer than ``seconds``.
    """
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env={**clean_environment(), **_WHOLE_LISTS},
        )
    except FileNotFoundError as error:
        hint = "run pdrecipe where Slurm's commands are, or choose --cluster local"
        raise ClusterFailure(
            Problem(message=f"there is no {command[0]} on PATH", hint=hint)
        ) from error
    except subprocess.TimeoutExpired as error:
        message = f"{command[0]} gave no answer in {seconds:.0f} s"
        raise ClusterFailure(Problem(message=message, hint="try again later")) from error
    if answer.returncode:
        raise refusal(command[0], answer.stderr or answer.stdout)
    return answer.stdout


def refusal(program: str, text: str) -> ClusterFailure:
    """What a command of Slurm said when it failed, on one line.

    Lines that differ in a job id alone are told once; of many, the last are: they say why.
    """
    lines = [line.strip().removeprefix(f"{program}: ") for line in text.splitlines()]
    distinct = list({_JOB_ID.sub("", line): line for line in lines if line}.values())
    while len("; ".join(distinct)) > _MOST_CHARACTERS and len(distinct) > 1:
        del distinct[0]
    said = "; ".join(distinct)[-_MOST_CHARACTERS:] or "it did not say why"
    return ClusterFailure(Problem(message=f"{program} refused: {said}"))
