"""What a rendered recipe changes on disk: new, changed and stale files, line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from generator.errors import InvalidInput
from generator.files import read_text

_LONGEST_HEADER_LINE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """Lines of a file replaced by others; ``before_line`` counts from 1."""

    before_line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDrift:
    """One recipe file as it is (None: it is not there) and as the spec gives it."""

    path: Path
    before: str | None
    after: str

    @property
    def is_new(self) -> bool:
        return self.before is None

    @property
    def is_unchanged(self) -> bool:
        return self.before == self.after

    @property
    def is_header_only(self) -> bool:
        """Whether only the generated header differs, as after an unrelated edit of the spec."""
        if self.before is None or self.is_unchanged:
            return False
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        return before[_header_lines(before) :] == after[_header_lines(after) :]

    def line_changes(self) -> Iterator[LineChange]:
        """Changed lines below the generated header; none where only line ends differ."""
        before, after = (self.before or "").splitlines(), self.after.splitlines()
        skipped = _header_lines(before)
        body_before, body_after = before[skipped:], after[_header_lines(after) :]
        matcher = difflib.SequenceMatcher(a=body_before, b=body_after, autojunk=False)
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            if tag != "equal":
                yield LineChange(
                    before_line=skipped + start + 1,
                    removed=tuple(body_before[start:end]),
                    added=tuple(body_after[new_start:new_end]),
                )


def find_drift(rendered: dict[Path, str]) -> tuple[FileDrift, ...]:
    """Each rendered file beside what is on disk."""
    return tuple(
        FileDrift(path=path, before=_read(path), after=text) for path, text in rendered.items()
    )


def stale_files(
    folder: Path, rendered: dict[Path, str], starts: str, layout: str
) -> tuple[Path, ...]:
    """Files of a folder and those just below it that the same spec once gave and no longer does.

    Their header tells: its first line ``starts`` so, its second one ends with the layout.
    """
    return tuple(
        path
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*/*.yaml")])
        if path not in rendered and _has_header(path, starts.encode(), layout.encode())
    )


def _has_header(path: Path, starts: bytes, layout: bytes) -> bool:
    """Whether a file has this header; a stranger's file, whatever is in it, has not."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            first, second = (stream.readline(_LONGEST_HEADER_LINE_BYTES) for _ in range(2))
    except OSError:
        return False
    return first.startswith(starts) and second.rstrip().endswith(layout)


def _header_lines(lines: list[str]) -> int:
    """How many comment lines a file starts with."""
    return next((index for index, line in enumerate(lines) if not line.startswith("#")), 0)


def _read(path: Path) -> str | None:
    """The text of a file, None where there is none; raises InvalidInput for what is in the way."""
    hint = "move it away or choose another folder with --out"
    try:
        return read_text(path, str(path))
    except InvalidInput as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise InvalidInput(replace(problem, hint=hint) for problem in error.problems) from error
