"""Looks, on a compute node, for the paths that jobs will need there.

Run as ``python -m generator.cluster.preflight PATH...``: what is missing goes to the log, one line
each, and the exit code is the number of missing paths, at most 100.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from generator.cluster.job_file import CommandLauncher


def preflight_launcher(paths: Iterable[Path]) -> CommandLauncher:
    """The command that looks for paths; for a job of one node and one point."""
    return CommandLauncher(
        argv=(sys.executable, "-m", "generator.cluster.preflight", *map(str, paths))
    )


def missing_paths(paths: Iterable[Path]) -> list[str]:
    """What is wrong with each path, one line a path: not there, or not readable."""
    found = []
    for path in paths:
        if not path.exists():
            found.append(f"{path}: not on this node")
        elif not os.access(path, os.R_OK):
            found.append(f"{path}: cannot be read by this user")
    return found


if __name__ == "__main__":
    problems = missing_paths(Path(word) for word in sys.argv[1:])
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    sys.exit(min(len(problems), 100))
