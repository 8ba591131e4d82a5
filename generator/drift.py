"""What a rendered recipe changes on disk: new, changed and stale files, line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.errors import InvalidInput, Problem


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
        return not self.is_new and not self.is_unchanged and not list(self.line_changes())

    def line_changes(self) -> Iterator[LineChange]:
        """Changed lines below the generated header."""
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


def stale_files(folders: set[Path], rendered: dict[Path, str], header: str) -> tuple[Path, ...]:
    """Files of these folders that the same spec once gave (their first line) and no longer does."""
    return tuple(
        path
        for folder in sorted(folders)
        if folder.is_dir()
        for path in sorted(folder.glob("*.yaml"))
        if path not in rendered and (_read(path) or "").startswith(header)
    )


def _header_lines(lines: list[str]) -> int:
    """How many comment lines a file starts with."""
    return next((index for index, line in enumerate(lines) if not line.startswith("#")), 0)


def _read(path: Path) -> str | None:
    """The text of a file, None where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            Problem(
                source=str(path),
                message=f"cannot be read to compare it: {error.__class__.__name__}",
                hint="move it away or choose another folder with --out",
            )
        ) from None
