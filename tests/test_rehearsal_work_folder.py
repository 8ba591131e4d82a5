"""The folder of a rehearsal's time: it goes with it, or with the next rehearsal."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.rehearsal_host.work_folder import work_folder

REPOSITORY = Path(__file__).resolve().parents[1]
HOLDS_ONE = """
import time
from generator.rehearsal_host.work_folder import work_folder
with work_folder() as folder:
    (folder / "home").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of temporary files, here and in processes started here."""
    folder = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))  # a short one
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


def test_it_is_gone_after_the_block(temporary: Path) -> None:
    with work_folder() as folder:
        assert folder.parent == temporary
        (folder / "home/.cache").mkdir(parents=True)
    assert list(temporary.iterdir()) == []


def test_it_is_where_sockets_have_room_for_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 10)))
    longest = "tmp/tmp12345678/aiperf/dataset_manager_proxy_frontend.ipc"
    with work_folder() as folder, socket.socket(socket.AF_UNIX) as listener:
        (folder / longest).parent.mkdir(parents=True)
        listener.bind(str(folder / longest))


def test_the_next_rehearsal_removes_what_a_killed_one_left(temporary: Path) -> None:
    argv = [sys.executable, "-c", HOLDS_ONE]
    with subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as rehearsal:
        assert rehearsal.stdout is not None
        other = Path(rehearsal.stdout.readline().strip())
        with work_folder():
            assert (other / "home").is_dir()  # at work
        rehearsal.kill()
    assert (other / "home").is_dir()
    with work_folder() as folder:
        assert list(temporary.iterdir()) == [folder]


def test_what_is_no_rehearsal_s_stays(temporary: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (temporary / "pdrecipe-rehearsal-link").symlink_to(mine)
    (temporary / "pdrecipe-rehearsal-file").touch()
    (temporary / "pdrecipe-rehearsal-no-lock").mkdir()
    (temporary / "other").mkdir()
    with work_folder():
        pass
    assert len(list(temporary.iterdir())) == 4
    assert list(mine.iterdir()) == []


def test_a_folder_of_another_user_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = temporary / "pdrecipe-rehearsal-other"
    other.mkdir()
    (other / "lock").touch()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with work_folder():
        pass
    assert (other / "lock").exists()


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.mkdtemp
    made: list[Path] = []

    def removed_at_first(prefix: str, dir: Path) -> str:  # noqa: A002
        made.append(Path(make(prefix=prefix, dir=dir)))
        if len(made) == 1:
            made[0].rmdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", removed_at_first)
    with work_folder() as folder:
        assert folder == made[1]
        assert folder.is_dir()
    assert list(temporary.iterdir()) == []
