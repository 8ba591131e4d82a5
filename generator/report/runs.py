"""The runs that figures on the page are from, numbered as they are first named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from generator.pareto.selection import AxisPoint
from generator.report.content import Cell
from generator.results.point import MeasuredPoint


class RunList:
    """Numbers runs while a page is written, so that each figure can name its own."""

    def __init__(self, links: Mapping[str, str]) -> None:
        self._links = links
        self._numbers: dict[str, int] = {}
        self._sources: dict[str, Mapping[str, str]] = {}

    def cell(self, each: AxisPoint) -> Cell:
        """The source of a point: the number of its first run, all runs where a pointer rests."""
        return self.cell_of(*each.runs)

    def cell_of(self, *runs: MeasuredPoint) -> Cell:
        """The same for runs without a place on axes."""
        numbers = [self._number(run) for run in runs]
        return Cell(
            text=f"run {numbers[0]}" + (f" +{len(numbers) - 1}" if len(numbers) > 1 else ""),
            href=f"#run-{numbers[0]}",
            title=", ".join(run.run for run in runs),
        )

    def _number(self, point: MeasuredPoint) -> int:
        self._sources.setdefault(point.run, point.sources)
        return self._numbers.setdefault(point.run, len(self._numbers) + 1)

    def rows(self) -> Iterator[tuple[int, str, list[tuple[str, str, str]]]]:
        """Each run named so far: its number, folder, and files as group, name and link."""
        for run, number in self._numbers.items():
            sources = self._sources[run].items()
            yield number, run, [(group, file, self._links.get(file, "")) for group, file in sources]
