"""A rehearsal's network and processes: closed to the outside, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from generator.cluster.processes import start_time
from generator.errors import ClusterFailure
from generator.rehearsal_host import namespace
from generator.rehearsal_host.namespace import closed_network
from generator.rehearsal_host.supervisor import (
    Interrupted,
    Program,
    ProgramEnd,
    Supervisor,
    supervised,
)
from tests.started_processes import HOLDER, networks, processes_in, until

REPOSITORY = Path(__file__).resolve().parents[1]
PORT = 18_000
SERVER = ("-m", "http.server", str(PORT))  # on every address it has
# A child of its own that ignores SIGTERM, in a session of its own: what a plain kill misses.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
print("up", flush=True)
time.sleep(600)
"""
# What a rehearsal is to a test that kills it: a server and a stubborn program, until the end.
REHEARSAL = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
from pathlib import Path
from tests.test_rehearsal_host import program, SERVER, STUBBORN
from generator.rehearsal_host.supervisor import supervised
folder = Path(sys.argv[1])
with supervised() as supervisor:
    supervisor.start(program(folder, "web", *SERVER))
    supervisor.start(program(folder, "stubborn", "-c", STUBBORN))
    while "up" not in (folder / "stubborn.log").read_text():
        time.sleep(0.05)
    (folder / "ready").touch()
    try:
        time.sleep(600)
    finally:
        supervisor.end(grace_s=0.5)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux namespaces")


def program(folder: Path, name: str, *arguments: str) -> Program:
    return Program(
        name=name,
        argv=(sys.executable, *arguments),
        environment={"REHEARSAL_OF": str(folder), "PATH": os.environ["PATH"]},
        folder=folder,
        log=folder / f"{name}.log",
    )


def processes_of(folder: Path) -> list[int]:
    """Every living process of this machine that was started for a test's rehearsal."""
    mark = f"REHEARSAL_OF={folder}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes() and start_time(int(process.name)):
                found.append(int(process.name))
    return found


def answers(supervisor: Supervisor, path: str = "/") -> bool:
    with suppress(OSError):
        return supervisor.get(PORT, path).status == 200
    return False


