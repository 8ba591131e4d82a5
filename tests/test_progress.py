"""Progress is seen on a terminal, on stderr, for work that takes its time, and nowhere else."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.cli import progress as module
from generator.cli.progress import bar, progress
from tests.fake_cluster import FakeCluster
from tests.small_specs import run
from tests.small_sweeps import client, recipes, submit, sweep_folder
from tests.swept_recipes import V2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Puts a terminal of 60 columns on stderr; to be called in the test, where pytest has its own.

    All work is long.
    """
    monkeypatch.setattr(module, "_AFTER_S", 0.0)
    monkeypatch.setattr(module, "_EVERY_S", 0.0)
    monkeypatch.setenv("COLUMNS", "60")

    def watch() -> Terminal:
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return watch


def lines(stream: Terminal) -> list[str]:
    return stream.getvalue().split("\r\x1b[K")[1:]


def test_bar_fills_up() -> None:
    assert bar(0, 3) == f"[{'-' * 24}]"
    assert bar(1, 3) == f"[{'#' * 8}{'-' * 16}]"
    assert bar(3, 3) == bar(0, 0) == f"[{'#' * 24}]"


def test_items_are_counted_and_the_line_goes_away(watched: Callable[[], Terminal]) -> None:
    terminal = watched()
    with progress("submitting", 2) as tick:
        tick("tiny-0")
        tick("x" * 60)
    first, second, last = lines(terminal)
    assert first == f"submitting {bar(1, 2)} 1/2: tiny-0"
    assert second.startswith(f"submitting {bar(2, 2)} 2/2: xxx")
    assert len(second) == 59
    assert last == ""


def test_count_without_a_total(watched: Callable[[], Terminal]) -> None:
    terminal = watched()
    with progress("rendering") as tick:
        tick("a.yaml")
    assert lines(terminal) == ["rendering 1: a.yaml", ""]


def test_line_goes_away_when_work_fails(watched: Callable[[], Terminal]) -> None:
    terminal = watched()

    def fail() -> None:
        with progress("rendering") as tick:
            tick("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert lines(terminal) == ["rendering 1: a", ""]


def test_short_work_shows_nothing(
    watched: Callable[[], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AFTER_S", 60.0)
    terminal = watched()
    with progress("submitting", 1) as tick:
        tick("a")
    assert terminal.getvalue() == ""


def test_pipe_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_AFTER_S", 0.0)
    with progress("submitting", 1) as tick:
        tick("a")
    monkeypatch.setattr(sys, "stderr", None)  # closed by the shell
    with progress("submitting", 1) as tick:
        tick("a")
    assert capsys.readouterr() == ("", "")


def test_results_are_counted_as_they_are_read(
    tmp_path: Path, watched: Callable[[], Terminal]
) -> None:
    cluster, folder = FakeCluster(), sweep_folder(tmp_path)
    submit(folder, cluster, recipes(2))
    cluster.run()
    terminal = watched()
    client(folder, cluster, progress=progress).glance()
    assert lines(terminal)[-2].startswith(f"reading results {bar(4, 4)} 4/4: ")


def test_watch_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(V2, encoding="utf-8")
    words = ["--cluster", "local", "--command", "true", "--yes", "--sweep", "s"]
    assert run("submit", "a.yaml", *words).exit_code == 0
    reader, writer = pty.openpty()
    command = "from generator.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "status", "--watch", "--every", "1", "s"],
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "100"},
    )
    os.close(writer)
    seen = os.read(reader, 100_000).decode()
    os.close(reader)
    assert (done.returncode, done.stdout) == (0, "2 points: 2 done.\n")
    assert seen.endswith(f"\r\x1b[K{bar(2, 2)} 2 points: 2 done\r\n")
