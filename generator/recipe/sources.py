"""The texts that paths on a command line stand for: files, folders, globs, stdin and git."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, TypeAlias

from generator.errors import InvalidInput, Problem
from generator.files import MAX_FILE_BYTES, decode_text, read_text
from generator.recipe.git_tree import GitFile, GitTree, is_revision
from generator.wording import shown

STANDARD_INPUT = "<stdin>"
"""What messages call text read from standard input."""

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSource:
    """A text that may be a recipe.

    ``name`` is what messages call it. ``relative_path`` is its path below the folder that was
    given, or its file name: files of two folders are paired by it. ``is_named`` says that it was
    given itself, so that it has to be a recipe.
    """

    name: str
    relative_path: str
    text: str = field(repr=False)
    is_named: bool
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedSources:
    """What could be read, in the order of the arguments and by path, and what could not."""

    sources: tuple[RecipeSource, ...]
    problems: tuple[Problem, ...] = ()


_Key: TypeAlias = tuple[str, ...]
_Found: TypeAlias = tuple[_Key, RecipeSource | Problem]


def collect_sources(
    arguments: Iterable[str], *, folder: Path = Path(), stdin: BinaryIO | None = None
) -> CollectedSources:
    """The texts behind arguments, each once.

    An argument is a file, a folder (its ``*.yaml`` and ``*.yml``, hidden ones left out), a glob,
    ``-`` for standard input, ``REV:FILE`` or ``REV:FOLDER`` of git, or ``REV..REV`` and
    ``REV...REV`` for what those revisions changed, as the second has it. What exists on disk
    under an argument's name comes first. Relative paths are the folder's.

    Raises InvalidInput with every argument that stands for nothing. Files that are there but are
    no text are among the problems of the answer.
    """
    found: dict[_Key, RecipeSource | Problem] = {}
    refused: list[Problem] = []
    for argument in dict.fromkeys(arguments):  # standard input can be read but once
        try:
            for key, each in _behind(argument, folder, stdin):
                found[key] = _named_once(found.get(key), each)
        except InvalidInput as error:
            refused += (_about(problem, argument) for problem in error.problems)
    if refused:
        raise InvalidInput(dict.fromkeys(refused))
    return CollectedSources(
        sources=tuple(each for each in found.values() if isinstance(each, RecipeSource)),
        problems=tuple(each for each in found.values() if isinstance(each, Problem)),
    )


def is_range(argument: str, folder: Path = Path()) -> bool:
    """Whether an argument names two revisions, ``REV..REV`` or ``REV...REV``, and no file."""
    return _range(argument) is not None and not os.path.lexists(folder / argument)


def collect_both_sides(
    argument: str, *, folder: Path = Path()
) -> tuple[CollectedSources, CollectedSources]:
    """The YAML files that differ between the revisions of a range, as each of them has them.

    ``A..B`` or ``A...B`` (since B left A), with ``:FOLDER`` behind it to look there only. A file
    that one side lacks is on the other side alone. Raises InvalidInput as ``collect_sources``.
    """
    parts = _range(argument)
    if parts is None:
        message = f"{shown(argument)} is no range of revisions"
        raise InvalidInput(Problem(message=message, hint="write REV..REV"))
    try:
        before, after = _range_trees(parts, folder)
    except InvalidInput as error:
        raise InvalidInput(_about(problem, argument) for problem in error.problems) from error
    return (
        _as_collected(_git_texts(before.without(after))),
        _as_collected(_git_texts(after.without(before))),
    )


def _as_collected(found: Iterator[_Found]) -> CollectedSources:
    every = [each for _, each in found]
    return CollectedSources(
        sources=tuple(each for each in every if isinstance(each, RecipeSource)),
        problems=tuple(each for each in every if isinstance(each, Problem)),
    )


def _behind(argument: str, folder: Path, stdin: BinaryIO | None) -> Iterator[_Found]:
    path = folder / argument
    if argument == "-":
        yield _standard_input(stdin)
    elif os.path.lexists(path):
        yield from _on_disk(path, argument)
    elif glob.has_magic(argument):
        yield from _globbed(argument, folder)
    elif parts := _range(argument):
        before, after = _range_trees(parts, folder)
        yield from _git_texts(after.without(before))
    elif ":" in argument:
        revision, _, inside = argument.partition(":")
        listing = _listing(GitTree(revision, folder), inside)
        if not listing.files:
            message = f"revision {shown(revision)} has no YAML file there"
            hint = "paths start at the top of the repository, or with ./ here"
            raise InvalidInput(Problem(message=message, hint=hint, source=argument))
        yield from _git_texts(listing)
    else:
        message, hint = "no such file or folder", "check the path; git wants REV:PATH"
        raise InvalidInput(Problem(message=message, hint=hint, source=argument))


def _named_once(
    known: RecipeSource | Problem | None, found: RecipeSource | Problem
) -> RecipeSource | Problem:
    """Of a file met twice the first, named if it was named either time."""
    if isinstance(known, RecipeSource) and isinstance(found, RecipeSource):
        return replace(known, is_named=known.is_named or found.is_named)
    return found if known is None else known


def _about(problem: Problem, argument: str) -> Problem:
    return problem if problem.source else replace(problem, source=argument)


# --- disk and standard input ------------------------------------------------------------------


def _standard_input(stdin: BinaryIO | None) -> _Found:
    content = b"" if stdin is None else stdin.read(MAX_FILE_BYTES + 1)
    if not content.strip():
        message = "nothing came in"
        hint = "pipe a recipe into it, or name a file"
        raise InvalidInput(Problem(message=message, hint=hint, source=STANDARD_INPUT))
    text = decode_text(content, STANDARD_INPUT)
    source = RecipeSource(name=STANDARD_INPUT, relative_path="-", text=text, is_named=True)
    return ("-",), source


def _on_disk(path: Path, name: str) -> Iterator[_Found]:
    if not path.is_dir():
        yield _file(path, name, path.name, is_named=True)
        return
    for inside in _yaml_files(path):
        shown_name = os.path.normpath(Path(name) / inside)
        yield _file(path / inside, shown_name, inside.as_posix(), is_named=False)


def _yaml_files(folder: Path) -> list[Path]:
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".")]
        here = Path(root).relative_to(folder)
        found += [here / name for name in names if _is_yaml_name(name)]
    return sorted(found, key=Path.as_posix)


def _is_yaml_name(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES) and not name.startswith(".")


def _globbed(pattern: str, folder: Path) -> Iterator[_Found]:
    # Path.glob takes no absolute pattern, and finds hidden files.
    names = sorted(glob.glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207
    if not names:
        message, hint = "no file has such a name", "check the pattern; ** goes into folders"
        raise InvalidInput(Problem(message=message, hint=hint, source=pattern))
    for name in names:
        path = folder / name
        if path.is_dir():
            yield from _on_disk(path, name)
        else:
            yield _file(path, name, Path(name).as_posix(), is_named=False)


def _file(path: Path, name: str, relative_path: str, *, is_named: bool) -> _Found:
    key = ("file", os.path.realpath(path))
    try:
        text = read_text(path, name)
    except InvalidInput as error:
        return key, error.problems[0]
    source = RecipeSource(name=name, relative_path=relative_path, text=text, is_named=is_named)
    return key, source


# --- git --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The YAML files of a revision at or below ``top``, a path from the repository's."""

    tree: GitTree
    top: str
    files: tuple[GitFile, ...]

    def without(self, other: _Listing) -> _Listing:
        """The files that another revision lacks or has with other content."""
        known = {(each.path, each.object_id) for each in other.files}
        files = tuple(each for each in self.files if (each.path, each.object_id) not in known)
        return replace(self, files=files)