@pytest.fixture
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Fail a test after which a process of it, or the first one of a network, is still there."""
    yield
    assert processes_of(tmp_path) == []
    assert until(lambda: not processes_in(HOLDER))


@pytest.mark.usefixtures("nothing_left")
def test_a_server_inside_is_reached_from_here_and_from_nowhere_else(tmp_path: Path) -> None:
    with supervised() as supervisor:
        supervisor.start(program(tmp_path, "web", *SERVER))
        assert until(lambda: answers(supervisor))
        assert supervisor.get(PORT, "/none").status == 404
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", PORT), timeout=5)
        assert f":{PORT:04X} 00000000:0000 0A" not in Path("/proc/net/tcp").read_text()


@pytest.mark.usefixtures("nothing_left")
def test_inside_there_is_loopback_alone_and_the_host_name_resolves(tmp_path: Path) -> None:
    ask = (
        "import os, socket; print(*(name for _, name in socket.if_nameindex()),"
        " socket.gethostbyname(socket.gethostname()), os.getpid() < 10, os.access('/proc/1', 4))"
    )
    with supervised() as supervisor:
        supervisor.start(program(tmp_path, "ask", "-c", ask))
        (end,) = supervisor.look(timeout_s=15)
    assert (end.exit_code, end.last_lines) == (0, "lo 127.0.0.1 True True")


@pytest.mark.usefixtures("nothing_left")
def test_it_says_which_program_died_and_how(tmp_path: Path) -> None:
    with supervised() as supervisor:
        supervisor.start(program(tmp_path, "web", *SERVER))
        supervisor.start(
            program(tmp_path, "worker", "-c", "print('no blocks'); raise SystemExit(7)")
        )
        (first,) = supervisor.look(timeout_s=15)
        supervisor.start(program(tmp_path, "other", "-c", "import os; os.kill(os.getpid(), 9)"))
        (second,) = supervisor.look(timeout_s=15)
        assert list(supervisor.running) == ["web"]
        with pytest.raises(ClusterFailure, match="absent cannot be started: /none/such: No such"):
            supervisor.start(replace(program(tmp_path, "absent"), argv=("/none/such",)))
    assert (str(first), first.last_lines) == ("worker ended with exit code 7", "no blocks")
    assert str(second) == "other was killed by SIGKILL"
    assert str(supervisor.ends[-1]) == "web was killed by SIGTERM"


def test_of_a_log_the_last_line_with_words_is_quoted(tmp_path: Path) -> None:
    worker = ProgramEnd(program=program(tmp_path, "worker"), exit_code=1)
    assert worker.last_words == ""
    worker.program.log.write_text(f"begun\nno blocks {'are left ' * 99}\n    ^^^^^\n\n")
    assert worker.last_words.startswith("no blocks are left")
    assert worker.last_words.endswith(" ...")
    assert len(worker.last_words) <= 200


@pytest.mark.usefixtures("nothing_left")
def test_nothing_is_left_after_a_failure_of_ours(tmp_path: Path) -> None:
    def fails() -> None:
        with supervised() as supervisor:
            supervisor.start(program(tmp_path, "web", *SERVER))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()


@pytest.mark.usefixtures("nothing_left")
def test_one_program_is_ended_and_the_others_stay(tmp_path: Path) -> None:
    with supervised() as supervisor:
        supervisor.start(program(tmp_path, "web", *SERVER))
        supervisor.start(program(tmp_path, "stubborn", "-c", STUBBORN))
        assert until(lambda: "up" in (tmp_path / "stubborn.log").read_text())
        supervisor.end("stubborn", grace_s=0.3)
        assert str(supervisor.ends[-1]) == "stubborn was killed by SIGKILL"
        assert until(lambda: answers(supervisor))


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGINT, 128 + signal.SIGINT),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
@pytest.mark.usefixtures("nothing_left")
def test_nothing_outlives_a_signal_to_the_rehearsal(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    rehearsal = subprocess.Popen(
        [sys.executable, "-c", REHEARSAL, str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        assert until((tmp_path / "ready").exists)
        started = processes_of(tmp_path)
        assert len(started) == 3
        closed = {Path(f"/proc/{pid}/ns/net").readlink().name for pid in started}
        assert len(closed) == 1
        rehearsal.send_signal(number)
        assert rehearsal.wait(timeout=30) == code
    finally:
        rehearsal.kill()
        rehearsal.wait()
    assert until(lambda: not processes_of(tmp_path), seconds=5)
    assert until(lambda: closed.isdisjoint(networks()), seconds=5)


@pytest.mark.usefixtures("nothing_left")
def test_a_killed_holder_takes_all_along_and_is_told(tmp_path: Path) -> None:
    def loses_its_holder() -> None:
        with supervised() as supervisor:
            supervisor.start(program(tmp_path, "stubborn", "-c", STUBBORN))
            assert until(lambda: "up" in (tmp_path / "stubborn.log").read_text())
            for pid in _children_of(os.getpid()):
                os.kill(pid, signal.SIGKILL)  # unshare; the kernel then kills its child
            assert until(lambda: not processes_of(tmp_path))
            supervisor.look(timeout_s=5)

    with pytest.raises(ClusterFailure, match="is gone or does not answer"):
        loses_its_holder()


def _children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.usefixtures("nothing_left")
def test_a_signal_while_programs_are_ended_ends_them_at_once(tmp_path: Path) -> None:
    def is_hurried() -> None:
        with supervised() as supervisor:
            supervisor.start(program(tmp_path, "stubborn", "-c", STUBBORN))
            assert until(lambda: "up" in (tmp_path / "stubborn.log").read_text())
            signal.setitimer(signal.ITIMER_REAL, 0.3)

    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    try:
        with pytest.raises(Interrupted):
            is_hurried()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 8  # not the grace of ten seconds


@pytest.mark.usefixtures("nothing_left")
def test_an_answer_left_behind_by_an_interrupted_request_is_nobody_elses(tmp_path: Path) -> None:
    with closed_network() as network:
        first = program(tmp_path, "first", "-c", "pass")
        network._control.send(b'{"request": 99, "do": "connect", "port": 1}')
        with pytest.raises(OSError, match="Connection refused"):
            network.request("connect", port=2)
        details = {"folder": str(first.folder), "log": str(first.log)}
        network.request("start", name="first", argv=list(first.argv), environment={}, **details)
        assert list(network.ended(timeout_s=15)) == [("first", 0)]


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ClusterFailure, match=r"needs Linux namespaces, and this is darwin \(run"):
        closed_network().__enter__()


def test_a_machine_without_unshare_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterFailure, match=r"not on PATH \(install util-linux\)"):
        closed_network().__enter__()


@pytest.mark.parametrize("user", [0, 1000])
def test_a_machine_that_forbids_namespaces_is_told_what_to_allow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int
) -> None:
    unshare = tmp_path / "unshare"
    unshare.write_text('#!/bin/sh\necho "unshare: unshare failed: $1 forbidden" >&2\nexit 1\n')
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(ClusterFailure) as caught:
        closed_network().__enter__()
    root = "" if user else " and, as root, unshare failed: --net forbidden"
    assert f"own: unshare failed: --user forbidden{root} (let users have" in str(caught.value)


@pytest.mark.usefixtures("nothing_left")
def test_where_users_have_no_namespaces_root_still_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setattr(namespace, "_USER", ("--no-such-option",))
    with supervised() as supervisor:
        supervisor.start(program(tmp_path, "ask", "-c", "print('here')"))
        (end,) = supervisor.look(timeout_s=15)
    assert end.last_lines == "here"
