"""Options of sbatch that come from files, checked so that each stays one option."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from generator.errors import Problem

Directives = Mapping[str, str]
"""sbatch's long option names without dashes; an empty text is an option without a value."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}\Z")
# sbatch splits a directive line at blanks, knows quotes and backslashes, and ends it at a '#'.
_VALUE = re.compile(r"[A-Za-z0-9_.,:;=/@+%*\[\](){}&|!~^-]{0,400}\Z")
_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,79}\Z")

# What the submission decides by itself, and what would change how a job is found or restarted.
_RESERVED = {
    **dict.fromkeys(("time", "time-min"), "write slurm.time_limit: the plan counts hours by it"),
    **dict.fromkeys(
        (
            "gres",
            "gpus",
            "gpus-per-node",
            "gpus-per-socket",
            "gpus-per-task",
            "tres-per-node",
            "tres-per-task",
        ),
        "the recipe's roles say which GPUs it takes; the site file's gpus and gres, how to ask",
    ),
    **dict.fromkeys(("array", "job-name", "comment"), "the ledger finds jobs by it"),
    **dict.fromkeys(("output", "error", "chdir", "open-mode", "input"), "logs lie in the sweep"),
    **dict.fromkeys(
        (
            "nodes",
            "ntasks",
            "ntasks-per-core",
            "ntasks-per-gpu",
            "ntasks-per-node",
            "ntasks-per-socket",
        ),
        "the recipe's roles say how many nodes it takes",
    ),
    **dict.fromkeys(("signal", "requeue", "no-requeue", "begin"), "restarts are pdrecipe's"),
    "dependency": "--max-parallel orders arrays by it",
    **dict.fromkeys(
        ("wrap", "wait", "parsable", "test-only", "hold", "export", "export-file", "get-user-env"),
        "it changes what is submitted",
    ),
    **dict.fromkeys(("uid", "gid", "clusters", "help", "usage", "version"), "it is not a job's"),
}
_OF_THE_SITE = {"account": "slurm.account", "partition": "slurm.partition"}


def directive_problems(directives: Mapping[str, object], place: str) -> Iterator[Problem]:
    """What is wrong with options from a file; ``place`` is the field that holds them."""
    for name, value in directives.items():
        path = f"{place}.{name}"
        if not _NAME.match(name):
            yield Problem(
                path=path,
                message="not the name of an sbatch option",
                hint="the long name without dashes, such as cpus-per-task",
            )
        elif reason := _RESERVED.get(name):
            yield Problem(path=path, message="cannot be set here", hint=reason)
        elif name in _OF_THE_SITE:
            hint = f"write {_OF_THE_SITE[name]}, or the site file's {name}"
            yield Problem(path=path, message="cannot be set here", hint=hint)
        elif full := _abbreviated(name):
            yield Problem(
                path=path,
                message=f"sbatch could take it for {full}",
                hint=f"write an option's whole name; {full} cannot be set here",
            )
        elif not isinstance(value, str):
            yield Problem(path=path, message="must be text", hint="quote it")
        else:
            yield from value_problems(value, path)


def _abbreviated(name: str) -> str | None:
    """The option that is refused and that sbatch could read this name as: it takes beginnings."""
    refused = (*_RESERVED, *_OF_THE_SITE)
    return next((each for each in refused if each.startswith(name)), None)


def value_problems(value: str, path: str) -> Iterator[Problem]:
    """What keeps a text from being the value of one option and of nothing else."""
    if not _VALUE.match(value):
        yield Problem(
            path=path,
            message=f"{value[:40]!r} cannot be the value of an sbatch option",
            hint="no blanks, quotes, line ends, '#', '$', '<', '>' or backslashes; at most 400",
        )


def is_job_name(text: str) -> bool:
    """Whether a text can be part of a job's name without being anything else to squeue."""
    return _JOB_NAME.match(text) is not None
