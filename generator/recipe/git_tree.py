"""Files as a git revision has them, read through git's own commands; nothing is checked out."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.errors import InvalidInput, Problem
from generator.files import MAX_FILE_BYTES
from generator.wording import shown

_REVISION = re.compile(r"(?![-./])[^\s:*?\[\\\x00-\x1f\x7f]+(?<![./])\Z")
_FILE_MODES = frozenset({"100644", "100755"})
_MOST_PROBLEM_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFile:
    """A regular file of a commit; ``path`` starts at the top of the repository."""

    path: str
    object_id: str
    size_bytes: int


class GitTree:
    """One revision of the repository that a folder belongs to.

    Raises InvalidInput, also when made, where git is not installed, the folder is in no
    repository, or the revision is not there.
    """

    def __init__(self, revision: str, folder: Path) -> None:
        self.revision = revision
        self._folder = folder
        self.commit = self._commit(revision)

    def path_from_top(self, path: str) -> str:
        """A path as it starts at the top of the repository; empty for the whole of it.

        That is how git has paths, save those with ``./`` or ``../``, which start at the folder.
        Raises InvalidInput for a path that leads out of the repository.
        """
        is_relative = path.split("/", maxsplit=1)[0] in (".", "..")
        prefix = self._git(["rev-parse", "--show-prefix"]).decode().strip() if is_relative else ""
        inside = posixpath.normpath(posixpath.join(prefix, path))
        if inside.startswith(("../", "/")) or inside == "..":
            message = f"{shown(path)} leads out of the repository"
            raise InvalidInput(Problem(message=message, source=f"{self.revision}:{path}"))
        return "" if inside == "." else inside

    def files(self, path: str) -> list[GitFile]:
        """The file at a path from the top, or every file below it, by path; none if neither."""
        arguments = ["ls-tree", "-r", "-l", "-z", "--full-tree", self.commit]
        listing = self._git([*arguments, "--", path] if path else arguments)
        entries = filter(None, listing.decode("utf-8", "surrogateescape").split("\0"))
        return sorted(_files(entries), key=lambda each: each.path)

    def read(self, files: Sequence[GitFile]) -> Iterator[bytes]:
        """The contents of files, in order; of one over 8 MiB only that it is too long."""
        wanted = [each.object_id for each in files if each.size_bytes <= MAX_FILE_BYTES]
        output = self._git(["cat-file", "--batch"], "".join(f"{each}\n" for each in wanted))
        position = 0
        for each in files:
            if each.size_bytes > MAX_FILE_BYTES:
                yield bytes(MAX_FILE_BYTES + 1)
                continue
            start = output.index(b"\n", position) + 1  # after "<id> blob <size>"
            position = start + each.size_bytes + 1
            yield output[start : position - 1]

    def merge_base(self, revision: str) -> str:
        """The newest commit that this revision and another one have in common."""
        other = self._commit(revision)
        try:
            return self._git(["merge-base", self.commit, other]).decode().strip()
        except InvalidInput as error:
            message = f"{shown(self.revision)} and {shown(revision)} have no common commit here"
            raise InvalidInput(Problem(message=message, hint="fetch the whole history")) from error

    def _commit(self, revision: str) -> str:
        if not is_revision(revision):
            message = f"{shown(revision)} cannot be a revision"
            raise InvalidInput(Problem(message=message, hint="give a branch, tag or commit"))
        arguments = ["rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
        try:
            return self._git(arguments).decode().strip()
        except _GitRefused as error:
            if error.said:
                raise
            message = f"no file and no revision {shown(revision)} in this repository"
            hint = "check the name; fetch it if it is on a remote"
            raise InvalidInput(Problem(message=message, hint=hint)) from error

    def _git(self, arguments: list[str], stdin: str = "") -> bytes:
        command = ["git", "-C", os.fspath(self._folder), *arguments]
        environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        try:
            done = subprocess.run(
                command, input=stdin.encode(), capture_output=True, check=False, env=environment
            )
        except OSError as error:
            message = "git is not installed, and revisions are read through it"
            raise InvalidInput(Problem(message=message, hint="install git")) from error
        if done.returncode:
            raise _GitRefused(done.stderr.decode("utf-8", "replace").strip())
        return done.stdout


class _GitRefused(InvalidInput):
    """A git command failed; ``said`` is what it printed."""

    def __init__(self, said: str) -> None:
        first = said.partition("\n")[0].removeprefix("fatal: ")[:_MOST_PROBLEM_CHARACTERS]
        super().__init__(Problem(message=f"git: {first or 'failed'}"))
        self.said = said


def is_revision(text: str) -> bool:
    """Whether text can name a revision: no option, no path with dots, nothing git forbids."""
    return _REVISION.match(text) is not None and ".." not in text


def _files(entries: Iterator[str]) -> Iterator[GitFile]:
    """The regular files of a listing; links and submodules are no recipes."""
    for entry in entries:
        description, _, path = entry.partition("\t")
        mode, _, object_id, size = description.split()
        if mode in _FILE_MODES:
            yield GitFile(path=path, object_id=object_id, size_bytes=int(size))
