"""Which engine release a version string names, for behaviour that changed between releases."""

from __future__ import annotations

import re

from generator.errors import InvalidInput, Problem

_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?=$|[^\d])")


def release(version: str) -> tuple[int, int, int]:
    """The release segment of a vLLM version; pre-release and local parts are ignored.

    >>> release("0.26.1rc1.dev1177+ga9a17e709"), release("v0.28")
    ((0, 26, 1), (0, 28, 0))

    Raises InvalidInput for text that does not start with a release.
    """
    match = _RELEASE.match(version)
    if match is None:
        raise InvalidInput(
            Problem(
                message=f"{version!r} is not an engine version",
                hint="write the release, for example 0.26.0",
            )
        )
    major, minor, patch = match.groups(default="0")
    return int(major), int(minor), int(patch)
