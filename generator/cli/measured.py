"""The --profile option of every command that looks measured start-ups up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from generator.facts import MeasuredProfile, read_profiles


def _read(
    _: click.Context, __: click.Parameter, files: tuple[Path, ...]
) -> tuple[MeasuredProfile, ...]:
    """Every start-up in the files, in their order."""
    return tuple(profile for file in files for profile in read_profiles(file))


def profile_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --profile, which gives the command ``profiles``: measured start-ups to look in first."""
    return click.option(
        "--profile",
        "profiles",
        type=click.Path(path_type=Path),
        multiple=True,
        callback=_read,
        help="File of measured start-ups, as calibrate --write makes it; repeatable.",
    )(command)
