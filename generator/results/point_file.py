"""The file of results: one point a line as JSON, in an order of its own, written as a whole."""

from __future__ import annotations

import codecs
import gc
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from generator.errors import InvalidInput, Problem
from generator.files import os_problem, write_text_atomically
from generator.results.figure_range import check_figures
from generator.results.point import MeasuredPoint
from generator.wording import as_below, shown

VERSION = 1
A_RESULT = re.compile(rb'"pdrecipe_result"\s*:')
"""What every file of results has in its first line, whoever wrote it."""
_MOST_DIGITS = 400


def point_document(point: MeasuredPoint) -> dict[str, Any]:
    """The JSON object of a point, with the figures that follow from others under ``derived``."""
    derived = {
        "requests_per_s": point.requests_per_s,
        "input_tokens_per_s": point.input_tokens_per_s,
        "output_tokens_per_s": point.output_tokens_per_s,
        "total_tokens_per_s": point.total_tokens_per_s,
        "total_tokens_per_s_per_gpu": point.total_tokens_per_s_per_gpu,
        "tokens_per_s_per_user": point.tokens_per_s_per_user,
    }
    return {
        "pdrecipe_result": VERSION,
        "id": point.subject.point_id,
        **msgspec.to_builtins(point),
    } | {"derived": derived}


def write_points(path: Path, points: Iterable[MeasuredPoint]) -> None:
    """Write a file of results atomically; raises InvalidInput where that cannot be done."""
    write_text_atomically(path, points_text(points))


def points_text(points: Iterable[MeasuredPoint]) -> str:
    """The text of a file of results, in an order of its own."""
    ordered = sorted(points, key=_order)
    return "".join(f"{json.dumps(point_document(each), allow_nan=False)}\n" for each in ordered)


def _order(point: MeasuredPoint) -> tuple[str, str, int, str]:
    subject = point.subject
    return (subject.recipe, subject.digest, subject.concurrency, point.run)


def read_points(path: Path) -> tuple[MeasuredPoint, ...]:
    """The points of a file of results; raises InvalidInput with every line that is none."""
    try:
        with path.open("rb") as lines, _without_collection():
            return _points(lines, str(path))
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error


@contextmanager
def _without_collection() -> Iterator[None]:
    """Points hold no cycles, and walking ever more of them would take a third of the reading.

    Nor are they walked afterwards: as long as they are needed the collector passes them by.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _points(lines: Iterable[bytes], source: str) -> tuple[MeasuredPoint, ...]:
    points: list[MeasuredPoint] = []
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if not content.strip():
            continue
        try:
            points.append(_point(content))
        except (ValueError, RecursionError) as error:
            found.setdefault(_reason(error), []).append(number)
    if found:
        raise InvalidInput(_problem(reason, lines, source) for reason, lines in found.items())
    return tuple(points)


def _reason(error: Exception) -> str:
    """Why a line is no result, in words that are the same for all lines of one fault."""
    if isinstance(error, json.JSONDecodeError):
        return "not JSON"
    if isinstance(error, UnicodeError):
        return "not UTF-8 text"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _problem(reason: str, lines: Sequence[int], source: str) -> Problem:
    """One problem for all lines that have it: a file of another version has it on each."""
    return Problem(
        message=f"not a result{as_below(lines)}: {reason}",
        hint="write it anew with pdrecipe collect",
        source=source,
        line=lines[0],
    )


def _point(line: bytes) -> MeasuredPoint:
    if not line.isascii():
        line.decode()  # the fast reader looks at no name that it does not know
    try:
        is_ours = _HEADS.decode(line).pdrecipe_result == VERSION
        point = _POINTS.decode(line) if is_ours else _point_with_reasons(line)
    except msgspec.DecodeError:
        point = _point_with_reasons(line)
    check_figures(point)
    return point


def _point_with_reasons(line: bytes) -> MeasuredPoint:
    """Several times as slow, for lines that the fast reader does not take: it knows better why.

    It takes a few more, too: names of files with bytes that are no text.
    """
    document = _DECODER.decode(line.decode())
    if not isinstance(document, dict) or "pdrecipe_result" not in document:
        raise ValueError("it lacks pdrecipe_result, the version of the format")
    if document["pdrecipe_result"] != VERSION:
        version = shown(document["pdrecipe_result"])
        raise ValueError(f"it is of version {version}, this pdrecipe reads {VERSION}")
    return msgspec.convert(document, MeasuredPoint)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of it has more than {_MOST_DIGITS} digits")
    return int(digits)


@dataclass(frozen=True, slots=True)
class _Head:
    """What every line has in every version of the format."""

    pdrecipe_result: int


# One of each for all lines: making them is slow.
_HEADS = msgspec.json.Decoder(_Head)
_POINTS = msgspec.json.Decoder(MeasuredPoint)
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_whole_number)
