"""The sweep folder: where everything of a sweep lies, and who may write there."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from generator.cluster.job_file import JOB_FILE
from generator.cluster.registry import CLUSTERS
from generator.errors import InvalidInput, Problem
from generator.files import os_problem, pasted, read_text, write_text_atomically
from generator.site import Site, read_site
from generator.sweep.ledger import Ledger
from generator.sweep.lock import exclusive
from generator.wording import shown

SETTINGS_FILE = "sweep.json"
LEDGER_FILE = "ledger.jsonl"
SITE_FILE = "site.yaml"
LAUNCHERS = ("srtctl", "command", "rehearse")
_VERSION = 1
_FOLDERS = ("recipes", "points", "arrays")
_FOLDER_MODE = 0o755
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSettings:
    """How a sweep is submitted; kept, so that it is resumed the same way.

    ``command`` is the template of the ``command`` launcher; ``cache``, ``scale`` and ``timing`` are
    what the ``rehearse`` launcher is told. ``max_parallel`` is in jobs, 0 for no limit.
    ``stop_after`` like failures the sweep stops itself, 0 for never. ``has_site``: a copy of a site
    file belongs to it.
    """

    version: int = _VERSION
    name: str
    cluster: str = "slurm"
    launcher: str = "srtctl"
    command: tuple[str, ...] = ()
    cache: str = ""
    scale: int | None = None
    timing: str = ""
    max_parallel: int = 0
    canary: bool = True
    stop_after: int = 5
    has_site: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFolder:
    """The paths of a sweep; ``root`` is absolute, since jobs on other machines use them too."""

    root: Path

    @property
    def ledger(self) -> Ledger:
        return Ledger(path=self.root / LEDGER_FILE)

    def recipe(self, digest: str) -> Path:
        """The copy of a recipe as it was planned: later edits of its file change nothing."""
        return self.root / "recipes" / f"{digest}.yaml"

    def point(self, point: str) -> Path:
        """Where a point's result belongs, whichever job gives it."""
        return self.root / "points" / point

    def array(self, token: str) -> Path:
        """Where an array's pickles and logs lie."""
        return self.root / "arrays" / token

    def job(self, token: str, index: int) -> Path:
        """Where a job finds what it is to do."""
        return self.array(token) / "jobs" / f"{index:05}"

    def jobs(self, token: str, count: int) -> tuple[Path, ...]:
        """The job folders of an array, by index."""
        return tuple(self.job(token, index) for index in range(count))

    def read_site(self) -> Site | None:
        """The site the sweep was submitted to, None where none was named.

        Raises InvalidInput where it was named and its copy is gone.
        """
        path = self.root / SITE_FILE
        if path.exists():
            return read_site(path)
        if self.read_settings().has_site:
            message = "is gone, and jobs would go out without its partition and account"
            hint = f"put it back: pdrecipe submit {pasted(self.root)} --site FILE keeps a new copy"
            raise InvalidInput(Problem(message=message, hint=hint, source=str(path)))
        return None

    def write_site(self, text: str) -> None:
        """Keep the site file: later edits of it change nothing."""
        write_text_atomically(self.root / SITE_FILE, text)

    def withdraw(self, token: str) -> None:
        """Take the job files of an array away: whatever of it still starts finds nothing to do.

        An sbatch that outlives its client may deliver the array after everybody looked for it.
        """
        for path in sorted(self.array(token).glob(f"jobs/*/{JOB_FILE}")):
            try:
                path.rename(path.with_name(f"{JOB_FILE}.withdrawn"))
            except OSError as error:
                raise InvalidInput(os_problem(error, str(path))) from error

    def locked(self) -> AbstractContextManager[None]:
        """The sweep for one client alone; raises InvalidInput while another has it."""
        return exclusive(self.root / "lock")

    def read_settings(self) -> SweepSettings:
        """How the sweep was submitted; raises InvalidInput where that is not readable."""
        path = self.root / SETTINGS_FILE
        try:
            settings = msgspec.convert(json.loads(read_text(path, str(path))), SweepSettings)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(_broken_settings(path, str(error))) from error
        if settings.version != _VERSION:
            message = f"is version {settings.version} of its format, not {_VERSION}"
            hint = "use the pdrecipe that made the sweep"
            raise InvalidInput(Problem(message=message, hint=hint, source=str(path)))
        if settings.cluster not in CLUSTERS or settings.launcher not in LAUNCHERS:
            message = (
                f"no cluster {shown(settings.cluster)} with launcher {shown(settings.launcher)}"
            )
            raise InvalidInput(_broken_settings(path, message))
        return settings

    def write_settings(self, settings: SweepSettings) -> None:
        """Keep how the sweep is submitted."""
        text = json.dumps(asdict(settings), indent=1) + "\n"
        write_text_atomically(self.root / SETTINGS_FILE, text)


