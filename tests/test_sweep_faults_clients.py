"""Clients that are killed, that meet, and that find a disk full: no point is lost or sent twice."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from submitit.slurm.slurm import SlurmExecutor

from generator.cli import main
from generator.sweep import ledger
from generator.sweep.ledger import read_ledger
from tests.rack.fixture import RunningRack
from tests.rack_sweeps import (
    assert_all_done_once,
    assert_states,
    document,
    eventually,
    jobs_in_the_queue,
    jobs_last,
    known_jobs,
    notes,
    prepared,
    states,
    submission,
    submit,
    write_recipes,
)
from tests.small_specs import run

pytestmark = [pytest.mark.slurm, pytest.mark.faults]

# Kills the client that called it, takes a while, and only then delivers the array.
LATE_SBATCH = """\
#!/bin/sh
case "$*" in *submission*) ;; *) exec {real} "$@" ;; esac
[ -e {folder}/used ] && exec {real} "$@"
touch {folder}/used
kill -9 $PPID
sleep 4
exec {real} "$@"
"""


class Steps:
    """The effects of a client, and the one at which it dies."""

    def __init__(self, last: int) -> None:
        self.count, self.last = 0, last

    def step(self) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **more: Any) -> Any:
            self.step()
            answer = function(*arguments, **more)
            self.step()
            return answer

        return stepping

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **more: Any) -> Any:
            self.step()
            return function(*arguments, **more)

        return stepping

    def half_way(self, descriptor: int, content: bytes) -> None:
        """What a kill amid a line of the ledger leaves."""
        os.write(descriptor, content[: len(content) // 2])
        self.step()
        os.write(descriptor, content[len(content) // 2 :])


def client(words: Sequence[str], last: int = 0) -> int | None:
    """Run a client in a process of its own; how many effects it had, None when it was killed."""
    count, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            output = os.open("client.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            steps = Steps(last)
            # Every file, name and folder that pdrecipe and submitit make, and sbatch itself.
            os.replace = steps.before(os.replace)
            os.rename = steps.before(os.rename)
            os.mkdir = steps.before(os.mkdir)
            ledger.Ledger.append = steps.around(ledger.Ledger.append)  # type: ignore[method-assign]
            ledger._write_all = steps.half_way
            SlurmExecutor._submit_command = steps.around(SlurmExecutor._submit_command)  # type: ignore[method-assign]
            main(list(words), standalone_mode=False)
            os.write(told, str(steps.count).encode())
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(count) as stream:
        answer = stream.read()
    _, status = os.waitpid(child, 0)
    assert bool(answer) != (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL), Path(
        "client.log"
    ).read_text(encoding="utf-8")
    return int(answer) if answer else None


def test_client_killed_at_every_step_of_submission(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the one after it at one of its own steps; all at once on one rack."""

    def begun(at: int) -> Path:
        folder = prepared(home / f"{at:03}")
        monkeypatch.chdir(folder)
        write_recipes(3, sizes=2)  # an array of two, and a job by itself
        return folder

    def survived(folder: Path, at: int) -> None:
        if Path("s/sweep.json").exists():
            client(["resume", "s", "--yes"], last=at % 12 + 1)
            is_planned = bool(read_ledger(Path("s/ledger.jsonl")).records)
            assert run("resume", "s", "--yes").exit_code == (0 if is_planned else 10)
        submit(folder)  # what the first client did not come to plan

    steps = client(submission(begun(0)))
    assert steps is not None
    assert steps > 40
    for at in range(1, steps + 1):
        folder = begun(at)
        assert client(submission(folder), last=at) is None
        survived(folder, at)
    for at in range(steps + 1):
        folder = home / f"{at:03}"
        monkeypatch.chdir(folder)
        assert eventually(lambda: states()["done"] == 3), (at, document())
        assert_all_done_once(folder, 3)


