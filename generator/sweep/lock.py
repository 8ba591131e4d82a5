"""One client at a time on a sweep folder, also where the one before was killed or cut off."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from generator.errors import InvalidInput, Problem
from generator.files import os_problem, pasted

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NO_FLOCK = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP})


class LockHeld(InvalidInput):
    """Another client has the lock, which is no fault of the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock: a process of one boot of one machine."""

    pid: int
    boot: str
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def is_surely_gone(self) -> bool:
        """Whether that process cannot exist any more; on another machine nobody can tell."""
        here = this_process()
        if self.host != here.host:
            return False
        if self.boot != here.boot:
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


def this_process() -> Holder:
    """Who we are to other clients."""
    boot = _BOOT_ID.read_text("ascii").strip() if _BOOT_ID.exists() else ""
    return Holder(pid=os.getpid(), boot=boot, host=socket.gethostname())


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock at ``path`` for the block.

    The kernel drops it with the process, however that ends. Where the file system knows no flock,
    a file that only its maker may remove takes its place; one whose maker is surely gone is taken
    over. Raises LockHeld, naming the holder, while another client has it, and InvalidInput where
    there can be no lock.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in _NO_FLOCK:
            with _exclusive_file(path.with_name(f"{path.name}.owner")):
                yield
            return
        raise LockHeld(_held(path, _holder(path))) from error
    try:
        _write_holder(descriptor)
        yield
    finally:
        os.close(descriptor)


def _write_holder(descriptor: int) -> None:
    """Tell other clients who we are; a full disk takes only the name in their message."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(this_process())).encode("ascii"), 0)


def _holder(path: Path) -> Holder | None:
    try:
        return msgspec.convert(json.loads(path.read_bytes()), Holder)
    except (OSError, ValueError, RecursionError):
        return None


def _held(path: Path, holder: Holder | None, more: str = "") -> Problem:
    who = str(holder) if holder else "another client"
    return Problem(
        message=f"{who} is working on this sweep",
        hint=f"wait for it to end; pdrecipe status {pasted(path.parent)} works meanwhile{more}",
        source=str(path.parent),
    )


@contextmanager
def _exclusive_file(path: Path) -> Iterator[None]:
    own = path.with_name(f"{path.name}.{os.getpid()}.{socket.gethostname()}")
    try:
        own.write_text(json.dumps(asdict(this_process())), encoding="ascii")
        _place(own, path)
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error
    finally:
        own.unlink(missing_ok=True)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _place(own: Path, path: Path) -> None:
    """Make our file the lock, where there is none or its maker is surely gone."""
    holder = _holder(path)
    try:
        os.link(own, path)
    except FileExistsError as error:
        if holder is None or not holder.is_surely_gone or not _take_over(own, path, holder):
            more = f"; if it is gone for good, remove {pasted(path)}"
            raise LockHeld(_held(path, holder, more)) from error


def _take_over(own: Path, path: Path, gone: Holder) -> bool:
    """Replace the lock of a client that is gone; of several who try, one succeeds."""
    claim = path.with_name(f"{path.name}.{gone.pid}.{gone.boot}")
    try:
        os.link(path, claim)
    except (FileExistsError, FileNotFoundError):
        return False
    try:
        if _holder(claim) != gone:
            return False
        own.replace(path)
        return True
    finally:
        claim.unlink(missing_ok=True)
