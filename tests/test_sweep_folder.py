"""The sweep folder: who may write there, who may work on it, what is in it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from generator.cluster.job_file import JOB_FILE
from generator.errors import InvalidInput
from generator.sweep.folder import SweepFolder, SweepSettings, create_sweep, open_sweep
from generator.sweep.lock import exclusive, this_process

SETTINGS = SweepSettings(name="tiny", launcher="command", command=("sleep", "5"), max_parallel=3)


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    made = create_sweep(tmp_path / "sweep")
    made.write_settings(SETTINGS)
    return made


def refused(path: Path) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        open_sweep(path)
    return [str(each).replace(str(path.parent), "") for each in error.value.problems]


# --- opening and creating ---------------------------------------------------------------------


def test_settings_come_back(folder: SweepFolder) -> None:
    assert open_sweep(folder.root).read_settings() == SETTINGS


def test_root_is_absolute(folder: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.root.parent)
    assert open_sweep(Path("sweep")).root == folder.root


def test_no_sweep(tmp_path: Path) -> None:
    assert refused(tmp_path / "x") == [
        "/x: is not a sweep (name the folder that pdrecipe submit made)"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is broken: Expecting property name"),
        ("[]", "is broken: Expected `object`, got `array`"),
        ('{"version":1}', "is broken: Object missing required field `name`"),
        (
            '{"version":1,"name":"x","max_parallel":"3"}',
            "got `str` - at `$.max_parallel`",
        ),
        ('{"version":2,"name":"x"}', "is version 2 of its format, not 1"),
    ],
)
def test_broken_settings(folder: SweepFolder, text: str, problem: str) -> None:
    (folder.root / "sweep.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as error:
        folder.read_settings()
    assert problem in str(error.value)


def test_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InvalidInput, match=r"holds other files \(name a new folder, or a sweep\)"):
        create_sweep(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def test_creation_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    create_sweep(tmp_path)
    assert create_sweep(tmp_path).root == tmp_path


@pytest.mark.parametrize("name", ["", "arrays", "points", "sweep.json", "recipes"])
def test_others_may_not_write(folder: SweepFolder, name: str) -> None:
    path = folder.root / name
    path.chmod(path.stat().st_mode | 0o020)
    (problem,) = refused(folder.root)
    place = f"/sweep/{name}" if name else "/sweep"
    assert problem == f"{place}: others can write here (chmod go-w {place})"


def test_link_to_elsewhere(folder: SweepFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder.root / "points").rmdir()
    (folder.root / "points").symlink_to(tmp_path / "elsewhere")
    assert refused(folder.root) == [
        "/sweep/points: is a symbolic link (move the sweep as a whole instead)"
    ]


def test_folder_of_another_user(folder: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    owned_by_root = os.getuid() == 0
    if owned_by_root:  # root's files are anybody's to trust, so give the ledger away
        os.chown(folder.root / "arrays", 12345, -1)
    problems = refused(folder.root)
    assert (
        "/sweep/arrays: belongs to another user (a sweep belongs to one user; start your own)"
        in (problems)
    )


def test_withdrawn_jobs_find_nothing_to_do(folder: SweepFolder) -> None:
    for index in range(2):
        job = folder.job("t", index)
        job.mkdir(parents=True)
        (job / JOB_FILE).touch()
    folder.withdraw("t")
    folder.withdraw("t")
    folder.withdraw("unknown")
    assert [(each / JOB_FILE).exists() for each in folder.jobs("t", 2)] == [False, False]


# --- one client at a time ---------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from generator.sweep.lock import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_second_client_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with holder(lock) as process:
        try:
            with pytest.raises(InvalidInput, match=f"process {process.pid} on .* is working on"):
                exclusive(lock).__enter__()
        finally:
            process.kill()


def test_lock_of_a_killed_client_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with holder(lock) as process:
        process.send_signal(signal.SIGKILL)
    with exclusive(lock):
        assert json.loads(lock.read_text("ascii"))["pid"] == os.getpid()


def test_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), exclusive(tmp_path / "lock"):
        raise RuntimeError
    with exclusive(tmp_path / "lock"):
        pass


def test_two_locks_in_one_process_do_not_pass_each_other(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock"), pytest.raises(InvalidInput, match="is working on"):
        exclusive(tmp_path / "lock").__enter__()


@pytest.fixture
def without_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


def leave_lock(folder: Path, **other: object) -> None:
    mine = this_process()
    owner = {"pid": mine.pid, "boot": mine.boot, "host": mine.host, **other}
    (folder / "lock.owner").write_text(json.dumps(owner), encoding="ascii")


def a_dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.usefixtures("without_flock")
def test_without_flock_a_file_is_the_lock(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock"), pytest.raises(InvalidInput, match="is working on"):
        exclusive(tmp_path / "lock").__enter__()
    with exclusive(tmp_path / "lock"):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]


@pytest.mark.usefixtures("without_flock")
@pytest.mark.parametrize("gone", [{"pid": "dead"}, {"boot": "an earlier one"}], ids=str)
def test_without_flock_the_lock_of_a_dead_client_is_taken_over(
    tmp_path: Path, gone: dict[str, object]
) -> None:
    leave_lock(tmp_path, **{key: a_dead_pid() if each == "dead" else each
                            for key, each in gone.items()})  # fmt: skip
    with exclusive(tmp_path / "lock"):
        assert json.loads((tmp_path / "lock.owner").read_text("ascii"))["pid"] == os.getpid()
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]


@pytest.mark.usefixtures("without_flock")
@pytest.mark.parametrize("other", [{"pid": 1}, {"host": "elsewhere", "pid": 4194304}], ids=str)
def test_without_flock_a_client_that_may_live_keeps_its_lock(
    tmp_path: Path, other: dict[str, object]
) -> None:
    leave_lock(tmp_path, **other)
    with pytest.raises(InvalidInput, match=r"if it is gone for good, remove \S*lock\.owner"):
        exclusive(tmp_path / "lock").__enter__()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lock", "lock.owner"]


@pytest.mark.usefixtures("without_flock")
def test_of_many_that_take_over_one_succeeds(tmp_path: Path) -> None:
    """Processes that all find a dead client's lock: never two of them inside at once."""
    leave_lock(tmp_path, pid=a_dead_pid())
    contend = """
import errno, fcntl, os, sys, time
from pathlib import Path
from generator.errors import InvalidInput
from generator.sweep.lock import exclusive
def refuse(*_):
    raise OSError(errno.ENOLCK, "")
fcntl.flock = refuse
folder = Path(sys.argv[1])
while time.time() < float(sys.argv[2]):
    pass
try:
    with exclusive(folder / "lock"):
        (folder / "inside").mkdir()
        time.sleep(0.3)
        (folder / "inside").rmdir()
        print("in")
except InvalidInput:
    print("out")
"""
    start = str(time.time() + 1.5)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", contend, str(tmp_path), start],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parent.parent,
        )
        for _ in range(6)
    ]
    answers = [process.communicate() for process in processes]
    assert [errors for _, errors in answers] == [""] * 6
    assert sum(out == "in\n" for out, _ in answers) >= 1