def test_an_sbatch_that_outlives_its_client_delivers_nothing_to_do(
    home: Path, rack: RunningRack, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_recipes(3, sizes=1)
    real = rack.ask("sh", "-c", "command -v sbatch").strip()
    shim = home / "bin" / "sbatch"
    shim.parent.mkdir()
    shim.write_text(LATE_SBATCH.format(real=real, folder=home), encoding="utf-8")
    shim.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    assert client(submission(home)) is None
    assert run("resume", "s", "--yes").exit_code == 0
    assert (home / "used").exists()
    lines = Path("s/ledger.jsonl").read_text(encoding="utf-8").splitlines()
    intended = {each["token"] for each in map(json.loads, lines) if each["event"] == "intended"}
    assert len(intended) == 2

    def both_came() -> bool:
        names = rack.ask("squeue", "-h", "-t", "all", "-o", "%j").split()
        return {f"tiny.{token}" for token in intended} <= set(names)

    assert eventually(both_came)
    assert_states(done=3)
    assert_all_done_once(home, 3)


def test_clients_that_meet_on_one_folder(home: Path, rack: RunningRack) -> None:
    write_recipes(5)
    jobs_last(home, 1)
    words = [sys.executable, "-c", "from generator.cli import main; main()"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    before = set(known_jobs(rack))
    clients = [
        subprocess.Popen(
            [*words, *submission(home)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(4)
    ]
    said = [each.communicate(timeout=120)[0] for each in clients]
    codes = [each.returncode for each in clients]
    assert codes.count(0) >= 1
    assert set(codes) <= {0, 3}
    for code, text in zip(codes, said, strict=True):
        assert ("is working on this sweep" in text) == (code == 3), text
    assert sum("Sent 5 jobs" in text for text in said) == 1
    assert_states(done=5)
    assert_all_done_once(home, 5)
    assert len(set(known_jobs(rack)) - before) == 5


def test_ledger_whose_clock_runs_backwards(home: Path) -> None:
    write_recipes(3)
    jobs_last(home, 3)
    submit(home)
    assert eventually(lambda: states()["running"] >= 1)
    path = Path("s/ledger.jsonl")
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for number, record in enumerate(records):
        record["at"] = f"2031-01-01T00:{59 - number:02}:00Z"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
    assert run("resume", "s", "--yes").stdout.splitlines()[-1] == "Nothing to send."
    assert_states(done=3)
    assert_all_done_once(home, 3)
    times = [json.loads(line)["at"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert times != sorted(times)


@pytest.fixture
def disk(home: Path) -> Iterator[Path]:
    """Return a small disk of its own."""
    folder = home / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """Leave no room, not even for a byte."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as stream:
        for size in (2**16, 1):
            try:
                while True:
                    stream.write(b"x" * size)
            except OSError:
                continue
    return ballast


def fill_page(path: Path) -> None:
    """Blanks in the first record: a disk gives room by the page, where a short line still fits."""
    first, rest = path.read_bytes().split(b"\n", 1)
    blanks = -(len(first) + len(rest) + 1) % os.sysconf("SC_PAGESIZE")
    path.write_bytes(first + b" " * blanks + b"\n" + rest)


def assert_one_line(result: Result, text: str) -> None:
    assert [text in line for line in result.stderr.splitlines()] == [True], result.stderr


WAITS = "while not (home / 'go').exists(): time.sleep(.2)\n"


def test_full_disk(home: Path, disk: Path, rack: RunningRack) -> None:
    write_recipes(3)
    for number in range(3):
        Path(f"r{number:03}.py").write_text(WAITS, encoding="utf-8")
    sweep = "disk/s"
    ballast = fill(disk)
    known = set(known_jobs(rack))
    refused = run(*submission(home, sweep=sweep))
    assert refused.exit_code == 3
    assert_one_line(refused, "no space left on the device")
    assert set(known_jobs(rack)) <= known
    ballast.unlink()
    submit(home, sweep=sweep)
    assert eventually(lambda: len(notes(home, "began")) == 3)

    path = Path(sweep, "ledger.jsonl")
    fill_page(path)
    fill(disk)
    before = path.read_bytes()
    found = run("status", sweep, "--json")
    assert found.exit_code == 10
    assert_one_line(found, "no space left on the device")
    assert json.loads(found.stdout)["counts"]["running"] == 3
    Path("go").touch()
    assert eventually(lambda: jobs_in_the_queue(rack) == [])
    assert states(sweep)["done"] == 0  # no result could be kept
    refused = run("resume", sweep, "--yes")
    assert refused.exit_code == 3
    assert_one_line(refused, "no space left on the device")
    assert path.read_bytes() == before

    ballast.unlink()
    assert run("resume", sweep, "--yes").exit_code == 0
    assert_states(sweep=sweep, done=3)
    assert {each["attempts"] for each in document(sweep)["points"]} == {2}


def test_read_only_folder(home: Path, disk: Path, rack: RunningRack) -> None:
    write_recipes(2)
    sweep = "disk/s"
    jobs_last(home, "x")
    submit(home, sweep=sweep)
    assert_states(sweep=sweep, failed=2)
    assert eventually(lambda: jobs_in_the_queue(rack) == [])
    jobs_last(home, 0)
    before = Path(sweep, "ledger.jsonl").read_bytes()
    known = set(known_jobs(rack))
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    found = run("status", sweep, "--json")
    assert found.exit_code == 10
    assert_one_line(found, "the file system is read-only")
    assert json.loads(found.stdout)["counts"]["failed"] == 2
    for verb in ("resume", "cancel"):
        refused = run(verb, *([sweep] if verb == "resume" else ["--sweep", sweep]), "--yes")
        assert refused.exit_code == 3
        assert_one_line(refused, "the file system is read-only")
    assert run(*submission(home, sweep=sweep)).exit_code in (0, 3)
    assert set(known_jobs(rack)) <= known
    assert Path(sweep, "ledger.jsonl").read_bytes() == before
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert run("resume", sweep, "--yes").exit_code == 0
    assert_states(sweep=sweep, done=2)
    assert_all_done_once(home, 2, sweep=sweep)
