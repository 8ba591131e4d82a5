"""The runs that figures on the page are from, numbered as they are first named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from generator.pareto.selection import AxisPoint
from generator.report.content import Cell
from generator.results.point import MeasuredPoint

_JOINED = ", "
_OF_SEVERAL_FILES = frozenset({"accuracy", "preemptions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A file of a run: its link, the groups of figures in it, and of which concurrencies.

    ``concurrencies`` is empty where the file is of all that are named of the run.
    """

    name: str
    link: str
    groups: tuple[str, ...]
    concurrencies: tuple[int, ...]


@dataclass(slots=True)
class _Named:
    """What the page names of one run: its number, and for each file what it is of."""

    number: int
    run: str
    concurrencies: set[int] = field(default_factory=set)
    files: dict[str, tuple[dict[str, None], set[int]]] = field(default_factory=dict)


class RunList:
    """Numbers runs while a page is written, so that each figure can name its own.

    A run has a file for each of its concurrencies, so that every point named adds its own.
    """

    def __init__(self, links: Mapping[tuple[str, str], str]) -> None:
        self._links = links
        self._named: dict[tuple[str, str], _Named] = {}

    def cell(self, each: AxisPoint) -> Cell:
        """The source of a point: the numbers of its runs, their folders where a pointer rests."""
        return self.cell_of(*each.runs)

    def cell_of(self, *runs: MeasuredPoint) -> Cell:
        """The same for runs without a place on axes."""
        numbers = sorted({self.name(run) for run in runs})
        return Cell(
            text=f"{'run' if len(numbers) == 1 else 'runs'} {_ranges(numbers)}",
            href=f"#run-{numbers[0]}",
            title=_JOINED.join(dict.fromkeys(run.run for run in runs)),
        )

    def name(self, point: MeasuredPoint) -> int:
        """The number of a point's run, whose files the page lists from now on."""
        key = (point.folder, point.run)
        named = self._named.setdefault(key, _Named(len(self._named) + 1, point.run))
        named.concurrencies.add(point.subject.concurrency)
        for group, source in point.sources.items():
            for file in files_of(group, source):
                groups, concurrencies = named.files.setdefault(file, ({}, set()))
                groups[group] = None
                concurrencies.add(point.subject.concurrency)
        return named.number

    def __len__(self) -> int:
        return len(self._named)

    def __contains__(self, point: MeasuredPoint) -> bool:
        return (point.folder, point.run) in self._named

    def rows(self) -> Iterator[tuple[int, str, list[RunFile]]]:
        """Each run named so far: its number, its folder and its files."""
        for (folder, _), named in self._named.items():
            files = [
                RunFile(
                    name=file,
                    link=self._links.get((folder, file), ""),
                    groups=tuple(groups),
                    concurrencies=tuple(sorted(of)) if of != named.concurrencies else (),
                )
                for file, (groups, of) in named.files.items()
            ]
            yield named.number, named.run, files


def files_of(group: str, source: str) -> list[str]:
    """The files of a group of figures: a score or a count of preemptions is from several."""
    return source.split(_JOINED) if group in _OF_SEVERAL_FILES else [source]


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers with runs of them closed up: ``3-5, 9``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return _JOINED.join("-".join(map(str, each)) for each in ranges)
