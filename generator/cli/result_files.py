"""Files of results as commands are given them."""

from __future__ import annotations

from pathlib import Path

from generator.errors import InvalidInput, Problem
from generator.results.point import MeasuredPoint
from generator.results.point_file import read_points
from generator.results.repeats import without_copies


def read_results(*paths: Path) -> list[MeasuredPoint]:
    """The points of all files, copies once; raises InvalidInput with every line that is none."""
    points: list[MeasuredPoint] = []
    found: list[Problem] = []
    for path in paths:
        try:
            points += read_points(path)
        except InvalidInput as error:
            found += error.problems
    if found:
        raise InvalidInput(found)
    return without_copies(points)
