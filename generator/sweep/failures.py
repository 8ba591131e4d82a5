"""Why an attempt failed: causes that compare across jobs, and the ones that are not the job's."""

from __future__ import annotations

import re
from enum import StrEnum

from generator.cluster.protocol import Phase

_LONGEST_CAUSE_CHARACTERS = 120
# What differs between two jobs that fail alike: numbers, ids, node names, addresses, paths.
_PARTICULARS = re.compile(
    r"/[\w./+-]+|\b[\w-]*\d[\w.:-]*\b|'[^']*'|\"[^\"]*\"", re.ASCII | re.IGNORECASE
)
_IS_CODE = re.compile(r"(exit code|ended with|signal) \d+\Z")


class Flake(StrEnum):
    """Failures of the infrastructure under a job: another attempt may well succeed."""

    NODE = Phase.NODE_FAILURE.value
    NODE_ADDRESS = "node address"
    CONTAINER_START = "container start"


_FLAKES: tuple[tuple[Flake, re.Pattern[str]], ...] = (
    (
        Flake.NODE_ADDRESS,
        re.compile(
            r"unable to resolve|could ?n[o']t? (be )?resolved?|name or service not known"
            r"|temporary failure in name resolution|getaddrinfo|gaierror"
            r"|can't find an address|no route to host",
            re.IGNORECASE,
        ),
    ),
    (
        Flake.CONTAINER_START,
        re.compile(
            r"pyxis: .*(failed|couldn't|could not|error)|enroot.*(error|failed)"
            r"|(failed|couldn't) to? ?(start|import|create|pull).{0,40}(container|image)"
            r"|error (pulling|importing) (the )?(container|docker )?image",
            re.IGNORECASE,
        ),
    ),
    (
        Flake.NODE,
        re.compile(
            r"\bnode[ _]fail|node .{0,60} (is down|not responding)"
            r"|task launch for .{0,60} failed on node|io error with slurmstepd"
            r"|slurmd.{0,40}(not responding|unreachable)|launch failed requeued",
            re.IGNORECASE,
        ),
    ),
)


def cause_of(why: str, log_tail: str = "") -> str:
    """What failures of one kind have in common: a flake's name, or the reason without particulars.

    >>> cause_of("exit code 3"), cause_of("time limit of 60 minutes")
    ('exit code 3', 'time limit')
    """
    for known in (Phase.TIME_LIMIT, Phase.OUT_OF_MEMORY):
        if why.startswith(known):
            return known.value
    for flake, pattern in _FLAKES:
        if pattern.search(why) or pattern.search(log_tail):
            return flake.value
    if _IS_CODE.search(why):
        return why
    return _PARTICULARS.sub("*", why)[:_LONGEST_CAUSE_CHARACTERS]


def is_flake(cause: str) -> bool:
    """Whether a cause is the infrastructure's, so that one more attempt is made by itself."""
    return cause in frozenset(Flake)
