"""Asks a compute node for the paths of a site before anything large is sent there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from generator.cluster.job_file import DONE, JobFile, JobPoint, read_result, write_job_file
from generator.cluster.preflight import preflight_launcher
from generator.cluster.protocol import ArrayRequest, SbatchParameters
from generator.errors import InvalidInput, Problem
from generator.sweep.sending import Sender

WAIT_S = 120
_POLL_S = 1.0
_MINUTES = 5


def preflight(sender: Sender, parameters: SbatchParameters, paths: tuple[Path, ...]) -> str:
    """Look for paths on one node, asked for like a job of the sweep; what could not be checked.

    Empty where all are there. Raises InvalidInput, naming each, for paths that are not there.
    """
    token = sender.token()
    folder = sender.folder.array(token)
    (job,) = sender.folder.jobs(token, 1)
    point = JobPoint(point_id="preflight", concurrency=None, folder=folder / "preflight")
    write_job_file(
        job,
        JobFile(
            token=token,
            recipe=job,
            points=(point,),
            launcher=preflight_launcher(paths),
            time_minutes=_MINUTES,
        ),
    )
    request = ArrayRequest(
        token=token,
        name=sender.name,
        folder=folder,
        jobs=(job,),
        parameters=replace(
            parameters, nodes=1, time_minutes=_MINUTES, segment=None, exclusive=False
        ),
        comment=f"pdrecipe {sender.name} preflight",
    )
    submitted = sender.cluster.submit(request)
    for _ in range(WAIT_S):
        result = read_result(point.folder)
        if result is not None:
            if result.status != DONE:
                raise InvalidInput(_problems(result.log_tail or result.reason))
            return ""
        sender.pause(_POLL_S)
    sender.cluster.cancel([submitted.job_id])
    return f"no node was free within {WAIT_S} s to look for the site's paths; they are not checked"


def _problems(log: str) -> list[Problem]:
    """A problem for each line of the job's log."""
    hint = "nothing was sent; correct the site file, or --no-preflight"
    lines = [line for line in log.splitlines() if line.strip()]
    return [Problem(message=f"on a compute node: {line}", hint=hint) for line in lines]
