"""While squeue or sacct fail, lag or are not there, nothing is done, lost or sent too early."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rack.fixture import RunningRack, running_rack, why_not
from tests.rack_sweeps import (
    accounted,
    assert_all_done_once,
    assert_states,
    by_recipe,
    document,
    eventually,
    jobs_in_the_queue,
    jobs_last,
    notes,
    prepared,
    states,
    submit,
    write_recipe,
    write_recipes,
)
from tests.small_specs import run

pytestmark = [pytest.mark.slurm, pytest.mark.faults]

WAITS = "while not (home / f'go-{name}').exists(): time.sleep(.2)\n"
# A command of Slurm as the file beside it says: failing, silent, as it was, or without what ended.
SHIM = """\
#!/bin/sh
case "$(cat {here}.says 2>/dev/null)" in
fail) echo "{name}: error: Unable to contact slurm controller" >&2; exit 1 ;;
empty) exit 0 ;;
stale) cat {here}.stale; exit 0 ;;
lag) echo "DBD Agent queue size: 7"; exit 0 ;;
forget) for word; do shift; case "$word" in -t|all) ;; *) set -- "$@" "$word" ;; esac; done ;;
esac
exec {real} "$@"
"""


class Shims:
    """What squeue, sacct and sdiag are made to say."""

    def __init__(self, folder: Path, rack: RunningRack) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("squeue", "sacct", "sdiag"):
            real = rack.ask("sh", "-c", f"command -v {name}").strip()
            file = folder / name
            file.write_text(SHIM.format(here=file, name=name, real=real), encoding="utf-8")
            file.chmod(stat.S_IRWXU)

    def say(self, name: str, what: str = "") -> None:
        (self.folder / f"{name}.says").write_text(what, encoding="utf-8")


@pytest.fixture
def shims(home: Path, rack: RunningRack, monkeypatch: pytest.MonkeyPatch) -> Shims:
    made = Shims(home / "bin", rack)
    monkeypatch.setenv("PATH", str(made.folder), prepend=":")
    return made


def write_waiting(*names: str) -> None:
    for name in names:
        write_recipe(name)
        Path(f"{name}.py").write_text(WAITS, encoding="utf-8")


def assert_nothing_is_sent(silent: str) -> None:
    result = run("resume", "s", "--yes")
    assert result.stdout.splitlines()[-1] == "Nothing to send."
    assert f"{silent} refused" in result.stderr


def assert_why(name: str, text: str) -> None:
    assert eventually(lambda: text in why(name)), why(name)


def test_squeue_that_fails_for_a_while(home: Path, shims: Shims) -> None:
    write_waiting("one", "two", "three")
    submit(home)
    assert_states(running=3)
    shims.say("squeue", "fail")
    assert {each["state"] for each in document(exit_codes=(5,))["points"]} == {"unknown"}
    Path("go-one").touch()
    assert eventually(lambda: by_recipe(document(exit_codes=(5,)))["one"]["state"] == "done")
    assert by_recipe(document(exit_codes=(5,)))["two"]["why"].startswith("the cluster does not")
    assert_nothing_is_sent("squeue")
    shims.say("sacct", "fail")
    assert {each["state"] for each in document(exit_codes=(5,))["points"]} == {"done", "unknown"}
    assert_nothing_is_sent("sacct")
    shims.say("squeue")
    assert_states(running=2, done=1)
    Path("go-two").touch()
    Path("go-three").touch()
    assert_states(done=3)
    assert_all_done_once(home, 3)
    assert {each["attempts"] for each in document()["points"]} == {1}


def test_sacct_that_lags(home: Path, rack: RunningRack, shims: Shims) -> None:
    write_waiting("gone", "stays")
    submit(home)
    assert_states(running=2)
    task = by_recipe(document())["gone"]["job"]
    assert eventually(lambda: accounted(rack).get(task) == "RUNNING")
    what = ["-n", "-P", "-X", "-o", "JobID,State,ExitCode,NodeList,JobName"]
    (shims.folder / "sacct.stale").write_text(rack.ask("sacct", *what), encoding="utf-8")
    shims.say("sacct", "stale")
    shims.say("sdiag", "lag")
    shims.say("squeue", "forget")  # as long after the end of a job
    rack.ask("scancel", task)
    assert_why("gone", "gone from the queue, and accounting says nothing yet")
    assert "slurmdbd has 7 messages to come" in document()["notices"][0]
    assert_states(unknown=1, running=1)
    assert run("resume", "s", "--yes").stdout.splitlines()[-1] == "Nothing to send."

    shims.say("sacct", "fail")
    assert_states(unknown=1, running=1)
    shims.say("sacct", "empty")
    assert_states(unknown=1, running=1)

    shims.say("sdiag")  # nothing is to come any more, and yet it comes
    heard = threading.Timer(2, shims.say, ["sacct"])
    heard.start()
    assert_states(cancelled=1, running=1)
    heard.join()
    assert why("gone") == "cancelled on the cluster"

    Path("go-gone").touch()
    Path("go-stays").touch()
    assert run("resume", "s", "--yes").exit_code == 0
    assert_states(done=2)
    assert_all_done_once(home, 2)


def test_job_that_waits_in_accounting_alone(home: Path, rack: RunningRack, shims: Shims) -> None:
    """As after a slurmctld that lost its last seconds; this one still has it when it is resumed."""
    fills = ["--exclusive", "--nodes=18", "--output=/dev/null", "--wrap=sleep 1000"]
    filler = rack.ask("sbatch", "--parsable", *fills).strip()
    assert eventually(lambda: rack.ask("squeue", "-h", "-t", "R").strip() != "")
    write_waiting("waits")
    submit(home)
    assert_states(submitted=1)
    task = by_recipe(document())["waits"]["job"]
    assert eventually(lambda: accounted(rack).get(task) == "PENDING")
    shims.say("sdiag", "lag")
    shims.say("squeue", "empty")
    assert_states(unknown=1)
    shims.say("sdiag")
    assert_states(lost=1)

    shims.say("squeue")
    assert run("resume", "s", "--yes").exit_code == 0
    assert task not in jobs_in_the_queue(rack)
    rack.ask("scancel", filler)
    Path("go-waits").touch()
    assert_states(done=1)
    assert_all_done_once(home, 1)


def test_array_that_was_cancelled_before_it_began(
    home: Path, rack: RunningRack, shims: Shims
) -> None:
    """Accounting names its tasks in one row."""
    write_waiting("first")
    submit(home)
    assert_states(running=1)
    write_recipes(12, nodes=18, sizes=1)
    submit(home)
    assert_states(running=1, submitted=12)
    array = by_recipe(document())["r003"]["job"].partition("_")[0]
    rack.ask("scancel", array)
    shims.say("squeue", "forget")
    assert_states(running=1, cancelled=12)
    Path("go-first").touch()
    assert_states(done=1, cancelled=12)


def why(name: str) -> str:
    return str(by_recipe(document())[name]["why"])


def test_slurmdbd_that_is_down_loses_nothing(home: Path, rack: RunningRack) -> None:
    write_recipes(2)
    jobs_last(home, 60)
    submit(home)
    assert eventually(lambda: states()["running"] >= 1)
    rack.verb("stop", "slurmdbd")
    running = next(each for each in document()["points"] if each["state"] == "running")
    rack.ask("scancel", running["job"])
    assert eventually(lambda: states()["unknown"] + states()["cancelled"] >= 1)
    assert states()["lost"] == 0
    rack.verb("start", "slurmdbd")
    assert eventually(lambda: states()["cancelled"] == 1)
    assert run("cancel", "s", "--yes").exit_code == 0


@pytest.fixture
def bare_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, RunningRack]]:
    """Return a folder on a rack without accounting, and that rack."""
    if reason := why_not():
        pytest.skip(reason)
    with running_rack("--no-accounting", "--nodes", "16") as rack:
        for name, value in rack.layout.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        yield prepared(tmp_path), rack


def test_cluster_without_accounting(
    bare_home: tuple[Path, RunningRack], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, rack = bare_home
    write_waiting("gone", "stays", "vanishes")
    write_recipe("fails")
    Path("fails.py").write_text("sys.exit(4)", encoding="utf-8")
    submit(home)
    assert_states(running=3, failed=1)
    assert why("fails") == "the launcher ended with 4"
    tasks = {name: each["job"] for name, each in by_recipe(document()).items()}
    rack.ask("scancel", tasks["gone"])
    assert_states(running=2, failed=1, cancelled=1)

    shims = Shims(home / "bin", rack)
    monkeypatch.setenv("PATH", str(shims.folder), prepend=":")
    shims.say("squeue", "fail")
    assert document(exit_codes=(5,))["counts"]["unknown"] == 2
    shims.say("squeue", "forget")
    rack.ask("scancel", tasks["vanishes"])
    assert_states(running=1, failed=1, cancelled=1, lost=1)
    assert why("vanishes").endswith("no accounting says why")
    Path("fails.py").unlink()
    for name in ("gone", "stays", "vanishes"):
        Path(f"go-{name}").touch()
    assert run("resume", "s", "--yes").exit_code == 0
    assert_states(done=4)
    assert sorted(notes(home, "ended").values()) == [1] * 4