def _broken_settings(path: Path, why: str) -> Problem:
    hint = (
        "restore it from a copy; or remove it and submit the same recipes again, with"
        f" --sweep {pasted(path.parent)} and the options of before: what it has is not sent again"
    )
    return Problem(message=f"is broken: {why}", hint=hint, source=str(path))


def is_sweep(path: Path) -> bool:
    """Whether a folder is a sweep; what cannot be looked at is none."""
    try:
        return (path / SETTINGS_FILE).is_file()
    except OSError:
        return False


def create_sweep(path: Path) -> SweepFolder:
    """The folders of a sweep at ``path``, made where they are not there yet.

    It is a sweep once its settings are written, under its lock. Raises InvalidInput for a folder
    of other things, or where nothing can be written.
    """
    folder = SweepFolder(root=path.resolve())
    try:
        folder.root.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        if not is_sweep(folder.root) and not _is_begun(folder.root):
            message, hint = "holds other files", "name a new folder, or a sweep"
            raise InvalidInput(Problem(message=message, hint=hint, source=str(path)))
        for name in _FOLDERS:
            (folder.root / name).mkdir(exist_ok=True, mode=_FOLDER_MODE)
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error
    _demand_own(folder.root)
    return folder


def open_sweep(path: Path) -> SweepFolder:
    """The sweep at ``path``.

    Raises InvalidInput where there is none, or where others could have written what is read.
    """
    try:
        is_there = (path / SETTINGS_FILE).is_file()
    except OSError as error:
        raise InvalidInput(os_problem(error, str(path))) from error
    if not is_there:
        hint = "name the folder that pdrecipe submit made"
        raise InvalidInput(Problem(message="is not a sweep", hint=hint, source=str(path)))
    folder = SweepFolder(root=path.resolve())
    _demand_own(folder.root)
    _demand_ledger(folder.root)
    return folder


def _demand_ledger(root: Path) -> None:
    """Refuse a sweep that sent jobs and lost the record of them: it would send them again."""
    if (root / LEDGER_FILE).exists():
        return
    found = [name for name in ("arrays", "points") if _holds_something(root / name)]
    if found:
        there = " and ".join(f"{name}/" for name in found)
        message = f"is gone, but {there} beside it hold what this sweep sent"
        hint = "nothing is sent; restore it from a copy, or start a new sweep folder"
        problem = Problem(message=message, hint=hint, source=str(root / LEDGER_FILE))
        raise InvalidInput(problem)


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _is_begun(root: Path) -> bool:
    """Whether there is nothing but a sweep without settings: not written yet, or removed."""
    begun = (*_FOLDERS, SITE_FILE, LEDGER_FILE, "lock")
    return all(each.name in begun or each.suffix == ".tmp" for each in root.iterdir())


def _demand_own(root: Path) -> None:
    """Refuse a folder in which another user could plant recipes, results or pickles."""
    try:
        problems = [problem for path in _guarded(root) for problem in _permission_problems(path)]
    except OSError as error:
        raise InvalidInput(os_problem(error, str(root))) from error
    if problems:
        raise InvalidInput(problems)


def _guarded(root: Path) -> Iterator[Path]:
    yield root
    yield from sorted(root.iterdir())


def _permission_problems(path: Path) -> Iterator[Problem]:
    status = path.lstat()
    if status.st_uid not in (os.geteuid(), 0):
        hint = "a sweep belongs to one user; start your own"
        yield Problem(message="belongs to another user", hint=hint, source=str(path))
    if stat.S_ISLNK(status.st_mode):
        hint = "move the sweep as a whole instead"
        yield Problem(message="is a symbolic link", hint=hint, source=str(path))
    elif status.st_mode & _OTHERS_WRITE:
        hint = f"chmod go-w {pasted(path)}"
        yield Problem(message="others can write here", hint=hint, source=str(path))
