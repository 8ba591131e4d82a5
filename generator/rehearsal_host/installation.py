"""Makes the environments of a rehearsal: once, whole or not at all, one set-up at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from generator.cluster.processes import dies_with
from generator.errors import ClusterFailure, Problem
from generator.files import os_problem, write_text_atomically
from generator.rehearsal_host.disk_space import demand_room
from generator.rehearsal_host.environments import (
    EnvironmentPlan,
    Environments,
    environment_plans,
    find_environments,
    interpreter,
    is_installed,
    mark_path,
    mark_text,
    python_releases,
)

Tell = Callable[[str], None]
# What shows a count of so many items under a label; each is told to the function it gives.
Progress = Callable[[str, int], AbstractContextManager[Tell]]

_ROOM = 1.5  # of what is installed: wheels lie beside their content while pip unpacks them
_LAST_LINES = 6
_PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar=off")
_HINTS = (
    ("No space left", "free some space and run it again"),
    ("No module named pip", "its ensurepip is missing: on Debian, apt-get install python3-venv"),
    ("ensurepip", "its ensurepip is missing: on Debian, apt-get install python3-venv"),
    ("resolution", "no package index was reached: check the network, proxy or PIP_INDEX_URL"),
    ("connection", "no package index was reached: check the network, proxy or PIP_INDEX_URL"),
    ("No matching distribution", "the package index has no such release for this Python or CPU"),
)


def set_up(folder: Path, tell: Tell, progress: Progress) -> Environments:
    """Make what is missing in the cache folder; sizes are told before anything is fetched.

    Raises ClusterFailure where this machine cannot have them: another system or Python, too little
    disk, pip's refusal. What is whole is kept, so that another call goes on from there.
    """
    _refuse_system()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(folder, tell):
            missing = [plan for plan in environment_plans() if not is_installed(plan, folder)]
            needed = round(sum(plan.installed_bytes for plan in missing) * _ROOM)
            demand_room(folder, needed, "--cache")
            for plan in missing:
                size = f"about {plan.installed_bytes / 10**6:,.0f} MB"
                tell(f"{plan.title}: {size}, into {folder / plan.name}")
            for plan in missing:
                _install(plan, folder, progress)
                tell(f"{plan.title}: installed")
    except OSError as error:
        raise ClusterFailure(os_problem(error, str(error.filename or folder))) from error
    found = find_environments(folder)
    if found is None:
        message = "the environments of the rehearsal are not whole after their installation"
        raise ClusterFailure(Problem(message=message, source=str(folder), hint="run it again"))
    return found


def _refuse_system() -> None:
    if sys.platform != "linux":
        message = f"Dynamo's wheels are for Linux, and this is {sys.platform}"
        raise ClusterFailure(Problem(message=message, hint="rehearse on a Linux machine"))
    least, below = python_releases()
    if not least <= sys.version_info[:2] < below:
        has = ".".join(map(str, sys.version_info[:2]))
        span = f"{'.'.join(map(str, least))} or newer, below {'.'.join(map(str, below))}"
        message = f"a rehearsal's programs need Python {span}, and pdrecipe runs on {has}"
        raise ClusterFailure(Problem(message=message, hint="install pdrecipe for another Python"))


@contextmanager
def _one_at_a_time(folder: Path, tell: Tell) -> Iterator[None]:
    """Hold the folder's lock; the kernel drops it with this process, however that ends."""
    with (folder / "lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another set-up is at work in this folder; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(plan: EnvironmentPlan, folder: Path, progress: Progress) -> None:
    """Make one environment from nothing; its mark is written last."""
    home = folder / plan.name
    log = folder / f"{plan.name}.log"
    shutil.rmtree(home, ignore_errors=True)
    log.unlink(missing_ok=True)
    temporary = home / "tmp"  # pip's own, so that one disk has to hold it all
    with progress(f"installing {plan.title}", len(plan.pins)) as tick:
        _run([sys.executable, "-m", "venv", str(home)], log, folder, plan, tick)
        temporary.mkdir()
        pins = home / "pins.txt"
        pins.write_text("\n".join(plan.pins) + "\n", encoding="utf-8")
        pip = [str(interpreter(home)), *_PIP]
        _run([*pip, "-c", str(pins), *plan.requirements], log, temporary, plan, tick)
        if plan.alone:
            _run([*pip, "--no-deps", *plan.alone], log, temporary, plan, tick)
    shutil.rmtree(temporary)
    write_text_atomically(mark_path(plan, folder), mark_text(plan))


def _run(
    argv: Sequence[str], log: Path, temporary: Path, plan: EnvironmentPlan, tick: Tell
) -> None:
    """Run a step of an installation; raises ClusterFailure with what it said last."""
    with log.open("a", encoding="utf-8") as stream, _started(argv, temporary) as process:
        lines = []
        for line in process.stdout or ():
            stream.write(line)
            lines.append(line.rstrip())
            if item := _item_of(line):
                tick(item)
    if process.returncode:
        raise ClusterFailure(_refused(plan, log, lines))


def _item_of(line: str) -> str:
    """What a line of pip's says it has begun with."""
    match line.split():
        case ["Collecting" | "Processing", requirement, *_]:
            return Path(requirement).name
        case ["Installing", "collected", *_]:
            return "unpacking them all"
    return ""


def _started(argv: Sequence[str], temporary: Path) -> subprocess.Popen[str]:
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.Popen(
        argv,
        env={**environment, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        # This process has one thread, so that its child may run Python.
        preexec_fn=dies_with(os.getpid(), signal.SIGTERM),  # noqa: PLW1509
    )


def _refused(plan: EnvironmentPlan, log: Path, lines: Sequence[str]) -> Problem:
    last = [line for line in lines if line and not line.startswith("[notice]")][-_LAST_LINES:]
    # Of advice around its errors pip has a lot, and none of it is about pins.
    said = " | ".join([line for line in last if line.startswith("ERROR: ")] or last)
    hint = next(
        (hint for sign, hint in _HINTS if any(sign.lower() in line.lower() for line in last)),
        "run it again: what was installed whole is kept",
    )
    message = f"{plan.title} was not installed: {said or 'it said nothing'}"
    return Problem(message=message, hint=hint, source=str(log))
