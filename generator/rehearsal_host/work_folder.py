"""A folder for the time of a rehearsal; what a killed one left is removed by the next.

A lock in it ends with its process, however that ends. So a folder that another process can lock
belongs to nobody any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "pdrecipe-rehearsal-"
_LOCK = "lock"
# A socket's path takes 107 characters, of which 28 name this folder and up to 59 what AIPerf makes.
_LONGEST_PARENT_CHARACTERS = 20
_SHORT_PARENT = Path("/tmp")  # noqa: S108 - mkdtemp makes what nobody else can have made before


@contextmanager
def work_folder() -> Iterator[Path]:
    """A new folder for the block, with a short path: AIPerf's sockets lie in it.

    Below TMPDIR, or /tmp where that is too long. Before that, those that dead rehearsals of this
    user left beside it are removed.
    """
    parent = Path(tempfile.gettempdir())
    if len(str(parent)) > _LONGEST_PARENT_CHARACTERS:
        parent = _SHORT_PARENT
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # at work, or removed meanwhile
            _remove_if_nobodys(left)
    folder, lock = _new(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _new(parent: Path) -> tuple[Path, int]:
    """A locked folder. Until it is locked another rehearsal may remove it: then another is made."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(BlockingIOError, FileNotFoundError):
            return folder, _locked(folder, os.O_CREAT)


def _remove_if_nobodys(folder: Path) -> None:
    """Remove a folder of this user that no process holds.

    Raises OSError where one does, and where there is no lock: that is not for us to judge.
    """
    found = folder.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        return
    lock = _locked(folder, 0)
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(folder: Path, creating: int) -> int:
    """The descriptor that holds a folder's lock; ``creating`` is O_CREAT, or 0 to have it there.

    Raises BlockingIOError while a process has it, and FileNotFoundError where it is gone.
    """
    path = folder / _LOCK
    lock = os.open(path, os.O_RDWR | creating | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.lstat()  # still there: whoever removes the folder has held this lock
    except OSError:
        os.close(lock)
        raise
    return lock