def _range(argument: str) -> tuple[str, str, str, str] | None:
    """The first revision, the dots, the second revision and the path of a range."""
    revisions, _, path = argument.partition(":")
    dots = "..." if "..." in revisions else ".."
    first, found, second = revisions.partition(dots)
    if not found or not (first or second):
        return None
    first, second = first or "HEAD", second or "HEAD"
    return (first, dots, second, path) if is_revision(first) and is_revision(second) else None


def _range_trees(parts: tuple[str, str, str, str], folder: Path) -> tuple[_Listing, _Listing]:
    first, dots, second, path = parts
    after = GitTree(second, folder)
    before = GitTree(after.merge_base(first) if dots == "..." else first, folder)
    return _listing(before, path), _listing(after, path)


def _listing(tree: GitTree, path: str) -> _Listing:
    top = tree.path_from_top(path)
    files = (each for each in tree.files(top) if each.path == top or _is_found(each.path, top))
    return _Listing(tree=tree, top=top, files=tuple(files))


def _is_found(path: str, top: str) -> bool:
    *folders, name = path.removeprefix(f"{top}/" if top else "").split("/")
    return _is_yaml_name(name) and not any(each.startswith(".") for each in folders)


def _git_texts(listing: _Listing) -> Iterator[_Found]:
    tree = listing.tree
    for file, content in zip(listing.files, tree.read(listing.files), strict=True):
        name = f"{tree.revision}:{file.path}"
        key = ("git", tree.commit, file.path)
        is_named = file.path == listing.top
        try:
            text = decode_text(content, name)
        except InvalidInput as error:
            yield key, error.problems[0]
            continue
        source = RecipeSource(
            name=name,
            relative_path=file.path.rpartition("/")[2] if is_named else _below(file.path, listing),
            text=text,
            is_named=is_named,
            revision=tree.revision,
        )
        yield key, source


def _below(path: str, listing: _Listing) -> str:
    return path.removeprefix(f"{listing.top}/" if listing.top else "")
