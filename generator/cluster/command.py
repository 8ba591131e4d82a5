"""The ``command`` launcher: a template of arguments, filled in and run without a shell."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from generator.cluster.allocation import Allocation
from generator.cluster.job_file import CommandLauncher, JobFile, JobPoint
from generator.cluster.launching import Launch
from generator.errors import Problem
from generator.wording import did_you_mean

_PLACEHOLDER = re.compile(r"\{([a-z_]*)\}")
_PER_POINT = "concurrency"
PLACEHOLDERS = ("recipe", "output", "job_id", "nodes", "concurrencies", _PER_POINT)


def command_problems(argv: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with a command template: an empty one, unknown placeholders."""
    if not argv or not argv[0]:
        yield Problem(message="the command is empty", hint="name a program and its arguments")
    for name in [name for item in argv for name in _PLACEHOLDER.findall(item)]:
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
            hint = did_you_mean(name, list(PLACEHOLDERS)) or f"there are {known}"
            yield Problem(message=f"the command has no placeholder {{{name}}}", hint=hint)


def runs_per_point(launcher: CommandLauncher) -> bool:
    """Whether the command takes one concurrency at a time."""
    return any(f"{{{_PER_POINT}}}" in item for item in launcher.argv)


def command_launch(
    launcher: CommandLauncher,
    job: JobFile,
    points: Sequence[JobPoint],
    allocation: Allocation,
    output: Path,
) -> Launch:
    """The command for these points, one when it runs per point."""
    loads = [str(point.concurrency) for point in points if point.concurrency is not None]
    values = {
        "recipe": str(job.recipe),
        "output": str(output),
        "job_id": allocation.job_id,
        "nodes": ",".join(allocation.nodes),
        "concurrencies": "x".join(loads),
        _PER_POINT: loads[0] if loads else "",
    }
    told = {_variable(name): value for name, value in values.items()}
    inherited = dict(os.environ)
    if len(loads) > 1:
        # One load among several would look like all there is to run.
        del told[_variable(_PER_POINT)]
        inherited.pop(_variable(_PER_POINT), None)
    return Launch(
        argv=tuple(_filled(item, values) for item in launcher.argv),
        folder=output,
        output=output,
        log=output / "launcher.log",
        environment={**inherited, **told, **dict(launcher.environment)},
        signals_group=True,
    )


def _variable(placeholder: str) -> str:
    return f"PDRECIPE_{placeholder.upper()}"


def _filled(item: str, values: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), item)
