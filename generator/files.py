"""Text files read with clear refusals, and written whole or not at all."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

from generator.errors import InvalidInput, Problem

MAX_FILE_BYTES = 8 * 2**20

_REASONS = {
    errno.ENOENT: ("no such file", "check the path"),
    errno.EISDIR: ("is a folder, not a file", "name a file"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "check the path"),
    errno.EEXIST: ("a part of the path is a file, not a folder", "check the path"),
    errno.EACCES: ("permission denied", "check its owner and mode"),
    errno.EPERM: ("permission denied", "check its owner and mode"),
    errno.EROFS: ("the file system is read-only", "choose another folder"),
    errno.ENOSPC: ("no space left on the device", "free some space; nothing was changed"),
    errno.EDQUOT: ("the disk quota is used up", "free some space; nothing was changed"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
    errno.ELOOP: ("its symbolic links go round in a circle", "check the path"),
}


def read_text(path: Path, source: str) -> str:
    """The text of a UTF-8 file without its byte order mark; ``source`` is its name in messages.

    Raises InvalidInput for a file that cannot be read, is over 8 MiB or is not UTF-8.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(os_problem(error, source)) from error
    return decode_text(content, source)


def decode_text(content: bytes, source: str) -> str:
    """The text of UTF-8 bytes without a byte order mark; ``source`` is their name in messages.

    Raises InvalidInput for more than 8 MiB and for what is not UTF-8.
    """
    if len(content) > MAX_FILE_BYTES:
        message = f"is over {MAX_FILE_BYTES // 2**20} MiB"
        raise InvalidInput(Problem(message=message, hint="is this the right file?", source=source))
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{content[error.start]:02x} at offset {error.start}"
        utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise InvalidInput(
            Problem(
                message=f"not UTF-8 text: {byte}",
                hint="it looks like UTF-16: save it as UTF-8" if utf16 else "save it as UTF-8",
                source=source,
                line=content.count(b"\n", 0, error.start) + 1,
            )
        ) from error


def write_text_atomically(path: Path, text: str) -> None:
    """Write a UTF-8 file under a temporary name beside it, flush it to disk, then rename it.

    Readers see the old file or the new one. Missing folders are made. An existing file keeps its
    mode, and a symbolic link its place. On failure nothing is left behind.

    Raises InvalidInput if the target is a folder or read-only, a parent is a file, or the disk
    is full.
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"its text cannot be UTF-8: character U+{ord(text[error.start]):04X}"
        raise InvalidInput(Problem(message=message, source=str(path))) from error
    write_bytes_atomically(path, content)


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write a file that is no text in the same way; errors as write_text_atomically."""
    try:
        _write_whole(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error


def keep_inputs(out: Path, *inputs: Path) -> None:
    """Raise InvalidInput where an answer would replace a file that it is made of."""
    for path in inputs:
        try:
            is_same = out.samefile(path)
        except OSError:  # whoever reads or writes it says why it cannot be looked at
            continue
        if is_same:
            message = "is what this is made of, which it would replace"
            hint = "give the answer a name of its own"
            raise InvalidInput(Problem(message=message, hint=hint, source=str(out)))


def pasted(path: Path) -> str:
    """A path as a user can paste it into a shell: the shorter form, quoted, never an option."""
    try:
        seen = min(os.path.relpath(path), str(path), key=len)
    except OSError:  # the current folder is gone
        seen = str(path)
    return shlex.quote(f"./{seen}" if seen.startswith("-") else seen)


def _write_whole(target: Path, content: bytes) -> None:
    mode = _mode_of_existing(target)
    with ExitStack() as undo:
        for folder in _missing_folders(target.parent):
            folder.mkdir(exist_ok=True)
            undo.callback(_remove_if_empty, folder)
        temporary = target.parent / f".{os.urandom(8).hex()}.tmp"
        with temporary.open("xb") as stream:
            undo.callback(temporary.unlink, missing_ok=True)
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
        undo.pop_all()


def _mode_of_existing(target: Path) -> int | None:
    """The mode to keep; refuses what a rename would destroy although it cannot be written."""
    if not target.exists():
        return None
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "read-only")
    return stat.S_IMODE(target.stat().st_mode)


def _missing_folders(folder: Path) -> list[Path]:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    return missing[::-1]


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def os_problem(error: OSError, source: str) -> Problem:
    """What the operating system refused, in the words of a user; ``source`` is the file."""
    fallback = ((error.strerror or "cannot be used").lower(), "")
    message, hint = _REASONS.get(error.errno or 0, fallback)
    return Problem(message=message, hint=hint, source=source)
